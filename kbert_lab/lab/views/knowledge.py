"""The triples of one sentence as rows of a table, and what a table edit means."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kbert_core.kbert.kbert import KBertTrace
from kbert_core.knowbert.candidates import entities_named
from kbert_core.knowbert.knowbert import KnowBertReading
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.selection import Reason, Rule, Strategy
from kbert_core.knowledge.triple import COUNT, Triple
from kbert_core.roof.roof_bert import RoofReading
from kbert_lab.lab.texts import N_, t
from kbert_lab.lab.words import EDIT_TEXTS, RULE_TEXTS

WHY_TEXTS = {
    "context": N_("similarity {score}, rank {rank} of {among}"),
    "rare": N_("rarity {score}, rank {rank} of {among}"),
}

NO_NAME = N_("The text names no entity of this graph, so no triple is read.")
ON, HEAD, RELATION, TAIL, STATE = "on", "head", "relation", "tail", "state"
DELETE = "delete"
FIELDS = (HEAD, RELATION, TAIL)


@dataclass(frozen=True, slots=True)
class TripleRow:
    """A triple of an entity that the sentence names."""

    triple: Triple  # with the head as the graph writes it
    on: bool  # whether it is switched on
    used: int  # at how many mentions it is injected
    mentions: int  # at how many it could be
    rules: tuple[Rule, ...] = ()  # why it is left out elsewhere
    moved_up: bool = False  # injected now, and over the limit in the scene compared with
    reason: Reason | None = None  # how it stood among the others at the first mention
    in_vectors: bool = False  # what is used of it is in an entity's vector, not in the text
    beside: bool = False  # it is read beside the text, once for all mentions

    @property
    def state(self) -> str:
        """What became of the triple and why, in a few words."""
        why = why_text(self.reason, used=bool(self.used))
        return t("{state} · {why}", state=self._outcome, why=why) if why else self._outcome

    @property
    def _outcome(self) -> str:
        if self.in_vectors and not self.rules:
            counts = self.triple.relation == COUNT
            return t("in a vector" if self.used else "sets the prior" if counts else "in no vector")
        rule = t(RULE_TEXTS[self.rules[0].name]) if self.rules else t("not injected")
        if not self.used:
            return rule
        if self.beside:
            return t("read")
        if self.moved_up:
            return t("injected, moved up")
        if self.used < self.mentions:
            text = N_("injected at {used} of {mentions} mentions; else {rule}")
            return t(text, used=self.used, mentions=self.mentions, rule=rule)
        return t("injected")


def triple_rows(trace: Any, graph: KnowledgeGraph, before: Any = None) -> tuple[TripleRow, ...]:
    """List the triples of every entity named, in reading and graph order.

    Of a system that makes entity vectors of triples, those in a vector or off come first.
    """
    reading = trace.reading
    in_vectors, beside = isinstance(reading, KnowBertReading), isinstance(reading, RoofReading)
    used = Counter([own.triple for own in reading.facts] if in_vectors else trace.used)
    mentions = Counter(entity for own in reading.mentions for entity in own.entities)
    if in_vectors:
        options, bases = reading.config.options, reading.config.bases
        for entity in entities_named(reading.sentences, graph, options, bases):
            if entity in mentions:  # in an order that doesn't change with what is on
                mentions[entity] = mentions.pop(entity)
            elif not all(map(graph.is_on, graph.triples_of(entity))):
                mentions[entity] = 1  # no candidate any more, and to be switched on again
    left_out = [] if in_vectors else [item for _, item in reading.left_out]
    over = [] if before is None else [item for _, item in before.reading.left_out]
    over_before = {item.triple for item in over if item.rule is Rule.LIMIT}
    nodes = trace.tree.nodes if isinstance(trace, KBertTrace) else ()
    branches = [branch for node in nodes for branch in node.branches]
    reasons = {own.triple: own.reason for own in (*reversed(left_out), *branches) if own.reason}
    rules: dict[Triple, dict[Rule, None]] = {}
    for item in left_out:
        rules.setdefault(item.triple, {})[item.rule] = None
    rows = [
        TripleRow(
            triple,
            on := graph.is_on(triple),
            used[triple],
            count,
            tuple(rules.get(triple, () if on else (Rule.OFF,))),
            used[triple] > 0 and triple in over_before,
            reasons.get(triple),
            in_vectors,
            beside,
        )
        for entity, count in mentions.items()
        for triple in graph.triples_of(entity)
    ]
    return tuple(sorted(rows, key=lambda row: in_vectors and not (row.used or row.rules)))


def entities_of(trace: Any) -> set[str]:
    """What the text's names are taken to mean, or may mean."""
    if isinstance(trace, KBertTrace):
        return {node.mention.entity for node in trace.tree.nodes}
    return {entity for mention in trace.reading.mentions for entity in mention.entities}


