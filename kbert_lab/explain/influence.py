"""Paths of knowledge: which tokens a triple can reach by which layer, and what it changed there.

There are two answers. Which tokens it *can* reach is exact and needs no run.
In each layer attention moves information from a token to the tokens that see
it, and every token keeps its own, so the answer is the boolean product of the
layers' visible matrices. In K-BERT a branch reaches its mention after one layer
and the whole trunk after two (the paper's Figure 4). What it *did* change is
measured: the text is run again without the triple, everything else stays, and
the states of every token are compared layer by layer. Where the first answer
is "cannot", the second is zero.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

from kbert_core.errors import CheckpointError, OptionError
from kbert_core.explain.case import Case
from kbert_core.explain.result import Plain, batches, final, frame, name_of, plain
from kbert_core.kbert.flat_tree import FlatTree, collate
from kbert_core.kbert.interventions import intervene
from kbert_core.kbert.mask_transformer import layer_masks
from kbert_core.pipeline import Pipeline
from kbert_core.reader import Fact
from kbert_lab.explain.drawing import INK, ORANGE, Figure, drawing

if TYPE_CHECKING:
    from pandas import DataFrame

NEVER = -1
ROUNDING = 1e-5  # a relative change up to which two states are the same
TOKENS_AT_ONCE = 4096  # whose states of all layers are kept together


def reach(visible: Sequence[Tensor]) -> Tensor:
    """Whose information a token can have after each layer: the boolean product V_l ... V_1.

    Args:
        visible: per layer (N, N) bool, True = row may attend to column.

    Returns:
        (L + 1, N, N) bool; [l, i, j]: after l layers the state of token i can contain information
        of token j. Before the first layer a token has only its own.
    """
    by_layer = [torch.eye(len(visible[0]), dtype=torch.bool)]
    for one in visible:
        # Booleans have no matrix product; sums are exact to 2^24. |: what a token holds, it keeps.
        now = (one.cpu().float() @ by_layer[-1].float()) > 0
        by_layer.append(by_layer[-1] | now)
    return torch.stack(by_layer)


def first_layer(reached: Tensor) -> Tensor:
    """(...) int64 of (L + 1, ...) bool: the layer after which it is first reached; -1: never."""
    return torch.where(reached[-1], reached.shape[0] - reached.sum(0), NEVER)


def states_of(pipeline: Pipeline, rows: Sequence[Any], config: Any) -> Iterator[Tensor]:
    """Run rows and yield the states of each: (L + 1, N, H) float32, without padding."""
    for some in batches(rows, max(1, TOKENS_AT_ONCE // max(map(len, rows), default=1))):
        output = pipeline.reader.encode(some, config, hidden_states=True)
        states = torch.stack(list(output["hidden_states"]), dim=1).float().cpu()
        for number, row in enumerate(some):
            yield states[number, :, : len(row)]


def inputs_of(pipeline: Pipeline, flat: FlatTree, config: Any) -> tuple[Tensor, Tensor]:
    """Return what L layers see, (L, N, N) bool, from the masks they get; and positions (N,)."""
    encoder, batch = pipeline.encoder, collate([flat])
    visible = config.ablation.visible_in(batch)
    layers = intervene(visible, [flat], config.interventions, encoder.layer_count).layers
    positions = config.ablation.position_ids(batch)
    masks = layer_masks(encoder.config, layers, positions, torch.float32)
    return torch.stack([mask[0, 0] == 0 for mask in masks]), positions[0]


@dataclass(frozen=True)
class Arrival:
    """A fact on its way to one token."""

    fact: Fact
    layer: int  # after which its absence can first change the token's state; -1: never
    measured: tuple[float, ...]  # (L + 1) by how much it changes it, relative to the state


@dataclass(frozen=True, eq=False)
class Influence(Plain):
    """What leaving each of P triples out can change and does change, by layer and token."""

    flat: FlatTree  # the N tokens as they were read
    window: int  # which of the text's rows that is
    facts: tuple[Fact, ...]  # P triples that hang in it
    reached: Tensor  # (P, L + 1, N) bool: the state can be another without the triple
    measured: Tensor  # (P, L + 1, N) norm of its change over its own; NaN at the triple's tokens
    moved: Tensor  # (P, N) bool: tokens that hard positions put elsewhere without it
    total: int  # triples to be followed

    keys: ClassVar = "tokens=flat.tokens window layers triples=by_triple"

    @property
    def layers(self) -> int:
        """L."""
        return self.reached.shape[1] - 1

    @cached_property
    def first(self) -> Tensor:
        """(P, N) int64: the first layer after which a token's state can differ; -1: never."""
        return first_layer(self.reached.transpose(0, 1))

    @cached_property
    def largest_beyond_reach(self) -> float:
        """The largest change measured where none is possible; more than rounding is an error."""
        beyond = ~self.reached & ~self.measured.isnan()
        return float(self.measured[beyond].max()) if beyond.any() else 0.0

    def own(self, fact: int) -> tuple[int, ...]:
        """The tokens of a fact."""
        return tuple(_own(self.flat, self.facts[fact]))

    def arrivals(self, token: int = 0) -> tuple[Arrival, ...]:
        """Follow every triple to one token, an index along N; 0 is [CLS]."""
        return tuple(
            Arrival(fact, int(self.first[n, token]), tuple(self.measured[n, :, token].tolist()))
            for n, fact in enumerate(self.facts)
        )

    @property
    def by_triple(self) -> list[dict[str, Any]]:
        """Return each triple's numbers by layer and token; None for the triple's own tokens."""
        return [
            {
                "triple": fact.triple,
                "first_layer": [None if at == NEVER else at for at in self.first[n].tolist()],
                "influence": [
                    [None if x != x else round(x, 8) for x in layer]
                    for layer in self.measured[n].tolist()
                ],
                "moved": self.moved[n].nonzero()[:, 0].tolist(),
            }
            for n, fact in enumerate(self.facts)
        ]

    def to_frame(self) -> "DataFrame":
        """A row for every triple, layer and token; NaN at the triple's own tokens."""
        return frame(
            {
                **plain(fact),
                **{"layer": layer, "token": token, "text": text},
                "reached": bool(self.reached[n, layer, token]),
                "influence": float(self.measured[n, layer, token]),
            }
            for n, fact in enumerate(self.facts)
            for layer in range(self.layers + 1)
            for token, text in enumerate(self.flat.tokens)
        )

    def figure(self, fact: int = 0) -> Figure:
        """Draw by how much one triple changes each token in each layer; blank where it can't.

        Raises:
            OptionError: there is no such triple.
            MissingPackageError: matplotlib isn't installed.
        """
        if not 0 <= fact < len(self.facts):
            raise OptionError(
                f"There is no triple of number {fact}; {len(self.facts)} were followed."
            )
        size = len(self.flat)
        shown = self.measured[fact].masked_fill(~self.reached[fact], float("nan"))
        with drawing(2.2 + 0.3 * size, 1.9 + 0.32 * self.layers) as figure:
            panel = figure.subplots()
            drawn = panel.imshow(shown.numpy(), cmap="cividis", vmin=0, aspect="auto")
            panel.set_xticks(range(size), self.flat.tokens, rotation=90)
            for token in self.own(fact):
                panel.axvspan(token - 0.5, token + 0.5, color=ORANGE, alpha=0.35, linewidth=0)
                panel.get_xticklabels()[token].set_fontweight("bold")
            panel.set_yticks(range(self.layers + 1), map(str, range(self.layers + 1)))
            panel.set_ylabel("after layer")
            panel.tick_params(length=0, colors=INK)
            figure.colorbar(drawn, ax=panel, label="relative change of the state", pad=0.01)
            title = f"Left out: {name_of(self.facts[fact].triple)}; blank: out of its reach"
            figure.suptitle(title, fontsize=10)
        return figure


