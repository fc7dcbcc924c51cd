"""Interventions: cells of the visible matrix blocked or opened, in all layers or in some.

They answer which link does the work: cut one, and look at what the prediction becomes. Tokens are
named by what they are, never by an index, so that an intervention means the same after an edit
of the graph.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from kbert_core.errors import OptionError, ShapeError
from kbert_core.files import are_texts
from kbert_core.kbert.flat_tree import FlatTree
from kbert_core.knowledge.triple import Triple
from kbert_core.options import check_fields, value_named

if TYPE_CHECKING:  # PyTorch takes seconds to start, and only matrices need it
    import torch
    from torch import Tensor

Kind = Literal["all", "trunk", "branches", "specials", "branch", "hung", "mention", "token"]
Action = Literal["block", "open"]
KINDS, ACTIONS = dict.fromkeys(get_args(Kind)), dict.fromkeys(get_args(Action))
AT_MENTION = ("mention", "hung", "branch")


@contextmanager
def _reading(data: object, what: str) -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise OptionError(f"{data!r} {what} ({error}). Write it with as_dict().") from error


@dataclass(frozen=True, slots=True)
class Tokens:
    """A choice of a tree's tokens, by what they are.

    Attributes:
        kind: "all"; "trunk", with special tokens; "branches", all of them; "specials", [CLS]
            and [SEP]; "mention", the trunk tokens of one mention; "hung", all branches of
            that mention; "branch", its branch for one triple; "token", a single token.
        sentence, start: the mention: index of its sentence, and its first character there.
        triple: the triple of a "branch".
        identity: the name of a "token", see ``FlatTree.identities``.

    Raises:
        OptionError: an unknown kind, or something it needs is missing.
    """

    kind: Kind
    sentence: int = 0
    start: int = 0
    triple: Triple | None = None
    identity: tuple[object, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)
        value_named("kind", self.kind, KINDS)
        for kind, name in (("branch", "triple"), ("token", "identity")):
            if self.kind == kind and not getattr(self, name):
                raise OptionError(f"Tokens of kind '{kind}' were given no {name}. Give one.")

    @property
    def tied_to_text(self) -> bool:
        """Whether they belong to a place in one text and mean nothing in another text."""
        return self.kind in AT_MENTION or (self.kind == "token" and self.identity[0] != "special")

    def among(self, row: FlatTree) -> list[int]:
        """Return their indices along N in a flat tree, ascending; empty if it has none of them."""
        match self.kind:
            case "all":
                return list(range(len(row)))
            case "trunk":
                return [i for i, branch in enumerate(row.branch_ids) if branch == 0]
            case "branches":
                return [i for i, branch in enumerate(row.branch_ids) if branch > 0]
            case "specials":
                return [index for index, _ in row.specials]
            case "token":
                return [i for i, name in enumerate(row.identities) if name == self.identity]
        mentions = enumerate((node.mention.sentence, node.mention.start) for node in row.tree.nodes)
        nodes = [number for number, place in mentions if place == (self.sentence, self.start)]
        if self.kind == "mention":
            codes = enumerate(zip(row.branch_ids, row.anchor_ids, strict=True))
            return [i for i, (branch, at) in codes if branch == 0 and at - 1 in nodes]
        return [
            index
            for placed in row.branches
            if placed.node in nodes and (self.kind == "hung" or placed.branch.triple == self.triple)
            for index in range(placed.start, placed.end)
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, without the fields that the kind doesn't need."""
        made: dict[str, Any] = {"kind": self.kind}
        if self.kind in AT_MENTION:
            made |= {"sentence": self.sentence, "start": self.start}
        if self.triple is not None:
            made["triple"] = _plain(self.triple)
        if self.identity:
            made["identity"] = [_plain(part) for part in self.identity]
        return made

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Tokens":
        """Read what :meth:`as_dict` wrote; an OptionError: it is something else."""
        with _reading(data, "names no tokens"):
            given = {**data, "identity": tuple(map(_of_plain, data.get("identity", ())))}
            if "triple" in data:
                given["triple"] = _of_plain(data["triple"])
            return cls(**given)


