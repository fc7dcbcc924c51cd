"""The linker and the KAR beside the paper's equations, written out one span at a time."""

from dataclasses import replace
from math import exp, sqrt

import pytest
import torch
from torch import nn

from kbert_core import KBertError
from kbert_core.knowbert.kar import NULL, Candidates, Kar, KarOptions, layer_after, reading_with

HIDDEN, WIDTH = 32, 10
SMALL = KarOptions(size=12, heads=3, inner=16)
LIKE_CODE = replace(SMALL, norms=True, scaled=True)


def kar(options=SMALL, base=0, seed=0):
    torch.manual_seed(seed)
    module = Kar(HIDDEN, WIDTH, base, options).eval()
    for parameter in module.parameters():  # wide enough for every input to matter
        nn.init.normal_(parameter, std=0.4)
    return module


def candidates(*texts, entities=6, seed=1):
    """Per text spans of (first, last, {entity: prior})."""
    most = max((len(text) for text in texts), default=0) or 1
    widest = max([len(span[2]) for text in texts for span in text], default=0) or 1
    spans = torch.full((len(texts), most, 2), -1)
    ids = torch.zeros(len(texts), most, widest, dtype=torch.long)
    priors = torch.zeros(len(texts), most, widest)
    for row, text in enumerate(texts):
        for number, (first, last, choices) in enumerate(text):
            spans[row, number] = torch.tensor([first, last])
            for k, (entity, prior) in enumerate(choices.items()):
                ids[row, number, k], priors[row, number, k] = entity, prior
    torch.manual_seed(seed)
    return Candidates(spans, ids, priors, torch.randn(entities, WIDTH))


def states(texts=1, tokens=7, seed=2):
    torch.manual_seed(seed)
    return torch.randn(texts, tokens, HIDDEN)


def run(module, hidden, given):
    with torch.no_grad(), reading_with([given]) as traces:
        output = module(hidden)
    return output, traces[0][0]


TEXT = ((1, 2, {3: 0.7, 4: 0.3}), (2, 4, {5: 1.0}), (6, 6, {3: 0.2, 6: 0.5, 8: 0.3}))


@torch.no_grad()
@pytest.mark.parametrize("options", [SMALL, LIKE_CODE], ids=["paper", "code"])
def test_linker_is_the_papers_equations_span_by_span(options):
    module, hidden, given = kar(options), states(), candidates(TEXT)
    _, trace = run(module, hidden, given)
    linker = module.linker
    tokens = module.down(hidden[0])
    spans = []
    for first, last, _ in TEXT:
        own = tokens[first : last + 1]
        spans.append((linker.pooling.score(own).softmax(0) * own).sum(0))
    spans = linker.span_norm(torch.stack(spans))
    contextual = block_by_hand(linker.block, spans, spans)
    table = linker.project(torch.cat([linker.special, given.vectors]))
    for number, (_, _, choices) in enumerate(TEXT):
        vectors = linker.entity_norm(table[list(choices)])
        scores = []
        for vector, prior in zip(vectors, choices.values(), strict=True):
            dot = float(vector @ contextual[number]) / (sqrt(options.size) if options.scaled else 1)
            hidden_layer = linker.hidden(torch.tensor([dot, prior])).relu()
            scores.append(float(linker.score(hidden_layer)))
        weights = [exp(s - max(scores)) for s in scores]
        weights = torch.tensor([w / sum(weights) for w in weights])
        close(trace.linked.scores[0, number, : len(scores)], torch.tensor(scores))
        close(trace.linked.weights[0, number, : len(scores)], weights)
        close(trace.linked.entity[0, number], weights @ vectors)


@pytest.mark.parametrize("options", [SMALL, LIKE_CODE], ids=["paper", "code"])
def test_kar_is_the_papers_equations_token_by_token(options):
    module, hidden, given = kar(options), states(), candidates(TEXT)
    output, trace = run(module, hidden, given)
    enhanced = module.span_norm(trace.linked.contextual[0] + trace.linked.entity[0])  # Eq. 6
    mixed = block_by_hand(module.block, module.down(hidden[0]), enhanced)
    close(output[0], module.norm(hidden[0] + module.up(mixed)))  # Eq. 7
    close(trace.attention.sum(-1), torch.ones(1, 3, 7))
    close(trace.change[0], (output - hidden)[0].norm(dim=-1))


