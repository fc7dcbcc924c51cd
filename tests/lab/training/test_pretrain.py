"""Pretraining: passages, vocabularies, masked rows; models at toy size."""

import gzip
import json
import lzma
import re
import shutil

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_data import pretraining
from transformers import BertConfig, BertTokenizer

from kbert_core.errors import CheckpointError, DataError, OptionError
from kbert_core.labels import IGNORED
from kbert_core.pipeline import Pipeline
from kbert_core.text import WordPieces
from kbert_lab.training.batches import BATCH
from kbert_lab.training.corpus import MaskedRows, encode_passages, pack, read_passages, sentences_of
from kbert_lab.training.pretrain import PackedMaskedLM, held_out_scores, pretrain
from kbert_lab.training.vocabulary import LATIN, Masking, character_tokenizer

# Passages


@pytest.mark.parametrize("inside", ["", " ", "\u3000"])
def test_a_passage_with_a_test_sentence_is_left_out_whatever_its_spaces(tmp_path, inside):
    secret = "这是一句不该出现在 GPT 4 训练文本里的话"
    written = inside.join("这是一句不该出现在GPT4训练文本里的话")
    file = tmp_path / "text.txt.xz"
    lines = f"前 文 {written}后文\n另 一段 文字\n这是一句不该出现在\n"
    file.write_bytes(lzma.compress(lines.encode()))
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
    (tmp_path / "rows.json").write_text('[{"text": "a"}]', encoding="utf-8")
    with pytest.raises(DataError, match=r"rows\.json: .*isn't in SQuAD's form"):
        sentences_of([str(tmp_path / "rows.json")])


def test_passages_may_be_in_any_encoding(tmp_path, monkeypatch):
    file = tmp_path / "a.txt.gz"
    file.write_bytes(gzip.compress("患者有糖尿病史。\n\n无发热。".encode("gb18030")))
    with pytest.raises(DataError, match="--encoding gb18030"):
        [*read_passages([file])]
    monkeypatch.setenv("KBERT_ENCODING", "gb18030")
    assert [*read_passages([file])] == ["患者有糖尿病史。", "无发热。"]


# Vocabularies

TEXTS = [
    "患者CT检查covid19阳性，hypertension与hypotension",
    "hypertensive 高血压 tension 3cm naïve 0",
] * 5
ALPHABET = "患者高血压hypertnsiovcdmaT0139Ｃｔﬁïé㎝ ，。\t"


@pytest.fixture(scope="module")
def pieces():
    return character_tokenizer(TEXTS, word_pieces=100, size=200)


def test_latin_words_become_pieces_and_chinese_stays_characters(pieces):
    assert pieces.tokenize("患者hypertension CT") == ["患", "者", "hypertension", "ct"]
    assert pieces.tokenize("高tensions") == ["高", "tension", "##s"]
    assert "".join(p.removeprefix("##") for p in pieces.tokenize("cthyper")) == "cthyper"


def test_the_size_holds_for_pieces_and_for_all(pieces):
    vocabulary = pieces.get_vocab()
    assert sum(bool(re.fullmatch(f"(##)?{LATIN}", token)) for token in vocabulary) <= 100
    assert len(character_tokenizer(TEXTS, word_pieces=60, size=65)) == 65


def test_a_letter_seen_too_rarely_is_unknown():
    made = character_tokenizer([*TEXTS, "qqq"], word_pieces=200, min_count=2)
    assert made.tokenize("q") == ["[UNK]"]
    assert made.tokenize("hyper")[0] != "[UNK]"


@given(st.text(ALPHABET, max_size=40))
def test_every_piece_points_at_the_text_that_it_was_made_of(text):
    tokenizer = character_tokenizer([*TEXTS, ALPHABET], word_pieces=100)
    tokens = WordPieces(tokenizer).tokenize([text])[0]
    normal = tokenizer.backend_tokenizer.normalizer.normalize_str
    at = 0
    for id_, start, end in zip(tokens.ids, tokens.starts, tokens.ends, strict=True):
        piece = tokenizer.convert_ids_to_tokens(id_).removeprefix("##")
        assert piece in normal(text[start:end])
        assert not text[at:start].strip()  # nothing but white space is passed over
        at = max(at, end)
    assert not text[at:].strip()


def test_texts_without_a_character_are_refused():
    with pytest.raises(DataError, match="no character"):
        character_tokenizer(["  ", "\n"], word_pieces=100)


