"""What the spans of a text may mean: the entities that a graph gives for a name, with priors.

Spans may overlap, and an ambiguous name has several candidates; the linker chooses. A graph says
how often a name meant an entity by triples (entity, count, "name 12"); WordNet as a graph has them
from SemCor. Where it says nothing, the entities of a name share the prior.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np
import torch

from kbert_core.errors import GraphEditError, OptionError
from kbert_core.knowbert.entity_vectors import TEXT, EntityVectors
from kbert_core.knowbert.kar import (
    MASK,
    NULL,
    PADDING,
    SPECIAL_ENTITIES,
    Candidates,
    KarOptions,
)
from kbert_core.knowbert.morphology import Names, inflected_names
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import Mention, find_all_names
from kbert_core.knowledge.names import loose_key
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.knowledge.triple import COUNT, Triple
from kbert_core.options import check_fields

MOST = 30  # candidates of a span, as in the paper


@dataclass(frozen=True)
class Base:
    """A knowledge base of a KnowBert: the part of the graph that enters after one layer.

    Attributes:
        relations: relations of the triples that make an entity's vector; None: all but counts.
        text: how such a triple is written for the encoder that makes the vectors.
        inflected: whether texts inflect names, as English does; then WordNet's morphology is used.
        vectors: the encoder that makes entity vectors, and never changes: a folder,
            ``package:NAME`` or a hub name.
        vectors_layer: the layer of the hidden states, from 0; None: the middle one, -1: the last.
        layer: the layer after which its KAR stands, from 1; None: the paper's place.
        kar: sizes of its KAR, and choices where paper and code differ.
    """

    relations: tuple[str, ...] | None = None
    text: str = TEXT
    inflected: bool = False
    vectors: str = ""
    vectors_layer: int | None = None
    layer: int | None = None
    kar: KarOptions = KarOptions()

    def __post_init__(self) -> None:
        check_fields(self)
        try:
            self.text.format(head="", relation="", tail="")
        except (KeyError, IndexError, ValueError, AttributeError) as error:
            raise OptionError(
                f"text is {self.text!r}, which can't be filled in ({error}). Use {{head}}, "
                "{relation} and {tail}."
            ) from error

    @classmethod
    def of(cls, given: Any) -> Self:
        """Make a base from its name (see ``BASES``), or from its options: a mapping, or JSON.

        Raises:
            OptionError: there is no such base or attribute.
        """
        if isinstance(given, str) and given.lstrip().startswith("{"):
            try:
                given = json.loads(given)
            except ValueError as error:
                raise OptionError(
                    f"A knowledge base is {given}, which isn't JSON ({error})."
                ) from error
        elif isinstance(given, str):
            given = {"like": given}
        if not isinstance(given, Mapping):
            raise OptionError(f"A knowledge base is {given!r}, expected its name or its options.")
        own = dict(given)
        like = own.pop("like", "graph")
        if like not in BASES:
            raise OptionError(f"No knowledge base '{like}'; expected one of {', '.join(BASES)}.")
        try:
            kar = KarOptions(**{**BASES[like].get("kar", {}), **own.pop("kar", {})})
            return cls(**{**BASES[like], **own, "kar": kar})
        except TypeError as error:
            raise OptionError(f"A knowledge base has no such option: {error}.") from error

    def as_dict(self) -> dict[str, Any]:
        """The base as plain data, for JSON."""
        return asdict(self)


BASES: dict[str, dict[str, Any]] = {
    "graph": {},
    "wordnet": {
        "relations": ("gloss",),
        "text": "{tail}",
        "inflected": True,
        "vectors_layer": -1,
        "kar": {"norms": True, "scaled": True},
    },
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entity that a span may mean.

    Attributes:
        entity: its name in the graph.
        prior: p(entity | mention).
        triples: the triples that make its vector; none for a special entity.
        special: number of a special entity; None for an entity of the graph.
    """

    entity: str
    prior: float
    triples: tuple[Triple, ...] = ()
    special: int | None = None


