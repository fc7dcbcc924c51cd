"""The released K-BERT's checkpoints, brought to safetensors."""

import io
import json
import math
import os
import shutil
from pathlib import Path

import pytest
import torch
import transformers
from conftest import tiny_config, tiny_vocabulary
from torch.nn.functional import linear
from transformers import AutoTokenizer, BertForSequenceClassification

from kbert_core import KnowledgeGraph, Pipeline, Triple, load_model
from kbert_core.errors import CheckpointError
from kbert_lab.encoders.release import convert

LAYERS, WIDTH, INNER, HEADS, POSITIONS = 2, 24, 40, 3, 20
WORDS = len(tiny_vocabulary())
TEXT = "患者有糖尿病史cat"


# The release, in plain tensors


def release_encoder():
    """A random encoder under the release's names."""
    torch.manual_seed(0)

    def norm(name):
        return {f"{name}.gamma": 1 + 0.3 * torch.randn(WIDTH), f"{name}.beta": torch.randn(WIDTH)}

    state = {
        "embedding.word_embedding.weight": torch.randn(WORDS, WIDTH),
        "embedding.position_embedding.weight": torch.randn(POSITIONS, WIDTH),
        "embedding.segment_embedding.weight": torch.randn(3, WIDTH),
        **norm("embedding.layer_norm"),
    }
    for layer in range(LAYERS):
        name = f"encoder.transformer.{layer}"
        for part in range(3):
            state |= dense(f"{name}.self_attn.linear_layers.{part}", WIDTH, WIDTH)
        state |= dense(f"{name}.self_attn.final_linear", WIDTH, WIDTH)
        state |= norm(f"{name}.layer_norm_1") | norm(f"{name}.layer_norm_2")
        state |= dense(f"{name}.feed_forward.linear_1", WIDTH, INNER)
        state |= dense(f"{name}.feed_forward.linear_2", INNER, WIDTH)
    return state


def dense(name, before, after):
    scale = 1 / math.sqrt(before)
    return {
        f"{name}.weight": scale * torch.randn(after, before),
        f"{name}.bias": torch.randn(after),
    }


def release_target(state, *, tied=True):
    """The release's pretraining heads: fill-mask and next sentence."""
    made = dense("target.mlm_linear_1", WIDTH, WIDTH) | dense("target.mlm_linear_2", WIDTH, WORDS)
    if tied:
        made["target.mlm_linear_2.weight"] = state["embedding.word_embedding.weight"].clone()
    made["target.layer_norm.gamma"] = 1 + 0.3 * torch.randn(WIDTH)
    made["target.layer_norm.beta"] = torch.randn(WIDTH)
    return (
        made | dense("target.nsp_linear_1", WIDTH, WIDTH) | dense("target.nsp_linear_2", WIDTH, 2)
    )


def layer_norm(state, name, x):
    """The release's own: over H - 1, and the small number beside the deviation."""
    mean, deviation = x.mean(-1, keepdim=True), x.std(-1, keepdim=True)
    return state[f"{name}.gamma"] * (x - mean) / (deviation + 1e-6) + state[f"{name}.beta"]


def apply(state, name, x):
    return linear(x, state[f"{name}.weight"], state[f"{name}.bias"])


def gelu(x):
    return x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))


def release_states(state, ids, segments, positions, visible):
    """Hidden states of the release's BERT, layer by layer, one attention head at a time."""
    x = state["embedding.word_embedding.weight"][ids]
    x = x + state["embedding.position_embedding.weight"][positions]
    x = x + state["embedding.segment_embedding.weight"][segments]
    x = layer_norm(state, "embedding.layer_norm", x)
    states = [x]
    size = WIDTH // HEADS
    for layer in range(LAYERS):
        name = f"encoder.transformer.{layer}"
        query, key, value = (
            apply(state, f"{name}.self_attn.linear_layers.{i}", x) for i in (0, 1, 2)
        )
        seen = []
        for head in range(HEADS):
            part = slice(head * size, (head + 1) * size)
            scores = query[:, part] @ key[:, part].T / math.sqrt(size)
            scores = scores + (1 - visible.float()) * -10000.0
            seen.append(scores.softmax(-1) @ value[:, part])
        attended = apply(state, f"{name}.self_attn.final_linear", torch.cat(seen, -1))
        x = layer_norm(state, f"{name}.layer_norm_1", x + attended)
        inner = gelu(apply(state, f"{name}.feed_forward.linear_1", x))
        x = layer_norm(
            state, f"{name}.layer_norm_2", x + apply(state, f"{name}.feed_forward.linear_2", inner)
        )
        states.append(x)
    return states


def release_mask_logits(state, x):
    x = layer_norm(state, "target.layer_norm", gelu(apply(state, "target.mlm_linear_1", x)))
    return apply(state, "target.mlm_linear_2", x)