# Rows with masked tokens

LENGTH = 48
PARTS = ["糖尿病", "hypertensions", "covid199", "tension", "有", "，"]
PASSAGES = [
    f"患者{n}有糖尿病史，今查心电图与血常规检查，hypertension第{n}年covid{n}。" for n in range(200)
]
SHORT = [f"第{n}年，有糖尿病。" for n in range(100)]
TOKENIZER = character_tokenizer([*PASSAGES, *SHORT], word_pieces=120)


def rows(passages=PASSAGES, tokenizer=TOKENIZER, **options):
    corpus = encode_passages(passages, tokenizer, max_length=LENGTH)
    packed = pack(corpus, max_length=LENGTH, seed=0)
    how = {"max_length": LENGTH, "positions": 64, "count": 4 * len(packed), **options}
    return MaskedRows(corpus, packed, tokenizer, **how)


def words_of(made, item):
    """The tokens of each word of an item's row, as places in the row."""
    found, at = [], 0
    for number in made.passages(item):
        inside = made.corpus.inside[made.corpus.place(number)]
        for goes_on in inside:
            if goes_on:
                found[-1].append(at)
            else:
                found.append([at])
            at += 1
    return found


def test_no_word_is_masked_by_half_and_its_tokens_share_their_manner():
    made = rows()
    several = 0
    for item in range(len(made)):
        row = made[item]
        masked = row["labels"] != IGNORED
        hidden = row["input_ids"] == made.masking.mask_id
        for places in words_of(made, item):
            assert len(set(masked[places].tolist())) == 1
            assert len(set(hidden[places].tolist())) == 1
            several += len(places) > 1 and bool(masked[places[0]])
    assert several > 100


@pytest.mark.parametrize("whole_words", [True, False])
def test_masked_tokens_keep_their_share_and_label_and_special_ones_are_spared(whole_words):
    made = rows(whole_words=whole_words)
    masked = hidden = real = 0
    for item in range(len(made)):
        row = made[item]
        at = row["labels"] != IGNORED
        assert not np.isin(row["labels"], made.masking.specials).any()
        assert not at[row["tree_ids"] < 0].any()
        ids = torch.where(at, row["labels"], row["input_ids"])
        assert ids[: len(made.corpus.passage(made.passages(item)[0]))].tolist() == (
            made.corpus.passage(made.passages(item)[0]).tolist()
        )
        real += int((~np.isin(ids, made.masking.specials)).sum())
        masked += int(at.sum())
        hidden += int((row["input_ids"][at] == made.masking.mask_id).sum())
    assert masked / real == pytest.approx(0.15, abs=0.012)
    assert hidden / masked == pytest.approx(0.8, abs=0.05)


def test_packing_puts_every_passage_in_one_row_that_it_fits():
    made = rows(SHORT)
    assert sorted(n for row in made.rows for n in row) == list(range(len(made.corpus)))
    sizes = [sum(len(made.corpus.passage(n)) for n in row) for row in made.rows]
    assert max(sizes) <= LENGTH
    assert sum(sizes) / (LENGTH * len(sizes)) > 0.8


def tiny_model():
    return PackedMaskedLM(
        BertConfig(
            vocab_size=len(TOKENIZER),
            hidden_size=32,
            num_hidden_layers=3,
            num_attention_heads=2,
            intermediate_size=64,
        )
    ).eval()


def test_passages_that_share_a_row_do_not_see_each_other():
    made, model = rows(SHORT), tiny_model()
    item = next(made[i] for i in range(len(made)) if made[i]["tree_ids"].max() >= 1)
    ids, positions, trees = (item[name][None] for name in ("input_ids", "position_ids", "tree_ids"))
    other = torch.where(trees == 0, (ids + 7) % len(TOKENIZER), ids)
    for wanted, same in ((trees > 0, True), (trees == 0, False)):
        labels = torch.where(wanted, ids, IGNORED)
        with torch.no_grad():
            before, after = (model(tokens, positions, trees, labels) for tokens in (ids, other))
        assert torch.equal(before, after) is same


def test_held_out_rows_without_a_masked_token_have_a_score(monkeypatch):
    monkeypatch.setattr("kbert_lab.training.corpus.MASKED_SHARE", 0)
    scores = held_out_scores(tiny_model(), rows(count=2))
    assert scores == {"loss": 0, "perplexity": 1, "accuracy": 0}


