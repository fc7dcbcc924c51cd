"""The Lab's sentence tree: what is chosen in it, switched, and typed."""

import streamlit as st

from app import drawn, services, state
from app.app_pages.parts import action
from app.components import draw_tree, tell_tails
from app.drawn import linked
from kbert_core import FlatTree, KBertTrace, KnowledgeGraph, Triple
from kbert_core.kbert.sentence_tree import passed_over
from kbert_core.knowledge.edit import Edit
from kbert_lab.lab.commands import ClearSelection
from kbert_lab.lab.scene import Scene
from kbert_lab.lab.selection import marks_of, say_selection
from kbert_lab.lab.texts import t
from kbert_lab.lab.views import shared, tree
from kbert_lab.lab.views.html import markdown
from kbert_lab.lab.views.matrix import row_of
from kbert_lab.lab.views.names import gloss, name_lines
from kbert_lab.lab.views.prediction import outcome
from kbert_lab.lab.views.why import visible_in

AT_ONCE = 8  # outcomes of tails: as many tails as are offered

ss = st.session_state


@linked("lab.tree_panel")
def tree_panel(
    now: Scene, graph: KnowledgeGraph, trace: KBertTrace, before: KBertTrace | None, window: int
) -> None:
    """The sentence tree, and how the names in it were read."""
    flat = trace.rows[window]
    with st.container(horizontal=True, vertical_alignment="center", key="lab_head_tree"):
        st.subheader(t("Sentence tree"), anchor=False)
        selection_bar(flat)
    marks = marks_of(flat.identities, state.selection(), visible_in(trace, window))
    view = tree.tree_view(trace, window, row_of(before, window, flat))
    off = {one for one in view.triples if one in graph and not graph.is_on(one)}
    with st.container(key="lab_tree_box"):  # with room to grow, so that nothing below jumps
        draw_tree(tree.tree_html(view, marks, off, edits=True), key="lab.tree", heard=drawn.hear)
        answer_tails(now, graph)
        over = passed_over(trace.tree, graph, now.options.names)
        for line in (tree.summary(flat, trace.ablation), *name_lines(trace.tree, over)):
            st.caption(markdown(line))
    for cut in flat.trunk_cuts:
        said = t(
            "Too long: of sentence {sentence}, only the first {kept} of {total} tokens were read.",
            sentence=cut.sentence + 1,
            kept=cut.kept,
            total=cut.total,
        )
        st.warning(said, icon=":material/content_cut:")


def selection_bar(flat: FlatTree) -> None:
    """What is chosen, and the button that lets it go; in a line of one height."""
    chosen = state.selection()
    said = (
        t("Click a token to see which tokens it sees.")
        if chosen.empty
        else say_selection(flat, chosen)
    )
    st.caption(markdown(said), width="stretch", text_alignment="right")
    clear_button("lab.clear_selection")


def clear_button(key: str) -> None:
    """Let go of what is chosen, if anything is."""
    if not state.selection().empty:
        how = {"type": "tertiary", "help": t("Choose nothing")}
        action(t("Clear"), key, drawn.select, ClearSelection(), **how)


def answer_tails(now: Scene, graph: KnowledgeGraph) -> None:
    """Answer a question about a branch's tails: the names at once, then what they would do."""
    request, triple, asked = ss.pop("lab.asked", (0, None, ()))
    if triple is None or triple not in graph:
        return
    new = lambda tail: Triple(triple.head, triple.relation, tail)  # noqa: E731
    trace = services.trace(now, graph)
    with st.container(key="lab_tails"):
        tails = None
        if not asked:
            tails = [tail for tail in state.tails(triple.relation) if new(tail) not in graph]
            asked = tuple(tails[:AT_ONCE])
        waits = asked[:AT_ONCE] if trace.prediction is not None else ()
        means = {tail: meaning for tail in tails or () if (meaning := gloss(tail))}
        tell_tails(request, key="lab.tails", tails=tails, glosses=means, asked=waits)
        if waits:
            edits = [Edit("replace", triple, new(tail)) for tail in waits]
            info, at = services.model_info(now.model), shared.place_of(trace, triple)
            after = services.predicted_after(now, graph, edits)
            found = {
                tail: outcome(info, now.sentences[0], trace.prediction, one, at)
                for tail, one in zip(waits, after, strict=False)
            }
            tell_tails(request, key="lab.outcomes", outcomes=found)
