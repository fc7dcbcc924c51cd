"""What can be typed as a branch's tail, and what would be predicted: the answer to the drawing."""

from typing import Any

import streamlit as st

from app import services, state
from app.components.tree import tell_tails
from kbert_core import KnowledgeGraph, Triple
from kbert_core.knowledge.edit import Edit
from kbert_lab.lab.scene import Scene
from kbert_lab.lab.views import shared
from kbert_lab.lab.views.names import gloss

AT_ONCE = 8  # outcomes: as many tails as are offered

ss = st.session_state


def answer_tails(now: Scene, graph: KnowledgeGraph) -> None:
    """Answer the question that was asked, if one was: the names at once, then what they do."""
    request, triple, asked = ss.pop("lab.asked", (0, None, ()))
    if triple is None or triple not in graph:
        return
    trace = services.trace(now, graph)
    with st.container(key="lab_tails"):
        tails = None
        if not asked:
            known = state.tails(triple.relation)
            tails = [tail for tail in known if _new(triple, tail) not in graph]
            asked = tuple(tails[:AT_ONCE])
        predicts = trace.prediction is not None
        waits = asked if predicts else ()
        means = {tail: meaning for tail in tails or () if (meaning := gloss(tail))}
        tell_tails(request, key="lab.tails", tails=tails, glosses=means, asked=waits)
        if waits:
            found = outcomes(now, graph, trace, triple, waits)
            tell_tails(request, key="lab.outcomes", outcomes=found)


def outcomes(
    now: Scene, graph: KnowledgeGraph, trace: Any, triple: Triple, tails: tuple[str, ...]
) -> dict[str, tuple[str, bool]]:
    """What would be predicted with each tail in the place of a triple's, in words."""
    info = services.model_info(now.model)
    edits = [Edit("replace", triple, _new(triple, tail)) for tail in tails[:AT_ONCE]]
    after = services.predicted_after(now, graph, edits)
    at = shared.place_of(trace, triple)
    return {
        tail: shared.outcome(info, trace.prediction, own, at)
        for tail, own in zip(tails, after, strict=False)
    }


def _new(triple: Triple, tail: str) -> Triple:
    return Triple(triple.head, triple.relation, tail)
