"""Entity names found in a text: leftmost-longest, with offsets into the text as given."""

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbert_core import KnowledgeGraph, Triple, find_mentions
from kbert_core.knowledge.names import is_word_character, normalise, normalise_name
from kbert_core.knowledge.surface_forms import AS_WRITTEN


def graph_of(*heads):
    return KnowledgeGraph(Triple(head, "r", "t") for head in heads)


def found(text, *heads, words=None):
    """The text's own characters at every mention that is written as in the graph."""
    mentions = find_mentions([text], graph_of(*heads), words=[words], rules=AS_WRITTEN)[0]
    for mention in mentions:
        assert normalise_name(text[mention.start : mention.end]) == mention.entity
    return [text[mention.start : mention.end] for mention in mentions]


def word_spans(*words):
    """Texts joined by single spaces, and their spans."""
    spans, at = [], 0
    for word in words:
        spans.append((at, at + len(word)))
        at += len(word) + 1
    return " ".join(words), spans


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


def test_mention_points_into_the_text_as_given(figure_2):
    text = "Ｔｉｍ  Cook is in BEIJING"
    first, second = find_mentions([text], figure_2)[0]
    assert (first.start, first.end, first.entity) == (0, 9, "tim cook")
    assert (second.start, second.end, second.entity) == (16, 23, "beijing")


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


def test_word_boundary_is_tested_before_the_longest_is_chosen():
    # 'cat sat' would be longer but runs on into 'saturday'; 'cat' must survive it.
    assert found("the cat saturday", "cat", "cat sat") == ["cat"]
    assert found("cat's", "cat", "cats") == ["cat"]


def test_longest_name_wins_and_mentions_do_not_overlap():
    assert found("糖尿病足", "糖尿病", "糖尿病足", "病足") == ["糖尿病足"]
    assert found("糖尿病足", "糖尿病", "病足") == ["糖尿病"]  # leftmost before longest
    assert found("New York City Hall", "New York", "York City Hall") == ["New York"]


def test_chinese_name_is_found_anywhere():
    assert found("患者有糖尿病史", "糖尿病") == ["糖尿病"]
    assert found("行CT检查abc糖尿病def", "CT", "糖尿病") == ["CT", "糖尿病"]


def test_name_of_mixed_scripts_keeps_its_latin_border():
    assert found("做B超", "B超") == ["B超"]
    assert found("做AB超", "B超") == []
    assert found("B超A", "B超") == ["B超"]


def test_name_of_one_character_is_found():
    assert found("心、肝、C 和 c", "心", "肝", "C") == ["心", "肝", "C", "c"]


def test_same_name_is_found_every_time():
    assert found("糖尿病和糖尿病", "糖尿病") == ["糖尿病", "糖尿病"]


def test_words_mode_takes_whole_words_only():
    text, spans = word_spans("患者", "有", "糖尿病", "史")
    assert found(text, "糖尿病", "糖", words=spans) == ["糖尿病"]


def test_words_mode_finds_a_name_over_several_words():
    text, spans = word_spans("Tim", "Cook", "visits", "北京", "大学")
    mentions = find_mentions([text], graph_of("Tim Cook", "北京大学"), words=[spans])[0]
    assert [(m.start, m.end, m.entity) for m in mentions] == [
        (0, 8, "tim cook"),
        (16, 21, "北京大学"),
    ]


def test_words_mode_never_takes_part_of_a_word():
    text, spans = word_spans("糖尿病足", "Tim", "Cook's")
    assert found(text, "糖尿病", "病足", "Tim Cook", words=spans) == []


def test_words_mode_finds_names_that_hold_a_space_themselves():
    text, spans = word_spans("学", "北京", "大学", "和", "C++", "(语言)")
    assert found(text, "北京 大学", "C++ (语言)", words=spans) == ["北京 大学", "C++ (语言)"]


