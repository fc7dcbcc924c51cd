"""Links as something to explain: which entity stands where, and with which weight."""

from typing import Any

from torch import Tensor

from kbert_core.errors import TextError
from kbert_core.tasks import NULL, LinkPrediction

Place = tuple[int, int]  # in characters, end exclusive


def weight_of(entity: str, place: Place, reading: Any, scores: Tensor) -> float:
    """The share of an entity among the candidates of a span; 0 where it is none of them.

    Args:
        entity: its name, or NULL.
        reading: with ``linked_spans``.
        scores: (S, M) of their candidates.
    """
    for span, own in zip(reading.linked_spans, scores, strict=True):
        if _place(span.mention) == place and span.candidates:
            weights = own[: len(span.candidates)].double().softmax(-1).tolist()
            shares = zip(map(_name, span.candidates), weights, strict=True)
            return float(sum(weight for name, weight in shares if name == entity))
    return 0.0


def entity_at(place: Place, prediction: LinkPrediction) -> str:
    """What a span is taken to mean; NULL where it means nothing."""
    return next((own.entity for own in prediction.links if _place(own) == place), None) or NULL


def names_by_place(reading: Any) -> dict[Place, list[str]]:
    """What each span may mean, the most probable first."""
    return {_place(own.mention): [*map(_name, own.candidates)] for own in reading.linked_spans}


def chosen_link(
    prediction: LinkPrediction, reading: Any, entity: str | None, place: Place | None
) -> tuple[str, int, int]:
    """Choose a link: by its place, its entity, both, or the span whose best weight is least sure.

    Raises:
        TextError: no name stands there, or it can't mean the entity.
    """
    names = names_by_place(reading)
    if place is None:
        places = [_place(own) for own in sorted(prediction.links, key=lambda own: own.weight)]
        able = [own for own in places if entity is None or entity in names[own]]
        place = (able or places)[0]
    if place not in names:
        known = ", ".join(f"[{start}, {end})" for start, end in names)
        raise TextError(f"There is no name of the graph at [{place[0]}, {place[1]}), only {known}.")
    if entity is not None and entity not in names[place]:
        known = ", ".join(names[place])
        raise TextError(
            f"'{entity}' is no candidate of the name at [{place[0]}, {place[1]}), which may mean "
            f"{known}."
        )
    return entity or entity_at(place, prediction), *place


def _place(own: Any) -> Place:
    return own.start, own.end


def _name(candidate: Any) -> str:
    return candidate.entity if candidate.special is None else NULL