def check_branches(case: Case) -> None:
    """Refuse a system in which the text's tokens don't see the triples; CheckpointError."""
    if case.pipeline.kbert.inserts:
        raise CheckpointError(
            f"This follows the visible matrix, and in the system '{case.pipeline.card.system}' "
            "triples enter between two layers. Choose a model of the system k-bert."
        )


def stream_influence(case: Case, window: int | None = None) -> Iterator[Influence]:
    """Follow triples through the layers: which tokens they can reach, and what they changed.

    There is one run for each triple, and one for the text; each result has more
    triples. No prediction is needed: an encoder without a task head and a case
    with the target NOTHING are enough.

    Args:
        window: which row of a long text; None: the first with knowledge.

    Raises:
        OptionError: there is no such row.
    """
    check_branches(case)
    rows = case.trace.rows
    if window is None:
        window = next((n for n, row in enumerate(rows) if row.branches), 0)
    if not 0 <= window < len(rows):
        raise OptionError(f"The text has {len(rows)} windows; there is none of number {window}.")
    flat = rows[window]
    chosen = tuple(fact for fact in case.facts if _own(flat, fact))
    whole, whole_positions = inputs_of(case.pipeline, flat, case.config)
    place = {name: index for index, name in enumerate(flat.identities)}
    (base,) = states_of(case.pipeline, [flat], case.config)
    shape = (len(whole) + 1, len(flat))
    reached = torch.zeros(0, *shape, dtype=torch.bool)
    measured = torch.zeros(0, *shape)
    moved = torch.zeros(0, len(flat), dtype=torch.bool)
    for some in batches(chosen, case.at_once()) if chosen else [()]:
        less = [case.without([fact]).rows[window] for fact in some]
        states = states_of(case.pipeline, less, case.config)
        for fact, row, after in zip(some, less, states, strict=True):
            kept = torch.tensor([place[name] for name in row.identities])
            visible, positions = inputs_of(case.pipeline, row, case.config)
            shifted = torch.zeros(len(flat), dtype=torch.bool)
            shifted[kept] = positions != whole_positions[kept]
            changed = torch.full(shape, float("nan"))
            apart = (base[:, kept] - after).norm(dim=-1)
            changed[:, kept] = apart / base[:, kept].norm(dim=-1).clamp(min=1e-12)
            # Visible with the branch or without it: local windows and interventions may move.
            either = whole.clone()
            either[:, kept[:, None], kept] |= visible
            sources = [*_own(flat, fact), *shifted.nonzero()[:, 0].tolist()]
            out = reach(list(either))[:, :, sources].any(2)
            reached = torch.cat([reached, out[None]])
            measured = torch.cat([measured, changed[None]])
            moved = torch.cat([moved, shifted[None]])
        done = chosen[: len(reached)]
        yield Influence(flat, window, done, reached, measured, moved, len(chosen))


influence = final(stream_influence)


def _own(flat: FlatTree, fact: Fact) -> list[int]:
    """Indices along N of a fact's tokens."""
    return [
        index
        for placed in flat.branches
        if fact.covers(placed.node, placed.branch.triple)
        for index in range(placed.start, placed.end)
    ]
