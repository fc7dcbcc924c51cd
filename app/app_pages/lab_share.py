"""The Lab's links, session files and exports: made here, and opened here."""

import streamlit as st

from app import services, sharing, state
from app.addresses import address
from app.app_pages.lab_open import open_graph_form, show_opened
from app.app_pages.lab_prediction import comparable, draw_prediction
from app.app_pages.parts import action, download, told_once
from app.state import KEY
from kbert_core import KBertError
from kbert_lab.lab import share
from kbert_lab.lab.comparing import ORIGINAL
from kbert_lab.lab.page.file import page_html
from kbert_lab.lab.scene import Scene, is_blank
from kbert_lab.lab.session import AUTO
from kbert_lab.lab.share import Shared, ShareError, Shown, TooLong, Waits
from kbert_lab.lab.texts import N_, language, sentences, speaking, t
from kbert_lab.lab.views.html import markdown
from kbert_lab.lab.views.prediction import turning
from kbert_lab.lab.views.shared import edits_html, how_it_is_read, model_name
from kbert_lab.lab.written import folder_name

ss = st.session_state
MOST_OF_TITLE = 60  # characters, of the page's
FILE = "lab.share_upload"


# What came


def something_waits() -> bool:
    """Take what the address brings; return whether it can't be shown in full yet.

    Then what can be shown of it is drawn, and nothing else is to be.
    """
    sharing.arrive()
    told_once()
    arrival = state.session().arrival
    if isinstance(arrival, Shown):
        for note in arrival.notes:
            st.warning(markdown(note), icon=":material/info:")
    if isinstance(arrival, Waits):
        read_only(arrival.shared)
    return isinstance(arrival, Waits)


def left_page() -> None:
    """Offer what the page showed before it was loaded again."""
    if not ss.get("lab.left"):
        return
    with st.container(key="lab_left", horizontal=True, vertical_alignment="center", gap="small"):
        said = t("Before this page was loaded again, it showed a text or edits of yours.")
        st.info(said, icon=":material/history:", width="stretch")
        action(t("Go on with it"), "lab.left_on", sharing.go_on, type="primary")
        action(t("Dismiss"), "lab.left_off", sharing.begin_anew)


def card() -> bool:
    """What a link put on the page, before anything else; return whether it is to be seen first."""
    arrival = state.session().arrival
    if not (isinstance(arrival, Shown) and arrival.card):
        return False
    now = state.scene()
    try:
        trace = services.trace(now, state.session().graph_of(now))
        _, kind, before = state.compared_with(now, trace)
        if kind == AUTO and len(now.edits) > 1:  # what all of them did
            kind, old = ORIGINAL, now.original()
            before = services.trace(old, state.session().graph_of(old))
    except KBertError:  # the Lab says why
        return False
    turned = ""
    with st.container(border=True, key="lab_card", width=720):
        _text_of(now)
        was = comparable(trace, before)
        if trace.prediction is not None:
            info = services.model_info(now.model)
            turned = turning(info, now.sentences[-1], trace.prediction, was) if was else ""
            if turned:
                st.markdown(f"#### {markdown(turned)}")
            draw_prediction(now, trace, was, kind)
        _edits_and_facts(now)
        go, how = t("Open in the Lab"), {"icon": "account_tree", "type": "primary"}
        action(go, "lab.card_open", sharing.open_card, arrival, **how)
    shown = turned or now.sentences[0]
    st.set_page_config(page_title=f"{shown[:MOST_OF_TITLE]} · {t('K-BERT Lab')}")
    return True


def read_only(shared: Shared) -> None:
    """A scene whose graph isn't here: its text and edits, and how to have all of it."""
    scene = shared.scene
    with st.container(key="lab_panels"):
        left, right = st.columns([6, 5], gap="large")
    with left:
        _text_of(scene)
        _edits_and_facts(scene)
    with right:
        said = t(
            "It was made with the graph “{graph}”, which isn't here with the same triples. Open "
            "that graph to see the whole page.",
            graph=scene.graph.name,
        )
        show_opened()
        st.warning(markdown(said), icon=":material/hub:")
        with st.container(border=True, key="lab_share_graph"):
            open_graph_form(empty=False)
        with st.container(horizontal=True, gap="small"):
            said = t("Reads the text with the graph chosen last, without the edits.")
            go = t("Use a graph that is here")
            action(go, "lab.share_otherwise", sharing.read_otherwise, shared, help=said)
            action(t("Dismiss"), "lab.share_leave", sharing.leave)


