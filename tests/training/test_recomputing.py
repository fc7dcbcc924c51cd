"""Less memory for training: layers that are computed again."""

import torch
from torch import nn
from transformers import BertConfig, BertModel

from kbert_core.layers import insert_after, layers_of, twin_of
from kbert_lab.training.recomputing import compute_again


def test_layers_computed_again_have_equal_gradients_and_run_their_hooks_once():
    config = BertConfig(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
    )
    torch.manual_seed(0)
    whole = BertModel(config).train()
    again = BertModel(config).train()
    again.load_state_dict(whole.state_dict())
    calls = []

    class Counting(nn.Module):
        def forward(self, states):
            calls.append(self.training)
            return states * 2

    for model in (whole, again):
        insert_after(model, 1, Counting())
    compute_again(again)
    ids, gradients, kept = torch.arange(20).view(2, 10), [], []
    for model in (whole, again):
        torch.manual_seed(1)  # of the dropout
        sizes = []
        with torch.autograd.graph.saved_tensors_hooks(
            lambda t, sizes=sizes: sizes.append(t.numel()) or t, lambda t: t
        ):
            loss = model(ids).last_hidden_state.square().sum()
        loss.backward()
        kept.append(sum(sizes))
        gradients.append([p.grad for p in model.parameters() if p.grad is not None])
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True))
    assert len(calls) == 2
    assert kept[1] < kept[0] / 2
    twin = twin_of(again)
    assert layers_of(twin)[0].forward.__self__ is layers_of(twin)[0]
    assert torch.equal(twin(ids).last_hidden_state, again.eval()(ids).last_hidden_state)
