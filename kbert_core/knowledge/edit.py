"""Edit: one change to a graph."""

from dataclasses import dataclass
from typing import Literal

from kbert_core.knowledge.triple import Triple

Action = Literal["add", "remove", "replace", "switch_off", "switch_on"]


@dataclass(frozen=True)
class Edit:
    """One change to a graph.

    Attributes:
        action: what is done.
        triple: to which triple; for ``add`` the new one.
        new: for ``replace``, what stands in its place.
        index: for ``add``, where among the triples of its head; None: last.
    """

    action: Action
    triple: Triple
    new: Triple | None = None
    index: int | None = None

    def __str__(self) -> str:
        if self.action == "replace":
            return f"replace {self.triple} by {self.new}"
        return f"{self.action.replace('_', ' ')} {self.triple}"
