"""What is looked for in a graph, and what is found; ``store.search`` does the looking."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Literal

from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.triple import Triple

Where = Literal["anywhere", "head", "head_starts", "tail", "tail_is"]


@dataclass(frozen=True)
class Query:
    """What is looked for; all of it has to hold.

    Attributes:
        text: stands in the triple, in any case or width; "": any triple.
        where: in which field; "tail_is": it is the whole tail.
        relations: one of these; none given: any.
        types: the entity has one of these types; none given: any.
        off: only triples that are switched off.
    """

    text: str = ""
    where: Where = "anywhere"
    relations: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    off: bool = False

    @property
    def folded(self) -> str:
        """The text as names are compared."""
        return normalise_name(self.text)

    @property
    def everything(self) -> bool:
        """Whether every triple is found."""
        return not (self.folded or self.relations or self.types or self.off)


@dataclass(frozen=True)
class Found:
    """One page of what was found.

    Attributes:
        triples: in order.
        on: for each, whether it is switched on.
        total: how many are found on all pages; None: they were not counted.
        next: where the next page begins; None: this is the last.
        complete: False: the time was over before the page was full.
    """

    triples: tuple[Triple, ...] = ()
    on: tuple[bool, ...] = ()
    total: int | None = None
    next: Any = None
    complete: bool = True


@dataclass(frozen=True)
class Facets:
    """How many triples have each relation, and how many each type, the most first.

    Attributes:
        relations, types: counts by name.
        complete: False: the time was over before all were counted.
    """

    relations: dict[str, int] = field(default_factory=dict)
    types: dict[str, int] = field(default_factory=dict)
    complete: bool = True

    @classmethod
    def of(cls, relations: Counter[str], types: Counter[str], *, complete: bool = True) -> "Facets":
        """Put counts into order; what is there no more is left out."""
        by_relation, by_type = (
            {name: count for name, count in counts.most_common() if count > 0}
            for counts in (relations, types)
        )
        return cls(by_relation, by_type, complete)

    def changed(
        self, removed: Collection[Triple], added: Collection[Triple], types: Collection[str]
    ) -> "Facets":
        """Return the counts once some triples are removed and others added."""
        by_relation, by_type = Counter(self.relations), Counter(self.types)
        for triples, sign in ((removed, -1), (added, 1)):
            for triple in triples:
                by_relation[triple.relation] += sign
                if triple.relation in types:
                    by_type[triple.tail] += sign
        return Facets.of(by_relation, by_type, complete=self.complete)
