"""Interventions: cells of the visible matrix blocked or opened, in all layers or in some.

They ask directly which link does the work: cut one, and see what becomes of
the prediction. Tokens are named by what they are, never by an index, so that
an intervention means the same after an edit of the graph. The paper's
ablations are the coarsest of them, see :data:`PRESETS`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from kbert_core.errors import OptionError, ShapeError
from kbert_core.kbert.flat_tree import FlatTree
from kbert_core.knowledge.triple import Triple

if TYPE_CHECKING:  # PyTorch takes seconds to start, and only matrices need it
    import torch
    from torch import Tensor

Kind = Literal["all", "trunk", "branches", "specials", "branch", "hung", "mention", "token"]
Action = Literal["block", "open"]


def _check(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise OptionError(f"The {name} is '{value}', expected one of {', '.join(allowed)}.")


@dataclass(frozen=True, slots=True)
class Tokens:
    """Which tokens of a tree, by what they are.

    Attributes:
        kind: "all"; "trunk", special tokens included; "branches", all of
            them; "specials", [CLS] and [SEP]; "mention", the trunk tokens of
            one mention; "hung", all branches that hang from it; "branch",
            the one of them that says a triple; "token", a single one.
        sentence, start: of the mention, where the kind needs one: index of
            its sentence and its first character there.
        triple: of a "branch".
        identity: of a "token", see ``FlatTree.identities``.

    Raises:
        OptionError: an unknown kind, or something it needs is missing.
    """

    kind: Kind
    sentence: int = 0
    start: int = 0
    triple: Triple | None = None
    identity: tuple[object, ...] = ()

    def __post_init__(self) -> None:
        _check("kind of tokens", self.kind, get_args(Kind))
        for kind, name in (("branch", "triple"), ("token", "identity")):
            if self.kind == kind and not getattr(self, name):
                raise OptionError(f"Tokens of kind '{kind}' were given no {name}. Give one.")

    @property
    def tied_to_text(self) -> bool:
        """Whether they are a place in one text, so that they mean nothing in another."""
        if self.kind == "token":
            return self.identity[0] != "special"
        return self.kind in ("branch", "hung", "mention")

    def among(self, row: FlatTree) -> list[int]:
        """Find them in a flat tree.

        Returns:
            Indices along N, ascending; empty where the tree has none of them.
        """
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
            case "mention":
                own = {1 + node for node in self._nodes(row)}
                codes = zip(row.branch_ids, row.anchor_ids, strict=True)
                return [
                    i for i, (branch, anchor) in enumerate(codes) if not branch and anchor in own
                ]
        nodes = self._nodes(row)
        return [
            index
            for placed in row.branches
            if placed.node in nodes and (self.kind == "hung" or placed.branch.triple == self.triple)
            for index in range(placed.start, placed.end)
        ]

    def _nodes(self, row: FlatTree) -> set[int]:
        place = (self.sentence, self.start)
        mentions = (node.mention for node in row.tree.nodes)
        return {i for i, found in enumerate(mentions) if (found.sentence, found.start) == place}

    def as_dict(self) -> dict[str, Any]:
        """Plain data, without what the kind doesn't need."""
        made: dict[str, Any] = {"kind": self.kind}
        if self.kind in ("mention", "hung", "branch"):
            made |= {"sentence": self.sentence, "start": self.start}
        if self.triple is not None:
            made["triple"] = _plain(self.triple)
        if self.identity:
            made["identity"] = [_plain(part) for part in self.identity]
        return made

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Tokens":
        """Read what :meth:`as_dict` wrote.

        Raises:
            OptionError: it is something else.
        """
        try:
            triple = data.get("triple")
            return cls(
                data["kind"],
                _number(data.get("sentence", 0)),
                _number(data.get("start", 0)),
                _triple(triple) if triple is not None else None,
                tuple(map(_identity_part, data.get("identity", ()))),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise OptionError(f"{data!r} names no tokens ({error}). {WRITE_AGAIN}") from error


@dataclass(frozen=True, slots=True)
class Intervention:
    """Cells of the visible matrix blocked or opened.

    Attributes:
        action: "block", so that ``seer`` may not attend to ``seen``, or
            "open", so that it may.
        seer: rows of the matrix: the tokens that attend.
        seen: columns: the tokens attended to.
        both: whether ``seen`` is kept from ``seer``, or let to it, as well.
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
        _check("action", self.action, get_args(Action))
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
        return {
            "action": self.action,
            "seer": self.seer.as_dict(),
            "seen": self.seen.as_dict(),
            "both": self.both,
            "layers": list(self.layers),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Intervention":
        """Read what :meth:`as_dict` wrote.

        Raises:
            OptionError: it is something else.
        """
        try:
            return cls(
                data["action"],
                Tokens.from_dict(data["seer"]),
                Tokens.from_dict(data["seen"]),
                _flag(data.get("both", True)),
                tuple(_number(layer) for layer in data.get("layers", ())),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise OptionError(f"{data!r} is no intervention ({error}). {WRITE_AGAIN}") from error


WRITE_AGAIN = "Write it with as_dict()."
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
    """What interventions made of a visible matrix.

    Attributes:
        interventions: in order.
        layers: L tensors (B, N, N) bool; the same one where layers are equal.
        changed: per intervention how many cells it changed when its turn
            came, in the layer where these are most.
    """

    interventions: tuple[Intervention, ...]
    layers: "tuple[Tensor, ...]"
    changed: tuple[int, ...]

    def to(self, device: "torch.device | str") -> "Intervened":
        """Move every matrix to a device."""
        moved = {id(layer): layer.to(device) for layer in self.layers}
        return replace(self, layers=tuple(moved[id(layer)] for layer in self.layers))

    @property
    def idle(self) -> tuple[Intervention, ...]:
        """Those that changed nothing: what they name isn't in the tree, or was so already."""
        pairs = zip(self.interventions, self.changed, strict=True)
        return tuple(one for one, cells in pairs if not cells)


def visible_by_layer(
    visible: "Tensor",
    rows: Sequence[FlatTree],
    interventions: Iterable[Intervention],
    layer_count: int,
) -> "tuple[Tensor, ...]":
    """Change a visible matrix layer by layer; see :func:`intervene`."""
    return intervene(visible, rows, interventions, layer_count).layers


def intervene(
    visible: "Tensor",
    rows: Sequence[FlatTree],
    interventions: Iterable[Intervention],
    layer_count: int,
) -> Intervened:
    """Block and open cells of a visible matrix, one intervention after the other.

    The last word on a cell counts. A token always sees itself, and padding
    is never touched, so that no row is empty.

    Args:
        visible: (B, N, N) bool, True = row may attend to column; not changed.
        rows: the B flat trees it is of.
        interventions: in order.
        layer_count: L.

    Raises:
        OptionError: a layer that the encoder doesn't have.
        ShapeError: the matrix isn't of these flat trees.
    """
    if len(rows) != visible.shape[0] or max(map(len, rows), default=0) > visible.shape[1]:
        raise ShapeError(
            f"visible has shape {tuple(visible.shape)}, and there are {len(rows)} flat trees of "
            f"up to {max(map(len, rows), default=0)} tokens; expected (B, N, N) of the same."
        )
    interventions = tuple(interventions)
    layers = [visible] * layer_count
    changed = []
    for one in interventions:
        if one.layers and one.layers[-1] > layer_count:
            raise OptionError(
                f"An intervention is for layer {one.layers[-1]}, and the encoder has "
                f"{layer_count}. Name layers from 1 to {layer_count}, or none for all."
            )
        layers, most = _with(one, layers, _cells(one, rows, visible))
        changed.append(most)
    return Intervened(interventions, _shared(layers), tuple(changed))


def _with(one: Intervention, layers: "list[Tensor]", cells: "Tensor") -> "tuple[list[Tensor], int]":
    """Carry one intervention out, once on every tensor that layers share.

    Returns:
        The layers, and how many cells changed where these are most.
    """
    after, most = list(layers), 0
    made: dict[int, Tensor] = {}  # by the tensor it was made of
    for number in one.layers or range(1, len(layers) + 1):
        old = layers[number - 1]
        if id(old) not in made:
            made[id(old)] = old & ~cells if one.action == "block" else old | cells
            most = max(most, int((made[id(old)] != old).sum()))
        after[number - 1] = made[id(old)]
    return after, most


def _cells(one: Intervention, rows: Sequence[FlatTree], visible: "Tensor") -> "Tensor":
    """(B, N, N) bool: which cells an intervention is about, never the diagonal."""
    import torch

    cells = torch.zeros_like(visible)
    for number, row in enumerate(rows):
        seer, seen = (torch.tensor(t.among(row), dtype=torch.long) for t in (one.seer, one.seen))
        cells[number, seer[:, None], seen[None, :]] = True
    if one.both:
        cells = cells | cells.transpose(1, 2)
    cells.diagonal(dim1=1, dim2=2).fill_(False)
    return cells


def _shared(layers: "list[Tensor]") -> "tuple[Tensor, ...]":
    """Let layers of equal matrices share one tensor."""
    found: list[Tensor] = []
    shared = []
    for layer in layers:
        same = next((old for old in found if old is layer or old.equal(layer)), None)
        if same is None:
            found.append(layer)
        shared.append(layer if same is None else same)
    return tuple(shared)


def _plain(part: object) -> object:
    return [part.head, part.relation, part.tail] if isinstance(part, Triple) else part


def _triple(fields: Any) -> Triple:
    texts = isinstance(fields, list | tuple) and all(isinstance(text, str) for text in fields)
    if not texts or len(fields) != 3:
        raise ValueError(f"no triple: {fields!r}")
    return Triple(*fields)


def _number(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"no whole number: {value!r}")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"neither true nor false: {value!r}")
    return value


def _identity_part(part: Any) -> object:
    if isinstance(part, str):
        return part
    return _triple(part) if isinstance(part, list | tuple) else _number(part)
