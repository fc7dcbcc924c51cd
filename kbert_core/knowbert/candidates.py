"""What the spans of a text may mean: the entities that a graph gives for a name, with priors.

Spans may overlap, and an ambiguous name has several candidates; the linker chooses.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from kbert_core.knowbert import linker
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import Mention, find_all_names
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.knowledge.triple import Triple

MOST = 30  # candidates of a span, as in the paper


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entity that a span may mean.

    Attributes:
        entity: its name in the graph.
        prior: p(entity | mention).
        triples: what its vector is made of; none for a special entity.
        special: number of a special entity; None for one of the graph.
    """

    entity: str
    prior: float
    triples: tuple[Triple, ...] = ()
    special: int | None = None


MASKED = Candidate(linker.SPECIAL_ENTITIES[linker.MASK], 1.0, special=linker.MASK)
NOTHING = Candidate(linker.SPECIAL_ENTITIES[linker.NULL], 0.0, special=linker.NULL)


@dataclass(frozen=True, slots=True)
class Span:
    """A name in a text, and what it may mean.

    Attributes:
        mention: where it stands, in characters.
        candidates: the most probable first; their priors sum to 1.
    """

    mention: Mention
    candidates: tuple[Candidate, ...]

    def without(self, dropped: Sequence[Triple]) -> "Span | None":
        """Take triples from what the candidates are made of.

        A candidate without any triple left has no vector, and goes; None: no candidate is left.
        """
        left = [
            replace(own, triples=tuple(t for t in own.triples if t not in dropped))
            for own in self.candidates
        ]
        left = [own for own in left if own.triples or own.special is not None]
        if not any(own.special != linker.NULL for own in left):
            return None
        return replace(self, candidates=normalised(left))


class Vectors(Protocol):
    """Gives an entity its vector."""

    @property
    def width(self) -> int:
        """W."""

    def of(self, entities: Sequence[tuple[Triple, ...]]) -> Tensor:
        """(V, W) the vectors of entities, each given by its triples."""


def graph_spans(
    sentences: Sequence[str],
    graph: KnowledgeGraph,
    options: InjectionOptions,
    *,
    masks: Sequence[Sequence[tuple[int, int]]] = (),
    null: bool = False,
) -> tuple[Span, ...]:
    """Find the names of a graph in a text, overlapping ones too, and what each may mean.

    A graph says nothing of how often a name means which of its entities: they share the prior.
    What touches a mask means the special entity MASK, so that it tells nothing of what is hidden.

    Args:
        sentences: one or two.
        options: how a name may differ from the graph's, which relations count, and how many
            triples an entity's vector is made of.
        masks: per sentence the spans of its mask tokens, in characters.
        null: whether every span may also mean nothing.
    """
    spans = []
    for sentence, text in enumerate(sentences):
        taken, over = find_all_names(text, graph, rules=options.names, sentence=sentence)
        hidden = masks[sentence] if masks else ()
        mentions = sorted(
            [*taken, *(own.mention for own in over)], key=lambda own: (own.start, own.end)
        )
        for mention in mentions:
            if any(start < mention.end and mention.start < end for start, end in hidden):
                spans.append(Span(mention, (MASKED,)))
                continue
            candidates = [
                Candidate(entity, 1.0, triples)
                for entity in mention.entities
                if (triples := _triples(entity, graph, options))
            ]
            if candidates:
                extra = [NOTHING] if null else []
                spans.append(Span(mention, normalised([*candidates[:MOST], *extra])))
    return tuple(spans)


def _triples(entity: str, graph: KnowledgeGraph, options: InjectionOptions) -> tuple[Triple, ...]:
    on = [
        triple
        for triple in graph.triples_of(entity)
        if graph.is_on(triple)
        and (options.relations is None or triple.relation in options.relations)
        and triple.relation not in options.not_relations
    ]
    return tuple(on[: options.max_triples])


def normalised(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Let priors sum to 1, the highest first; equal ones stay in order."""
    total = sum(own.prior for own in candidates) or 1.0
    ordered = sorted(candidates, key=lambda own: -own.prior)
    return tuple(replace(own, prior=own.prior / total) for own in ordered)


def batch_of(
    rows: Sequence[Sequence[tuple[int, int, Span]]], vectors: Vectors
) -> linker.Candidates:
    """Put the spans of a batch into tensors.

    Args:
        rows: per row the first and last token of each span, inclusive, and the span.
        vectors: of the entities; each is made once a batch.
    """
    most = max([len(spans) for spans in rows] + [1])
    widest = max([len(span.candidates) for spans in rows for *_, span in spans] + [1])
    places = torch.full((len(rows), most, 2), -1)
    entities = torch.zeros((len(rows), most, widest), dtype=torch.long)
    priors = torch.zeros((len(rows), most, widest))
    numbers: dict[tuple[Triple, ...], int] = {}
    for row, spans in enumerate(rows):
        for number, (first, last, span) in enumerate(spans):
            places[row, number] = torch.tensor([first, last])
            for k, own in enumerate(span.candidates):
                entity = own.special
                if entity is None:
                    entity = numbers.setdefault(own.triples, len(numbers)) + len(
                        linker.SPECIAL_ENTITIES
                    )
                entities[row, number, k], priors[row, number, k] = entity, own.prior
    return linker.Candidates(places, entities, priors, vectors.of(list(numbers)))
