"""Packed rows, masking and pretraining at toy size."""

import gzip
import json
import lzma
import shutil

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel, BertTokenizer

from kbert_core.errors import CheckpointError, DataError, OptionError
from kbert_core.kbert.visible import visible_matrix
from kbert_core.labels import IGNORED
from kbert_core.layers import additive_mask
from kbert_core.pipeline import Pipeline
from kbert_lab.training.corpus import (
    MaskedRows,
    encode_passages,
    pack,
    read_passages,
    sentences_of,
)
from kbert_lab.training.options import PretrainOptions
from kbert_lab.training.pretrain import PackedMaskedLM, held_out_scores, pretrain
from kbert_lab.training.vocabulary import Masking, character_tokenizer

PASSAGES = [f"第{i}句话说的是天气很好。" * (1 + i % 4) for i in range(300)]


@pytest.fixture
def rows():
    tokenizer = character_tokenizer(PASSAGES)
    corpus = encode_passages(PASSAGES, tokenizer, max_length=64)
    packed = pack(corpus, max_length=64, seed=0)
    return MaskedRows(
        corpus, packed, tokenizer, max_length=64, positions=128, count=3 * len(packed)
    )


def test_packing_puts_every_passage_in_one_row_that_it_fits(rows):
    numbers = sorted(n for row in rows.rows for n in row)
    assert numbers == list(range(len(rows.corpus)))
    sizes = [sum(len(rows.corpus.passage(n)) for n in row) for row in rows.rows]
    assert max(sizes) <= 64
    assert sum(sizes) / (64 * len(sizes)) > 0.8


def test_passages_that_share_a_row_do_not_see_each_other(rows):
    item = next(rows[i] for i in range(len(rows)) if rows[i]["tree_ids"].max() >= 1)
    config = BertConfig(
        vocab_size=len(rows.tokenizer),
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=128,
    )
    model = BertModel(config, add_pooling_layer=False).eval()
    trees = item["tree_ids"][None]
    trunk = trees.clamp(max=0)
    mask = additive_mask(visible_matrix(trunk, torch.zeros_like(trunk), trees), torch.float32)
    ids = item["input_ids"][None]
    other = torch.where(trees == 0, (ids + 7) % len(rows.tokenizer), ids)

    def states(tokens):
        return model(
            tokens,
            attention_mask=mask,
            position_ids=item["position_ids"][None],
            output_hidden_states=True,
        ).hidden_states

    with torch.no_grad():
        for before, after in zip(states(ids), states(other), strict=True):
            assert torch.equal(before[trees > 0], after[trees > 0])
            assert not torch.equal(before[trees == 0], after[trees == 0])


def test_each_round_masks_anew(rows):
    seen = {tuple(rows[i]["input_ids"].tolist()) for i in range(len(rows))}
    assert len(seen) == len(rows)


def test_masking_keeps_the_old_token_as_the_label_and_spares_special_ones(rows):
    count = chosen = hidden = 0
    for i in range(len(rows)):
        item = rows[i]
        at = item["labels"] != IGNORED
        assert not at[item["tree_ids"] < 0].any()
        assert not np.isin(item["labels"][at], rows.masking.specials).any()
        count += int((item["tree_ids"] >= 0).sum())
        chosen += int(at.sum())
        hidden += int((item["input_ids"][at] == rows.masking.mask_id).sum())
    assert chosen / count == pytest.approx(0.13, abs=0.03)
    assert hidden / chosen == pytest.approx(0.8, abs=0.05)


def test_held_out_rows_without_a_masked_token_have_a_score(rows, monkeypatch):
    monkeypatch.setattr("kbert_lab.training.corpus.MASKED_SHARE", 0)
    rows.count = 2
    config = BertConfig(vocab_size=len(rows.tokenizer), hidden_size=8, num_hidden_layers=1)
    config.num_attention_heads = 1
    scores = held_out_scores(PackedMaskedLM(config), rows)
    assert scores == {"loss": 0, "perplexity": 1, "accuracy": 0}


def test_random_tokens_are_words_of_a_foreign_vocabulary(tmp_path):
    words = [c for c in dict.fromkeys("".join(PASSAGES)) if not c.isspace()]
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    listed = ["[PAD]", *(f"[unused{n}]" for n in range(40)), *words, *specials[1:]]
    tokenizer = BertTokenizer(vocab={token: i for i, token in enumerate(listed)})
    masking = Masking(tokenizer)
    ids = np.full(4000, listed.index(words[0]))
    read, labels = masking.hide(ids, np.ones(4000, bool), np.random.default_rng(0))
    assert (labels == ids).all()
    drawn = set(read.tolist()) - {masking.mask_id}
    assert drawn == {listed.index(word) for word in words}
    random = np.random.default_rng(0)
    drawn = {token for _ in range(2000) for token in masking.stand_ins(1, random)}
    assert drawn == {listed.index(word) for word in (*words, "[MASK]")}


