"""The Lab's links, session files and exports: made here, and opened here."""

import streamlit as st

from app import services, sharing, state
from app.addresses import address
from app.app_pages.graph_download import graph_download
from app.app_pages.lab_open import open_graph_form, show_opened
from app.export import page_html
from app.scene import Scene
from app.share import (
    ENDING,
    MOST_BYTES,
    MOST_EDITS_IN_FILE,
    PARAMETER,
    Shared,
    ShareError,
    TooLong,
    from_file,
    to_file,
    to_link,
)
from app.state import KEY
from app.texts import language, speaking, t
from app.view_models.html import markdown
from app.view_models.shared import edits_html, how_it_is_read, model_name
from kbert_core import KBertError

ss = st.session_state


# What came


def something_waits() -> bool:
    """Take what the address brings; return whether it can't be shown in full yet.

    Then what can be shown of it is drawn, and nothing else is to be.
    """
    problem = ss.pop("lab.share_problem", None)
    shared = None
    try:
        sharing.arrive()
        shared = sharing.waiting()
    except ShareError as error:
        problem = str(error)
    if problem:
        st.error(markdown(problem), icon=":material/link_off:")
    for note in sharing.notes():
        st.warning(markdown(note), icon=":material/info:")
    if shared is not None:
        read_only(shared)
    return shared is not None


def read_only(shared: Shared) -> None:
    """A scene whose graph or model isn't here: its text and edits, and how to have all of it."""
    scene = shared.scene
    st.subheader(t("share.waiting"), anchor=False)
    with st.container(key="lab_panels"):
        left, right = st.columns([6, 5], gap="large")
    with left:
        for text in scene.sentences:
            st.code(text, language=None, wrap_lines=True)
        st.caption(markdown(" · ".join(_facts(shared))))
        if scene.edits:
            st.html(edits_html(scene.edits))
        else:
            st.caption(t("keep.no_edits"))
    with right:
        if sharing.has_graph(scene.graph):
            st.warning(
                markdown(t("share.needs_model", model=scene.model)), icon=":material/smart_toy:"
            )
        else:
            _ask_for_graph(shared)
        with st.container(horizontal=True, gap="small"):
            if len(scene.sentences) == 1 or sharing.has_model(shared):
                st.button(
                    t("share.otherwise"),
                    key="lab.share_otherwise",
                    on_click=sharing.read_otherwise,
                    help=t("share.otherwise_help"),
                )
            st.button(t("share.leave"), key="lab.share_leave", on_click=sharing.leave)


def _ask_for_graph(shared: Shared) -> None:
    """Say which graph is missing, and take it; say so where the one opened isn't it."""
    name = shared.scene.graph.name
    opened = ss.get("lab.opened")
    show_opened()
    if opened is not None:
        st.warning(markdown(t("share.other_graph", graph=name)), icon=":material/difference:")
        st.caption(markdown(t("share.needs_graph", graph=name)))
    else:
        st.warning(markdown(t("share.needs_graph", graph=name)), icon=":material/hub:")
    if opened is None and any(g.name == name for g in ss["lab.graphs"].values()):
        st.caption(markdown(t("share.same_name", graph=name)))
    with st.container(border=True, key="lab_share_graph"):
        open_graph_form(empty=False)


def _facts(shared: Shared) -> list[str]:
    scene = shared.scene
    return [
        f"{t('lab.model')}: {model_name(scene.model)}",
        f"{t('lab.graph')}: {scene.graph.name}",
        *how_it_is_read(scene),
    ]


# What goes out


@st.fragment
def share_and_keep() -> None:
    """One button; what is behind it is made when it is opened."""
    if ss.pop("lab.share_taken", False):
        st.rerun()  # a session file was opened: all of the page is another
    with (
        st.container(key="lab_share", width="content"),
        st.popover(
            t("share.button"), icon=":material/ios_share:", key="lab.share", on_change="rerun"
        ) as opened,
    ):
        if opened.open:
            _share()


def _share() -> None:
    """The link, the session file, the page as HTML, the graph."""
    shared, scene = sharing.shared(), state.scene()
    st.markdown(f"**{t('share.link')}**")
    try:
        if not all(text.strip() for text in scene.sentences):
            raise ShareError(t("share.nothing"))
        query = {PARAMETER: to_link(shared)}
    except TooLong as error:
        st.info(markdown(error), icon=":material/straighten:")
    except ShareError as error:
        st.error(markdown(error))
        return
    else:
        _link(shared, query)
    st.markdown(f"**{t('share.file')}**")
    _session_file(shared)
    st.markdown(f"**{t('keep.files')}**")
    with st.container(horizontal=True, gap="xsmall"):
        _page_file(scene)
        name = sharing.file_name(scene, "graph", ".spo")
        graph = state.graph_of(scene)
        graph_download(graph, "keep.graph_button", key="lab.keep_graph", file_name=name)


def _page_file(scene: Scene) -> None:
    """The page as one file of HTML, or why there is none."""
    if not services.has_trees(scene):
        st.caption(t("keep.no_trees"))
        return
    try:
        page, spoken = sharing.page(), language()
    except KBertError as error:
        st.caption(markdown(error))
        return

    def made() -> bytes:  # where no visit is known
        with speaking(spoken):
            return page_html(page)

    st.download_button(
        t("keep.html"),
        made,
        file_name=sharing.file_name(scene, "page", ".html"),
        mime="text/html",
        key="lab.keep_page",
        icon=":material/download:",
        on_click="ignore",
        help=t("keep.html_help"),
    )


def _link(shared: Shared, query: dict[str, str]) -> None:
    workspace = state.workspace()
    if workspace is not None and st.checkbox(t("share.with_key"), key="lab.share_key"):
        query = {KEY: workspace.key, **query}
    st.code(address(**query), language=None)
    st.caption(t("share.carries"))
    if workspace is not None:
        st.caption(t("share.workspace_open" if KEY in query else "share.workspace"))
    elif not sharing.graph_is_known(shared.scene.graph):
        st.caption(markdown(t("share.own_graph", graph=shared.scene.graph.name)))


def _session_file(shared: Shared) -> None:
    """Download and open again."""
    graph = state.base()
    if len(shared.scene.edits) > MOST_EDITS_IN_FILE:
        st.info(t("share.file_too_long", most=f"{MOST_EDITS_IN_FILE:,}"))
    else:
        st.download_button(
            t("share.download"),
            lambda: to_file(shared, graph),
            file_name=sharing.file_name(shared.scene, "scene", ENDING),
            mime="application/json",
            key="lab.share_download",
            icon=":material/download:",
            on_click="ignore",
            help=t("share.download_help"),
        )
    st.file_uploader(
        t("share.open"),
        type=["json"],
        max_upload_size=MOST_BYTES >> 20,
        key=f"lab.share_upload.{ss.get('lab.share_uploads', 0)}",
        on_change=_take_file,
        help=t("share.open_help"),
    )


def _take_file() -> None:
    file = ss.get(f"lab.share_upload.{ss.get('lab.share_uploads', 0)}")
    if file is None:
        return
    ss["lab.share_uploads"] = ss.get("lab.share_uploads", 0) + 1
    try:
        sharing.take(*from_file(file.getvalue()))
    except KBertError as error:  # it can't be read, or there is no room for its graph
        ss["lab.share_problem"] = str(error)
    ss["lab.share_taken"] = True
