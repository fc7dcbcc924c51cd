"""Which triples of a mention are injected, and why the others are not."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from kbert_core.errors import OptionError
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.triples import Triple


class Rule(StrEnum):
    """Why a triple of a mention is not in the sentence tree."""

    OFF = "switched off"
    RELATION = "its relation is not among those used"
    LIMIT = "over the limit of triples per mention"
    LENGTH = "does not fit the length limit"
    TRUNK_CUT = "its mention was cut by the length limit"
    NO_TOKENS = "the tokenizer makes no token of it"
    SHARED_TOKEN = "its mention shares a token with the mention before"


@dataclass(frozen=True)
class InjectionOptions:
    """How much knowledge a mention gets.

    Attributes:
        max_triples: at most so many triples per mention (the release's
            MAX_ENTITIES, 2); 0 switches knowledge off.
        tail_only: inject the tail without the relation.
        relations: use only these; None: all.
    """

    max_triples: int = 2
    tail_only: bool = False
    relations: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.max_triples <= 1000:
            raise OptionError(
                f"max_triples is {self.max_triples}, expected 0 to 1000. "
                "Give how many triples a mention may have."
            )


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A triple that is in the graph and not in the tree, and by which rule."""

    triple: Triple
    rule: Rule


def select(
    entity: str, graph: KnowledgeGraph, options: InjectionOptions
) -> tuple[tuple[Triple, ...], tuple[LeftOut, ...]]:
    """Choose an entity's triples: those that may be used, the first in graph order.

    Returns:
        The triples to inject, and those left out, each in graph order.
    """
    used: list[Triple] = []
    left_out: list[LeftOut] = []
    for triple in graph.triples_of(entity):
        if not graph.is_on(triple):
            left_out.append(LeftOut(triple, Rule.OFF))
        elif options.relations is not None and triple.relation not in options.relations:
            left_out.append(LeftOut(triple, Rule.RELATION))
        elif len(used) >= options.max_triples:
            left_out.append(LeftOut(triple, Rule.LIMIT))
        else:
            used.append(triple)
    return tuple(used), tuple(left_out)


def count_by_rule(left_out: Iterable[LeftOut]) -> dict[Rule, int]:
    """Count left-out triples by the rule that left them out."""
    counts: dict[Rule, int] = {}
    for item in left_out:
        counts[item.rule] = counts.get(item.rule, 0) + 1
    return counts
