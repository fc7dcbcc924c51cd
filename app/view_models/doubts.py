"""What may be wrong with a triple while it is being typed."""

from dataclasses import dataclass

from app.texts import N_, listed, t
from app.words import KNOWLEDGE_TEXTS
from kbert_core import KnowledgeGraph, Triple
from kbert_core.knowledge.io.text_lines import MAX_FIELD
from kbert_core.knowledge.triple import CONTROL, TYPE_RELATIONS
from kbert_lab.graphs.check import LONG_TAIL, check

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
    "several_types": N_("“{head}” has a type already ({types}): two types contradict each other."),
}

_NOT_YET = "…"  # stands for a field that nothing is written in yet


@dataclass(frozen=True, slots=True)
class Doubt:
    """Something to look at before a triple is kept."""

    kind: str  # its name, as in check, or "control", "too_long", "there"
    text: str  # plain
    refused: bool = False  # the triple can't be kept like this


def doubts(
    graph: KnowledgeGraph,
    head: str,
    relation: str,
    tail: str,
    *,
    replacing: Triple | None = None,
) -> tuple[Doubt, ...]:
    """Say what may be wrong with what was typed so far.

    Args:
        head, relation, tail: as typed; "" for a field not yet filled.
        replacing: the triple that is to be changed; None: one is added.
    """
    head, relation, tail = head.strip(), relation.strip(), tail.strip()
    found = list(_unusable(head, relation, tail))
    if found or not (head or relation or tail):
        return tuple(found)
    complete = bool(head and relation and tail)
    new = Triple(head or _NOT_YET, relation or _NOT_YET, tail or _NOT_YET)
    if new == replacing:
        return ()
    if complete and new in graph:
        key = (
            N_("This triple is in the graph already.")
            if graph.is_on(new)
            else N_("This triple is in the graph already, switched off: switch it on instead.")
        )
        return (Doubt("there", t(key), refused=True),)
    others = [x for x in graph.triples_of(head) if x != replacing] if head else []
    kinds = _kinds(new, others)
    types = dict.fromkeys(x.tail for x in others if x.relation in TYPE_RELATIONS)
    needs = {  # what has to be typed before it is said
        **dict.fromkeys(("stop_word", "one_character"), bool(head)),
        **dict.fromkeys(("duplicate", "own_tail"), complete),
        "several_types": complete and relation in TYPE_RELATIONS and bool(types),
    }
    for kind, said in DOUBT_TEXTS.items():
        if kind in kinds and needs.get(kind, True):
            said = t(said, head=head, types=listed(types), most=LONG_TAIL)
            found.append(Doubt(kind, said))
    return tuple(found)


def _unusable(head: str, relation: str, tail: str) -> list[Doubt]:
    found = []
    for name, value in (("head", head), ("relation", relation), ("tail", tail)):
        control = CONTROL.search(value)
        field = t(KNOWLEDGE_TEXTS[name])
        if control:
            code = f"U+{ord(control.group()):04X}"
            text = N_("The {field} holds a line break, tab or control character ({code}).")
            found.append(Doubt("control", t(text, field=field, code=code), True))
        elif len(value) > MAX_FIELD:
            said = N_("The {field} has over {most} characters.")
            found.append(Doubt("too_long", t(said, field=field, most=MAX_FIELD), True))
    return found


def _kinds(new: Triple, others: list[Triple]) -> set[str]:
    """The kinds of doubt that a triple brings to the others of its head."""
    before = {f.kind: f.count for f in check(KnowledgeGraph(others))}
    head = {"stop_word", "one_character", "several_types"}
    return {
        f.kind
        for f in check(KnowledgeGraph([*others, new]))
        if f.kind in head or f.count > before.get(f.kind, 0)
    }