def test_a_passage_that_holds_a_test_sentence_is_left_out(tmp_path):
    secret = "这是一句不应该出现在训练文本里的话"
    file = tmp_path / "text.txt.xz"
    file.write_bytes(lzma.compress(f"前文{secret}后文\n另一段文字\n".encode()))
    assert list(read_passages([file], [secret])) == ["另一段文字"]
    with pytest.raises(DataError, match=r"nowhere\.txt"):
        list(read_passages([tmp_path / "nowhere.txt"]))


@pytest.mark.parametrize("inside", ["", " ", "\u3000"])
def test_white_space_hides_no_test_sentence(tmp_path, inside):
    secret = "这是一句不该出现在 GPT 4 训练文本里的话"
    written = inside.join("这是一句不该出现在GPT4训练文本里的话")
    file = tmp_path / "text.txt"
    file.write_text(f"前 文 {written}后文\n另 一段 文字\n这是一句不该出现在\n", encoding="utf-8")
    assert list(read_passages([file], [secret])) == ["另 一段 文字", "这是一句不该出现在"]


def test_texts_to_leave_out_are_read_from_labelled_files_and_reading_comprehension(tmp_path):
    question = "太阳能的笔记本电脑在野外能用多久？"
    first, second = "那台电脑在没有电的森林里也能用十小时。", "短句。"
    qas = [{"question": question}]  # a test set's answers may be kept back
    paragraphs = [{"context": f"{first}{second}", "qas": qas}]
    (tmp_path / "test.json").write_text(
        json.dumps({"data": [{"paragraphs": paragraphs}]}), encoding="utf-8"
    )
    tagged = "一 位 患 者 昨 天 因 为 发 热 来 到 本 院 内"
    row = f"text_a\tlabel\n{tagged}\t{' '.join('O' * 15)}\n"
    (tmp_path / "test.tsv").write_text(row, encoding="utf-8")
    (tmp_path / "more.tsv.xz").write_bytes(
        lzma.compress("这是另外一个测试集里的一句话了\n".encode())
    )
    excluded = [str(tmp_path / name) for name in ("test.json", "test.tsv", "more.tsv.xz")]
    texts = [question, first, tagged.replace(" ", ""), "这是另外一个测试集里的一句话了", second]
    file = tmp_path / "text.txt"
    file.write_text("".join(f"前{text}后\n" for text in texts), encoding="utf-8")
    assert list(read_passages([file], sentences_of(excluded))) == [f"前{second}后"]
    lines = "\n".join([*(f"{character} O" for character in tagged.split(" ")), "", "短 O"])
    (tmp_path / "test.conll").write_text(lines, encoding="utf-8")
    kept = list(read_passages([file], sentences_of([str(tmp_path / "test.conll")])))
    assert len(kept) == len(texts) - 1
    assert not any(tagged.replace(" ", "") in text for text in kept)
    (tmp_path / "rows.json").write_text('[{"text": "a"}]', encoding="utf-8")
    with pytest.raises(DataError, match=r"rows\.json: not in SQuAD's form"):
        sentences_of([str(tmp_path / "rows.json")])


def test_pretraining_lowers_the_loss_and_saves_a_fill_mask_model(tmp_path):
    (tmp_path / "text.txt").write_text("\n".join(PASSAGES * 4), encoding="utf-8")
    options = PretrainOptions.of(
        text=(str(tmp_path / "text.txt"),),
        output=str(tmp_path / "model"),
        steps=200,
        batch_tokens=512,
        row_length=64,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=1,
        max_positions=128,
        learning_rate=3e-3,
        min_count=1,
        save_every=200,
    )
    report = pretrain(options)
    assert report["loss"] < 1.5
    pipeline = Pipeline.from_pretrained(tmp_path / "model", device="cpu")
    filling = pipeline("第17句话说的是天[MASK]很好。").prediction.fillings[0]
    assert filling.candidates[0][0] == "气"


def small(tmp_path, **changes):
    (tmp_path / "text.txt").write_text("\n".join(PASSAGES), encoding="utf-8")
    how = {
        **{"text": (str(tmp_path / "text.txt"),), "output": str(tmp_path / "model")},
        **{"steps": 3, "batch_tokens": 128, "row_length": 64, "hidden_size": 16, "min_count": 1},
        **{"num_hidden_layers": 1, "num_attention_heads": 1, "max_positions": 64},
    }
    return PretrainOptions.of(**{**how, **changes})