MASKED = Candidate(SPECIAL_ENTITIES[MASK], 1.0, special=MASK)
NOTHING = Candidate(SPECIAL_ENTITIES[NULL], 0.0, special=NULL)


@dataclass(frozen=True, slots=True)
class Span:
    """A name in a text, and what it may mean.

    Attributes:
        mention: where it stands, in characters.
        candidates: the most probable first; their priors sum to 1. Empty if all were left out.
        base: number of its knowledge base.
    """

    mention: Mention
    candidates: tuple[Candidate, ...]
    base: int = 0

    @property
    def place(self) -> tuple[int, int, int, int]:
        """Base, sentence, start and end: what tells it from other spans, and sorts them."""
        mention = self.mention
        return self.base, mention.sentence, mention.start, mention.end

    @property
    def used(self) -> tuple[Triple, ...]:
        """The triples that make its candidates' vectors, each once."""
        return tuple(dict.fromkeys(t for own in self.candidates for t in own.triples))

    def edited(self, changes: Mapping[Triple, Triple | None], options: Any = None) -> "Span":
        """Return the span with some triples replaced; a triple replaced by None is removed.

        A candidate without any triple has no vector and is removed.
        """
        del options
        made = [
            replace(own, triples=tuple(filter(None, (changes.get(t, t) for t in own.triples))))
            for own in self.candidates
        ]
        left = [own for own in made if own.triples or own.special is not None]
        if not any(own.special != NULL for own in left):
            left = []
        return replace(self, candidates=normalised(left))


def graph_spans(
    sentences: Sequence[str],
    graph: KnowledgeGraph,
    options: InjectionOptions,
    base: Base = Base(),
    number: int = 0,
    masks: Sequence[Sequence[tuple[int, int]]] = (),
) -> tuple[Span, ...]:
    """Find all names of a graph in a text, overlapping ones, too, and what each may mean.

    A name that touches a mask means the special entity MASK: it must not give the hidden word away.

    Args:
        sentences: one or two.
        options: how a name may differ from the graph's, which relations count, and how many
            triples an entity's vector is made of.
        base: which part of the graph.
        number: the number of the base, kept with each span.
        masks: for each sentence the spans of its mask tokens, in characters.
    """
    spans = []
    known: dict[Any, tuple[Candidate, ...]] = graph.kept((options, base), dict)
    for sentence, text in enumerate(sentences):
        hidden = masks[sentence] if masks else ()
        for (start, end), entities in sorted(_names_in(text, graph, options, base).items()):
            mention = Mention(start, end, next(iter(entities)), sentence, tuple(entities)[1:])
            if any(first < end and start < last for first, last in hidden):
                spans.append(Span(mention, (MASKED,), number))
                continue
            key = tuple((entity, *sorted(names)) for entity, names in entities.items())
            if key not in known:
                known[key] = _candidates(entities, graph, options, base)
            if known[key]:
                mention = replace(
                    mention,
                    entity=known[key][0].entity,
                    others=tuple(own.entity for own in known[key][1:] if own.special is None),
                )
                spans.append(Span(mention, known[key], number))
    return tuple(spans)


def entities_named(
    sentences: Sequence[str],
    graph: KnowledgeGraph,
    options: InjectionOptions,
    bases: Sequence[Base],
) -> tuple[str, ...]:
    """Return the entities that a text names, in reading order, also those without a vector."""
    found: dict[str, None] = {}
    for base in bases:
        for text in sentences:
            for _, entities in sorted(_names_in(text, graph, options, base).items()):
                found.update(dict.fromkeys(entities))
    return tuple(found)


def entity_span(
    place: tuple[int, int],
    entities: Sequence[str],
    word: str,
    graph: KnowledgeGraph,
    options: InjectionOptions,
    base: Base,
    number: int = 0,
) -> Span | None:
    """Make a span of given entities, such as the senses of a word with a known part of speech.

    Args:
        place: start and end, in characters of the first sentence.
        word: the name whose counts become the priors.

    Returns:
        The span; None if none of the entities has a vector.
    """
    candidates = _candidates({entity: {word} for entity in entities}, graph, options, base)
    if not candidates:
        return None
    return Span(Mention(*place, candidates[0].entity), candidates, number)


