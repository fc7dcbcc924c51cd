"""All attention heads at once: one small map a layer and head, one colour scale for all."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kbert_core.kbert.flat_tree import FlatTree, PlacedBranch
from kbert_core.knowledge.triple import Triple
from kbert_lab.explain.attention import CellArithmetic
from kbert_lab.lab.selection import Selection
from kbert_lab.lab.texts import listed, t
from kbert_lab.lab.views.html import rendered
from kbert_lab.lab.views.matrix import HIDDEN, LEVELS
from kbert_lab.lab.views.why import share

READERS = 3  # heads that are named, and framed
MOST = 48  # cells a side of a small map; a longer text's are merged


@dataclass(frozen=True)
class HeadsView:
    """L x A small maps of attention."""

    # (L, A, n, n) uint8, as in a MatrixView; they grow with the weight's square root
    codes: np.ndarray
    high: float  # what the code LEVELS - 1 stands for, in every map
    merged: int = 1  # tokens a side of a cell; 1: none are merged
    shares: np.ndarray | None = None  # (L, A) of attention that goes to the branch followed

    @property
    def readers(self) -> list[tuple[int, int]]:
        """The layers and heads, from 1, that read the branch most."""
        best = ranked(self.shares)[:READERS] if self.shares is not None else []
        return [(layer, head) for layer, head, _ in best]

    def data(self, layer: int, head: int) -> dict[str, object]:
        """What the front end needs, as JSON.

        Args:
            layer, head: shown large, from 1; 0 is a mean.
        """
        layers, heads, size, _ = self.codes.shape
        return {
            "kind": "attention",
            "layers": layers,
            "heads": heads,
            "n": size,
            "codes": base64.b64encode(self.codes.tobytes()).decode(),
            "low": 0.0,
            "high": self.high,
            "middle": self.high / 4,
            "chosen": [layer, head],
            "shares": None if self.shares is None else np.round(self.shares, 4).tolist(),
            "readers": self.readers,
            "label": t(
                "Attention of {layers} layers with {heads} heads each as small maps; arrow keys "
                "move, Enter shows one large",
                layers=layers,
                heads=heads,
            ),
            "texts": {
                "name": t("layer {layer}, head {head}"),
                "reads": t("layer {layer}, head {head}: {share} % to the triple's branch"),
            },
        }


def map_name(layer: int, head: int) -> str:
    """What a map is called; plain text.

    Args:
        layer, head: from 1; 0 is the mean of all.
    """
    if layer and head:
        return t("layer {layer}, head {head}", layer=layer, head=head)
    if layer:
        return t("layer {layer}, mean of its heads", layer=layer)
    if head:
        return t("head {head}, mean over the layers", head=head)
    return t("mean of all layers and heads")


def branch_read(flat: FlatTree, chosen: Triple | None) -> PlacedBranch | None:
    """The branch whose readers are looked for: that of the triple chosen, else the first."""
    own = (branch for branch in flat.branches if branch.branch.triple == chosen)
    return next(own, next(iter(flat.branches), None))


def shares_of(maps: np.ndarray, visible: np.ndarray, branch: PlacedBranch) -> np.ndarray:
    """How much of its attention the mention pays to its branch, in each head.

    Args:
        maps: (L, A, N, N) weights.
        visible: (N, N) bool.

    Returns:
        (L, A), 0 to 1.
    """
    columns = range(branch.start, branch.end)
    rows = [row for row in np.flatnonzero(visible[:, branch.start]) if row not in columns]
    return maps[:, :, rows, branch.start : branch.end].astype(np.float32).sum(-1).mean(-1)


def ranked(shares: np.ndarray) -> list[tuple[int, int, float]]:
    """Layers and heads, from 1, with their shares, the most first."""
    order = np.argsort(-shares, axis=None, kind="stable")
    heads = shares.shape[1]
    return [(int(n) // heads + 1, int(n) % heads + 1, float(shares.flat[n])) for n in order]


def map_shown(
    chosen: Selection, maps: np.ndarray, visible: np.ndarray, flat: FlatTree
) -> tuple[int, int]:
    """The layer and head shown: what is chosen, else the head that reads a branch most."""
    branch = branch_read(flat, chosen.triple)
    if chosen.layer is not None or branch is None:
        return chosen.map_of(*maps.shape[:2])
    return ranked(shares_of(maps, visible, branch))[0][:2]


def said_of_readers(shares: np.ndarray, branch: PlacedBranch) -> str:
    """Say which heads read a branch; plain text.

    Args:
        shares: see :func:`shares_of`.
    """
    named = (
        t("{map} ({share})", map=map_name(layer, head), share=share(mass))
        for layer, head, mass in ranked(shares)[:READERS]
    )
    return t(
        "Of the mention's attention most goes to {triple} in {maps}. A weight is no effect: block "
        "the link to see whether it matters.",
        triple=branch.branch.triple,
        maps=listed(named),
    )


def heads_view(maps: np.ndarray, visible: np.ndarray, keep: Sequence[int]) -> HeadsView:
    """Make small maps of attention.

    Args:
        maps: (L, A, N, N) weights.
        visible: (N, N) bool.
        keep: the tokens drawn, as indices along N.
    """
    places = np.asarray(keep, dtype=int)
    shown = (slice(None), places[:, None], places[None, :])
    small = np.stack([_merged(layer[shown].astype(np.float32), np.maximum) for layer in maps])
    high = float(max(small.max(initial=0.0), 1e-6))
    scaled = np.sqrt(small / high)  # or nearly all but the largest would look like nothing
    codes = np.clip(np.round(scaled * (LEVELS - 1)), 0, LEVELS - 1).astype(np.uint8)
    codes[..., ~_merged(visible[np.ix_(keep, keep)], np.logical_or)] = HIDDEN
    return HeadsView(codes, high, _side(len(places)))


def _side(count: int) -> int:
    """How many tokens a side of one small cell stands for."""
    return max(1, -(-count // MOST))


def _merged(values: np.ndarray, most: np.ufunc) -> np.ndarray:
    """Merge neighbouring cells, each square to one."""
    count = values.shape[-1]
    starts = np.arange(0, count, _side(count))
    return most.reduceat(most.reduceat(values, starts, axis=-1), starts, axis=-2)


def table_html(cell: CellArithmetic) -> str:
    """The whole calculation, a step a line."""
    return rendered("arithmetic", cell=cell, number=number, share=share)


def number(value: float) -> str:
    """A number as the page writes it."""
    return f"{value:.3f}".replace("-", "−")
