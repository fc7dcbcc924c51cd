"""Texts cut into tokens that know their place in the text."""

import copy
from pathlib import Path

import pytest
from conftest import tiny_tokenizer
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken
from transformers import AutoTokenizer, BertTokenizer, BertTokenizerLegacy, RobertaTokenizer

from kbert_core import WordPieces, Words
from kbert_core.errors import CheckpointError
from kbert_core.words import AS_BERT

MODELS = Path(__file__).parents[2] / "models"


def pieces(tokens, text):
    return [text[s:e] for s, e in zip(tokens.starts, tokens.ends, strict=True)]


def names(words, text, tokenizer):
    return tokenizer.convert_ids_to_tokens(list(words.tokenize([text])[0].ids))


@pytest.fixture(scope="module")
def roberta():
    """A tiny byte-level tokenizer: a space belongs to the token after it."""
    from tokenizers.pre_tokenizers import ByteLevel

    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    vocab = {piece: i for i, piece in enumerate([*special, *sorted(ByteLevel.alphabet())])}
    mask = AddedToken("<mask>", lstrip=True, special=True)
    return RobertaTokenizer(vocab=vocab, merges=[], mask_token=mask)


class Slow:
    """A tokenizer asked for one text after the other, piece by piece between mask tokens."""

    def __init__(self, own):
        self.own, self.mask = own, own.mask_token
        self.backend = copy.deepcopy(own.backend_tokenizer)
        self.backend.encode_special_tokens = True
        self.fast = {masks: WordPieces(own, masks=masks) for masks in (False, True)}

    def tokenize(self, text, masks):
        at, found = 0, []
        parts = text.split(self.mask) if masks else [text]
        for number, part in enumerate(parts):
            if number:
                found.append((self.own.mask_token_id, at, at + len(self.mask)))
                at += len(self.mask)
            takes_space = self.mask == "<mask>" and number < len(parts) - 1
            read = part.rstrip() if takes_space else part
            encoding = self.backend.encode(read, add_special_tokens=False)
            for token, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
                while start < end - 1 and read[start].isspace():
                    start += 1
                found.append((token, at + start, at + end))
            at += len(part)
        return found


@pytest.fixture(scope="module")
def slow_tokenizers(roberta):
    shipped = [AutoTokenizer.from_pretrained(MODELS / name) for name in ("zh-mini", "ner-en")]
    return [Slow(own) for own in (tiny_tokenizer(), roberta, *shipped)]


UNUSUAL = "\u0301\u0308\u3099\uff9e\u1161\u11a8\u00a0\u3000\t\n\0\x01\u200b\ufeff\ufffd\U000e2f23"
CHARACTERS = st.one_of(
    st.sampled_from("患者有糖尿病史，。12 3abxyzé"),
    st.sampled_from(UNUSUAL + "か가ﬁ℃Ⅱ¨´İßÅ😀𠮷"),
    st.characters(exclude_categories=["Cs"]),
    st.just("MASK"),
)


@given(st.lists(st.lists(CHARACTERS, max_size=12), max_size=6), st.booleans())
def test_tokens_of_many_texts_are_those_of_the_tokenizer(slow_tokenizers, texts, masks):
    for slow in slow_tokenizers:
        given = ["".join(slow.mask if c == "MASK" else c for c in text) for text in texts]
        tokens = slow.fast[masks].tokenize(given)
        found = [list(zip(t.ids, t.starts, t.ends, strict=True)) for t in tokens]
        assert found == [slow.tokenize(text, masks) for text in given]


def test_words_are_split_at_any_white_space():
    text = " Tim\t Cook\u3000在\nBeijing "
    assert pieces(Words().tokenize([text])[0], text) == ["Tim", "Cook", "在", "Beijing"]
    assert len(Words().tokenize(["  "])[0]) == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("He has (IL-6) pyrexia.", "He has ( IL - 6 ) pyrexia ."),
        ("is_a Don't 3.5 ", "is_a Don ' t 3 . 5"),
        ("\tTim Cook在北京，\n", "Tim Cook 在 北 京 ，"),
        ("हिन्दी। e\u0301té か가 😀", "हिन्दी । e\u0301té か가 😀"),
        (" ", ""),
    ],
)
def test_marks_and_chinese_characters_may_be_words_of_their_own(text, words):
    assert pieces(Words(word=AS_BERT).tokenize([text])[0], text) == words.split()