def _names_in(text: str, graph: KnowledgeGraph, options: InjectionOptions, base: Base) -> Names:
    if base.inflected:
        return inflected_names(text, graph)
    names: Names = {}
    taken, over = find_all_names(text, graph, rules=options.names)
    for mention in (*taken, *(own.mention for own in over)):
        entities = names.setdefault((mention.start, mention.end), {})
        for entity in mention.entities:
            entities.setdefault(entity, set()).add(text[mention.start : mention.end])
    return names


def _candidates(
    entities: Mapping[str, set[str]],
    graph: KnowledgeGraph,
    options: InjectionOptions,
    base: Base,
) -> tuple[Candidate, ...]:
    """Return the most probable entities of a name that have a vector, and NULL if asked for."""
    found = []
    for entity, names in entities.items():
        if triples := _triples(entity, graph, options, base):
            found.append(Candidate(entity, 1.0 + _count(entity, names, graph), triples))
    most = sorted(found, key=lambda own: -own.prior)[:MOST]
    return normalised([*most, NOTHING] if most and base.kar.null_candidate else most)


def _triples(
    entity: str, graph: KnowledgeGraph, options: InjectionOptions, base: Base
) -> tuple[Triple, ...]:
    offered = [
        triple
        for triple in graph.triples_of(entity)
        if (options.keep_places or graph.is_on(triple))
        and (base.relations is None or triple.relation in base.relations)
        and options.allows(triple.relation)
        and triple.relation != COUNT
    ]
    return tuple(filter(graph.is_on, offered[: options.max_triples]))


def _count(entity: str, names: set[str], graph: KnowledgeGraph) -> int:
    """Return how often a name meant the entity, as the graph says.

    Raises:
        GraphEditError: the tail of a triple with the relation "count" isn't a count.
    """
    keys, most = {loose_key(name) for name in names}, 0
    for triple in graph.triples_of(entity):
        if triple.relation != COUNT or not graph.is_on(triple):
            continue
        name, _, number = triple.tail.rpartition(" ")
        if not name or not number.isdecimal():
            raise GraphEditError(
                f"The triple {triple} has no count: its tail is '{triple.tail}', expected a name "
                "and a whole number, as in 'bank 12'. Change or delete it."
            )
        if loose_key(name) in keys:
            most = max(most, int(number))
    return most


def normalised(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Divide priors by their sum and sort them, the highest first; equal ones keep their order."""
    total = sum(own.prior for own in candidates) or 1.0
    ordered = sorted(candidates, key=lambda own: -own.prior)
    return tuple(replace(own, prior=own.prior / total) for own in ordered)


def batch_of(
    rows: Sequence[Sequence[tuple[int, int, Span]]],
    vectors: EntityVectors,
    threshold: float | None = None,
) -> Candidates:
    """Put the spans of a batch into tensors.

    Args:
        rows: for each row the first and last token of each span, inclusive, and the span.
        vectors: makes the entities' vectors; each is made once for a batch.
        threshold: δ to use instead of the linker's own.
    """
    most = max([len(spans) for spans in rows] + [1])
    widest = max([len(span.candidates) for spans in rows for *_, span in spans] + [1])
    places = np.full((len(rows), most, 2), -1)
    entities = np.full((len(rows), most, widest), PADDING)
    priors = np.zeros((len(rows), most, widest), np.float32)
    numbers: dict[tuple[Triple, ...], int] = {}  # of the batch's own entities
    for row, spans in enumerate(rows):
        for place, (first, last, span) in enumerate(spans):
            places[row, place] = first, last
            for rank, own in enumerate(span.candidates):
                number = own.special
                if number is None:
                    number = numbers.setdefault(own.triples, len(numbers)) + len(SPECIAL_ENTITIES)
                entities[row, place, rank], priors[row, place, rank] = number, own.prior
    where, which, shares = map(torch.from_numpy, (places, entities, priors))
    return Candidates(where, which, shares, vectors.of(list(numbers)), threshold)