# Folders


@pytest.fixture
def folder(tmp_path):
    """A folder with a vocabulary, for a checkpoint to be put into."""
    made = tmp_path / "release"
    made.mkdir()
    write_vocabulary(made / "vocab.txt")
    return made


def write_vocabulary(path, tokens=None):
    path.write_text("".join(f"{token}\n" for token in tokens or tiny_vocabulary()), "utf-8")
    return path


def converted(folder, state, **options):
    """Save a state, convert it, load the result."""
    torch.save(state, folder / "model.bin")
    target = folder.parent / "target"
    shutil.rmtree(target, ignore_errors=True)
    report = convert(folder / "model.bin", target, **{"heads": HEADS, **options})
    return report, Pipeline.from_pretrained(target, device="cpu")


def of_trace(trace):
    """What the release's encoder would be given for a trace's one row."""
    return {
        "ids": trace.batch.input_ids[0],
        "segments": trace.batch.token_type_ids[0] + 1,
        "positions": trace.batch.soft_positions[0],
        "visible": trace.visible[0],
    }


def refusal(*arguments, **options):
    with pytest.raises(CheckpointError) as caught:
        convert(*arguments, **options)
    return str(caught.value)


# Numbers


@pytest.mark.parametrize(
    ("texts", "triples", "segments"),
    [((TEXT,), [Triple("糖尿病", "类别", "疾病")], {0}), (("糖尿病", "cat"), [], {0, 1})],
)
def test_converted_encoder_computes_what_the_release_does(folder, texts, triples, segments):
    state = release_encoder()
    report, pipeline = converted(folder, state)
    assert report["task"] is None
    trace = pipeline(*texts, graph=KnowledgeGraph(triples), hidden_states=True)
    assert trace.visible.all() == (not triples)
    assert set(trace.batch.token_type_ids[0].tolist()) == segments
    expected = release_states(state, **of_trace(trace))
    assert len(trace.hidden_states) == len(expected)
    for ours, theirs in zip(trace.hidden_states, expected, strict=True):
        assert torch.allclose(ours[0], theirs, atol=1e-5)


@pytest.mark.parametrize("tied", [True, False])
def test_converted_mask_head_computes_what_the_release_does(folder, tied):
    state = release_encoder()
    state |= release_target(state, tied=tied)
    report, pipeline = converted(folder, state)
    assert report["task"] == "mask"
    trace = pipeline("糖[MASK]病")
    expected = release_mask_logits(state, release_states(state, **of_trace(trace))[-1])
    assert torch.allclose(trace.logits[0], expected, atol=1e-4)
    assert len(trace.prediction.fillings) == 1
    assert any("of its own" in remark for remark in report["remarks"]) == (not tied)


def test_converted_tagger_reads_and_tags_as_the_release_does(folder):
    state = release_encoder()
    state |= release_target(state) | dense("output_layer", WIDTH, 5)
    report, pipeline = converted(folder, state)
    assert report["task"] == "ner"
    graph = KnowledgeGraph([Triple("糖尿病", "类别", "疾病")])
    trace = pipeline("患者有糖尿病史", graph=graph, decode=False)  # its labels have no names yet
    vocabulary = tiny_vocabulary()
    assert trace.batch.input_ids[0].tolist() == [vocabulary[c] for c in "患者有糖尿病疾病史"]
    assert trace.batch.soft_positions[0].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 6]
    expected = apply(state, "output_layer", release_states(state, **of_trace(trace))[-1])
    assert torch.allclose(trace.logits[0], expected, atol=1e-4)
    assert pipeline.labels == {i: f"LABEL_{i}" for i in range(5)}
    text = "患者有糖尿病史" * 6  # in windows
    assert len(pipeline(text, decode=False).logits_on_text()) == len(text) > POSITIONS
    assert any("[ENT]" in remark for remark in report["remarks"])
    assert "target.mlm_linear_1.weight" in report["left_out"]


def test_converted_classifier_decides_as_the_release_does(folder):
    state = release_encoder()
    state |= dense("output_layer_1", WIDTH, WIDTH) | dense("output_layer_2", WIDTH, 2)
    report, pipeline = converted(folder, state)
    assert report["task"] == "classify"
    trace = pipeline("患者有糖尿病史")
    vocabulary = tiny_vocabulary()
    ids = [vocabulary[token] for token in ("[CLS]", *"患者有糖尿病史")]
    assert trace.batch.input_ids[0].tolist() == ids
    first = release_states(state, **of_trace(trace))[-1][0]
    expected = apply(state, "output_layer_2", torch.tanh(apply(state, "output_layer_1", first)))
    assert torch.allclose(trace.logits[0], expected, atol=1e-4)
    assert set(trace.prediction.probabilities) == {"LABEL_0", "LABEL_1"}