@dataclass(frozen=True, slots=True)
class Intervention:
    """Cells of the visible matrix blocked or opened.

    Attributes:
        action: "block": ``seer`` may not attend to ``seen``; "open": it may.
        seer, seen: rows and columns of the matrix.
        both: do the same for ``seen`` attending to ``seer``.
        layers: numbers from 1, ascending; empty: all layers.

    Raises:
        OptionError: an unknown action, or a layer below 1.
    """

    action: Action
    seer: Tokens
    seen: Tokens
    both: bool = True
    layers: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)
        value_named("action", self.action, ACTIONS)
        if any(layer < 1 for layer in self.layers):
            raise OptionError(
                f"An intervention is for layer {min(self.layers)}, and layers count from 1. "
                "Name layers from 1, or none for all."
            )
        object.__setattr__(self, "layers", tuple(sorted(set(self.layers))))

    @property
    def tied_to_text(self) -> bool:
        """Whether it means nothing in another text."""
        return self.seer.tied_to_text or self.seen.tied_to_text

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        sides = {"seer": self.seer.as_dict(), "seen": self.seen.as_dict()}
        return {"action": self.action, **sides, "both": self.both, "layers": list(self.layers)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Intervention":
        """Read what :meth:`as_dict` wrote; an OptionError: it is something else."""
        with _reading(data, "is no intervention"):
            sides = {name: Tokens.from_dict(data[name]) for name in ("seer", "seen")}
            return cls(**{**data, **sides})


ALL, TRUNK, BRANCHES = Tokens("all"), Tokens("trunk"), Tokens("branches")
CLS = Tokens("token", identity=("special", 0))

PRESETS: Mapping[str, tuple[Intervention, ...]] = {
    # as Ablation(visible="all"): the paper's "w/o visible matrix"
    "everything": (Intervention("open", ALL, ALL),),
    # every branch at once, and not only where it hangs
    "whole_link": (Intervention("open", TRUNK, BRANCHES),),
    # no knowledge gets in: with soft positions the trunk's states are plain BERT's
    "no_link": (Intervention("block", TRUNK, BRANCHES),),
    # knowledge gets in, and was read without its sentence
    "branches_alone": (Intervention("block", BRANCHES, TRUNK, both=False),),
    # what [CLS] knows of branches it has from the trunk
    "cls_blind": (Intervention("block", CLS, BRANCHES, both=False),),
}


@dataclass(frozen=True)
class Intervened:
    """What interventions, in order, made of a visible matrix.

    Attributes:
        layers: L tensors (B, N, N) bool; equal layers share one tensor.
        changed: how many cells each intervention changed when its turn came, in the layer where
            it changed most.
    """

    interventions: tuple[Intervention, ...]
    layers: "tuple[Tensor, ...]"
    changed: tuple[int, ...]

    def to(self, device: "torch.device | str") -> "Intervened":
        """Move every matrix to a device."""
        moved = {id(layer): layer.to(device) for layer in self.layers}
        return replace(self, layers=tuple(moved[id(layer)] for layer in self.layers))


def intervene(
    visible: "Tensor",
    rows: Sequence[FlatTree],
    interventions: Iterable[Intervention],
    layer_count: int,
) -> Intervened:
    """Block and open cells of a visible matrix, one intervention after the other.

    A later intervention overrules an earlier one. A token always sees itself, and padding is never
    changed, so that no row is empty.

    Args:
        visible: (B, N, N) bool, True = row may attend to column; not changed.
        rows: the B flat trees to which it belongs.
        layer_count: L.

    Raises:
        OptionError: a layer that the encoder doesn't have.
        ShapeError: the matrix isn't of these flat trees.
    """
    longest = max(map(len, rows), default=0)
    if len(rows) != visible.shape[0] or longest > visible.shape[1]:
        raise ShapeError(
            f"visible has shape {tuple(visible.shape)}, and there are {len(rows)} flat trees of "
            f"up to {longest} tokens; expected (B, N, N) of the same."
        )
    interventions = tuple(interventions)
    layers = [visible] * layer_count
    changed = []
    for one in interventions:
        if not isinstance(one, Intervention):
            raise OptionError(f"Got {one!r:.60} as an intervention. Give Intervention(…).")
        if one.layers and one.layers[-1] > layer_count:
            raise OptionError(
                f"An intervention is for layer {one.layers[-1]}, and the encoder has "
                f"{layer_count}. Name layers from 1 to {layer_count}, or none for all."
            )
        cells, most = _cells(one, rows, visible), 0
        before: list[Tensor] = list(layers)
        after: dict[int, Tensor] = {}  # by the matrix: layers share one
        for number in one.layers or range(1, layer_count + 1):
            old = before[number - 1]
            if id(old) not in after:
                after[id(old)] = old & ~cells if one.action == "block" else old | cells
                most = max(most, int((after[id(old)] != old).sum()))
            layers[number - 1] = after[id(old)]
        changed.append(most)
    different: list[Tensor] = []  # layers of equal matrices share one tensor
    for layer in layers:
        if not any(old is layer or old.equal(layer) for old in different):
            different.append(layer)
    shared = (next(old for old in different if old is m or old.equal(m)) for m in layers)
    return Intervened(interventions, tuple(shared), tuple(changed))


def _cells(one: Intervention, rows: Sequence[FlatTree], visible: "Tensor") -> "Tensor":
    """Return the cells that an intervention names, (B, N, N) bool, without the diagonal."""
    import torch

    cells = torch.zeros_like(visible)
    for number, row in enumerate(rows):
        seer, seen = (torch.tensor(t.among(row), dtype=torch.long) for t in (one.seer, one.seen))
        cells[number, seer[:, None], seen[None, :]] = True
    if one.both:
        cells = cells | cells.transpose(1, 2)
    cells.diagonal(dim1=1, dim2=2).fill_(False)
    return cells


def _plain(part: object) -> object:
    return [part.head, part.relation, part.tail] if isinstance(part, Triple) else part


def _of_plain(part: Any) -> Any:
    if are_texts(part):
        return Triple(*part)
    if type(part) not in (str, int):
        raise ValueError(f"found {part!r}, expected a text, a number, or a triple's three texts")
    return part
