"""Paths of knowledge: where a triple can have come by which layer, and what it changed there.

Two answers to one question. What *can* have come where is exact and needs no
run: a product of visible matrices (see ``reach``). What *did* is measured:
the text is run again without the triple, everything else held fixed, and
every token's state compared layer by layer. Where the first says "cannot",
the second is zero.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from kbert_core.drawing import INK, ORANGE, drawing
from kbert_core.errors import OptionError
from kbert_core.explain.reach import NEVER, Reach, first_layer, reach
from kbert_core.explain.result import Result, batches, final, frame, name_of, plain
from kbert_core.explain.target import NOTHING
from kbert_core.explain.variants import AT_ONCE, Case, Piece
from kbert_core.kbert.batch import collate
from kbert_core.kbert.flat_tree import FlatTree
from kbert_core.kbert.interventions import visible_by_layer
from kbert_core.kbert.visible import Ablation
from kbert_core.layers import layer_masks
from kbert_core.pipeline import Pipeline
from kbert_core.reader import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

ROUNDING = 1e-5  # a relative change up to which two states are the same
TOKENS_AT_ONCE = 4096  # whose states of all layers are kept together


def states_of(pipeline: Pipeline, rows: Sequence[Row], config: Any) -> Iterator[Tensor]:
    """Run rows and yield the states of each.

    Args:
        pipeline: the model; its task head isn't used.
        rows: of N tokens each, in any order.
        config: how they are read.

    Yields:
        (L + 1, N, H) float32 of every row, padding removed.
    """
    at_once = max(1, TOKENS_AT_ONCE // max(map(len, rows), default=1))
    for start in range(0, len(rows), at_once):
        some = rows[start : start + at_once]
        output = pipeline.reader.encode(some, config, hidden_states=True)
        states = torch.stack(list(output["hidden_states"]), dim=1).float().cpu()
        for number, row in enumerate(some):
            yield states[number, :, : len(row)]


@dataclass(frozen=True)
class Arrival:
    """A piece of knowledge on its way to one token.

    Attributes:
        piece: what it says.
        layer: after which its absence can first change the token's state; -1: never.
        measured: (L + 1) by how much it changes it, relative to the state.
    """

    piece: Piece
    layer: int
    measured: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Influence(Result):
    """What leaving each triple out can change and does change, by layer and token.

    Attributes:
        flat: the N tokens as they were read.
        window: which of the text's rows that is.
        pieces: P triples that hang in it.
        ways: whose information can have come where.
        reached: (P, L + 1, N) bool: the state can be another without the triple.
        measured: (P, L + 1, N): L2 norm of the change of the state over the
            norm of the state; not a number at the triple's own tokens, which
            are gone without it.
        moved: (P, N) bool: tokens that hard positions put elsewhere without
            the triple; with soft positions none.
        total: how many triples are to be followed.
    """

    flat: FlatTree
    window: int
    pieces: tuple[Piece, ...]
    ways: Reach
    reached: Tensor
    measured: Tensor
    moved: Tensor
    total: int

    keys: ClassVar = "tokens=flat.tokens window layers triples=by_triple"

    @property
    def layers(self) -> int:
        """L."""
        return self.ways.layers

    @cached_property
    def first(self) -> Tensor:
        """(P, N) int64: the layer after which a token's state can be another; -1: never."""
        return first_layer(self.reached.transpose(0, 1))

    @cached_property
    def largest_beyond_reach(self) -> float:
        """The largest change measured where none is possible: rounding, or the answers disagree."""
        beyond = ~self.reached & ~self.measured.isnan()
        return float(self.measured[beyond].max()) if beyond.any() else 0.0

    def own(self, piece: int) -> tuple[int, ...]:
        """The tokens of a piece."""
        return tuple(_own(self.flat, self.pieces[piece]))

    def arrivals(self, token: int = 0) -> tuple[Arrival, ...]:
        """Follow every triple to one token.

        Args:
            token: an index along N; 0 is [CLS].
        """
        return tuple(
            Arrival(piece, int(self.first[n, token]), tuple(map(float, self.measured[n, :, token])))
            for n, piece in enumerate(self.pieces)
        )

    @property
    def by_triple(self) -> list[dict[str, Any]]:
        """Every triple's numbers by layer and token; None where its own tokens are gone."""
        return [
            {
                "triple": piece.triple,
                "first_layer": [None if at == NEVER else at for at in first],
                "influence": [
                    [None if x != x else round(x, 8) for x in layer] for layer in changed
                ],
                "moved": [token for token, there in enumerate(moved) if there],
            }
            for piece, first, changed, moved in zip(
                self.pieces,
                self.first.tolist(),
                self.measured.tolist(),
                self.moved.tolist(),
                strict=True,
            )
        ]

    def to_frame(self) -> "DataFrame":
        """A row for every triple, layer and token."""
        rows = (
            {
                **plain(piece),
                **{"layer": layer, "token": token, "text": text},
                "own": token in own,
                "reached": bool(self.reached[n, layer, token]),
                "influence": float(self.measured[n, layer, token]),
            }
            for n, piece in enumerate(self.pieces)
            for own in [self.own(n)]
            for layer in range(self.layers + 1)
            for token, text in enumerate(self.flat.tokens)
        )
        names = "head relation tail layer token text own reached influence"
        return frame(rows, names.split())

    def figure(self, piece: int = 0) -> "Figure":
        """Draw layer by token: by how much one triple changes a state; blank where it can't.

        Args:
            piece: which triple, from 0.

        Raises:
            OptionError: there is no such triple.
            MissingPackageError: matplotlib isn't installed.
        """
        if not 0 <= piece < len(self.pieces):
            raise OptionError(
                f"There is no triple of number {piece}; {len(self.pieces)} were followed."
            )
        size = len(self.flat)
        shown = self.measured[piece].clone()
        shown[~self.reached[piece]] = float("nan")
        with drawing(2.2 + 0.3 * size, 1.9 + 0.32 * self.layers) as figure:
            panel = figure.subplots()
            drawn = panel.imshow(shown.numpy(), cmap="cividis", vmin=0, aspect="auto")
            own = self.own(piece)
            for token in own:
                panel.axvspan(token - 0.5, token + 0.5, color=ORANGE, alpha=0.35, linewidth=0)
            panel.set_xticks(range(size), self.flat.tokens, rotation=90)
            for token in own:
                panel.get_xticklabels()[token].set_fontweight("bold")
            panel.set_yticks(range(self.layers + 1), map(str, range(self.layers + 1)))
            panel.set_ylabel("after layer")
            panel.tick_params(length=0, colors=INK)
            figure.colorbar(drawn, ax=panel, label="relative change of the state", pad=0.01)
            title = f"Left out: {name_of(self.pieces[piece].triple)}; blank: out of its reach"
            figure.suptitle(title, fontsize=10)
        return figure


