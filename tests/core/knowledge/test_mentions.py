"""Entity names found in a text: leftmost-longest, with offsets into the text as given."""

import re
import time
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kbert_core import KnowledgeGraph, Triple, find_mentions
from kbert_core.knowledge.name_index import JoinedNames, Names
from kbert_core.knowledge.names import is_word_character, normalise, normalise_name
from kbert_core.knowledge.surface_forms import AS_WRITTEN
from kbert_core.tokens import code_points


def graph_of(*heads):
    return KnowledgeGraph(Triple(head, "r", "t") for head in heads)


def found(text, *heads):
    """The text's own characters at every mention that is written as in the graph."""
    mentions = find_mentions([text], graph_of(*heads), rules=AS_WRITTEN)[0]
    for mention in mentions:
        assert normalise_name(text[mention.start : mention.end]) == mention.entity
    return [text[mention.start : mention.end] for mention in mentions]


def slow_mentions(text, heads):
    """Try every span of the normalised text against every head, the longest first."""
    normal = normalise(text)
    size = len(normal.text)
    names = {normalise_name(head) for head in heads} - {""}

    def cut(at):
        """Whether a border here parts one given character."""
        return 0 < at < size and normal.starts[at] == normal.starts[at - 1]

    def joins(at):
        """Whether a border here parts one word."""
        return 0 < at < size and all(map(is_word_character, normal.text[at - 1 : at + 1]))

    spans, at = [], 0
    while at < size:
        ends = [
            end
            for end in range(at + 1, size + 1)
            if normal.text[at:end] in names
            and not any(map(cut, (at, end)))
            and not any(map(joins, (at, end)))
        ]
        if ends:
            spans.append((normal.starts[at], normal.ends[max(ends) - 1]))
            at = max(ends)
        else:
            at += 1
    return spans


@pytest.mark.parametrize(
    ("text", "head", "expected"),
    [
        ("ＣＥＯ　of", "CEO of", "ＣＥＯ　of"),
        ("the oﬃce now", "Office", "oﬃce"),
        ("die STRASSE da", "Straße", "STRASSE"),
        ("die Straße da", "strasse", "Straße"),
        ("un cafe\u0301 noir", "CAFÉ", "cafe\u0301"),
        ("ﾊﾞｽに乗る", "バス", "ﾊﾞｽ"),
        ("\u1112\u1161\u11ab\u1100\u1173\u11af은", "한글", "\u1112\u1161\u11ab\u1100\u1173\u11af"),
        ("I 😀 𝐀pple here", "apple", "𝐀pple"),
        ("say 😀😀", "😀", "😀"),
        ("𠮷野家にて", "𠮷野家", "𠮷野家"),
        ("Tim\u00a0\n Cook", "tim cook", "Tim\u00a0\n Cook"),
    ],
)
def test_mention_is_found_however_it_is_written(text, head, expected):
    assert found(text, head)[0] == expected


@pytest.mark.parametrize(
    ("text", "head"),
    [
        ("oﬃce", "of"),  # would cut the ligature
        ("ß", "s"),
        ("cafe\u0301", "cafe"),
        ("ﾊﾞｽ", "ハ"),  # would leave the voiced mark alone
        ("\u1112\u1161\u11ab", "하"),
        ("cats", "cat"),
        ("bobcat", "cat"),
        ("cat_1", "cat"),
        ("cat9", "cat"),
        ("12型", "2型"),
        ("TimCook", "Tim Cook"),
        ("", "Tim"),
    ],
)
def test_mention_never_cuts_a_word_or_a_character(text, head):
    assert found(text, head, "unrelated") == []


@pytest.mark.parametrize(
    ("text", "heads", "names"),
    [
        # The border is tested before the longest is chosen: 'cat sat' runs on into 'saturday'.
        ("the cat saturday", ["cat", "cat sat"], ["cat"]),
        ("cat's", ["cat", "cats"], ["cat"]),
        ("糖尿病足", ["糖尿病", "糖尿病足", "病足"], ["糖尿病足"]),
        ("糖尿病足", ["糖尿病", "病足"], ["糖尿病"]),  # leftmost before longest
        ("New York City Hall", ["New York", "York City Hall"], ["New York"]),
        ("患者有糖尿病史", ["糖尿病"], ["糖尿病"]),
        ("行CT检查abc糖尿病def", ["CT", "糖尿病"], ["CT", "糖尿病"]),
        ("做B超，AB超，B超A", ["B超"], ["B超", "B超"]),  # a Latin border stays one
        ("心、肝、C 和 c", ["心", "肝", "C"], ["心", "肝", "C", "c"]),
        ("糖尿病和糖尿病", ["糖尿病"], ["糖尿病", "糖尿病"]),
    ],
)
def test_names_are_found_leftmost_and_longest(text, heads, names):
    assert found(text, *heads) == names


