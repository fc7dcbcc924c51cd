"""The mask-transformer: what is hidden has no influence, and nothing else changes."""

import pytest
import torch
from conftest import TIM_COOK, tiny_config
from transformers import AutoConfig, AutoModel, AutoTokenizer, BertModel

from kbert_core import (
    InjectionOptions,
    KnowledgeGraph,
    MaskTransformer,
    Pipeline,
    WordPieces,
    collate,
    flatten,
    grow_trees,
    probe,
    visible_matrix,
)
from kbert_core.errors import EncoderError
from kbert_core.kbert.flat_tree import Batch

ATTENTION = ["sdpa", "eager"]
NO_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device is here")
DEVICES = ["cpu", pytest.param("cuda", marks=NO_CUDA)]
SMALL = {
    "vocab_size": 60,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 80,
    "pad_token_id": 0,
    "initializer_range": 0.3,
}
FIT = {
    "bert": {},
    "electra": {"embedding_size": 16},
    "ernie": {},
    "roberta": {"pad_token_id": 1, "type_vocab_size": 1},
    "xlm-roberta": {"pad_token_id": 1, "type_vocab_size": 1},
    "distilbert": {"dim": 32, "n_layers": 3, "n_heads": 4, "hidden_dim": 48},
    "albert": {"embedding_size": 16},
    "modernbert": {"local_attention": 8, "global_attn_every_n_layers": 2},
}
LEFT, NO_PAIRS = "looks only to the left", "a mask for whole tokens, and none for pairs"
DECODER, INFLUENCE = "can't be used: it has a decoder", "hidden by the visible matrix still has an"
INSIDE, RELATIVE = "takes no position_ids: its positions are relative", "positions are relative, so"
GPT = {"n_embd": 32, "n_layer": 2, "n_head": 4}
TWO_SIDES = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "decoder_vocab_size": 151}
TWO_SIDES |= {f"{side}_attention_heads": 4 for side in ("encoder", "decoder")}
UNFIT = {  # options (None: left out of those of all), and the reason
    "gpt2": (GPT, LEFT),
    "llama": ({"num_key_value_heads": 4}, LEFT),
    "opt": ({"ffn_dim": 48, "word_embed_proj_dim": 32}, LEFT),
    "deberta-v2": ({"relative_attention": True, "pos_att_type": ["c2p"]}, RELATIVE),
    "xlnet": ({"max_position_embeddings": None, "d_head": 8, "d_inner": 48}, INSIDE),
    "roformer": ({"embedding_size": 32}, INSIDE),
    "canine": (
        {"vocab_size": None, "num_hash_buckets": 64},
        "Canine can't be used: it has no vocabulary",
    ),
    "t5": ({"d_kv": 8, "d_ff": 48, "num_layers": 1}, f"T5 {DECODER}"),
    "bart": (TWO_SIDES, f"Bart {DECODER}"),
    "convbert": ({"embedding_size": 16}, INFLUENCE),
    "fnet": ({}, INFLUENCE),
    "longformer": ({"attention_window": [8] * 3}, NO_PAIRS),
    "xlm": ({"emb_dim": 32, "n_layers": 2, "n_heads": 4}, NO_PAIRS),
    "mra": ({}, "an all-visible matrix doesn't give the same as the plain call"),
    "lilt": ({}, "it can't read 8 tokens by their numbers alone"),
}


def small(kind, attention=None, **more):
    torch.manual_seed(0)
    ends = {"bos_token_id": 2, "eos_token_id": 3, "cls_token_id": 2, "sep_token_id": 3}
    sizes = {name: size for name, size in {**SMALL, **ends, **more}.items() if size is not None}
    config = AutoConfig.for_model(kind, **sizes)
    return AutoModel.from_config(config, attn_implementation=attention).eval()


def batch_of(ids, *, branch=None, anchor=None, soft=None):
    """One row of codes; a plain trunk unless said otherwise."""
    size = len(ids)
    rows = (ids, soft or range(size), branch or [0] * size, anchor or [0] * size, [0] * size)
    return Batch(*(torch.tensor([list(row)]) for row in rows))