def _text_of(scene: Scene) -> None:
    st.caption(t("A page was shared with you"))
    for text in scene.sentences:
        st.subheader(markdown(text), anchor=False)


def _edits_and_facts(scene: Scene) -> None:
    if scene.edits:
        st.html(edits_html(scene.edits))
    model = f"{t('Model')}: {model_name(folder_name(scene.model))}"
    graph = f"{t('Knowledge graph')}: {scene.graph.name}"
    st.caption(markdown(" · ".join((model, graph, *how_it_is_read(scene)))))


# What goes out


@st.fragment
def share_and_keep() -> None:
    """One button; what is behind it is made when it is opened."""
    with (
        st.container(key="lab_share", width="content"),
        st.popover(
            t("Share"), icon=":material/ios_share:", key="lab.share", on_change="rerun"
        ) as opened,
    ):
        if opened.open:
            _share()


def _share() -> None:
    """The link, the session file, and the page as a file."""
    scene = state.scene()
    if any(is_blank(text) or len(text) > services.LONGEST_TEXT for text in scene.sentences):
        st.error(t("Write a text that can be read; then there is something to share."))
        return
    try:
        _link()
    except ShareError as error:
        st.error(markdown(error))
        return
    with st.container(horizontal=True, gap="xsmall"):
        _session_file(scene)
        _page_files(scene)
    st.file_uploader(
        t("Open a session file (.kbert.json)"),
        type=["json"],
        max_upload_size=share.MOST_BYTES >> 20,
        key=FILE,
        on_change=_take_file,
        help=t("It replaces what is on the page, and your edits to its graph."),
    )


def _link() -> None:
    """The link, and what it carries."""
    shared = sharing.shared()
    carrying, workspace = sharing.with_triples(shared), state.workspace()
    try:
        try:
            value = share.to_link(carrying)
        except TooLong:
            value, carrying = share.to_link(shared), shared
    except TooLong as error:
        st.info(markdown(error), icon=":material/straighten:")
        return
    query = {share.PARAMETER: value}
    if workspace is not None and st.checkbox(t("Add the workspace's key"), key="lab.share_key"):
        query = {KEY: workspace.key, **query}
    st.code(address(**query), language=None)
    graph, count = shared.scene.graph.name, f"{len(carrying.triples):,}"
    said = N_("Whoever opens it needs the graph “{graph}”, or a session file, which contains it.")
    if KEY in query:
        said = N_("With it, anyone can read and edit the whole workspace “{graph}”.")
    elif carrying.triples:
        said = N_("It contains the triples of “{graph}” that the text needs: {count}.")
    elif workspace is not None:
        said = N_("It does not open the workspace: whoever opens it is asked for the graph.")
    about = t(
        "The link contains the text, the edits and the options. Anyone with the link can read them."
    )
    st.caption(markdown(sentences([about, t(said, graph=graph, count=count)])))


def _session_file(scene: Scene) -> None:
    graph, shared = state.base(), sharing.shared()
    download(
        "lab.share_download",
        t("Session, .kbert.json"),
        lambda: share.to_file(shared, graph),
        sharing.file_name(scene, "scene", share.ENDING),
        "application/json",
        disabled=len(scene.edits) > share.MOST_EDITS,
        help=t(
            "The same content as the link, of any length up to {most} edits, and the graph before "
            "the edits, if it has at most 20,000 triples.",
            most=f"{share.MOST_EDITS:,}",
        ),
    )


def _page_files(scene: Scene) -> None:
    """The page as one file of HTML; a system without trees has none."""
    if not services.has_trees(scene):
        return
    try:
        page, spoken = sharing.page(), language()
    except KBertError as error:
        st.caption(markdown(error))
        return

    def file() -> bytes:
        with speaking(spoken):  # where no visit is known
            return page_html(page)

    about = t(
        "One file that shows the page with the network off: text, prediction, tree and matrix, "
        "before and now."
    )
    name = sharing.file_name(scene, "page", ".html")
    download("lab.keep_page", t("This page, .html"), file, name, "text/html", help=about)


def _take_file() -> None:
    """Callback: put what a session file holds on the page."""
    if file := ss.get(FILE):
        sharing.attempt(lambda: sharing.take(share.from_file(file.getvalue())))
        st.rerun()  # all of the page is another
