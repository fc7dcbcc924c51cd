"""The arithmetic of one cell of one attention map (K-BERT, Eq. 4 and 5), number by number.

    S = softmax((Q Kᵀ + M) / √D)        the paper's
    S = softmax(Q Kᵀ / √D + M)          as encoders compute it, and as here

M is 0 where the visible matrix has True and minus infinity where not, so the
two are the same; D is the size of an attention head. The paper writes √d_k.
"""

import math
from dataclasses import dataclass
from typing import Any, cast

from torch import Tensor, nn

from kbert_core.errors import EncoderError, OptionError
from kbert_core.kbert.reader import KBertTrace
from kbert_core.reader import Reader

PROJECTIONS = (("query", "key"), ("q_lin", "k_lin"), ("q_proj", "k_proj"), ("q", "k"))
TOLERANCE = 1e-4  # of a weight; half precision leaves more
HALF_TOLERANCE = 3e-2


@dataclass(frozen=True, slots=True)
class CellArithmetic:
    """How one attention weight comes about."""

    layer: int  # from 1
    head: int  # from 1
    query: int  # attends to key; indices along N
    key: int
    size: int  # D, of an attention head
    dot: float  # q · k, of the two tokens' projections
    visible: bool  # whether query may attend to key
    log_sum_exp: float  # log of the sum of e^score over the row
    seen: int  # how many tokens the row may attend to

    @property
    def scale(self) -> float:
        """1 / √D."""
        return 1 / math.sqrt(self.size)

    @property
    def scaled(self) -> float:
        """q · k / √D: how well the two fit, before the visible matrix has its say."""
        return self.dot * self.scale

    @property
    def mask(self) -> float:
        """What the visible matrix adds (the M of Eq. 3): 0, or minus infinity."""
        return 0.0 if self.visible else -math.inf

    @property
    def score(self) -> float:
        """What softmax is given."""
        return self.scaled + self.mask

    @property
    def weight(self) -> float:
        """Softmax of the score over its row: the share of attention, 0 to 1."""
        return math.exp(self.score - self.log_sum_exp)


def attention_arithmetic(
    reader: Reader, trace: KBertTrace, row: int, layer: int, head: int, query: int, key: int
) -> CellArithmetic:
    """Work one attention weight out from the hidden states below its layer.

    The layer's own query and key projections are found by name. What comes
    out is compared with the map that the encoder itself gave, so an encoder
    that computes attention otherwise is refused, not explained wrongly.

    Args:
        reader: what made the trace.
        trace: made with ``attentions=True, hidden_states=True``.
        row: which of ``trace.rows``.
        layer, head: from 1.
        query, key: indices along N.

    Raises:
        OptionError: the trace lacks what is needed, or a number is out of range.
        EncoderError: the projections aren't found, or aren't all there is.
    """
    if trace.hidden_states is None or trace.attentions is None:
        raise OptionError(
            "The trace has no hidden states or no attention maps. Call the pipeline with "
            "attentions=True, hidden_states=True."
        )
    maps = trace.attentions
    _check("row", row, 0, len(trace.rows) - 1)
    length, heads = len(trace.rows[row]), maps[0].shape[1]
    _check("layer", layer, 1, len(maps))
    _check("head", head, 1, heads)
    _check("query", query, 0, length - 1)
    _check("key", key, 0, length - 1)
    states = trace.hidden_states[layer - 1][row, :length].double()  # (N, H)
    projections = _projections(reader.model, layer, len(maps))
    q, k = (_of_head(states, one, head, heads) for one in projections)  # (N, D)
    dots, size = k @ q[query], int(q.shape[1])  # (N,), D
    seen = trace.visible if trace.visible_layers is None else trace.visible_layers[layer - 1]
    visible = seen[row, query, :length].to(dots.device)
    scores = (dots / math.sqrt(size)).masked_fill(~visible, -math.inf)
    given = maps[layer - 1][row, head - 1, query, :length].double()
    apart = float((scores.softmax(0) - given.to(scores.device)).abs().max())
    precise = trace.hidden_states[layer - 1].dtype.itemsize >= 4
    if apart > (TOLERANCE if precise else HALF_TOLERANCE):
        raise EncoderError(
            f"{type(reader.model).__name__} computes more between its hidden states and "
            f"its attention than softmax(q·k / √D + M): by hand the row differs by up to "
            f"{apart:.2g} from the encoder's. Its cells can't be explained; use a BERT, RoBERTa, "
            "ELECTRA, ALBERT or DistilBERT."
        )
    row_sum, count = float(scores.logsumexp(0)), int(visible.sum())
    place = (layer, head, query, key)
    return CellArithmetic(*place, size, float(dots[key]), bool(visible[key]), row_sum, count)


def _projections(model: Any, layer: int, layers: int) -> tuple[nn.Linear, nn.Linear]:
    """Find a layer's query and key projections by their names."""
    pairs = [
        tuple(getattr(module, name, None) for name in names)
        for module in model.base_model.modules()
        for names in PROJECTIONS
    ]
    found = [pair for pair in pairs if all(isinstance(one, nn.Linear) for one in pair)]
    if not found:
        known = ", ".join(map("/".join, PROJECTIONS))
        raise EncoderError(
            f"{type(model).__name__} has no separate query and key projections named {known}, so "
            "the arithmetic of a cell can't be shown. Attention maps are shown all the same."
        )
    query, key = found[(layer - 1) * len(found) // layers]  # fewer where layers share them (ALBERT)
    return cast(nn.Linear, query), cast(nn.Linear, key)


def _of_head(states: Tensor, projection: nn.Linear, head: int, heads: int) -> Tensor:
    """Project hidden states (N, H) for one attention head: (N, D)."""
    size = projection.out_features // heads
    part = slice((head - 1) * size, head * size)
    made = states @ projection.weight[part].detach().double().T
    return made if projection.bias is None else made + projection.bias[part].detach().double()


def _check(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise OptionError(f"{name} is {value}, expected {least} to {most}.")
