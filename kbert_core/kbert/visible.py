"""The seeing layer: which tokens may attend to which (K-BERT, Eq. 3), and the paper's ablations."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

from kbert_core.errors import ShapeError
from kbert_core.kbert.flat_tree import Batch
from kbert_core.options import Options, option
from kbert_core.systems import SystemConfig

if TYPE_CHECKING:  # PyTorch takes seconds to start, and the options alone don't need it
    from torch import Tensor

Positions = Literal["soft", "hard"]
Visible = Literal["tree", "all"]
Segments = Literal["sentences", "none"]


def visible_matrix(
    branch_ids: "Tensor", anchor_ids: "Tensor", tree_ids: "Tensor | None" = None
) -> "Tensor":
    """Say which tokens may attend to which (K-BERT, Eq. 3).

    Tokens see along one branch (the trunk is one), and between a mention
    and the branches that hang from it.

    Args:
        branch_ids: (B, N) int64; 0 trunk, 1.. branches, -1 padding.
        anchor_ids: (B, N) int64; mention number, 0 for none.
        tree_ids: (B, N) int64; which tree a token belongs to, where several share a row.

    Returns:
        (B, N, N) bool, True = row may attend to column. Padding sees
        padding, so softmax never meets an empty row.

    Raises:
        ShapeError: the codes differ in shape.
    """
    _check(branch_ids, anchor_ids)
    branch_ids, anchor_ids = branch_ids.int(), anchor_ids.int()  # compared twice as fast
    mention, hangs = _mentions(branch_ids, anchor_ids)
    visible = branch_ids[:, :, None] == branch_ids[:, None, :]
    visible |= mention[:, :, None] == hangs[:, None, :]  # in place: no tensor of a batch is larger
    visible |= hangs[:, :, None] == mention[:, None, :]
    if tree_ids is not None:
        _check(branch_ids, tree_ids)
        visible &= tree_ids[:, :, None] == tree_ids[:, None, :]
    return visible


def mask_mod(
    branch_ids: "Tensor", anchor_ids: "Tensor"
) -> "Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]":
    """Return a function that answers for one cell what :func:`visible_matrix` answers for all.

    FlexAttention takes such a function. No (B, N, N) tensor is made, and blocks of a row that see
    nothing of each other are never computed. Its arguments are indices: batch, attention head,
    query and key.
    """
    _check(branch_ids, anchor_ids)
    mention, hangs = _mentions(branch_ids, anchor_ids)

    def sees(batch: "Tensor", head: "Tensor", query: "Tensor", key: "Tensor") -> "Tensor":
        del head
        same_branch = branch_ids[batch, query] == branch_ids[batch, key]
        to_branch = mention[batch, query] == hangs[batch, key]
        to_mention = hangs[batch, query] == mention[batch, key]
        return same_branch | to_branch | to_mention

    return sees


def _mentions(branch_ids: "Tensor", anchor_ids: "Tensor") -> "tuple[Tensor, Tensor]":
    """Split the anchors in two (B, N): a trunk token's mention, or 0; a branch token's, or -1.

    A mention and the branches that hang from it have the same number; nothing else has it.
    """
    mention = anchor_ids.where(branch_ids == 0, 0)
    hangs = anchor_ids.where((branch_ids > 0) & (anchor_ids > 0), -1)
    return mention, hangs


def _check(branch_ids: "Tensor", other: "Tensor") -> None:
    if branch_ids.shape != other.shape:
        raise ShapeError(
            f"branch_ids has shape {tuple(branch_ids.shape)} and the other code "
            f"{tuple(other.shape)}; expected the same (B, N)."
        )


class Visibility(StrEnum):
    """Why one token sees another, or doesn't."""

    TRUNK = "both stand on the trunk"
    SAME_BRANCH = "both stand on the same branch"
    MENTION_AND_BRANCH = "one is the mention the other's branch hangs from"
    SIBLINGS = "they stand on two branches of one mention"
    OTHER_MENTION = "they stand on branches of different mentions"
    OFF_MENTION = "the branch hangs from another mention than this token"
    PADDING = "one of them is padding"

    @property
    def visible(self) -> bool:
        """Whether the visible matrix has True here."""
        return self in (Visibility.TRUNK, Visibility.SAME_BRANCH, Visibility.MENTION_AND_BRANCH)