def test_an_item_is_a_function_of_its_number_in_any_order():
    one, other = rows(), rows()
    for item in (7, 0, 300, 7):
        for name, tensor in one[item].items():
            assert torch.equal(tensor, other[item][name])
    assert one[5][BATCH] == 5
    masked = [tuple(rows(seed=seed)[3]["labels"].tolist()) for seed in (0, 1)]
    assert masked[0] != masked[1]


@given(st.lists(st.sampled_from(PARTS), min_size=1))
def test_a_word_that_fits_is_never_cut_between_two_pieces(parts):
    text = "有， " + " ".join(parts)
    cut = encode_passages([text], TOKENIZER, max_length=9)
    whole = encode_passages([text], TOKENIZER, max_length=500)
    ids, at = whole.ids[1:-1].tolist(), 0
    for number in range(len(cut)):
        piece = cut.passage(number)[1:-1].tolist()
        assert len(piece) <= 7
        while at < len(ids) and ids[at : at + len(piece)] != piece:
            at += 1  # a token that was left over alone
        assert not whole.inside[1 + at]
        at += len(piece)
    assert len(ids) - at <= 1


def test_random_tokens_are_words_of_a_foreign_vocabulary():
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


# Models

SENTENCES = [f"第{i}句话说的是天气很好。" * (1 + i % 4) for i in range(300)]


def test_pretraining_lowers_the_loss_and_saves_a_fill_mask_model(tmp_path):
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "max_positions": 128, "batch_tokens": 512}
    options = pretraining(tmp_path, lines=SENTENCES * 4, steps=200, learning_rate=3e-3, **sizes)
    report = pretrain(options)
    assert report["loss"] < 1.5
    pipeline = Pipeline.from_pretrained(tmp_path / "model", device="cpu")
    filling = pipeline("第17句话说的是天[MASK]很好。").prediction.fillings[0]
    assert filling.candidates[0][0] == "气"


def small(tmp_path, **changes):
    return pretraining(tmp_path, **{"lines": SENTENCES, "steps": 3, "warmup": 0, **changes})


def test_another_tokenizer_can_be_taken_and_its_word_pieces_are_masked_whole(tmp_path, tokenizer):
    tokenizer.save_pretrained(tmp_path / "other")
    pretrain(small(tmp_path, vocabulary=str(tmp_path / "other")))
    pipeline = Pipeline.from_pretrained(tmp_path / "model", device="cpu")
    assert len(pipeline.hugging_face_tokenizer) == len(tokenizer)


def test_a_tokenizer_without_a_mask_token_and_one_that_is_missing_are_refused(tmp_path):
    made = character_tokenizer(SENTENCES)
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


def test_options_that_leave_nothing_of_the_text_are_named(tmp_path):
    (tmp_path / "one.txt").write_text(
        "今天天气很好，我们去公园散步，晚上回家吃饭。\n" * 30, encoding="utf-8"
    )
    text = (str(tmp_path / "one.txt"),)
    with pytest.raises(DataError, match=r"^--exclude .*: every passage of the text holds"):
        pretrain(small(tmp_path, text=text, exclude=text))
    with pytest.raises(DataError, match=r"No character occurs 99999 times.* lower --min-count"):
        pretrain(small(tmp_path, min_count=99999))


def test_a_model_that_another_run_made_is_not_replaced(tmp_path):
    pretrain(small(tmp_path))
    shutil.rmtree(tmp_path / "model" / "checkpoints")
    before = (tmp_path / "model" / "model.safetensors").read_bytes()
    (tmp_path / "more.txt").write_text("\n".join(SENTENCES * 2), encoding="utf-8")
    for changes, what in (
        ({"steps": 4}, "another steps"),
        ({"text": (str(tmp_path / "more.txt"),)}, "another text"),
    ):
        with pytest.raises(OptionError, match=f"holds a finished model of a run with {what}"):
            pretrain(small(tmp_path, **changes))
    assert (tmp_path / "model" / "model.safetensors").read_bytes() == before
    pretrain(small(tmp_path))  # the same run, made again


def test_too_little_text_is_refused(tmp_path):
    (tmp_path / "short.txt").write_text("一句话。", encoding="utf-8")
    with pytest.raises(DataError, match=r"makes 1 rows of \d+ tokens.*needs 20"):
        pretrain(small(tmp_path, text=(str(tmp_path / "short.txt"),)))