@pytest.mark.parametrize(
    ("words", "heads", "names"),
    [
        ("患者 有 糖尿病 史", ["糖尿病", "糖"], ["糖尿病"]),
        ("Tim Cook visits 北京 大学", ["Tim Cook", "北京大学"], ["Tim Cook", "北京 大学"]),
        ("糖尿病足 Tim Cook's", ["糖尿病", "病足", "Tim Cook"], []),  # never a part of a word
        ("学 北京 大学 和 C++ (语言)", ["北京 大学", "C++ (语言)"], ["北京 大学", "C++ (语言)"]),
        ("甲 乙 丙 丁", ["甲 乙", "乙丙丁", "丙丁"], ["甲 乙", "丙 丁"]),
        ("  Tim \t Cook\n在  Beijing ", ["Tim Cook", "Beijing"], ["Tim \t Cook", "Beijing"]),
    ],
)
def test_names_in_a_text_of_words_are_whole_words(words, heads, names):
    spans = [word.span() for word in re.finditer(r"\S+", words)]
    mentions = find_mentions([words], graph_of(*heads), words=[spans])[0]
    assert [words[m.start : m.end] for m in mentions] == names


HEADS = st.text(st.sampled_from("abAß 糖尿é\u0301ﬁＡｶﾞ😀-"), min_size=1, max_size=4).filter(
    lambda head: normalise_name(head).strip("-").strip() == normalise_name(head)
)  # a dash at an end is no part of a name
TEXTS = st.text(st.sampled_from("abAß  糖尿é\u0301ﬁＡｶﾞ😀-"), max_size=20)


@given(TEXTS, st.lists(HEADS, max_size=8))
def test_mentions_agree_with_trying_every_span(text, heads):
    mentions = find_mentions([text], graph_of(*heads), rules=AS_WRITTEN)[0]
    assert [(m.start, m.end) for m in mentions] == slow_mentions(text, heads)
    for mention in mentions:
        assert normalise_name(text[mention.start : mention.end]) == mention.entity


@given(TEXTS, st.lists(HEADS, max_size=8))
def test_mentions_in_an_edited_graph_are_those_of_a_graph_made_new(text, heads):
    edited = graph_of("ab", "糖")
    for head in dict.fromkeys(heads):
        triple = Triple(head, "r", "t")
        if normalise_name(head) and triple not in edited:
            edited = edited.add(triple)
    assert find_mentions([text], edited)[0] == find_mentions([text], KnowledgeGraph(edited))[0]


def test_mentions_of_a_very_long_text_or_word_are_found_in_a_moment(figure_2):
    text = "Tim Cook 去了 Beijing。" * 5_000  # over 100,000 characters
    began = time.perf_counter()
    mentions = find_mentions([text], figure_2)[0]
    assert len(mentions) == 10_000
    assert text[mentions[-1].start : mentions[-1].end] == "Beijing"
    assert find_mentions(["a" * 100_000], graph_of("a" * 50, "aa", "a"))[0] == ()
    assert time.perf_counter() - began < 10


# Many texts


def test_names_end_where_their_text_ends():
    assert find_mentions(["糖", "尿", "病"], graph_of("糖尿", "尿病")) == [(), (), ()]
    texts = ["cat", "cats", "catsy"]
    found = find_mentions(texts, graph_of("cat", "cats"), rules=AS_WRITTEN)
    assert [[m.entity for m in some] for some in found] == [["cat"], ["cats"], []]
    assert find_mentions([], graph_of("a")) == []


def test_what_touches_a_mask_is_no_mention():
    graph = graph_of("mask", "病")
    (found,) = find_mentions(["[MASK]病 mask"], graph, masks=[[(0, 6)]])
    assert [(m.start, m.end) for m in found] == [(6, 7), (8, 12)]
    assert len(find_mentions(["[MASK]病 mask"], graph)[0]) == 3


# How names are compared, and their index

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
def test_normalising_by_parts_equals_normalising_the_whole_and_keeps_every_place(text):
    made = normalise(text)
    assert made.text == slowly_normalised(text)
    assert normalise_name(normalise_name(text)) == normalise_name(text)
    spans = list(zip(made.starts, made.ends, strict=True))
    assert len(spans) == len(made.text)
    assert all(start < end for start, end in spans)
    assert (list(made.starts), list(made.ends)) == (sorted(made.starts), sorted(made.ends))
    assert {i for start, end in spans for i in range(start, end)} == set(range(len(text)))


def test_every_single_character_normalises_as_the_whole_does():
    every = [chr(code) for code in range(0x20000) if not 0xD800 <= code < 0xE000]
    different = [c for c in every if normalise(c).text != slowly_normalised(c)]
    assert different == []


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
