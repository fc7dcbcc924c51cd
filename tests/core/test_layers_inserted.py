"""A module put after a layer of an encoder: it changes the states, trains, and is saved."""

import pytest
import torch
from conftest import tiny_config
from torch import nn
from transformers import (
    AlbertConfig,
    AlbertModel,
    BertForTokenClassification,
    BertModel,
    DistilBertConfig,
    DistilBertModel,
    RobertaConfig,
    RobertaModel,
)

from kbert_core.errors import CheckpointError, EncoderError
from kbert_core.layers import LayeredTwin, insert_after, layers_of, load_inserted, twin_of

IDS = torch.tensor([[2, 7, 8, 9, 3]])
SMALL = {"vocab_size": 40, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4}


class Plus(nn.Module):
    """Add a learned vector to every state."""

    def __init__(self, size=32, value=0.5):
        super().__init__()
        self.vector = nn.Parameter(torch.full((size,), value))

    def forward(self, hidden):
        return hidden + self.vector


def states(model):
    with torch.no_grad():
        return model(IDS, output_hidden_states=True).hidden_states


@pytest.mark.parametrize(
    "encoder",
    [
        BertModel(tiny_config()),
        RobertaModel(RobertaConfig(**SMALL, intermediate_size=48, max_position_embeddings=40)),
        DistilBertModel(DistilBertConfig(vocab_size=40, dim=32, n_layers=3, n_heads=4)),
    ],
    ids=lambda encoder: type(encoder).__name__,
)
def test_what_is_inserted_acts_between_its_layer_and_the_next(encoder):
    encoder.eval()
    before = states(encoder)
    insert_after(encoder, 2, Plus())
    after = states(encoder)
    assert torch.equal(after[1], before[1])
    assert not torch.allclose(after[3], before[3], atol=1e-3)
    layers = layers_of(encoder)
    given = []
    layers[2].register_forward_pre_hook(lambda _, args, kw: given.append(args), with_kwargs=True)
    states(encoder)
    assert torch.allclose(given[0][0], before[2] + 0.5, atol=1e-6)


def test_nothing_is_changed_by_an_inserted_zero_and_a_twin_runs_it_too():
    encoder = BertModel(tiny_config()).eval()
    before = states(encoder)[-1]
    insert_after(encoder, 1, Plus(value=0.0))
    assert torch.equal(states(encoder)[-1], before)
    with torch.no_grad():
        layers_of(encoder)[0].inserted.vector.fill_(0.5)
    assert torch.equal(states(twin_of(encoder))[-1], states(encoder)[-1])
    assert not torch.equal(states(encoder)[-1], before)


def test_what_is_inserted_trains_with_the_encoder_is_saved_and_loaded(tmp_path):
    model = BertForTokenClassification(tiny_config(num_labels=5)).eval()
    insert_after(model, 3, Plus())
    assert sum("inserted" in name for name, _ in model.named_parameters()) == 1
    model(IDS, labels=torch.tensor([[0, 1, 2, 1, 0]])).loss.backward()
    assert layers_of(model.bert)[2].inserted.vector.grad.abs().sum() > 0
    with torch.no_grad():
        layers_of(model.bert)[2].inserted.vector.normal_()
    model.save_pretrained(tmp_path)
    again = BertForTokenClassification.from_pretrained(tmp_path).eval()
    assert not torch.equal(again(IDS).logits, model(IDS).logits)
    insert_after(again, 3, Plus())
    load_inserted(again, tmp_path)
    assert torch.equal(again(IDS).logits, model(IDS).logits)
    elsewhere = BertForTokenClassification.from_pretrained(tmp_path)
    insert_after(elsewhere, 1, Plus())
    with pytest.raises(CheckpointError, match=r"don't fit the model's card \(2 differ"):
        load_inserted(elsewhere, tmp_path)


def test_a_layer_that_is_not_there_or_taken_is_refused_by_name():
    encoder = BertModel(tiny_config())
    for number in (0, 4, "2", 1.5):
        with pytest.raises(EncoderError, match=f"after layer {number!r}: BertModel has 3 layers"):
            insert_after(encoder, number, Plus())
    insert_after(encoder, 3, Plus())
    with pytest.raises(EncoderError, match="already inserted after layer 3 of BertModel"):
        insert_after(encoder, 3, Plus())


def test_an_encoder_whose_layers_share_their_parameters_is_refused():
    config = AlbertConfig(**SMALL, embedding_size=16, intermediate_size=48)
    with pytest.raises(EncoderError, match="can't be told apart"):
        insert_after(AlbertModel(config), 1, Plus())


def test_an_encoder_whose_layers_are_not_found_is_refused():
    encoder = BertModel(tiny_config())
    encoder.encoder.layer = nn.Sequential(*encoder.encoder.layer)  # run in order, but no list
    for act in (layers_of, LayeredTwin, lambda model: insert_after(model, 1, Plus())):
        with pytest.raises(
            EncoderError, match=r"nor a module after one layer: .* use another encoder"
        ):
            act(encoder)
