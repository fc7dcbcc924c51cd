"""Entity linking: which entity each span of a text means, as a system's linker scores them."""

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor
from transformers import AutoModel

from kbert_core.labels import Labels
from kbert_core.tasks.base import Task

NULL = "NULL"  # what a span means that means nothing, in words


@dataclass(frozen=True, slots=True)
class Link:
    """A span of a text, and what it means.

    Attributes:
        start, end: in characters, end exclusive.
        entity: the candidate with the highest score; None: the span means nothing (NULL).
        score: ψ of that candidate.
        weight: its share among the candidates, from 0 to 1.
    """

    start: int
    end: int
    entity: str | None
    score: float
    weight: float


@dataclass(frozen=True)
class LinkPrediction:
    """The links of a text, in reading order; spans may overlap."""

    links: tuple[Link, ...]

    def _repr_html_(self) -> str:
        from kbert_core.markup import table

        rows = ((f"[{own.start}, {own.end})", own.entity or NULL, own.weight) for own in self.links)
        return table(("place", "entity", "weight"), rows)


class LinkEntities(Task):
    """Entity linking, by a system that has a linker; its model needs no head."""

    name = "link"
    title = "Entity linking"
    auto_class: ClassVar[type] = AutoModel
    windows = True

    def decode(self, text: Any, logits: Tensor, labels: Labels) -> LinkPrediction:
        """Take the best candidate of every span.

        Args:
            text: a reading with ``linked_spans``.
            logits: (S, M) the scores of their candidates.
            labels: none.

        Returns:
            The links; a span without a candidate has none.
        """
        threshold = text.config.threshold_of(-1)
        links = []
        for span, scores in zip(text.linked_spans, logits, strict=True):
            if not span.candidates:  # they were left out
                continue
            own = scores[: len(span.candidates)]
            best = int(own.argmax())
            entity = span.candidates[best]
            nothing = entity.special is not None
            nothing |= threshold is not None and float(own[best]) < threshold
            mention = span.mention
            links.append(
                Link(
                    mention.start,
                    mention.end,
                    None if nothing else entity.entity,
                    float(own[best]),
                    float(own.softmax(-1)[best]),
                )
            )
        return LinkPrediction(tuple(links))
