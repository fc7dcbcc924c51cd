"""The Lab's links, session files and exports: made here, and opened here."""

import streamlit as st

from app import services, sharing, state
from app.addresses import address
from app.app_pages.lab_open import open_graph_form, show_opened
from app.app_pages.lab_prediction import comparable, draw_prediction
from app.app_pages.parts import action, download, graph_download
from app.export import page_html
from app.state import KEY, ORIGINAL
from kbert_core import KBertError
from kbert_lab.lab import share
from kbert_lab.lab.scene import Scene, is_blank
from kbert_lab.lab.session import AUTO
from kbert_lab.lab.share import Shared, ShareError, TooLong
from kbert_lab.lab.texts import N_, language, refusal, speaking, t
from kbert_lab.lab.views.html import markdown
from kbert_lab.lab.views.shared import edits_html, how_it_is_read, model_name, turning

ss = st.session_state
MOST_OF_TITLE = 60  # characters, of the page's


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
    except KBertError as error:
        problem = refusal(error)
    if problem:
        st.error(markdown(problem), icon=":material/link_off:")
    for note in sharing.notes():
        st.warning(markdown(note), icon=":material/info:")
    if shared is not None:
        read_only(shared)
    return shared is not None


def left_page() -> None:
    """Offer what the page showed before it was loaded again."""
    if "lab.left" not in ss:
        return
    with st.container(key="lab_left", horizontal=True, vertical_alignment="center", gap="small"):
        said = t("Before this page was loaded again, it showed a text or edits of yours.")
        st.info(said, icon=":material/history:", width="stretch")
        action(t("Go on with it"), "lab.left_on", sharing.go_on, type="primary")
        action(t("Dismiss"), "lab.left_off", sharing.begin_anew)


def card() -> bool:
    """What a link put on the page, before anything else; return whether it is to be seen first."""
    if not (ss.get("lab.card") and sharing.as_arrived()):
        return False
    now = state.scene()
    try:
        trace = services.trace(now, state.graph_of(now))
        _, kind, before = state.compared_with(now, trace)
        if kind == AUTO and len(now.edits) > 1:  # what all of them did
            kind, old = ORIGINAL, now.original()
            before = services.trace(old, state.graph_of(old))
    except KBertError:  # the Lab says why
        return False
    with st.container(border=True, key="lab_card", width=720):
        st.caption(t("A page was shared with you"))
        for text in now.sentences:
            st.subheader(markdown(text), anchor=False)
        was = comparable(trace, before)
        turned = ""
        if trace.prediction is not None:
            info = services.model_info(now.model)
            turned = turning(info, now.sentences[-1], trace.prediction, was) if was else ""
            if turned:
                st.markdown(f"#### {markdown(turned)}")
            draw_prediction(now, trace, was, kind)
        if now.edits:
            st.html(edits_html(now.edits))
        st.caption(markdown(" · ".join(_facts(now))))
        action(
            t("Open in the Lab"),
            "lab.card_open",
            sharing.open_card,
            icon="account_tree",
            type="primary",
        )
    shown = turned or now.sentences[0]
    st.set_page_config(page_title=f"{shown[:MOST_OF_TITLE]} · {t('K-BERT Lab')}")
    return True


def read_only(shared: Shared) -> None:
    """A scene whose graph or model isn't here: its text and edits, and how to have all of it."""
    scene = shared.scene
    st.subheader(t("A page was shared with you"), anchor=False)
    with st.container(key="lab_panels"):
        left, right = st.columns([6, 5], gap="large")
    with left:
        for text in scene.sentences:
            st.code(text, language=None, wrap_lines=True)
        st.caption(markdown(" · ".join(_facts(scene))))
        if scene.edits:
            st.html(edits_html(scene.edits))
        else:
            st.caption(t("The graph was not edited."))
    with right:
        if sharing.graph_named(scene):
            said = N_(
                "It was made with the model {model}, which isn't here, and no other model here "
                "reads two texts for that task. Put the model's folder into the models folder, and "
                "open the link again."
            )
            st.warning(markdown(t(said, model=scene.model)), icon=":material/smart_toy:")
        else:
            _ask_for_graph(shared)
        with st.container(horizontal=True, gap="small"):
            if len(scene.sentences) == 1 or sharing.has_model(shared):
                action(
                    t("Use a graph that is here"),
                    "lab.share_otherwise",
                    sharing.read_otherwise,
                    help=t(
                        "Reads the text with the graph chosen last, without the edits that came "
                        "with it."
                    ),
                )
            action(t("Dismiss"), "lab.share_leave", sharing.leave)


def _ask_for_graph(shared: Shared) -> None:
    """Say which graph is missing, and take it; say so where the one opened isn't it."""
    name = shared.scene.graph.name
    opened = ss.get("lab.opened")
    show_opened()
    said = t(
        "It was made with the graph “{graph}”, which isn't here. Open that graph to see the whole "
        "page. Until then you see only the text and the edits, without a prediction.",
        graph=name,
    )
    if opened is None:
        st.warning(markdown(said), icon=":material/hub:")
        if any(own.graph.name == name for own in state.session().graphs.values()):
            other = t("There is a graph “{graph}” here, but with other triples.", graph=name)
            st.caption(markdown(other))
    else:
        text = N_("The page was made with the graph “{graph}”. What you opened has other triples.")
        st.warning(markdown(t(text, graph=name)), icon=":material/difference:")
        st.caption(markdown(said))
    with st.container(border=True, key="lab_share_graph"):
        open_graph_form(empty=False)


