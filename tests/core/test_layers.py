"""Matrices of single layers, and modules put after one: what they change, share, refuse."""

import math
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from conftest import TIM_COOK, tiny_config
from core.kbert.test_mask_transformer import ATTENTION, FIT, batch_of, small, states
from torch import nn
from transformers import (
    BertForTokenClassification,
    BertModel,
    DistilBertConfig,
    DistilBertModel,
    RobertaConfig,
    RobertaModel,
)

from kbert_core import MaskTransformer, WordPieces, collate, flatten, grow_trees, visible_matrix
from kbert_core.errors import CheckpointError, EncoderError, ShapeError
from kbert_core.kbert.interventions import BRANCHES, TRUNK, Intervention, Tokens, intervene
from kbert_core.layers import LayeredTwin, insert_after, layers_of, load_inserted, twin_of

LAYERED = [kind for kind in FIT if kind != "albert"]
IDS = [5, 9, 13, 17, 21, 25, 29, 33, 37, 41]
SIZE = len(IDS)
ALL = torch.ones(1, SIZE, SIZE, dtype=torch.bool)
PART = torch.tensor([0, 0, 0, 1, 1, 0, 1, 0, 1, 1])
APART = (PART[:, None] == PART[None, :])[None]


def one_hidden(row, column):
    visible = ALL.clone()
    visible[0, row, column] = False
    return visible


@pytest.mark.parametrize("attentions", [False, True])
@pytest.mark.parametrize("attention", ATTENTION)
@pytest.mark.parametrize("kind", LAYERED)
def test_two_parts_apart_in_all_layers_but_one_meet_there(kind, attention, attentions):
    encoder = MaskTransformer(small(kind, attention, **FIT[kind]))
    other = [50 - i if part else i for i, part in zip(IDS, PART.tolist(), strict=True)]
    own = PART == 0
    for meet in range(3):
        matrices = [ALL if layer == meet else APART for layer in range(3)]
        how = {"visible": matrices, "hidden_states": True, "attentions": attentions}
        before, after = (encoder(batch_of(ids), **how) for ids in (IDS, other))
        for layer, (one, two) in enumerate(
            zip(before.hidden_states, after.hidden_states, strict=True)
        ):
            assert one[0, own].equal(two[0, own]) == (layer <= meet)
        for layer, shares in enumerate(before.attentions or ()):
            assert (shares[0, :, ~APART[0]] == 0).all() == (layer != meet)


@pytest.mark.parametrize("attention", ATTENTION)
def test_local_windows_stay_local_where_layers_differ(attention):
    encoder = MaskTransformer(small("modernbert", attention, **FIT["modernbert"]))
    window = encoder.config.sliding_window
    ids = [4 + at * 7 % 50 for at in range(40)]
    kinds = encoder.config.layer_types
    assert kinds[1] == "sliding_attention"
    everything = torch.ones(1, 40, 40, dtype=torch.bool)
    hidden = everything.clone()
    hidden[0, 1, 0] = False
    output = encoder(batch_of(ids), visible=[everything, hidden, everything], attentions=True)
    far = (torch.arange(40)[:, None] - torch.arange(40)[None, :]).abs() > window
    for number, layer in enumerate(output.attentions):
        local = kinds[number] == "sliding_attention"
        assert (layer[0][:, far] == 0).all() == local
        assert (layer[0, :, 1, 0] == 0).all() == (number == 1)


# A slow second implementation


def slow_bert(model, batch, visible):
    """BERT's forward pass by hand, one matrix a layer; the hidden states."""
    names = dict(model.named_parameters())
    count, width = model.config.num_attention_heads, model.config.hidden_size
    size = width // count

    def linear(x, name):
        return x @ names[f"{name}.weight"].T + names[f"{name}.bias"]

    def norm(x, name):
        centred = x - x.mean(-1, keepdim=True)
        spread = (centred.pow(2).mean(-1, keepdim=True) + model.config.layer_norm_eps).sqrt()
        return centred / spread * names[f"{name}.weight"] + names[f"{name}.bias"]

    x = norm(
        names["embeddings.word_embeddings.weight"][batch.input_ids]
        + names["embeddings.position_embeddings.weight"][batch.soft_positions]
        + names["embeddings.token_type_embeddings.weight"][batch.token_type_ids],
        "embeddings.LayerNorm",
    )
    found = [x]
    for number, seen in enumerate(visible):
        layer = f"encoder.layer.{number}"
        q, k, v = (
            linear(x, f"{layer}.attention.self.{name}") for name in ("query", "key", "value")
        )
        mixed = torch.zeros_like(x)
        for head in range(count):
            own = slice(head * size, (head + 1) * size)
            for b in range(x.shape[0]):
                for i in range(x.shape[1]):
                    columns = seen[b, i].nonzero()[:, 0]
                    scores = k[b, columns, own] @ q[b, i, own] / math.sqrt(size)
                    mixed[b, i, own] = scores.softmax(0) @ v[b, columns, own]
        x = norm(
            x + linear(mixed, f"{layer}.attention.output.dense"),
            f"{layer}.attention.output.LayerNorm",
        )
        wide = torch.nn.functional.gelu(linear(x, f"{layer}.intermediate.dense"))
        x = norm(x + linear(wide, f"{layer}.output.dense"), f"{layer}.output.LayerNorm")
        found.append(x)
    return found


