"""KnowBert's knowledge attention and recontextualization (KAR): a layer between two layers.

First the entity linker (section 3.3 of the paper): which entity does a span mean? Then the KAR
(section 3.2): every token attends to the entities, and takes over what they are.

Shapes: B texts, N tokens, H the encoder's width, C mention spans, M candidates of a span, E width
of projected tokens and entity vectors.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from kbert_core.errors import OptionError
from kbert_core.options import Options, option

INITIAL = 0.02  # standard deviation of new weights, BERT's
HIDDEN = 100  # of the network that scores a candidate
IMPOSSIBLE = -10_000.0  # a score, and a mask: finite, so that a softmax of nothing else is no NaN
PADDING, NULL, MASK = 0, 1, 2  # entities of every knowledge base; its own begin after these
SPECIAL_ENTITIES = ("[PAD]", "[NULL]", "[MASK]")


@dataclass(frozen=True, kw_only=True)
class KarOptions(Options):
    """Sizes of a KAR, and where the paper and its released code differ; defaults: the paper's.

    Attributes:
        size: E, the width that tokens and entity vectors are projected to.
        heads, inner: attention heads and width of the feed-forward layer of both transformer
            blocks.
        dropout: in training.
        norms: layer normalisation of span vectors, entity vectors, their sum, and the output.
            The code has it, the equations don't; it keeps a new knowledge base's vectors in
            range whatever their scale.
        scaled: divide the dot product of span and entity by √E. The code does, as attention does.
        threshold: δ. A candidate that scores less is left out, and a span without any other
            means NULL. None: every candidate counts, as WordNet's does in the code.
        alignment: the attention from tokens to spans begins as an identity, query and key as so
            many times one. So tokens first attend to spans that they are like, their own before
            all, and take over what the entity is. 0: random, as in the paper, whose training is
            long enough to find that.
        null_candidate: whether every span may mean NULL. The paper says so of Wikipedia; the
            code puts NULL only in place of what the threshold leaves out.
    """

    size: int = option(200, least=1)
    heads: int = option(4, least=1)
    inner: int = option(1024, least=1)
    dropout: float = option(0.1, share=True)
    norms: bool = False
    scaled: bool = False
    alignment: float = option(0.0, least=0)
    threshold: float | None = None
    null_candidate: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size % self.heads:
            raise OptionError(
                f"size is {self.size}, which can't be divided by {self.heads} attention heads. "
                f"Give a multiple of {self.heads}."
            )


@dataclass(frozen=True)
class Candidates:
    """The mention spans of a batch, with what each may mean.

    Attributes:
        spans: (B, C, 2) int64; first and last token, inclusive; -1 where there is no span.
        entities: (B, C, M) int64; 0 where there is none, 1 NULL, 2 MASK, then the batch's own
            entities, in the order of ``vectors``.
        priors: (B, C, M); p(entity | mention), 0 where there is none.
        vectors: (V, W); of the entities that the batch names.
        threshold: δ in place of the linker's own; None: the linker's own.
    """

    spans: Tensor
    entities: Tensor
    priors: Tensor
    vectors: Tensor
    threshold: float | None = None

    @property
    def valid(self) -> Tensor:
        """(B, C) bool: whether a span is one; a text without any has a first, empty one."""
        valid = self.spans[..., 0] >= 0
        nothing = ~valid.any(1)
        return torch.cat([(valid[:, :1] | nothing[:, None]), valid[:, 1:]], 1)

    def to(self, device: torch.device | str) -> "Candidates":
        """Move the tensors to a device."""
        names = ("spans", "entities", "priors", "vectors")
        return replace(self, **{name: getattr(self, name).to(device) for name in names})


@dataclass(frozen=True)
class Linked:
    """What the linker made of a batch's spans, stage by stage.

    Attributes:
        contextual: S_e, (B, C, E); after the spans have attended to each other (Eq. 2).
        dot: (B, C, M); span times entity.
        scores: ψ, (B, C, M) (Eq. 3).
        weights: ψ̃, (B, C, M); 0 for a span that means NULL by the threshold.
        entity: ẽ, (B, C, E); the weighted mean of the candidates' vectors.
        is_null: (B, C) bool; every candidate is under the threshold.
    """

    contextual: Tensor
    dot: Tensor
    scores: Tensor
    weights: Tensor
    entity: Tensor
    is_null: Tensor


class SpanPooling(nn.Module):
    """Self-attentive pooling of a span's tokens (Lee et al. 2017): (B, N, E) → (B, C, E)."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.score = nn.Linear(size, 1)

    def forward(self, states: Tensor, spans: Tensor) -> Tensor:
        """Pool the tokens of every span; an empty span gives zeros."""
        place = torch.arange(states.shape[1], device=states.device)
        inside = (place >= spans[..., :1]) & (place <= spans[..., 1:])  # (B, C, N)
        inside &= spans[..., :1] >= 0
        scores = self.score(states).transpose(1, 2).masked_fill(~inside, IMPOSSIBLE)
        return scores.softmax(-1).masked_fill(~inside, 0) @ states


