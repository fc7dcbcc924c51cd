"""Vocabularies of characters, and of word pieces for Latin words."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from kbert_core.errors import DataError
from kbert_core.text import WordPieces
from kbert_lab.training.vocabulary import LATIN, character_tokenizer

TEXTS = [
    "患者CT检查covid19阳性，hypertension与hypotension",
    "hypertensive 高血压 tension 3cm naïve 0",
] * 5
ALPHABET = "患者高血压hypertnsiovcdmaT0139Ｃｔﬁïé㎝ ，。\t"


@pytest.fixture(scope="module")
def pieces():
    return character_tokenizer(TEXTS, word_pieces=100, size=200)


def test_without_word_pieces_every_character_is_a_token():
    assert character_tokenizer(TEXTS).tokenize("高血压CT 3") == ["高", "血", "压", "c", "t", "3"]


def test_latin_words_become_pieces_and_chinese_stays_characters(pieces):
    assert pieces.tokenize("患者hypertension CT") == ["患", "者", "hypertension", "ct"]
    assert pieces.tokenize("高tensions") == ["高", "tension", "##s"]
    assert "".join(p.removeprefix("##") for p in pieces.tokenize("cthyper")) == "cthyper"


def test_an_unseen_mix_of_known_letters_is_never_unknown(pieces):
    assert "[UNK]" not in pieces.tokenize("vvv119h")


def test_the_size_holds_for_pieces_and_for_all(pieces):
    vocabulary = pieces.get_vocab()
    assert sum(bool(re.fullmatch(f"(##)?{LATIN}", token)) for token in vocabulary) <= 100
    assert len(character_tokenizer(TEXTS, word_pieces=60, size=65)) == 65


def test_the_same_texts_give_the_same_vocabulary(pieces):
    again = character_tokenizer(TEXTS, word_pieces=100, size=200)
    assert again.get_vocab() == pieces.get_vocab()


def test_a_letter_seen_too_rarely_is_unknown():
    made = character_tokenizer([*TEXTS, "qqq"], word_pieces=200, min_count=2)
    assert made.tokenize("q") == ["[UNK]"]
    assert made.tokenize("hyper")[0] != "[UNK]"


def test_the_tokenizer_is_the_same_after_saving(pieces, tmp_path):
    pieces.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(str(tmp_path))
    text = "患者 Hypertensive 3㎝ naïve"
    assert loaded(text)["input_ids"] == pieces(text)["input_ids"]


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