def test_layout_without_a_vocabulary_follows_bert():
    layout = Words(special=True).layout(2)
    assert [[s.text for s in run] for run in (*layout.before, layout.after)] == [
        ["[CLS]"],
        ["[SEP]"],
        ["[SEP]"],
    ]
    assert layout.segments == (0, 1)
    assert [run[0].segment for run in layout.before] == [0, 0]
    assert layout.after[0].segment == 1
    assert layout.count == 3
    assert Words().layout(2).count == 0


@pytest.mark.parametrize("typed", ["[CLS]", "[SEP]", "[MASK]", "[PAD]", "[UNK]"])
def test_special_token_typed_into_a_text_is_plain_text(tokenizer, typed):
    words = WordPieces(tokenizer)
    plain = names(words, f"a {typed} b", tokenizer)
    assert typed not in plain
    assert plain[:2] == ["a", "["]
    assert plain[-2:] == ["]", "b"]
    assert typed not in tokenizer.convert_ids_to_tokens(
        list(words.tokenize_branches([typed])[0].ids)
    )


def test_special_token_stays_plain_text_after_the_tokenizer_was_used_by_others(tokenizer):
    before = tokenizer("a [MASK] b")["input_ids"]
    words = WordPieces(tokenizer)
    assert tokenizer("a [MASK] b")["input_ids"] == before
    assert tokenizer.mask_token_id in before
    tokenizer("a [MASK]", truncation=True, max_length=2, padding="max_length")
    text = "cat [MASK] cat"
    assert "[MASK]" not in names(words, text, tokenizer)
    assert len(words.tokenize([text])[0]) > 2


def test_mask_is_special_in_a_trunk_where_asked_for_and_nothing_else_is(tokenizer):
    words = WordPieces(tokenizer, masks=True)
    text = "a [MASK]  [CLS][MASK] b"
    tokens = words.tokenize([text])[0]
    found = tokenizer.convert_ids_to_tokens(list(tokens.ids))
    assert found.count("[MASK]") == 2
    assert "[CLS]" not in found
    at = found.index("[MASK]")
    assert (tokens.starts[at], tokens.ends[at]) == (2, 8)
    assert pieces(tokens, text)[-1] == "b"
    assert "[MASK]" not in tokenizer.convert_ids_to_tokens(
        list(words.tokenize_branches(["[MASK]"])[0].ids)
    )


@pytest.mark.parametrize("count", [1, 2])
def test_layout_is_the_tokenizers_own(tokenizer, roberta, count):
    for own in (tokenizer, roberta):
        words = WordPieces(own)
        layout = words.layout(count)
        texts = ["cat", "a b"][:count]
        ids, segments = [], []
        for number, text in enumerate(texts):
            inner = list(words.tokenize([text])[0].ids)
            ids += [s.id for s in layout.before[number]] + inner
            segments += [s.segment for s in layout.before[number]]
            segments += [layout.segments[number]] * len(inner)
        ids += [s.id for s in layout.after]
        segments += [s.segment for s in layout.after]
        encoding = own(*texts, return_token_type_ids=True)
        assert ids == encoding["input_ids"]
        assert segments == encoding["token_type_ids"]


def test_longest_input_is_what_the_tokenizer_says_or_nothing(tokenizer):
    assert WordPieces(tokenizer).model_max_length() == 64
    unlimited = BertTokenizer(vocab=tokenizer.get_vocab())
    assert WordPieces(unlimited).model_max_length() is None


def test_slow_tokenizer_or_one_without_a_mask_where_it_is_needed_is_refused(tmp_path, tokenizer):
    vocabulary = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    (tmp_path / "vocab.txt").write_text("\n".join(piece for piece, _ in vocabulary))
    slow = BertTokenizerLegacy(str(tmp_path / "vocab.txt"))
    with pytest.raises(CheckpointError, match="BertTokenizerLegacy gives no character offsets"):
        WordPieces(slow)
    tokenizer.mask_token = None
    with pytest.raises(CheckpointError, match="has no mask token"):
        WordPieces(tokenizer, masks=True)