def why_visible(branch_a: int, anchor_a: int, branch_b: int, anchor_b: int) -> Visibility:
    """Name the clause of Eq. 3 that decides one cell, from the tokens' codes."""
    if branch_a < 0 or branch_b < 0:
        return Visibility.PADDING
    if branch_a == branch_b:
        return Visibility.SAME_BRANCH if branch_a else Visibility.TRUNK
    same_anchor = anchor_a == anchor_b and anchor_a > 0
    if branch_a == 0 or branch_b == 0:
        return Visibility.MENTION_AND_BRANCH if same_anchor else Visibility.OFF_MENTION
    return Visibility.SIBLINGS if same_anchor else Visibility.OTHER_MENTION


@dataclass(frozen=True)
class Ablation(Options):
    """Which of K-BERT's mechanisms are on (the paper's Figure 5). Data, not a model's switch.

    Attributes:
        positions: soft as in the paper, or hard: by place in the row; default: the card's or soft
        visible: by the tree as in the paper, or all but padding; default: the card's or tree
        segments: of sentences as in the paper, or none: all 0; default: the card's or sentences
    """

    positions: Positions = option("soft", choices=get_args(Positions))
    visible: Visible = option("tree", choices=get_args(Visible))
    segments: Segments = option("sentences", choices=get_args(Segments))

    def position_ids(self, batch: Batch) -> "Tensor":
        """(B, N) int64, from 0; soft or hard positions."""
        if self.positions == "soft":
            return batch.soft_positions
        return (batch.real.cumsum(dim=1) - 1).clamp(min=0)

    def segment_ids(self, batch: Batch) -> "Tensor":
        """(B, N) int64, the token types; with ``segments="none"`` all are 0."""
        return batch.token_type_ids * (self.segments == "sentences")

    def visible_in(self, batch: Batch) -> "Tensor":
        """(B, N, N) bool, True = row may attend to column."""
        return visible_matrix(*self.seen_by(batch))

    def seen_by(self, batch: Batch) -> "tuple[Tensor, Tensor]":
        """Return branch and anchor codes for the matrix; "all" puts every token on the trunk."""
        if self.visible == "tree":
            return batch.branch_ids, batch.anchor_ids
        return batch.branch_ids.clamp(max=0), batch.anchor_ids.clamp(max=0)


FULL = Ablation()
ABLATIONS: dict[str, Ablation] = {
    "full": FULL,
    "hard-positions": Ablation(positions="hard"),
    "everything-visible": Ablation(visible="all"),
    "both": Ablation(positions="hard", visible="all"),
    "no-segments": Ablation(segments="none"),
}
ABLATIONS |= {"hard": ABLATIONS["hard-positions"], "all": ABLATIONS["everything-visible"]}


@dataclass(frozen=True)
class ReadConfig(SystemConfig):
    """How K-BERT reads a text; the interventions are carried out in order.

    An ablation may be given by its name in ``ABLATIONS``, interventions by theirs in ``PRESETS``.
    """

    system: ClassVar[str] = "k-bert"
    ablation: Ablation = FULL
    interventions: tuple[Any, ...] = ()  # of Intervention, loaded where there are some

    def __post_init__(self) -> None:
        self._named("ablation", ABLATIONS)
        if isinstance(self.interventions, str):
            from kbert_core.kbert.interventions import PRESETS

            self._named("interventions", PRESETS)
        super().__post_init__()

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what :meth:`as_dict` wrote; see :meth:`SystemConfig.from_dict`."""
        made: tuple[Any, ...] = ()
        if given := data.get("interventions", ()):
            from kbert_core.kbert.interventions import Intervention

            made = tuple(map(Intervention.from_dict, given))
        ablation = Ablation(**data.get("ablation", {}))
        return super().from_dict({**data, "ablation": ablation, "interventions": made})

    def as_dict(self) -> dict[str, Any]:
        """The configuration as plain data, for JSON."""
        data = {**super().as_dict(), "ablation": asdict(self.ablation)}
        made = [intervention.as_dict() for intervention in data.pop("interventions")]
        return {**data, **({"interventions": made} if made else {})}
