"""A graph without what hurts: chosen on one labelled file, checked on another.

The rule is one line: a triple (or all triples of a relation) goes where it
hurt more texts than it helped, by ``least`` at least. What counts as hurt:

- "counts": texts in which it stood, and in which less is wrong without any
  knowledge. Triples of one text share its verdict.
- "leave one out": texts in which less is wrong without this triple alone.

A choice made on one file fits that file's accidents too: the pruned graph is
read beside the full one on texts that had no part in the choice, and may well
not be better there.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from kbert_core.data.labelled import Example
from kbert_core.errors import OptionError
from kbert_core.experiments.file_rows import (
    TEXTS_AT_ONCE,
    Answer,
    FileRow,
    Reader,
    check_examples,
    without,
)
from kbert_core.experiments.file_scores import FileScores, score_ways
from kbert_core.experiments.over_file import OverFile
from kbert_core.explain.tables import name_of
from kbert_core.explain.variants import AT_ONCE, Piece, Variant, without_branches
from kbert_core.kbert.ablation import Ablation
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.knowledge.triple import Triple
from kbert_core.pipeline import Pipeline

Rule = Literal["counts", "leave one out"]
What = Literal["triple", "relation"]
WAYS = ("without a graph", "full graph", "pruned graph")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """One triple left out of one text, the rest of its knowledge held fixed.

    Attributes:
        number: of the text in its file.
        triple: which.
        effect: score of what is right with it minus without it, in nats.
        wrong: how much more is wrong without it; negative: it hurt.
    """

    number: int
    triple: Triple
    effect: float
    wrong: int


def each_left_out(
    pipeline: Pipeline,
    rows: Sequence[FileRow],
    graph: KnowledgeGraph,
    *,
    options: InjectionOptions | None = None,
    ablation: Ablation | None = None,
    max_length: int | None = None,
) -> Iterator[LeftOut]:
    """Leave every triple out of every text it stood in; yields as batches are done.

    Args:
        rows: read with the same graph and options, see ``each_row``.
        other arguments: as for a call of the pipeline.
    """
    reader = Reader(pipeline, options, ablation, max_length)
    waiting: list[FileRow] = []
    size = 0
    for row in rows:
        if not row.hung:
            continue
        if waiting and size + len(row.triples) > AT_ONCE:
            yield from _left_out(reader, waiting, graph)
            waiting, size = [], 0
        waiting.append(row)
        size += len(row.triples)
    yield from _left_out(reader, waiting, graph)


def _left_out(reader: Reader, rows: Sequence[FileRow], graph: KnowledgeGraph) -> Iterator[LeftOut]:
    examples = [row.example for row in rows]
    read = reader.read(examples, graph)
    variants = [
        [variant, *(_less(variant, triple) for triple in row.triples)]
        for row, variant in zip(rows, read, strict=True)
    ]
    answers = reader.answers(examples, variants)
    for row, (whole, *less) in zip(rows, answers, strict=True):
        for triple, one in zip(row.triples, less, strict=True):
            yield LeftOut(row.number, triple, whole.score - one.score, one.wrong - whole.wrong)


def _less(variant: Variant, triple: Triple) -> Variant:
    rows = tuple(without_branches(row, [Piece(triple)]) for row in variant.rows)
    return Variant(rows, variant.ablation)


@dataclass(frozen=True, slots=True)
class Removed:
    """What was taken out of a graph.

    Attributes:
        name: the triple in a line, or the relation.
        triples: how many triples of the graph went with it.
        texts: in which it stood.
        helped, hurt: of these.
    """

    name: str
    triples: int
    texts: int
    helped: int
    hurt: int


@dataclass(frozen=True, eq=False)
class Pruned:
    """A graph without what hurt.

    Attributes:
        graph: what is left.
        removed: what went, that which hurt most first.
        rule, what, least: how it was chosen.
        texts: how many texts it was chosen on.
    """

    graph: KnowledgeGraph
    removed: tuple[Removed, ...]
    rule: Rule
    what: What
    least: int
    texts: int

    def as_dict(self) -> dict[str, Any]:
        """What was taken out and why, as plain data, for JSON."""
        return {
            "rule": self.rule,
            "what": self.what,
            "least": self.least,
            "texts": self.texts,
            "removed": [asdict(one) for one in self.removed],
            "triples_left": len(self.graph),
            "note": str(self),
        }

    def __str__(self) -> str:
        least = f"by {self.least} texts or more" if self.least > 1 else "than it helped"
        return (
            f"every {self.what} that hurt more texts {least}, {self.rule}: "
            f"{len(self.removed)} of them, chosen on {self.texts} texts. It fits their accidents "
            "too, so it may not help on others."
        )


def prune(
    graph: KnowledgeGraph,
    found: OverFile,
    left_out: Iterable[LeftOut] = (),
    *,
    rule: Rule = "counts",
    what: What = "triple",
    least: int = 1,
) -> Pruned:
    """Take out what hurt more texts than it helped.

    Args:
        graph: the one the texts were read with.
        found: the texts, read with it and without.
        left_out: for "leave one out": its results on the same texts.
        rule: what counts as hurt, see the module.
        what: single triples, or relations as a whole.
        least: how many more texts must be hurt than helped.

    Raises:
        OptionError: ``least`` is below 1.
    """
    if least < 1:
        raise OptionError(f"least is {least}, expected at least 1: more hurt than helped.")
    helped, hurt, texts = _counted(found, left_out, rule, what)
    gone = [key for key in texts if hurt[key] - helped[key] >= least]
    gone.sort(key=lambda key: (helped[key] - hurt[key], -hurt[key]))
    if what == "relation":
        members = _members(graph, {key for key in gone if isinstance(key, str)})
    else:
        members = {key: [key] for key in gone if isinstance(key, Triple)}
    removed = [
        Removed(
            name_of(key) if isinstance(key, Triple) else key,
            len(members[key]),
            texts[key],
            helped[key],
            hurt[key],
        )
        for key in gone
    ]
    left = without_triples(graph, [triple for key in gone for triple in members[key]])
    left.name = f"{graph.name} pruned"
    return Pruned(left, tuple(removed), rule, what, least, len(found.rows))


Key = Triple | str  # a triple, or the relation of many


def _counted(
    found: OverFile, left_out: Iterable[LeftOut], rule: Rule, what: What
) -> tuple[Counter[Key], Counter[Key], Counter[Key]]:
    """Texts helped, hurt, and all, by triple or relation."""
    verdicts: dict[tuple[int, Key], int] = {}  # (text, key) → how much it saves; negative: hurt
    if rule == "counts":
        for row in found.with_knowledge:
            for triple in row.triples:
                verdicts[row.number, _key(triple, what)] = row.plain.wrong - row.known.wrong
    else:
        for one in left_out:
            place = (one.number, _key(one.triple, what))
            verdicts[place] = verdicts.get(place, 0) + one.wrong
    helped: Counter[Key] = Counter(key for (_, key), saves in verdicts.items() if saves > 0)
    hurt: Counter[Key] = Counter(key for (_, key), saves in verdicts.items() if saves < 0)
    return helped, hurt, Counter(key for _, key in verdicts)


def _key(triple: Triple, what: What) -> Key:
    return triple if what == "triple" else triple.relation


def _members(graph: KnowledgeGraph, relations: set[str]) -> dict[Key, list[Triple]]:
    """Every triple of some relations."""
    found: dict[Key, list[Triple]] = {relation: [] for relation in relations}
    for triple in graph if relations else ():
        if triple.relation in found:
            found[triple.relation].append(triple)
    return found


def without_triples(graph: KnowledgeGraph, gone: Iterable[Triple]) -> KnowledgeGraph:
    """Return a graph without some of its triples, taken out in one go."""
    out = set(gone)
    changed = {
        entity: tuple(triple for triple in graph.triples_of(entity) if triple not in out)
        for entity in {normalise_name(triple.head) for triple in out}
    }
    return graph.updated(changed, graph.off - out)


def each_of_three(
    pipeline: Pipeline,
    examples: Sequence[Example],
    graph: KnowledgeGraph,
    pruned: KnowledgeGraph,
    *,
    options: InjectionOptions | None = None,
    ablation: Ablation | None = None,
    max_length: int | None = None,
) -> Iterator[tuple[Answer, Answer, Answer]]:
    """Read labelled texts without a graph, with the full one and with the pruned one."""
    check_examples(pipeline, examples)
    reader = Reader(pipeline, options, ablation, max_length)
    for start in range(0, len(examples), TEXTS_AT_ONCE):
        some = examples[start : start + TEXTS_AT_ONCE]
        full, less = reader.read(some, graph), reader.read(some, pruned)
        ways = [[without(f), f, p] for f, p in zip(full, less, strict=True)]
        yield from ((n, f, p) for n, f, p in reader.answers(some, ways))


def score_three(
    pipeline: Pipeline,
    examples: Sequence[Example],
    answers: Sequence[tuple[Answer, Answer, Answer]],
) -> FileScores:
    """Score what :func:`each_of_three` read; for as many texts as were."""
    assert pipeline.task is not None
    by_way: Mapping[str, list[Answer]] = {
        way: [answer[number] for answer in answers] for number, way in enumerate(WAYS)
    }
    labels = tuple(pipeline.labels.values())
    return score_ways(pipeline.task.name, labels, examples[: len(answers)], by_way)