@pytest.mark.parametrize("attention", ATTENTION)
def test_layers_agree_with_bert_written_by_hand(attention, tokenizer, figure_2):
    model = small("bert", attention, vocab_size=200)
    words = WordPieces(tokenizer)
    rows = list(flatten(grow_trees([TIM_COOK, "beijing"], figure_2), words))
    batch = collate(rows, pad_id=words.pad_id)
    tree = visible_matrix(batch.branch_ids, batch.anchor_ids)
    capital = Tokens("hung", 0, TIM_COOK.index("Beijing"))
    for interventions in (
        (),
        (Intervention("block", TRUNK, BRANCHES, layers=(1,)),),
        (Intervention("block", TRUNK, BRANCHES, layers=(3,)),),
        (
            Intervention("open", TRUNK, BRANCHES, layers=(2,)),
            Intervention("block", TRUNK, capital, both=False, layers=(1, 2)),
        ),
    ):
        visible = intervene(tree, rows, interventions, 3).layers
        with torch.no_grad():
            slow = slow_bert(model, batch, visible)
        for one, other in zip(
            states(MaskTransformer(model), batch, visible=visible), slow, strict=True
        ):
            assert torch.allclose(one[batch.real], other[batch.real], atol=1e-4)


# The shared model


@pytest.mark.parametrize("visible", [None, [ALL, APART, ALL]])
def test_the_shared_model_is_as_it_was(encoder, visible):
    runner = MaskTransformer(encoder)
    batch = batch_of(IDS)
    before = states(runner, batch)
    hooks = [len(module._forward_pre_hooks) for module in encoder.modules()]
    plain, shown = (runner(batch, visible=visible, attentions=own) for own in (False, True))
    assert (plain.attentions, len(shown.attentions)) == (None, 3)
    assert torch.allclose(plain.last_hidden_state, shown.last_hidden_state, atol=1e-5)
    assert [len(module._forward_pre_hooks) for module in encoder.modules()] == hooks
    assert runner.model is encoder
    assert encoder.config._attn_implementation == runner.attention == "sdpa"
    for one, other in zip(before, states(runner, batch), strict=True):
        assert one.equal(other)
    for twin in (runner._layered, runner._layered_eager) if visible else ():
        assert {id(p) for p in twin.model.parameters()} == {id(p) for p in encoder.parameters()}


def test_a_failed_call_leaves_no_masks_behind(encoder):
    runner = MaskTransformer(encoder)
    runner(batch_of(IDS), visible=[ALL, APART, ALL])
    wrong = [ALL, torch.ones(1, 3, 3, dtype=torch.bool), ALL]
    with pytest.raises(RuntimeError):
        runner(batch_of(IDS), visible=wrong)
    plain = runner._layered.model(torch.tensor([IDS])).last_hidden_state
    assert plain.equal(encoder(torch.tensor([IDS])).last_hidden_state)


@pytest.mark.parametrize("attentions", [False, True])
def test_threads_with_different_matrices_do_not_mix_them(encoder, attentions):
    runner = MaskTransformer(encoder)
    batch = batch_of(IDS)
    settings = [[ALL if layer == meet else APART for layer in range(3)] for meet in range(3)] + [
        ALL,
        None,
    ]

    def run(setting):
        return states(runner, batch, visible=setting, attentions=attentions)[-1]

    alone = [run(setting) for setting in settings]
    assert len({tuple(x.flatten().tolist()[:5]) for x in alone}) == 4  # ALL and None are equal
    with ThreadPoolExecutor(5) as pool:
        together = list(pool.map(run, settings * 30))
    for number, found in enumerate(together):
        assert found.equal(alone[number % len(settings)])


# Refusals