def states(encoder, batch, **options):
    return encoder(batch, hidden_states=True, **options).hidden_states


def tree_batch(folder, texts, graph, options=InjectionOptions(max_triples=9)):
    words = WordPieces(AutoTokenizer.from_pretrained(folder))
    flats = [
        flatten(grow_trees([[text] if isinstance(text, str) else text], graph, options), words)[0]
        for text in texts
    ]
    return flats, collate(flats, pad_id=words.pad_id)


@pytest.fixture(scope="module", params=ATTENTION)
def minilm(request, minilm_folder):
    plain = BertModel.from_pretrained(minilm_folder, attn_implementation=request.param)
    return MaskTransformer(plain)


# What is hidden has no influence


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("attention", ATTENTION)
@pytest.mark.parametrize("kind", FIT)
def test_change_in_one_of_two_disconnected_parts_leaves_the_other_exactly_equal(
    kind, attention, device
):
    encoder = MaskTransformer(small(kind, attention, **FIT[kind]).to(device))
    part = torch.tensor([0, 0, 0, 1, 1, 0, 1, 0, 1, 1])
    visible = (part[:, None] == part[None, :])[None]
    ids = [5, 9, 13, 17, 21, 25, 29, 33, 37, 41]
    before = states(encoder, batch_of(ids), visible=visible)
    assert len(before) == 4
    for changed in (0, 1):
        other = [50 - i if part[at] == changed else i for at, i in enumerate(ids)]
        after = states(encoder, batch_of(other), visible=visible)
        for layer_before, layer_after in zip(before, after, strict=True):
            assert layer_before[0, part != changed].equal(layer_after[0, part != changed])
            assert not layer_before[0, part == changed].equal(layer_after[0, part == changed])


@pytest.mark.parametrize("attention", ATTENTION)
@pytest.mark.parametrize("kind", FIT)
def test_branch_reaches_cls_at_layer_2_and_not_before(kind, attention):
    encoder = MaskTransformer(small(kind, attention, **FIT[kind]))
    codes = {
        "branch": [0, 0, 1, 1, 0],  # [CLS] mention branch branch word
        "anchor": [0, 1, 1, 1, 0],
        "soft": [0, 1, 2, 3, 2],
    }
    before = states(encoder, batch_of([5, 10, 20, 30, 40], **codes))
    after = states(encoder, batch_of([5, 10, 20, 31, 40], **codes))
    cls, mention, sibling_token, word = 0, 1, 2, 4
    assert before[1][0, [cls, word]].equal(after[1][0, [cls, word]])
    assert not before[1][0, mention].equal(after[1][0, mention])
    assert not before[1][0, sibling_token].equal(after[1][0, sibling_token])
    assert not before[2][0, cls].equal(after[2][0, cls])
    assert not before[2][0, word].equal(after[2][0, word])