def stream_influence(
    case: Case,
    pieces: Sequence[Piece] | None = None,
    window: int | None = None,
    *,
    at_once: int = AT_ONCE,
) -> Iterator[Influence]:
    """Follow triples through the layers: where they can have come, and what they changed.

    Costs a run for each triple, and one for the text as it is. It follows
    states, not a prediction, so that an encoder without a task head will do.

    Args:
        case: a text as it was read.
        pieces: which triples; None: all that hang in the row.
        window: which row of a long text; None: the first with knowledge.
        at_once: readings a batch; fewer of a long text.

    Yields:
        Results that follow more and more triples.

    Raises:
        OptionError: there is no such row, or a triple doesn't hang in it.
    """
    rows = case.trace.rows
    if window is None:
        window = next((n for n, row in enumerate(rows) if row.branches), 0)
    if not 0 <= window < len(rows):
        raise OptionError(f"The text has {len(rows)} windows; there is none of number {window}.")
    flat = rows[window]
    chosen = tuple(p for p in case.pieces if _own(flat, p)) if pieces is None else tuple(pieces)
    for piece in chosen:
        if not _own(flat, piece):
            raise OptionError(f"The triple {piece.triple} hangs nowhere in this part of the text.")
    trace, whole = case.trace, _layers_of(case, flat)
    ways = reach(whole)
    (base,) = states_of(case.pipeline, [flat], case.config)
    shape = (0, ways.layers + 1, len(flat))
    reached = torch.zeros(shape, dtype=torch.bool)
    measured = torch.zeros(shape)
    moved = torch.zeros(0, len(flat), dtype=torch.bool)
    for some in batches(chosen, case.at_once(at_once)) if chosen else [()]:
        less = [case.without([piece]).rows[window] for piece in some]
        states = states_of(case.pipeline, less, case.config)
        for piece, row, after in zip(some, less, states, strict=True):
            kept = _places(row, flat)
            shifted = _shifted(trace.ablation, flat, row, kept)
            changed = torch.full(shape[1:], float("nan"))
            apart = (base[:, kept] - after).norm(dim=-1)
            changed[:, kept] = apart / base[:, kept].norm(dim=-1).clamp(min=1e-12)
            sources = [*_own(flat, piece), *shifted.nonzero()[:, 0].tolist()]
            out = reach(_either(whole, _layers_of(case, row), kept)).out_of(sources)
            reached = torch.cat([reached, out[None]])
            measured = torch.cat([measured, changed[None]])
            moved = torch.cat([moved, shifted[None]])
        done = chosen[: len(reached)]
        yield Influence(flat, window, done, ways, reached, measured, moved, len(chosen))


