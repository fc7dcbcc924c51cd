"""What may be wrong with a triple that was just written."""

from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.triple import TYPE_RELATIONS, Triple
from kbert_lab.graphs.check import LONG_TAIL, check
from kbert_lab.lab.texts import N_, listed, t

DOUBT_TEXTS = {
    "stop_word": N_(
        "“{head}” is an everyday word: it will be found where it does not mean this entity."
    ),
    "one_character": N_("“{head}” is one character: it will be found inside other words."),
    "own_tail": N_("The tail is the head: that adds nothing to a text."),
    "long_tail": N_(
        "The tail has over {most} characters: a branch takes as many tokens, and the length limit "
        "may cut it."
    ),
    "duplicate": N_("A triple that differs only in case, width or spaces is there already."),
    "several_types": N_("“{head}” has several types ({types}): they contradict each other."),
}


def doubts(graph: KnowledgeGraph, new: Triple) -> tuple[str, ...]:
    """Say what a triple brings to the others of its head in a graph; plain text."""
    own = graph.triples_of(new.head)
    before = {f.kind: f.count for f in check(KnowledgeGraph(x for x in own if x != new))}
    found = {f.kind for f in check(KnowledgeGraph(own)) if f.count > before.get(f.kind, 0)}
    types = listed(dict.fromkeys(x.tail for x in own if x.relation in TYPE_RELATIONS))
    values = {"head": new.head, "types": types, "most": LONG_TAIL}
    return tuple(t(text, **values) for kind, text in DOUBT_TEXTS.items() if kind in found)