# Others


def test_a_bert_of_transformers_is_refused_with_what_saves_it_anew(folder):
    model = BertForSequenceClassification(tiny_config(id2label={0: "bad", 1: "good"}))
    model.config.save_pretrained(folder)
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    message = refusal(folder, folder / "new")
    assert "tensors are called bert.embeddings.word_embeddings.weight" in message
    call = "AutoModel.from_pretrained(FOLDER).save_pretrained(FOLDER, safe_serialization=True)"
    assert call in message
    call = call.replace("AutoModel", "AutoModelForSequenceClassification")
    eval(call, {"FOLDER": folder, **vars(transformers)})
    made = load_model(folder, transformers.AutoModelForSequenceClassification, device="cpu")
    assert made.config.id2label == {0: "bad", 1: "good"}
    assert all(map(torch.equal, made.state_dict().values(), model.state_dict().values()))


def test_a_checkpoint_of_a_newer_uer_is_refused_with_what_converts_it(folder):
    state = release_encoder()
    state["embedding.word.embedding.weight"] = state.pop("embedding.word_embedding.weight")
    torch.save(state, folder / "model.bin")
    message = refusal(folder / "model.bin", folder / "new", heads=HEADS)
    assert "the released BERT has no tensor embedding.word.embedding.weight" in message
    assert "convert_bert_from_uer_to_huggingface.py" in message


# The report and the folder


def test_report_says_what_was_brought_over_and_what_not(folder):
    state = release_encoder()
    state |= release_target(state)
    state["subencoder.weight"] = torch.zeros(2)
    report, _ = converted(folder, state)
    assert report["mapped"] == len(state) - 5  # four of next sentence, one of no BERT
    assert report["left_out"] == {
        "embedding.segment_embedding.weight[0]": "the row for padding, which nothing attends to",
        **{
            f"target.nsp_linear_{i}.{kind}": "the next-sentence head; no task here uses it"
            for i in (1, 2)
            for kind in ("weight", "bias")
        },
        "subencoder.weight": "not part of BERT",
    }
    assert report["config"]["num_attention_heads"] == HEADS
    for words in ("No pooler", "lower-cased"):
        assert any(words in remark for remark in report["remarks"]), words
    assert json.loads(json.dumps(report)) == report
    assert report["task"] == "mask"


def test_converted_folder_is_safetensors_with_a_fast_tokenizer(folder):
    lines = (folder / "vocab.txt").read_text("utf-8").replace("\n", "\r\n")
    (folder / "vocab.txt").write_bytes(lines.encode("utf-8-sig"))  # as Windows has it
    converted(folder, release_encoder())
    target = folder.parent / "target"
    assert (target / "model.safetensors").is_file()
    assert not list(target.glob("*.bin"))
    assert {p.name for p in folder.parent.iterdir()} == {"release", "target"}
    tokenizer = AutoTokenizer.from_pretrained(target)
    assert tokenizer.is_fast
    assert tokenizer.get_vocab() == tiny_vocabulary()
    assert tokenizer.tokenize("CATS 糖尿病") == ["cats", "糖", "尿", "病"]
    assert tokenizer.model_max_length == POSITIONS
    assert str(folder.parent) not in (target / "config.json").read_text()


def test_capitals_are_kept_where_the_vocabulary_has_them(folder):
    tokens = ["A" if token == "cats" else token for token in tiny_vocabulary()]
    vocab = write_vocabulary(folder.parent / "cased.txt", tokens)
    report, pipeline = converted(folder, release_encoder(), vocab=vocab)
    assert "capitals" in report["remarks"][-1]
    assert pipeline.hugging_face_tokenizer.tokenize("CATS") == ["[UNK]"]


# Refusals: what was found, what to do, and nothing left behind