def block_by_hand(block, queries, keys):
    width = queries.shape[1] // block.heads
    q, k, v = block.query(queries), block.key(keys), block.value(keys)
    mixed = []
    for head in range(block.heads):
        own = slice(head * width, (head + 1) * width)
        weights = (q[:, own] @ k[:, own].T / sqrt(width)).softmax(-1)
        mixed.append(weights @ v[:, own])
    states = block.attention_norm(queries + block.output(torch.cat(mixed, -1)))
    return block.norm(states + block.outer(nn.functional.gelu(block.inner(states))))


def close(one, other):
    torch.testing.assert_close(one.detach(), other.detach(), atol=2e-5, rtol=2e-5)


def test_padding_of_candidates_and_unnamed_entities_change_nothing_at_all():
    module, hidden, given = kar(), states(), candidates(TEXT)
    output, _ = run(module, hidden, given)
    more = torch.cat([given.vectors, torch.full((2, WIDTH), 1e3)])
    assert torch.equal(run(module, hidden, replace(given, vectors=more))[0], output)
    wide = nn.functional.pad(given.entities, (0, 2)), nn.functional.pad(given.priors, (0, 2))
    close(run(module, hidden, Candidates(given.spans, *wide, given.vectors))[0], output)


def test_aligned_tokens_begin_by_attending_to_their_own_span():
    own = {}
    for alignment in (0, 16):
        torch.manual_seed(0)
        module = Kar(HIDDEN, WIDTH, 0, replace(LIKE_CODE, alignment=alignment)).eval()
        given = candidates(*[((1, 2, {3: 1.0}), (4, 5, {4: 1.0}))] * 20)
        _, trace = run(module, states(20), given)
        attention = trace.attention.mean((0, 1))  # (N, C)
        own[alignment] = (attention[1:3, 0].mean() + attention[4:6, 1].mean()) / 2
    assert own[0] == pytest.approx(0.5, abs=0.02)
    assert own[16] > 0.7


def test_without_a_mention_the_layer_reads_an_empty_span_and_is_not_the_identity():
    module, hidden = kar(), states()
    output, trace = run(module, hidden, candidates(()))
    assert trace.linked.is_null.all()
    assert trace.attention.shape[-1] == 1
    assert output.isfinite().all()
    assert not torch.allclose(output, hidden)


def test_a_span_whose_candidates_are_all_under_the_threshold_means_null():
    module, hidden, given = kar(), states(), candidates(TEXT)
    _, free = run(module, hidden, given)
    scores = free.linked.scores[0]
    middle = float(scores[0].max()) + 1e-3
    module.linker.options = replace(SMALL, threshold=middle)
    _, held = run(module, hidden, given)
    assert held.linked.is_null[0, 0]
    assert held.linked.weights[0, 0].tolist() == [0, 0, 0]
    null = module.linker.project(module.linker.special)[NULL]
    close(held.linked.entity[0, 0], null)
    _, given_one = run(kar(), hidden, replace(given, threshold=middle))
    close(given_one.linked.weights, held.linked.weights)
    kept = scores[2] >= middle
    assert (held.linked.weights[0, 2] > 0).tolist() == kept.tolist()


def test_inverted_projection_gives_back_every_projected_vector():
    module = kar()
    module.invert_projection()
    torch.testing.assert_close(
        module.down.weight @ module.up.weight, torch.eye(12), atol=1e-5, rtol=0
    )
    vectors = torch.randn(5, 12)
    torch.testing.assert_close(module.down(module.up(vectors)), vectors, atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    ("layers", "bases", "after"),
    [(12, 1, [10]), (12, 2, [10, 11]), (6, 1, [5]), (6, 2, [4, 5]), (4, 1, [3]), (1, 1, [1])],
)
def test_layers_are_those_of_the_paper_and_in_proportion(layers, bases, after):
    assert [layer_after(layers, base, bases) for base in range(bases)] == after


@pytest.mark.parametrize(
    "changes", [{"size": 0}, {"size": 10, "heads": 4}, {"dropout": 1.5}, {"alignment": -1.0}]
)
def test_impossible_sizes_are_refused(changes):
    with pytest.raises(KBertError, match=r"expected at least|expected a share|Give a multiple"):
        KarOptions(**{"size": 12, **changes})