def names_in(trace: Any) -> list[str]:
    """The heads that a triple may be added to, in reading order."""
    found = []
    for mention in trace.reading.mentions:
        text = trace.reading.sentences[mention.sentence][mention.start : mention.end]
        found.append(mention.entity if isinstance(trace.reading, KnowBertReading) else text)
    return list(dict.fromkeys(found))


def why_text(reason: Reason | None, *, used: bool) -> str:
    """How a triple stood among the others; empty where the graph's order says it all."""
    if reason is None:
        return ""
    if reason.score is None:
        by_tail = used and reason.strategy is Strategy.TAIL_IN_TEXT
        return t("tail in the text") if by_tail else ""
    score = f"{reason.score:.2f}"
    return t(WHY_TEXTS[reason.strategy], score=score, rank=reason.rank, among=reason.among)


def moved_up(rows: Iterable[TripleRow]) -> tuple[Triple, ...]:
    """The triples that took a freed place."""
    return tuple(row.triple for row in rows if row.moved_up)


def states(rows: Sequence[TripleRow], trace: Any, graph: KnowledgeGraph) -> list[str]:
    """What became of the triples of some rows in another reading of the text."""
    there = {row.triple: row.state for row in triple_rows(trace, graph)}
    return [there.get(row.triple, "–") for row in rows]


def table(
    rows: Sequence[TripleRow], given: Sequence["Row"], states: Mapping[str, list[str]]
) -> dict[str, list[Any]]:
    """Columns of the editable table.

    Args:
        rows: of the triples.
        states: of each reading side by side, by its name; none: the one of the rows.
        given: what its columns that can be changed began with; the editor shows
            its changes over that.
    """
    return {
        ON: [on for _, on in given],
        HEAD: [triple.head for triple, _ in given],
        RELATION: [triple.relation for triple, _ in given],
        TAIL: [triple.tail for triple, _ in given],
        **(states or {STATE: [row.state for row in rows]}),
        DELETE: [":material/delete:"] * len(rows),
    }


Row = tuple[Triple, bool]  # and whether it is on


def rows_changed(rows: Sequence[Row], state: Mapping[str, Any]) -> tuple[Row, ...]:
    """Return what a table editor shows: the rows it was given, and over them its own changes.

    Args:
        rows: as given.
        state: the editor's; of ``edited_rows`` {row: {column: value}}.
    """
    shown = list(rows)
    for row, changed in state.get("edited_rows", {}).items():
        triple, on = shown[int(row)]
        fields = {name: (text or "").strip() for name, text in changed.items() if name in FIELDS}
        shown[int(row)] = (replace(triple, **fields), changed.get(ON, on))
    return tuple(shown)


def table_edits(
    now: Sequence[Row], given: Sequence[Row], state: Mapping[str, Any]
) -> tuple[Edit, ...]:
    """Turn what was changed, added and deleted in a table editor into edits.

    Args:
        now: what stands in its rows.
        given: what it was given; its changes are over that.
        state: the editor's.

    Raises:
        KBertError: what was typed is no triple.
    """
    edits, wanted = [], rows_changed(given, state)
    for (triple, on), (new, new_on) in zip(now, wanted, strict=True):
        if new != triple:
            edits.append(Edit("replace", triple, Triple.checked(new.head, new.relation, new.tail)))
        if new_on != on:
            edits.append(Edit("switch_on" if new_on else "switch_off", new))
    written = ([row.get(name) or "" for name in FIELDS] for row in state.get("added_rows", ()))
    return (
        *edits,
        *(Edit("remove", wanted[row][0]) for row in state.get("deleted_rows", ())),
        *(Edit("add", Triple.checked(*fields), index=0) for fields in written),
    )


def left_out(rows: Iterable[TripleRow]) -> dict[Rule, int]:
    """Count the triples that are injected nowhere, each once, by the first rule."""
    return Counter(row.rules[0] for row in rows if not row.used and row.rules)


def describe(edit: Edit) -> str:
    """Say in a few words what an edit does; plain text."""
    return t(EDIT_TEXTS[edit.action], triple=edit.triple, new=edit.new or "")