class Evil:
    """Would make a file when unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


class Worse:
    def __reduce__(self):
        return os.system, ("exit 0",)


@pytest.mark.parametrize("zipped", [True, False])
def test_convert_runs_no_code(folder, zipped):
    trap = folder / "ran"
    state = {**release_encoder(), "evil": Evil(trap)}
    torch.save(state, folder / "model.bin", _use_new_zipfile_serialization=zipped)
    message = refusal(folder / "model.bin", folder / "new")
    assert "more than tensors" in message
    assert "could run code" in message
    assert "torch.save(model.state_dict(), FILE)" in message
    assert not trap.exists()
    torch.save({"x": Worse()}, folder / "model.bin", _use_new_zipfile_serialization=zipped)
    assert "system" in refusal(folder / "model.bin", folder / "new")
    assert not (folder / "new").exists()


def truncated(kept, zipped):
    file = io.BytesIO()
    torch.save(release_encoder(), file, _use_new_zipfile_serialization=zipped)
    return file.getvalue()[: int(kept * len(file.getvalue()))]


@pytest.mark.parametrize(
    "content",
    [
        *(truncated(kept, zipped) for kept in (0.0, 0.01, 0.5, 0.99) for zipped in (True, False)),
        *(b"<html>not found</html>", b"\x00" * 100, b"PK\x03\x04 no zip", b"hello\n", b"}"),
    ],
    ids=range(13),
)
def test_convert_refuses_a_truncated_file_and_what_is_no_checkpoint(folder, content):
    (folder / "model.bin").write_bytes(content)
    message = refusal(folder / "model.bin", folder / "new", heads=HEADS)
    assert "Download or copy it again" in message
    assert not (folder / "new").exists()


@pytest.mark.parametrize("content", [torch.zeros(3), [1, 2], {}, {"epoch": 3}])
def test_convert_refuses_other_values(folder, content):
    torch.save(content, folder / "model.bin")
    assert "state_dict" in refusal(folder / "model.bin", folder / "new")


def test_convert_finds_the_tensors_in_a_trainers_wrapping(folder):
    report, _ = converted(folder, {"epoch": 3, "state_dict": release_encoder()})
    assert report["mapped"] == len(release_encoder())


def test_convert_refuses_a_vocabulary_that_doesnt_belong(folder):
    torch.save(release_encoder(), folder / "model.bin")
    tokens = list(tiny_vocabulary())
    vocab = folder.parent / "other.txt"

    def message():
        return refusal(folder / "model.bin", folder / "new", vocab=vocab, heads=HEADS)

    write_vocabulary(vocab, tokens[:-1])
    assert f"found {WORDS - 1} tokens, expected {WORDS}" in message()
    write_vocabulary(vocab, [*tokens[:-1], tokens[9]])
    assert f"line {WORDS}: the token '{tokens[9]}' is also in line 10" in message()
    write_vocabulary(vocab, ["x[MASK]" if t == "[MASK]" else t for t in tokens])
    assert "lacks [MASK]" in message()
    vocab.write_bytes(b"\xff\xfe")
    assert "UTF-8" in message()
    vocab.unlink()
    assert "can't be read as a vocabulary" in message()
    (folder / "vocab.txt").unlink()
    assert "--vocab FILE" in refusal(folder / "model.bin", folder / "new", heads=HEADS)
    assert not (folder / "new").exists()


def test_convert_asks_for_the_heads_it_cant_guess(folder):
    torch.save(release_encoder(), folder / "model.bin")
    assert "--heads N" in refusal(folder / "model.bin", folder / "new")
    for heads in (5, 0, -3):
        message = refusal(folder / "model.bin", folder / "new", heads=heads)
        assert f"{heads} attention heads don't fit its width {WIDTH}" in message


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"encoder.transformer.1.self_attn.linear_layers.0.weight": None}, "is missing"),
        ({"embedding.position_embedding.weight": None}, "no whole BERT"),
        ({"encoder.transformer.1.layer_norm_1.beta": torch.zeros(7)}, "has the shape (7,)"),
        ({"encoder.layer_norm.gamma": torch.ones(WIDTH)}, "the released BERT has no tensor"),
        ({"embedding.layer_norm.beta": torch.full((WIDTH,), math.nan)}, "undefined"),
        ({"output_layer.weight": torch.zeros(3, WIDTH)}, "is missing"),
        ({"embedding.layer_norm.gamma": torch.tensor(1.0)}, "has the shape ()"),
    ],
)
def test_convert_refuses_an_encoder_that_isnt_whole(folder, change, words):
    state = {**release_encoder(), **change}
    torch.save({k: v for k, v in state.items() if v is not None}, folder / "model.bin")
    assert words in refusal(folder / "model.bin", folder / "new", heads=HEADS)
    assert {p.name for p in folder.iterdir()} == {"model.bin", "vocab.txt"}


def test_convert_says_where_to_point_it(folder, tmp_path):
    assert "found no .bin file" in refusal(folder, folder / "new")
    assert "no such file" in refusal(folder / "gone.bin", folder / "new")
    (folder / "model.safetensors").touch()
    assert "safetensors needs no conversion" in refusal(folder, folder / "new")
    for name in ("a.bin", "b.bin"):
        (folder / name).touch()
    assert "found a.bin, b.bin" in refusal(folder, folder / "new")
    assert "is there already" in refusal(folder / "a.bin", folder)
    assert "is there already" in refusal(folder / "a.bin", folder / "vocab.txt")


def test_convert_leaves_nothing_where_it_cant_write(folder, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("transformers.PreTrainedModel.save_pretrained", full)
    torch.save(release_encoder(), folder / "model.bin")
    message = refusal(folder / "model.bin", folder.parent / "new", heads=HEADS)
    assert "No space left" in message
    assert {p.name for p in folder.parent.iterdir()} == {"release"}
