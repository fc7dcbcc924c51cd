"""Knowledge attention and recontextualization (KnowBert, section 3.2): a layer between two layers.

Shapes: B texts, N tokens, H the encoder's width, C spans, M candidates, E width of entity vectors.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from kbert_core.knowbert.linker import (
    AttentionBlock,
    Candidates,
    EntityLinker,
    KarOptions,
    Linked,
    norm,
)

INITIAL = 0.02  # standard deviation of new weights, BERT's


@dataclass(frozen=True)
class KarTrace:
    """What a KAR computed for a batch, stage by stage.

    Attributes:
        projected: H_proj, (B, N, E) (Eq. 1).
        linked: spans, scores, and the entities chosen (Eq. 2 to 5).
        enhanced: S'_e, (B, C, E); spans with their entities (Eq. 6).
        attention: (B, A, N, C); from every token to every span.
        change: (B, N); ‖H' − H‖, how much the layer changed each token.
    """

    projected: Tensor
    linked: Linked
    enhanced: Tensor
    attention: Tensor
    change: Tensor


_running: ContextVar[Sequence[tuple[Candidates, list[KarTrace]]] | None] = ContextVar(
    "the batch that is read", default=None
)


@contextmanager
def reading(candidates: Sequence[Candidates]) -> Iterator[list[list[KarTrace]]]:
    """Give candidates to the KARs of an encoder that is run inside this context.

    Args:
        candidates: one for each knowledge base, from bottom to top.

    Yields:
        One list for each knowledge base; after the run it holds the trace.
    """
    traces: list[list[KarTrace]] = [[] for _ in candidates]
    token = _running.set(list(zip(candidates, traces, strict=True)))
    try:
        yield traces
    finally:
        _running.reset(token)


class Kar(nn.Module):
    """Lets each token attend to the entities that the text names.

    Put it after a layer with :func:`kbert_core.layers.insert_after`, and run the encoder within
    :func:`reading`.

    Args:
        hidden_size: H.
        width: W of the entity vectors.
        base: number of its knowledge base, from bottom to top.
        options: sizes, and where paper and code differ.
    """

    def __init__(
        self, hidden_size: int, width: int, base: int = 0, options: KarOptions | None = None
    ) -> None:
        super().__init__()
        options = options or KarOptions()
        self.base = base
        self.down = nn.Linear(hidden_size, options.size)
        self.up = nn.Linear(options.size, hidden_size)
        self.linker = EntityLinker(width, options)
        self.block = AttentionBlock(options)
        self.span_norm, self.norm = norm(options.size, options), norm(hidden_size, options)
        self.dropout = nn.Dropout(options.dropout)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=INITIAL)
                nn.init.zeros_(module.bias)
        if options.alignment:
            block = self.block
            for module in (block.query, block.key, block.value, block.output):
                scale = options.alignment if module in (block.query, block.key) else 1.0
                module.weight.data = torch.eye(options.size) * scale

    def forward(self, states: Tensor) -> Tensor:
        """Recontextualize the states of a layer: (B, N, H) → (B, N, H) (Eq. 1 to 7)."""
        running = _running.get()
        assert running is not None, "run the encoder within knowbert.kar.reading"
        candidates, traces = running[self.base]
        projected, linked = self.link(states, candidates)
        enhanced = self.span_norm(linked.contextual + self.dropout(linked.entity))
        recontextualized, attention = self.block(projected, enhanced, candidates.valid)
        new = self.norm(states + self.dropout(self.up(recontextualized)))
        change = (new - states).detach().norm(dim=-1)
        traces.append(KarTrace(projected, linked, enhanced, attention, change))
        return new

    def link(self, states: Tensor, candidates: Candidates) -> tuple[Tensor, Linked]:
        """Run only the linker: projected states, and which entities are meant (Eq. 1 to 5).

        Args:
            states: (B, N, H) of the layer.
        """
        projected = self.down(states)
        return projected, self.linker(projected, candidates)

    @property
    def linking(self) -> list[nn.Parameter]:
        """Return the parameters that training the linker alone changes (Eq. 1 to 3)."""
        return [*self.down.parameters(), *self.linker.parameters()]

    @torch.no_grad()
    def invert_projection(self) -> None:
        """Make W₂, b₂ the pseudo-inverse of W₁, b₁: up(down(h)) is as near to h as E < H allows.

        The paper's multitask stage starts so. The released code inverts W₁ᵀW₁, which is
        singular, and adds W₁⁺b₁ instead of subtracting it.
        """
        inverse = torch.linalg.pinv(self.down.weight.double())  # (H, E)
        self.up.weight.copy_(inverse)
        self.up.bias.copy_(-inverse @ self.down.bias.double())


def layer_after(count: int, base: int = 0, bases: int = 1) -> int:
    """Say after which layer a knowledge base stands (paper: 10 of 12; of two, 10 and 11).

    Args:
        count: L, the number of layers of the encoder.
        base: number of the knowledge base, from 0, bottom to top.
        bases: the number of knowledge bases.

    Returns:
        From 1 to L; one layer stays above the topmost KAR if the encoder has enough layers.
    """
    top = max(round(10 * count / 12), 1) + bases - 1
    return min(top, max(count - 1, bases)) - (bases - 1) + base