@pytest.mark.parametrize("attention", ATTENTION)
@pytest.mark.parametrize("kind", ["bert", "modernbert"])
def test_a_matrix_for_each_head_hides_in_its_own_head_alone(kind, attention):
    encoder = MaskTransformer(small(kind, attention, **FIT[kind]))
    batch = batch_of([5, 10, 20, 30, 40])
    every = torch.ones(1, 5, 5, dtype=torch.bool)
    heads = every[:, None].repeat(1, 4, 1, 1)
    plain = states(encoder, batch, visible=every)
    for visible in (heads, [every, heads, every]):
        for one, other in zip(plain, states(encoder, batch, visible=visible), strict=True):
            assert torch.allclose(one, other, atol=1e-6)
    heads[0, 2, 1, 3] = False
    maps = encoder(batch, visible=[every, heads, every], attentions=True).attentions
    assert (maps[1][0, :, 1, 3] == 0).tolist() == [False, False, True, False]
    assert (maps[0] > 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("attention", ATTENTION)
def test_attention_is_exactly_zero_at_hidden_cells_and_sums_to_one(
    attention, dtype, tokenizer, figure_2
):
    encoder = MaskTransformer(small("bert", attention, vocab_size=200).to(dtype))
    words = WordPieces(tokenizer)
    batch = collate(flatten(grow_trees([TIM_COOK, "beijing", "a"], figure_2), words))
    visible = visible_matrix(batch.branch_ids, batch.anchor_ids)
    output = encoder(batch, attentions=True)
    assert output.last_hidden_state.dtype == dtype
    assert output.last_hidden_state.isfinite().all()
    assert len(output.attentions) == 3
    for layer in output.attentions:
        assert layer.shape == (3, 4, *visible.shape[1:])
        hidden = ~visible[:, None].expand_as(layer)
        assert (layer[hidden] == 0).all()
        assert torch.allclose(
            layer.float().sum(-1), torch.ones(()), atol=1e-5 if dtype is torch.float32 else 1e-2
        )
        assert (layer[~hidden] > 0).all()


# Parity on real weights


@pytest.mark.parametrize(
    "texts",
    [
        [TIM_COOK, "A much longer sentence about nothing in particular, to be padded to.", "!"],
        [("Tim Cook is in Beijing", "He leads Apple, a firm"), ("a", "b")],
    ],
)
def test_empty_graph_gives_the_plain_models_hidden_states(minilm, minilm_folder, texts):
    own = AutoTokenizer.from_pretrained(minilm_folder)
    _, batch = tree_batch(minilm_folder, texts, KnowledgeGraph())
    encoding = own(texts, padding=True, return_tensors="pt")
    assert batch.input_ids.equal(encoding["input_ids"])
    assert batch.token_type_ids.equal(encoding["token_type_ids"])
    with torch.inference_mode():
        plain = minilm.model(**encoding, output_hidden_states=True).hidden_states
    ours = states(minilm, batch)
    assert len(ours) == len(plain) == 7
    real = batch.real
    for layer, plain_layer in zip(ours, plain, strict=True):
        assert torch.allclose(layer[real], plain_layer[real], atol=1e-5)


def test_sentence_alone_and_in_a_mixed_batch_agrees(minilm, minilm_folder, figure_2):
    texts = [TIM_COOK, "Beijing", "Nothing is known here. " * 9, "Beijing and Tim Cook and Beijing"]
    flats, batch = tree_batch(minilm_folder, texts, figure_2)
    together = states(minilm, batch)
    for number, flat in enumerate(flats):
        alone = states(minilm, collate([flat]))
        for layer, own in zip(together, alone, strict=True):
            assert torch.allclose(layer[number, : len(flat)], own[0], atol=1e-5)


def test_order_of_a_mentions_branches_leaves_the_trunk_unchanged(minilm, minilm_folder, figure_2):
    capital, is_a = figure_2.triples_of("Beijing")
    turned = KnowledgeGraph([is_a, capital, *figure_2.triples_of("Tim Cook")])
    trunk = []
    for graph in (figure_2, turned):
        (flat,), batch = tree_batch(minilm_folder, [TIM_COOK], graph)
        on_trunk = [at for at, branch in enumerate(flat.branch_ids) if branch == 0]
        trunk.append([layer[0, on_trunk] for layer in states(minilm, batch)])
    for layer, other in zip(*trunk, strict=True):
        assert torch.allclose(layer, other, atol=1e-5)


@pytest.mark.parametrize("attention", ATTENTION)
@pytest.mark.parametrize("kind", FIT)
def test_empty_graph_gives_every_familys_own_states_on_a_long_text(kind, attention):
    model = small(kind, attention, **FIT[kind])
    ids = [4 + at * 7 % 50 for at in range(60)]  # longer than ModernBERT's local window here
    with torch.inference_mode():
        plain = model(torch.tensor([ids]), output_hidden_states=True).hidden_states
    ours = states(MaskTransformer(model), batch_of(ids))
    for layer, plain_layer in zip(ours, plain, strict=True):
        assert torch.allclose(layer, plain_layer, atol=1e-4)


def test_local_attention_counts_soft_positions():
    # A branch token stands as far from the trunk as its soft position says, not its place in N.
    encoder = MaskTransformer(small("modernbert", **FIT["modernbert"]))
    ids = [5, 6, *range(20, 40), 7]
    codes = {
        "branch": [0, 0, *[1] * 10, *[2] * 10, 0],
        "anchor": [0, *[1] * 21, 0],
        "soft": [0, 1, *range(2, 12), *range(2, 12), 2],
    }
    changed = [9, *ids[1:]]
    before, after = (states(encoder, batch_of(i, **codes))[2] for i in (ids, changed))
    assert not before[0, -1].equal(after[0, -1])  # 22 tokens away and 2 positions


# The probe


@pytest.mark.parametrize("kind", FIT)
def test_probe_accepts(kind):
    expected = 2 if kind in ("roberta", "xlm-roberta") else 0
    assert probe(small(kind, **FIT[kind])) == expected


def test_positions_that_roberta_never_uses_are_found_and_left_out():
    assert probe(small("roberta", pad_token_id=4, type_vocab_size=1)) == 5
    assert MaskTransformer(small("roberta", pad_token_id=1)).max_length == 78
    assert MaskTransformer(small("bert")).max_length == 80


@pytest.mark.parametrize("kind", UNFIT)
def test_an_unfit_model_is_refused_with_the_reason(kind, tokenizer, tmp_path):
    more, reason = UNFIT[kind]
    small(kind, **{"vocab_size": len(tokenizer), **more}).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(EncoderError, match=reason) as caught:
        Pipeline.from_pretrained(tmp_path, device="cpu")
    assert "Use another encoder; BERT, RoBERTa" in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [("t5", UNFIT["t5"][1]), ("opt", "transformers has no ForTokenClassification for opt")],
)
def test_an_unfit_model_with_a_task_is_refused_without_blame_of_its_files(kind, reason, tmp_path):
    small(kind, **UNFIT[kind][0]).save_pretrained(tmp_path)
    with pytest.raises(EncoderError, match=reason):
        Pipeline.from_pretrained(tmp_path, task="ner", device="cpu")