def _facts(scene: Scene) -> list[str]:
    return [
        f"{t('Model')}: {model_name(share.folder_name(scene.model))}",
        f"{t('Knowledge graph')}: {scene.graph.name}",
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
            t("Share"), icon=":material/ios_share:", key="lab.share", on_change="rerun"
        ) as opened,
    ):
        if opened.open:
            _share()


def _share() -> None:
    """The link, the session file, the page as HTML, the graph."""
    carrying = shared = sharing.shared()
    scene = state.scene()
    st.markdown(f"**{t('A link to this page')}**")
    try:
        if any(map(is_blank, scene.sentences)):
            raise ShareError(t("Write a text that can be read; then there is something to share."))
        carrying = sharing.with_triples(shared)
        try:
            query = {share.PARAMETER: share.to_link(carrying)}
        except TooLong:
            query, carrying = {share.PARAMETER: share.to_link(shared)}, shared
    except TooLong as error:
        st.info(markdown(error), icon=":material/straighten:")
    except ShareError as error:
        st.error(markdown(error))
        return
    else:
        _link(carrying, query)
    st.markdown(f"**{t('A session file')}**")
    _session_file(carrying)
    st.markdown(f"**{t('Files to keep')}**")
    with st.container(horizontal=True, gap="xsmall"):
        _page_file(scene)
        name = sharing.file_name(scene, "graph", ".spo")
        graph = state.graph_of(scene)
        graph_download(graph, N_("The edited graph, .spo"), key="lab.keep_graph", file_name=name)


def _page_file(scene: Scene) -> None:
    """The page as one file of HTML, or why there is none."""
    if not services.has_trees(scene):
        st.caption(t("This model grows no sentence trees, so there is no page to keep."))
        return
    try:
        page, spoken = sharing.page(), language()
    except KBertError as error:
        st.caption(markdown(error))
        return

    def made() -> bytes:  # where no visit is known
        with speaking(spoken):
            return page_html(page)

    download(
        "lab.keep_page",
        t("This page, .html"),
        made,
        sharing.file_name(scene, "page", ".html"),
        "text/html",
        help=t(
            "One file that shows the page with the network off: text, prediction, tree and "
            "matrix, before and now."
        ),
    )


def _link(shared: Shared, query: dict[str, str]) -> None:
    workspace = state.workspace()
    if workspace is not None and st.checkbox(t("Add the workspace's key"), key="lab.share_key"):
        query = {KEY: workspace.key, **query}
    st.code(address(**query), language=None)
    st.caption(
        t(
            "The link contains the text, the edits and the options, but not the graph or the "
            "model. Anyone with the link can read the text."
        )
    )
    said = ""
    graph, count = shared.scene.graph, f"{len(shared.part):,}"
    if workspace is not None:
        said = t(
            "With its key the link also opens the workspace: anyone with the link can read and "
            "edit the whole graph."
            if KEY in query
            else "The graph is in a workspace, and the link does not open it: whoever opens the "
            "link is asked for the graph."
        )
    elif shared.part:
        text = N_(
            "Not everybody has the graph “{graph}”, so the link carries those of its triples that "
            "this text needs: {count}. Anyone with the link can read them."
        )
        if sharing.graph_is_known(graph):
            text = N_(
                "The link carries the triples of the graph “{graph}” that this text needs, "
                "{count}, so that it opens with a later version of the graph too."
            )
        said = t(text, graph=graph.name, count=count)
    elif not sharing.graph_is_known(graph):
        text = N_(
            "Not everybody has the graph “{graph}”: whoever opens the link is asked for it. A "
            "session file can contain a graph of up to 20,000 triples."
        )
        said = t(text, graph=graph.name)
    if said:
        st.caption(markdown(said))


def _session_file(shared: Shared) -> None:
    """Download and open again."""
    graph = state.base()
    if len(shared.scene.edits) > share.MOST_EDITS_IN_FILE:
        st.info(t(share.TOO_LONG, most=f"{share.MOST_EDITS_IN_FILE:,}"))
    else:
        download(
            "lab.share_download",
            t("Save the session"),
            lambda: share.to_file(shared, graph),
            sharing.file_name(shared.scene, "scene", share.ENDING),
            "application/json",
            help=t(
                "The same content as the link, of any length, and the graph before the edits, if "
                "it has at most 20,000 triples."
            ),
        )
    st.file_uploader(
        t("Open a session file (.kbert.json)"),
        type=["json"],
        max_upload_size=share.MOST_BYTES >> 20,
        key=f"lab.share_upload.{ss.get('lab.share_uploads', 0)}",
        on_change=_take_file,
        help=t("It replaces what is on the page, and your edits to its graph."),
    )


def _take_file() -> None:
    file = ss.get(f"lab.share_upload.{ss.get('lab.share_uploads', 0)}")
    if file is None:
        return
    ss["lab.share_uploads"] = ss.get("lab.share_uploads", 0) + 1
    try:
        sharing.take(*share.from_file(file.getvalue()))
    except KBertError as error:  # it can't be read, or there is no room for its graph
        ss["lab.share_problem"] = refusal(error)
    ss["lab.share_taken"] = True
