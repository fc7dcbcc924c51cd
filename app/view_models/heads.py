"""All attention heads at once: one small map a layer and head, one colour scale for all."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from app.texts import t
from app.view_models.diff import Aligned
from app.view_models.matrix import HIDDEN, LEVELS

Kind = Literal["attention", "difference"]
MOST = 48  # cells a side of a small map; a longer text's are merged


@dataclass(frozen=True)
class HeadsView:
    """L x A small maps.

    Attributes:
        kind: attention, or its difference.
        codes: (L, A, n, n) uint8, as in a ``MatrixView``.
        low, high: what the codes 0 and LEVELS - 1 stand for, in every map. Those
            of attention grow with its square root, those of a difference evenly.
        merged: tokens a side of a cell; 1: none are merged.
    """

    kind: Kind
    codes: np.ndarray
    low: float
    high: float
    merged: int = 1

    def data(self, layer: int, head: int) -> dict[str, object]:
        """What the front end needs, as JSON.

        Args:
            layer, head: shown large, from 1; 0 is a mean.
        """
        return {
            "kind": self.kind,
            "layers": self.codes.shape[0],
            "heads": self.codes.shape[1],
            "n": self.codes.shape[2],
            "codes": base64.b64encode(self.codes.tobytes()).decode(),
            "low": self.low,
            "high": self.high,
            "middle": self.high / 4 if self.kind == "attention" else None,
            "chosen": [layer, head],
            "label": t(
                "Attention of {layers} layers with {heads} heads each as small maps; arrow keys "
                "move, Enter shows one large",
                layers=self.codes.shape[0],
                heads=self.codes.shape[1],
            ),
            "texts": {"name": t("layer {layer}, head {head}")},
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
    return (
        t("head {head}, mean over the layers", head=head)
        if head
        else t("mean of all layers and heads")
    )


def most_alike(
    maps: np.ndarray, layer: int, head: int, most: int = 3
) -> list[tuple[int, int, float]]:
    """The maps that are most like one: layer and head, from 1, and the cosine of the weights.

    Args:
        maps: (L, A, N, N) weights.
        layer, head: of the one, from 1.
        most: how many.
    """
    flat = maps.astype(np.float32).reshape(-1, maps.shape[-1] ** 2)
    flat /= np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-12)
    own = (layer - 1) * maps.shape[1] + head - 1
    cosines = flat @ flat[own]
    cosines[own] = -np.inf
    nearest = np.argsort(-cosines, kind="stable")[: min(most, len(flat) - 1)]
    return [(n // maps.shape[1] + 1, n % maps.shape[1] + 1, float(cosines[n])) for n in nearest]


def heads_view(maps: np.ndarray, visible: np.ndarray, keep: Sequence[int]) -> HeadsView:
    """Make small maps of attention.

    Args:
        maps: (L, A, N, N) weights.
        visible: (N, N) bool.
        keep: the tokens drawn, as indices along N.
    """
    small = np.stack([_merged(_of(layer, keep), np.maximum) for layer in maps])
    high = float(max(small.max(initial=0.0), 1e-6))
    codes = np.sqrt(small / high)  # or nearly all but the largest would look like nothing
    return _coded("attention", codes, visible[np.ix_(keep, keep)], 0.0, high)


def heads_difference(
    maps: tuple[np.ndarray, np.ndarray],
    visible: tuple[np.ndarray, np.ndarray],
    tokens: Sequence[Aligned],
) -> HeadsView:
    """Make small maps of how attention changed, over the tokens that two scenes share.

    Of merged cells the largest change is kept.

    Args:
        maps: (L, A, N, N) weights before and after.
        visible: (N, N) bool before and after.
        tokens: those drawn.
    """
    both = [(x.before, x.after) for x in tokens if x.before is not None and x.after is not None]
    old, new = [before for before, _ in both], [after for _, after in both]
    small = []
    for was, now in zip(*maps, strict=True):
        change = _of(now, new) - _of(was, old)
        most, least = _merged(change, np.maximum), _merged(change, np.minimum)
        small.append(np.where(-least > most, least, most))
    high = float(max(np.abs(small).max(initial=0.0), 1e-6))
    seen = visible[0][np.ix_(old, old)] | visible[1][np.ix_(new, new)]
    codes = np.stack(small) / high / 2 + 0.5
    return _coded("difference", codes, seen, -high, high)


def _coded(
    kind: Kind, scaled: np.ndarray, visible: np.ndarray, low: float, high: float
) -> HeadsView:
    codes = np.clip(np.round(scaled * (LEVELS - 1)), 0, LEVELS - 1).astype(np.uint8)
    codes[..., ~_merged(visible, np.logical_or)] = HIDDEN
    return HeadsView(kind, codes, low, high, _side(len(visible)))


def _of(maps: np.ndarray, keep: Sequence[int]) -> np.ndarray:
    """(A, N, N) → (A, n, n) float32, of some of the tokens."""
    places = np.asarray(keep, dtype=int)
    return maps[:, places[:, None], places[None, :]].astype(np.float32)


def _side(count: int) -> int:
    """How many tokens a side of one small cell stands for."""
    return max(1, -(-count // MOST))


def _merged(values: np.ndarray, most: np.ufunc) -> np.ndarray:
    """Merge neighbouring cells, each square to one."""
    count = values.shape[-1]
    starts = np.arange(0, count, _side(count))
    return most.reduceat(most.reduceat(values, starts, axis=-1), starts, axis=-2)