class AttentionBlock(nn.Module):
    """A layer of BERT's: queries attend to keys, then a feed-forward network; post-LN."""

    def __init__(self, options: KarOptions) -> None:
        super().__init__()
        size = options.size
        self.heads = options.heads
        self.query, self.key, self.value, self.output = (nn.Linear(size, size) for _ in range(4))
        self.inner, self.outer = nn.Linear(size, options.inner), nn.Linear(options.inner, size)
        self.attention_norm, self.norm = (nn.LayerNorm(size, eps=1e-12) for _ in range(2))
        self.dropout = nn.Dropout(options.dropout)

    def forward(self, queries: Tensor, keys: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
        """Attend.

        Args:
            queries: (B, Q, E).
            keys: (B, C, E); values, too.
            valid: (B, C) bool; which keys there are.

        Returns:
            States (B, Q, E), and attention weights (B, A, Q, C).
        """
        q, k, v = (
            own.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (B, A, ·, D)
            for own in (self.query(queries), self.key(keys), self.value(keys))
        )
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        weights = scores.masked_fill(~valid[:, None, None], IMPOSSIBLE).softmax(-1)
        mixed = (self.dropout(weights) @ v).transpose(1, 2).flatten(-2)
        states = self.attention_norm(queries + self.dropout(self.output(mixed)))
        inner = nn.functional.gelu(self.inner(states))
        return self.norm(states + self.dropout(self.outer(inner))), weights


class EntityLinker(nn.Module):
    """Scores each candidate of each span, and mixes their vectors (Eq. 2, 3).

    Args:
        width: W of the entity vectors.
        options: of the KAR.
    """

    special: Tensor

    def __init__(self, width: int, options: KarOptions) -> None:
        super().__init__()
        self.options = options
        special = torch.randn(len(SPECIAL_ENTITIES), width) * 0.004
        special[PADDING] = 0
        self.register_buffer("special", special)  # frozen, as all entity vectors are
        self.project = nn.Linear(width, options.size)  # the paper's of its 2,248-wide vectors
        self.pooling = SpanPooling(options.size)
        self.block = AttentionBlock(options)
        self.span_norm, self.entity_norm = norm(options.size, options), norm(options.size, options)
        self.hidden, self.score = nn.Linear(2, HIDDEN), nn.Linear(HIDDEN, 1)

    def forward(self, projected: Tensor, candidates: Candidates) -> Linked:
        """Link the spans of a batch.

        Args:
            projected: (B, N, E); token states, projected (Eq. 1).
        """
        table = self.project(torch.cat([self.special, candidates.vectors.to(self.special)]))
        spans = self.span_norm(self.pooling(projected, candidates.spans))
        contextual, _ = self.block(spans, spans, candidates.valid)
        # Most of (B, C, M) is padding: K candidates there are, in the order of b, c, m.
        there = candidates.entities != PADDING
        b, c, _ = there.nonzero(as_tuple=True)
        vectors = self.entity_norm(table)[candidates.entities[there]]  # (K, E)
        dots = (vectors * contextual[b, c]).sum(-1)
        if self.options.scaled:
            dots = dots / vectors.shape[-1] ** 0.5
        features = torch.stack([dots, candidates.priors.to(dots)[there]], -1)
        nothing = torch.full(there.shape, IMPOSSIBLE, dtype=dots.dtype, device=dots.device)
        scores = nothing.masked_scatter(there, self.score(self.hidden(features).relu()))
        kept = scores
        own = self.options.threshold
        threshold = own if candidates.threshold is None else candidates.threshold
        if threshold is not None:
            kept = scores.masked_fill(scores < threshold, IMPOSSIBLE)
        is_null = (kept == IMPOSSIBLE).all(-1)
        weights = kept.softmax(-1).masked_fill(is_null[..., None], 0)
        mixed = torch.zeros_like(contextual).index_put(
            (b, c), weights[there][:, None] * vectors, accumulate=True
        )
        entity = torch.where(is_null[..., None], table[NULL], mixed)
        dot = torch.zeros_like(nothing).masked_scatter(there, dots)
        return Linked(contextual, dot, scores, weights, entity, is_null)


def norm(size: int, options: KarOptions) -> nn.Module:
    """A layer normalisation that the released code has and the paper's equations don't."""
    return nn.LayerNorm(size, eps=1e-5) if options.norms else nn.Identity()


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
def reading_with(candidates: Sequence[Candidates]) -> Iterator[list[list[KarTrace]]]:
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
    :func:`reading_with`.

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
        assert running is not None, "run the encoder within knowbert.kar.reading_with"
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