def test_words_mode_is_leftmost_longest_with_and_without_spaces():
    text, spans = word_spans("甲", "乙", "丙", "丁")
    mentions = find_mentions([text], graph_of("甲 乙", "乙丙丁", "丙丁"), words=[spans])[0]
    assert [(m.start, m.end) for m in mentions] == [(0, 3), (4, 7)]


def test_words_mode_takes_words_however_far_apart():
    text = "  Tim \t Cook\n在  Beijing "
    spans = [(2, 5), (8, 12), (13, 14), (16, 23)]
    assert found(text, "Tim Cook", "Beijing", words=spans) == ["Tim \t Cook", "Beijing"]


def test_added_and_removed_names_are_found_and_not_found(figure_2):
    new = Triple("Paris", "capital", "France")
    edited = figure_2.add(new).remove(Triple("Tim Cook", "CEO", "Apple"))
    entities = [m.entity for m in find_mentions(["Tim Cook, Paris, Beijing"], edited)[0]]
    assert entities == ["paris", "beijing"]
    assert [m.entity for m in find_mentions(["Tim Cook, Paris"], edited.undo())[0]] == [
        "tim cook",
        "paris",
    ]


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


def test_mentions_agree_with_trying_every_span_on_thousands_of_texts():
    dice = random.Random(7)
    for _ in range(3000):
        heads = ["".join(dice.choices("ab 中文é1", k=dice.randint(1, 4))) for _ in range(6)]
        text = "".join(dice.choices("ab  中文éÉ1,", k=dice.randint(0, 24)))
        mentions = find_mentions([text], graph_of(*heads), rules=AS_WRITTEN)[0]
        assert [(m.start, m.end) for m in mentions] == slow_mentions(text, heads), (text, heads)


@given(TEXTS, st.lists(HEADS, max_size=8))
def test_mentions_in_an_edited_graph_are_those_of_a_graph_made_new(text, heads):
    edited = graph_of("ab", "糖")
    for head in dict.fromkeys(heads):
        triple = Triple(head, "r", "t")
        if normalise_name(head) and triple not in edited:
            edited = edited.add(triple)
    assert find_mentions([text], edited)[0] == find_mentions([text], KnowledgeGraph(edited))[0]


def test_mentions_of_a_very_long_text_are_all_found_in_a_moment(figure_2):
    text = "Tim Cook 去了 Beijing。" * 5_000  # over 100,000 characters
    began = time.perf_counter()
    mentions = find_mentions([text], figure_2)[0]
    assert len(mentions) == 10_000
    assert text[mentions[-1].start : mentions[-1].end] == "Beijing"
    assert time.perf_counter() - began < 10


def test_mentions_of_a_very_long_word_take_no_quadratic_time():
    began = time.perf_counter()
    assert find_mentions(["a" * 100_000], graph_of("a" * 50, "aa", "a"))[0] == ()
    assert time.perf_counter() - began < 10


# Many texts


def test_no_name_is_found_across_the_border_of_two_texts():
    graph = graph_of("糖尿", "尿病")
    assert list(find_mentions(["糖", "尿", "病"], graph)) == [(), (), ()]


def test_word_borders_are_tested_at_the_ends_of_each_text():
    texts = ["cat", "cats", "catsy"]
    found = find_mentions(texts, graph_of("cat", "cats"), rules=AS_WRITTEN)
    assert [[m.entity for m in some] for some in found] == [["cat"], ["cats"], []]


def test_what_touches_a_mask_is_no_mention():
    graph = graph_of("mask", "病")
    (found,) = find_mentions(["[MASK]病 mask"], graph, masks=[[(0, 6)]])
    assert [(m.start, m.end) for m in found] == [(6, 7), (8, 12)]
    assert len(find_mentions(["[MASK]病 mask"], graph)[0]) == 3


def test_no_texts_have_no_mentions():
    assert list(find_mentions([], graph_of("a"))) == []