@pytest.mark.parametrize(
    "groups",
    [  # all layers are one; three layers in a list, each run three times
        {},
        {"num_hidden_layers": 3, "num_hidden_groups": 1, "inner_group_num": 3},
    ],
)
def test_albert_shares_its_layers_and_says_so(groups):
    encoder = MaskTransformer(small("albert", **FIT["albert"], **groups))
    with pytest.raises(EncoderError, match="AlbertModel can't have different visible") as said:
        encoder(batch_of(IDS), visible=[ALL, APART, ALL])
    assert "Use the same intervention in all layers, or use another encoder" in str(said.value)
    together = states(encoder, batch_of(IDS), visible=[APART] * 3)
    assert together[-1].equal(states(encoder, batch_of(IDS), visible=APART)[-1])


def test_albert_with_a_group_a_layer_takes_a_matrix_each():
    encoder = MaskTransformer(small("albert", **FIT["albert"], num_hidden_groups=3))
    after = states(encoder, batch_of(IDS), visible=[ALL, one_hidden(4, 7), ALL])
    before = states(encoder, batch_of(IDS), visible=ALL)
    assert before[1].equal(after[1])
    assert not before[2][0, 4].equal(after[2][0, 4])


def test_another_number_of_matrices_than_layers_is_refused(encoder):
    with pytest.raises(ShapeError, match="Got 2 visible matrices, and the encoder has 3 layers"):
        MaskTransformer(encoder)(batch_of(IDS), visible=[ALL, APART])


ROW = torch.tensor([[2, 7, 8, 9, 3]])
SIZES = {"vocab_size": 40, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4}


class Plus(nn.Module):
    """Add a learned vector to every state."""

    def __init__(self, size=32, value=0.5):
        super().__init__()
        self.vector = nn.Parameter(torch.full((size,), value))

    def forward(self, hidden):
        return hidden + self.vector


def run_states(model):
    with torch.no_grad():
        return model(ROW, output_hidden_states=True).hidden_states


@pytest.mark.parametrize(
    "encoder",
    [
        BertModel(tiny_config()),
        RobertaModel(RobertaConfig(**SIZES, intermediate_size=48, max_position_embeddings=40)),
        DistilBertModel(DistilBertConfig(vocab_size=40, dim=32, n_layers=3, n_heads=4)),
    ],
    ids=lambda encoder: type(encoder).__name__,
)
def test_what_is_inserted_acts_between_its_layer_and_the_next(encoder):
    encoder.eval()
    before = run_states(encoder)
    insert_after(encoder, 2, Plus())
    after = run_states(encoder)
    assert torch.equal(after[1], before[1])
    assert not torch.allclose(after[3], before[3], atol=1e-3)
    layers = layers_of(encoder)
    given = []
    layers[2].register_forward_pre_hook(lambda _, args, kw: given.append(args), with_kwargs=True)
    run_states(encoder)
    assert torch.allclose(given[0][0], before[2] + 0.5, atol=1e-6)


def test_nothing_is_changed_by_an_inserted_zero_and_a_twin_runs_it_too():
    encoder = BertModel(tiny_config()).eval()
    before = run_states(encoder)[-1]
    insert_after(encoder, 1, Plus(value=0.0))
    assert torch.equal(run_states(encoder)[-1], before)
    with torch.no_grad():
        layers_of(encoder)[0].inserted.vector.fill_(0.5)
    assert torch.equal(run_states(twin_of(encoder))[-1], run_states(encoder)[-1])
    assert not torch.equal(run_states(encoder)[-1], before)


def test_what_is_inserted_trains_with_the_encoder_is_saved_and_loaded(tmp_path):
    model = BertForTokenClassification(tiny_config(num_labels=5)).eval()
    insert_after(model, 3, Plus())
    assert sum("inserted" in name for name, _ in model.named_parameters()) == 1
    model(ROW, labels=torch.tensor([[0, 1, 2, 1, 0]])).loss.backward()
    assert layers_of(model.bert)[2].inserted.vector.grad.abs().sum() > 0
    with torch.no_grad():
        layers_of(model.bert)[2].inserted.vector.normal_()
    model.save_pretrained(tmp_path)
    again = BertForTokenClassification.from_pretrained(tmp_path).eval()
    assert not torch.equal(again(ROW).logits, model(ROW).logits)
    insert_after(again, 3, Plus())
    load_inserted(again, tmp_path)
    assert torch.equal(again(ROW).logits, model(ROW).logits)
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


def test_an_encoder_whose_layers_are_not_found_is_refused():
    encoder = BertModel(tiny_config())
    encoder.encoder.layer = nn.Sequential(*encoder.encoder.layer)  # run in order, but no list
    for act in (layers_of, LayeredTwin, lambda model: insert_after(model, 1, Plus())):
        with pytest.raises(
            EncoderError, match=r"nor a module after one layer: .* use another encoder"
        ):
            act(encoder)
