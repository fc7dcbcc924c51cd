"""How K-BERT reads a text, and which of its two mechanisms is on. Data, not model switches."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

from kbert_core.errors import OptionError
from kbert_core.kbert.batch import Batch, PackedBatch
from kbert_core.kbert.interventions import Intervention
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.options import option

if TYPE_CHECKING:  # PyTorch takes seconds to start, and the options alone don't need it
    from torch import Tensor

Positions = Literal["soft", "hard"]
Visible = Literal["tree", "all"]


@dataclass(frozen=True)
class Ablation:
    """How a flat tree is read (the paper's Figure 5).

    Attributes:
        positions: "soft" as in the paper; "hard" counts straight through.
        visible: "tree" as in the paper; "all" hides only padding.
    """

    positions: Positions = option("soft", help="default: the model's card, else soft")
    visible: Visible = option("tree", help="default: the model's card, else tree")

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("positions", self.positions, get_args(Positions)),
            ("visible", self.visible, get_args(Visible)),
        ):
            if value not in allowed:
                raise OptionError(f"{name} is '{value}', expected one of {', '.join(allowed)}.")

    def position_ids(self, batch: Batch) -> "Tensor":
        """(B, N) int64, from 0; soft or hard positions."""
        if self.positions == "soft":
            return batch.soft_positions
        straight = (batch.real.cumsum(dim=1) - 1).clamp(min=0)
        if not isinstance(batch, PackedBatch):
            return straight
        first = batch.tree_ids.diff(dim=1, prepend=batch.tree_ids[:, :1] - 1) != 0
        return straight - (straight * first).cummax(dim=1).values  # each tree counts from 0

    def visible_in(self, batch: Batch) -> "Tensor":
        """(B, N, N) bool, True = row may attend to column."""
        from kbert_core.kbert.visible import visible_matrix

        return visible_matrix(*self.seen_by(batch))

    def seen_by(self, batch: Batch) -> tuple["Tensor", "Tensor", "Tensor | None"]:
        """Give the codes that say who sees whom: branches, anchors, and trees of packed rows.

        Without the visible matrix every token but padding stands on the trunk.
        """
        trees = batch.tree_ids if isinstance(batch, PackedBatch) else None
        if self.visible == "tree":
            return batch.branch_ids, batch.anchor_ids, trees
        return batch.branch_ids.clamp(max=0), batch.anchor_ids.clamp(max=0), trees


FULL = Ablation()


@dataclass(frozen=True)
class ReadConfig:
    """How K-BERT reads a text; what a model's card keeps of its training.

    Attributes:
        options: how many triples a mention gets, and which.
        ablation: soft or hard positions, tree or everything visible.
        max_length: in tokens, special tokens included; None: the encoder's.
        interventions: cells of the visible matrix to block and open, in order.
    """

    system: ClassVar[str] = "k-bert"
    options: InjectionOptions = InjectionOptions()
    ablation: Ablation = FULL
    max_length: int | None = None
    interventions: tuple[Intervention, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "interventions", tuple(self.interventions))
        if type(self.max_length) not in (int, type(None)):
            raise OptionError(f"max_length is {self.max_length!r}, expected a number of tokens.")

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what :meth:`as_dict` wrote; what is missing has its default.

        Raises:
            OptionError, TypeError, ValueError, AttributeError: it is something else.
        """
        given = dict(data)
        options = InjectionOptions.from_dict(given.pop("injection", {}))
        made = tuple(map(Intervention.from_dict, given.pop("interventions", ())))
        ablation = Ablation(**given.pop("ablation", {}))
        return cls(options, ablation, interventions=made, **given)

    def as_dict(self) -> dict[str, Any]:
        """The configuration as plain data, for JSON."""
        made = [intervention.as_dict() for intervention in self.interventions]
        return {
            "injection": self.options.as_dict(),
            "ablation": asdict(self.ablation),
            "max_length": self.max_length,
            **({"interventions": made} if made else {}),
        }