influence = final(stream_influence, target=NOTHING)


def _own(flat: FlatTree, piece: Piece) -> list[int]:
    """Indices along N of a piece's tokens."""
    return [
        index
        for placed in flat.branches
        if piece.covers(placed.node, placed.branch.triple)
        for index in range(placed.start, placed.end)
    ]


def _places(row: FlatTree, flat: FlatTree) -> list[int]:
    """For each token of a row its place in the row it was taken from."""
    place = {name: index for index, name in enumerate(flat.identities)}
    return [place[name] for name in row.identities]


def _shifted(ablation: Ablation, flat: FlatTree, row: FlatTree, kept: list[int]) -> Tensor:
    """(N,) bool: tokens at another position once branches are gone, as hard positions are."""
    old = ablation.position_ids(collate([flat]))[0, kept]
    new = ablation.position_ids(collate([row]))[0]
    shifted = torch.zeros(len(flat), dtype=torch.bool)
    shifted[torch.tensor(kept)[old != new]] = True
    return shifted


def _layers_of(case: Case, flat: FlatTree) -> tuple[Tensor, ...]:
    """The visible matrix of each of L layers (N, N), as the encoder keeps to it.

    Read off the very masks it is given, so that interventions and the windows
    of local layers count.
    """
    encoder, trace = case.pipeline.encoder, case.trace
    batch = collate([flat])
    visible = visible_by_layer(
        trace.ablation.visible_in(batch), [flat], trace.interventions, encoder.layer_count
    )
    positions = trace.ablation.position_ids(batch)
    masks = layer_masks(encoder.config, visible, positions, torch.float32)
    return tuple(mask[0, 0] == 0 for mask in masks)


def _either(whole: Sequence[Tensor], less: Sequence[Tensor], kept: list[int]) -> tuple[Tensor, ...]:
    """What is visible with a branch or without it: local windows may move, interventions too."""
    places = torch.tensor(kept)
    found = []
    for one, other in zip(whole, less, strict=True):
        both = one.clone()
        both[places[:, None], places] |= other
        found.append(both)
    return tuple(found)