def test_relative_positions_that_transformers_reads_no_more_are_refused(tmp_path):
    small("bert", position_embedding_type="relative_key").save_pretrained(tmp_path)
    with pytest.raises(EncoderError, match=r"its positions are relative \('relative_key' in its"):
        Pipeline.from_pretrained(tmp_path, device="cpu")


def test_a_config_that_asks_for_tuples_makes_no_difference(encoder, tokenizer, tmp_path):
    encoder.config.return_dict = False
    assert probe(encoder) == 0
    encoder.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert Pipeline.from_pretrained(tmp_path, device="cpu")("cat", hidden_states=True).hidden_states


def test_flex_attention_off_cuda_is_refused(encoder):
    runner = MaskTransformer(encoder)
    encoder.set_attn_implementation("flex_attention")
    for refused in (lambda: runner(batch_of([5, 6])), lambda: probe(encoder)):
        with pytest.raises(EncoderError, match="FlexAttention needs CUDA, and the model is on 'c"):
            refused()


def test_probe_leaves_the_model_as_it_was(encoder):
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    encoder.train()
    probe(encoder)
    assert encoder.training
    assert not any(part._forward_hooks for part in encoder.modules())
    assert encoder.config._attn_implementation == "sdpa"
    assert all(value.equal(before[name]) for name, value in encoder.state_dict().items())


class Deaf(BertModel):
    """A BERT that does not hear its positions."""

    def forward(self, input_ids=None, attention_mask=None, position_ids=None, **rest):
        return super().forward(input_ids, attention_mask=attention_mask, **rest)


def test_probe_refuses_an_encoder_that_does_not_use_positions():
    with pytest.raises(EncoderError, match=r"Deaf .*position_ids have no influence"):
        probe(Deaf(tiny_config()).eval())
