"""How names are compared, the way back to the text as given, and the index of names."""

import re
import unicodedata

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kbert_core.knowledge.name_index import JoinedNames, Names
from kbert_core.knowledge.names import is_word_character, normalise, normalise_name
from kbert_core.tokens import code_points

AWKWARD = (
    "aAzZ09_ \t\n\u3000\u00a0\u2009中国京ｱｶﾊﾞﾟﾞがアＡｚ０ﬁﬃßẞİıŉǰΐᾳᾼſKÅΩ①㎏㎒㍿"
    "\u0301\u0308\u0345\u0323\u20dd\ufe0f\u200d\u200b\u1100\u1161\u11a8가각ﾡￂﾤ😀👩🏽𝐀𝔸𐐀🇨🇳´¨ﷺ"
)
texts = st.text(
    st.one_of(
        st.sampled_from(AWKWARD), st.characters(exclude_categories=("Cs",), max_codepoint=0x1FFFF)
    ),
    max_size=12,
)


def slowly_normalised(text):
    """Normalise the whole text at once; no offsets."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    spaced = "".join(" " if c.isspace() else c for c in folded)
    return re.sub(" +", " ", spaced)


@pytest.mark.parametrize(
    ("given_text", "normal", "spans"),
    [
        ("Tim", "tim", [(0, 1), (1, 2), (2, 3)]),
        ("ＡＢ", "ab", [(0, 1), (1, 2)]),  # full width
        ("oﬃce", "office", [(0, 1), (1, 2), (1, 2), (1, 2), (2, 3), (3, 4)]),  # ligature
        ("ß", "ss", [(0, 1), (0, 1)]),
        ("e\u0301t", "\u00e9t", [(0, 2), (2, 3)]),  # combining mark
        ("ﾊﾞﾊ", "バハ", [(0, 2), (2, 3)]),  # half-width katakana with a voiced mark
        ("\u1112\u1161\u11ab글", "한글", [(0, 3), (3, 4)]),  # Hangul jamo
        ("😀a", "😀a", [(0, 1), (1, 2)]),  # astral: one character, not two units
        ("𝐀", "a", [(0, 1)]),
        ("a \t\u3000b", "a b", [(0, 1), (1, 4), (4, 5)]),  # any white space, one space
        ("㎏", "kg", [(0, 1), (0, 1)]),
        ("", "", []),
    ],
)
def test_normalised_characters_remember_where_they_came_from(given_text, normal, spans):
    made = normalise(given_text)
    assert made.text == normal
    assert list(zip(made.starts, made.ends, strict=True)) == spans


@given(texts)
@example("ΐ\u0345")
@example("a  ´")
def test_normalising_by_parts_equals_normalising_the_whole(text):
    assert normalise(text).text == slowly_normalised(text)


@given(texts)
def test_normalised_spans_are_inside_the_text_and_in_order(text):
    made = normalise(text)
    assert len(made.text) == len(made.starts) == len(made.ends)
    assert all(
        0 <= start < end <= len(text) for start, end in zip(made.starts, made.ends, strict=True)
    )
    assert list(made.starts) == sorted(made.starts)
    assert list(made.ends) == sorted(made.ends)


@given(texts)
def test_normalised_spans_leave_no_character_out(text):
    made = normalise(text)
    spans = zip(made.starts, made.ends, strict=True)
    assert {i for start, end in spans for i in range(start, end)} == set(range(len(text)))


@given(texts)
def test_normalised_name_is_normal_already(text):
    once = normalise_name(text)
    assert normalise_name(once) == once


def test_every_single_character_normalises_as_the_whole_does():
    every = [chr(code) for code in range(0x20000) if not 0xD800 <= code < 0xE000]
    different = [c for c in every if normalise(c).text != slowly_normalised(c)]
    assert different == []


def test_name_is_stripped_and_single_spaced():
    assert normalise_name("\u3000 Tim\t\n Cook ") == "tim cook"


@pytest.mark.parametrize("character", "aZé9_яאक")
def test_letters_of_spaced_scripts_need_a_word_boundary(character):
    assert is_word_character(character)


@pytest.mark.parametrize("character", "中々〇ひカーㄅ한ไ ,.-'。，😀\ue000")
def test_chinese_and_its_like_need_no_word_boundary(character):
    assert not is_word_character(character)


KEYS = st.lists(st.text("abc心电图\U00020000", min_size=1, max_size=6), max_size=8)


@given(KEYS, KEYS, st.text("abcd心电图糖\U00020000\ud800", max_size=20))
def test_no_place_where_a_key_starts_is_passed_over(first, second, text):
    parts = [Names.of((key, f"of {key}") for key in keys) for keys in (first, second)]
    for names, keys in ((parts[0], {*first}), (JoinedNames(parts), {*first, *second})):
        starts = names.may_start(code_points(text))
        for place, found in enumerate(names.keys_at(text, range(len(text)))):
            here = sorted({key for key in keys if text.startswith(key, place)}, key=len)
            assert found == here
            assert starts[place] or not here
        assert all(names.meant_by(key) == (f"of {key}",) for key in keys)


@pytest.mark.parametrize("count", [10, 5000])
def test_few_other_places_pass_the_prefix_filter(count):
    keys = [f"{0x4E00 + 7 * i:c}{0x5E00 + 11 * i % 999:c}{i:05}" for i in range(count)]
    text = "".join(chr(0x4E00 + 13 * i % 4000) for i in range(5000))
    assert np.mean(Names.of(zip(keys, keys, strict=True)).may_start(code_points(text))) < 0.02
