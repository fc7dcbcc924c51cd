"""Candidates: changes of a graph that a search may try, made of what the graph says itself.

Nothing is invented: a new tail is one that the relation has elsewhere, a new
relation one that the tail has or that others of the same type have, a new
triple one that is said of others of the same type.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from typing import Literal, TypeVar

from kbert_core.explain.target import NO_SPAN
from kbert_core.explain.variants import Case
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import Mention
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.tools.check import TYPE_RELATIONS
from kbert_core.knowledge.triple import Triple

Kind = Literal["remove", "replace", "add"]
KINDS: tuple[Kind, ...] = ("remove", "replace", "add")
MOST_READ = 200_000  # triples of a large graph that candidates are made of
MOST_ALIKE = 500  # entities of the same type that are looked at
T = TypeVar("T")


@dataclass(frozen=True)
class Facts:
    """What a graph holds, counted.

    Attributes:
        tails: of each relation, how often each tail.
        relations: of each tail, how often each relation.
        of_type: the entities of each type; of each relation, where none has a type.
        complete: whether all of the graph was read.
    """

    tails: dict[str, Counter[str]]
    relations: dict[str, Counter[str]]
    of_type: dict[str, list[str]]
    complete: bool

    @classmethod
    def of(cls, graph: KnowledgeGraph, *, most: int = MOST_READ) -> "Facts":
        """Read a graph once, all or the first ``most`` triples; see :func:`usable` for which."""
        tails: dict[str, Counter[str]] = defaultdict(Counter)
        relations: dict[str, Counter[str]] = defaultdict(Counter)
        typed: dict[str, list[str]] = defaultdict(list)
        untyped: dict[str, list[str]] = defaultdict(list)
        read = 0
        for entity, triples in graph.items():
            if read >= most:
                return cls(tails, relations, typed or untyped, complete=False)
            read += len(triples)
            for triple in usable(graph, triples):
                tails[triple.relation][triple.tail] += 1
                relations[triple.tail][triple.relation] += 1
                if triple.relation in TYPE_RELATIONS:
                    typed[triple.tail].append(entity)
                else:
                    untyped[triple.relation].append(entity)
        return cls(tails, relations, typed or untyped, complete=True)


def usable(graph: KnowledgeGraph, triples: Iterable[Triple]) -> list[Triple]:
    """Those that are on and give no other name."""
    return [t for t in triples if graph.is_on(t) and graph.aliases.aliases_in(t) is None]


class Candidates:
    """Single changes for a text, the most promising places first.

    Args:
        case: a text as it was read.
        per_place: how many new tails, relations and triples each place gets.
        seed: of those that are drawn; the more frequent half is not.
    """

    def __init__(self, case: Case, *, per_place: int, seed: int) -> None:
        self.case, self.graph = case, case.graph
        self.per_place, self.seed = per_place, seed
        self.facts = Facts.of(case.graph)

    def edits(self, kinds: Iterable[Kind] = KINDS) -> Iterator[Edit]:
        """Yield changes: removals, then others, every place in turn."""
        kinds = tuple(kinds)
        triples, entities = self._places()
        if "remove" in kinds:
            yield from (Edit("remove", triple) for triple in triples)
        others: list[Iterator[Edit]] = []
        if "replace" in kinds:
            aliases = self.graph.aliases
            others += [self._replaced(t) for t in triples if aliases.aliases_in(t) is None]
        if "add" in kinds:
            others += [self._added(entity) for entity in entities]
        yield from in_turn(others)

    def _places(self) -> tuple[list[Triple], list[str]]:
        """The triples that hang and the entities named, those that the target stands on first."""
        nodes = self.case.trace.tree.nodes
        order = sorted(range(len(nodes)), key=lambda n: not self._on_target(nodes[n].mention))
        triples = [
            piece.triple for n in order for piece in self.case.pieces_by_mention if piece.node == n
        ]
        entities = (nodes[n].mention.entity for n in order)
        return list(dict.fromkeys(triples)), list(dict.fromkeys(entities))

    def _on_target(self, mention: Mention) -> bool:
        target = self.case.target
        if target.start == NO_SPAN:
            return False
        return mention.start < target.end and target.start < mention.end

    def _replaced(self, triple: Triple) -> Iterator[Edit]:
        """Other tails for a triple, and other relations, in turn."""
        head, relation, tail = triple.head, triple.relation, triple.tail
        relations = Counter(self.facts.relations.get(tail, ()))
        for other in self._alike(head):
            relations.update({t.relation for t in self._of(other)})
        dice = self._dice(triple)
        tails = chosen(self.facts.tails.get(relation, Counter()), dice)
        others = in_turn(
            [
                (Triple(head, relation, new) for new in tails),
                (Triple(head, new, tail) for new in chosen(relations, dice)),
            ]
        )
        new = (Edit("replace", triple, other) for other in others if self._is_new(other))
        yield from islice(new, self.per_place)

    def _added(self, entity: str) -> Iterator[Edit]:
        """What the graph has of others like it, and other tails of its own relations, in turn."""
        triples = self.graph.triples_of(entity)
        if not triples:
            return
        of_others = Counter(
            (t.relation, t.tail) for other in self._alike(entity) for t in self._of(other)
        )
        of_relations: Counter[tuple[str, str]] = Counter()
        aliases = self.graph.aliases
        for relation in dict.fromkeys(t.relation for t in triples if aliases.aliases_in(t) is None):
            tails = self.facts.tails.get(relation, Counter())
            of_relations.update({(relation, tail): count for tail, count in tails.items()})
        dice = self._dice(Triple(entity, "", ""))
        pairs = in_turn([chosen(of_relations, dice), chosen(of_others, dice)])
        new = (Triple(triples[0].head, *pair) for pair in dict.fromkeys(pairs))
        edits = (Edit("add", triple, index=0) for triple in new if self._is_new(triple))
        yield from islice(edits, self.per_place)

    def _alike(self, entity: str) -> list[str]:
        """Other entities that share a type; where no entity has one, a relation."""
        name = normalise_name(entity)
        triples = self._of(name)
        types = [t.tail for t in triples if t.relation in TYPE_RELATIONS]
        shared = types or [t.relation for t in triples]
        found = chain.from_iterable(self.facts.of_type.get(what, ()) for what in shared)
        return list(islice(dict.fromkeys(e for e in found if e != name), MOST_ALIKE))

    def _of(self, entity: str) -> list[Triple]:
        return usable(self.graph, self.graph.triples_of(entity))

    def _is_new(self, triple: Triple) -> bool:
        itself = normalise_name(triple.tail) == normalise_name(triple.head)
        return not itself and triple not in self.graph and triple.problem() is None

    def _dice(self, triple: Triple) -> random.Random:
        """Dice of a place's own, so that other kinds or places change nothing of what it draws."""
        return random.Random(f"{self.seed}\n{triple.head}\n{triple.relation}\n{triple.tail}")


def chosen(counts: Counter[T], dice: random.Random) -> Iterator[T]:
    """Yield the most frequent and one drawn from the others, in turn, until all are through."""
    ranked = [item for item, _ in counts.most_common()]
    drawn = dice.sample(ranked, len(ranked))
    yield from dict.fromkeys(in_turn([iter(ranked), iter(drawn)]))


def in_turn(parts: Sequence[Iterable[T]]) -> Iterator[T]:
    """Yield the first of each part, then the second of each, until all are through."""
    end = object()
    for some in zip_longest(*parts, fillvalue=end):
        yield from (item for item in some if item is not end)  # type: ignore[misc]