def test_another_tokenizer_can_be_taken_and_its_word_pieces_are_masked_whole(tmp_path, tokenizer):
    tokenizer.save_pretrained(tmp_path / "other")
    pretrain(small(tmp_path, vocabulary=str(tmp_path / "other")))
    pipeline = Pipeline.from_pretrained(tmp_path / "model", device="cpu")
    assert len(pipeline.hugging_face_tokenizer) == len(tokenizer)


def test_a_tokenizer_without_a_mask_token_and_one_that_is_missing_are_refused(tmp_path):
    made = character_tokenizer(PASSAGES)
    made.mask_token = None
    made.save_pretrained(tmp_path / "other")
    with pytest.raises(CheckpointError, match="its tokenizer has no mask_token"):
        pretrain(small(tmp_path, vocabulary=str(tmp_path / "other")))
    with pytest.raises(CheckpointError, match="Found no model 'nowhere'"):
        pretrain(small(tmp_path, vocabulary="nowhere"))


def test_missing_files_of_text_and_test_sentences_are_named(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "latin.txt").write_bytes("é".encode("latin-1"))
    (tmp_path / "lines.txt").write_text('\n{"text": "a"}\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"lines\.txt: found JSON, .*expected plain text"):
        pretrain(small(tmp_path, text=(str(tmp_path / "lines.txt"),)))
    for name, message in (
        ("nowhere.txt", r"can't be read .*\. Check the name"),
        (str(tmp_path / "folder"), r"can't be read .*\. Name a file in it"),
        (str(tmp_path / "latin.txt"), ".*Save (it|the file) as UTF-8( and open it again)?"),
    ):
        for option in ("text", "exclude"):
            with pytest.raises(DataError, match=rf"{name}(, line 1)?: {message}\.$"):
                pretrain(small(tmp_path, **{option: (name,)}))


def test_passages_may_be_in_any_encoding(tmp_path, monkeypatch):
    file = tmp_path / "a.txt.gz"
    file.write_bytes(gzip.compress("患者有糖尿病史。\n\n无发热。".encode("gb18030")))
    with pytest.raises(DataError, match="--encoding gb18030"):
        [*read_passages([file])]
    monkeypatch.setenv("KBERT_ENCODING", "gb18030")
    assert [*read_passages([file])] == ["患者有糖尿病史。", "无发热。"]


def test_options_that_leave_nothing_of_the_text_are_named(tmp_path):
    (tmp_path / "one.txt").write_text(
        "今天天气很好，我们去公园散步，晚上回家吃饭。\n" * 30, encoding="utf-8"
    )
    text = (str(tmp_path / "one.txt"),)
    with pytest.raises(DataError, match=r"^--exclude .*: every passage of the text holds"):
        pretrain(small(tmp_path, text=text, exclude=text))
    with pytest.raises(DataError, match=r"No character occurs 99999 times.* lower --min-count"):
        pretrain(small(tmp_path, min_count=99999))


def test_word_pieces_make_a_fill_mask_model_too(tmp_path):
    report = pretrain(small(tmp_path, word_pieces=40))
    assert report["options"]["word_pieces"] == 40
    assert "word pieces for Latin words" in (tmp_path / "model" / "README.md").read_text()
    assert Pipeline.from_pretrained(tmp_path / "model", device="cpu")(
        "天[MASK]好"
    ).prediction.fillings


def test_a_model_that_another_run_made_is_not_replaced(tmp_path):
    pretrain(small(tmp_path))
    with pytest.raises(OptionError, match="checkpoints of a run with other options"):
        pretrain(small(tmp_path, seed=1))
    shutil.rmtree(tmp_path / "model" / "checkpoints")
    before = (tmp_path / "model" / "model.safetensors").read_bytes()
    for changes, what in (({"seed": 1}, "another seed"), ({"steps": 4}, "another steps")):
        with pytest.raises(OptionError, match=f"holds a finished model of a run with {what}"):
            pretrain(small(tmp_path, **changes))
    (tmp_path / "more.txt").write_text("\n".join(PASSAGES * 2), encoding="utf-8")
    with pytest.raises(OptionError, match=r"with another text, .* Name another --output"):
        pretrain(small(tmp_path, text=(str(tmp_path / "more.txt"),)))
    with pytest.raises(OptionError, match="with another vocabulary, which would be lost"):
        pretrain(small(tmp_path, vocabulary=str(tmp_path / "model")))
    assert (tmp_path / "model" / "model.safetensors").read_bytes() == before
    pretrain(small(tmp_path))  # the same run, made again


def test_too_little_text_is_refused(tmp_path):
    (tmp_path / "short.txt").write_text("一句话。", encoding="utf-8")
    with pytest.raises(DataError, match=r"makes 1 rows of \d+ tokens.*needs 20"):
        pretrain(small(tmp_path, text=(str(tmp_path / "short.txt"),)))
