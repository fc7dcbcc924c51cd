"""Trees of texts; in reading order, with soft positions and branch codes; the limit and windows."""

import pickle
import random

import pytest
import torch
from conftest import FIGURE_2, TIM_COOK, tiny_tokenizer
from slow_trees import NO_VOCABULARY, check_random_batch, random_scene, slowly_flattened

from kbert_core import (
    Characters,
    InjectionOptions,
    KnowledgeGraph,
    LeftOut,
    Rule,
    SentenceTree,
    Triple,
    WordPieces,
    Words,
    collate,
    flatten,
    grow_trees,
    k_inject,
    k_query,
    visible_matrix,
)
from kbert_core.errors import OptionError, TextError
from kbert_core.kbert.flat_tree import TrunkCut

ALL = InjectionOptions(max_triples=1000)
CEO, CAPITAL, IS_A = FIGURE_2


def flat_of(*sentences, graph, special=True, options=ALL, **limit):
    return flatten(grow_trees([sentences], graph, options), Words(special=special), **limit)[0]


def test_figure_2_comes_out_as_in_the_paper(tim_cook):
    assert tim_cook.tokens == (
        "[CLS] Tim Cook CEO Apple is visiting Beijing capital China is_a City now [SEP]"
    ).split(" ")
    assert tim_cook.soft_positions == [0, 1, 2, 3, 4, 3, 4, 5, 6, 7, 6, 7, 6, 7]
    assert tim_cook.branch_ids == [0, 0, 0, 1, 1, 0, 0, 0, 2, 2, 3, 3, 0, 0]
    assert tim_cook.anchor_ids == [0, 1, 1, 1, 1, 0, 0, 2, 2, 2, 2, 2, 0, 0]
    assert tim_cook.token_type_ids == [0] * 14
    assert tim_cook.left_out == ()
    assert tim_cook.trunk_cuts == ()


def test_figure_2_says_where_each_branch_stands(tim_cook):
    assert [(h.node, h.branch.triple, h.start, h.end) for h in tim_cook.branches] == [
        (0, CEO, 3, 5),
        (1, CAPITAL, 8, 10),
        (1, IS_A, 10, 12),
    ]


def test_pair_of_sentences_has_two_segments_and_a_branch_has_its_mentions(figure_2):
    flat = flat_of("Tim Cook left", "Beijing now", graph=figure_2)
    assert flat.tokens == (
        "[CLS] Tim Cook CEO Apple left [SEP] Beijing capital China is_a City now [SEP]".split(" ")
    )
    assert flat.soft_positions == [0, 1, 2, 3, 4, 3, 4, 5, 6, 7, 6, 7, 6, 7]
    assert flat.token_type_ids == [0] * 7 + [1] * 7
    assert flat.branch_ids == [0, 0, 0, 1, 1, 0, 0, 0, 2, 2, 3, 3, 0, 0]
    assert flat.anchor_ids == [0, 1, 1, 1, 1, 0, 0, 2, 2, 2, 2, 2, 0, 0]


def test_empty_text_is_its_special_tokens(figure_2):
    assert flat_of("", graph=figure_2).tokens == ["[CLS]", "[SEP]"]
    assert flat_of("", "", graph=figure_2).tokens == ["[CLS]", "[SEP]", "[SEP]"]
    assert flat_of("", graph=figure_2, special=False).tokens == []


def test_characters_are_the_texts_own(figure_2):
    tree = grow_trees(["在Ｔｉｍ  cook"], figure_2)[0]
    flat = flatten([tree], Characters())[0]
    assert flat.tokens == [*"在Ｔｉｍ  cook", *"CEOApple"]
    assert flat.soft_positions == [*range(10), *range(10, 18)]
    assert flat.anchor_ids == [0] + [1] * 17


def test_identities_stay_when_other_knowledge_changes(figure_2):
    before = flat_of(TIM_COOK, graph=figure_2)
    after = flat_of(TIM_COOK, graph=figure_2.switch_off(CAPITAL))
    assert len(set(before.identities)) == 14
    assert set(after.identities) == {
        name for name in before.identities if name[0] != "branch" or name[3] != CAPITAL
    }
    assert before.identities[0] == ("special", 0)
    assert before.identities[1] == ("trunk", 0, 0)
    assert before.identities[4] == ("branch", 0, 0, CEO, 1)


# The slow second implementation


def rules(flat):
    names = {Rule.LENGTH: "length", Rule.TRUNK_CUT: "cut"}
    return [(item.triple, names[item.rule]) for _, item in flat.left_out]


@pytest.mark.parametrize("sentences", [1, 2])
@pytest.mark.parametrize("special", [True, False])
@pytest.mark.parametrize("seed", range(2))
def test_flattening_agrees_with_the_slow_way_on_random_trees(sentences, special, seed):
    dice = random.Random(f"{sentences} {special} {seed}")
    flats, slows = [], []
    for _ in range(150):
        scene = random_scene(dice, sentences)
        tail_only = dice.random() < 0.3
        limit = dice.choice([None, dice.randint(4, 12), dice.randint(8, 40)])
        options = InjectionOptions(max_triples=1000, tail_only=tail_only)
        flat = flat_of(
            *scene.texts, graph=scene.graph, special=special, options=options, max_length=limit
        )
        slow = slowly_flattened(scene, special=special, tail_only=tail_only, max_length=limit)
        assert flat.tokens == slow.tokens
        assert flat.soft_positions == slow.soft_positions
        assert flat.token_type_ids == slow.segments
        assert rules(flat) == slow.left_out
        assert limit is None or len(flat) <= limit
        flats.append(flat)
        slows.append(slow)
    batch = collate(flats)
    visible = visible_matrix(batch.branch_ids, batch.anchor_ids)
    for number, slow in enumerate(slows):
        size = len(slow.nodes)
        assert visible[number, :size, :size].tolist() == slow.visible
        assert not visible[number, :size, size:].any()
        assert not visible[number, size:, :size].any()
        assert visible[number, size:, size:].all()


# The length limit, by hand


def test_branch_that_does_not_fit_is_left_out_by_name_and_the_next_is_tried():
    graph = KnowledgeGraph(
        [Triple("a", "is", "very very long"), Triple("a", "r", "t"), Triple("b", "s", "u")]
    )
    flat = flat_of("a b", graph=graph, max_length=7)  # 4 for the trunk, 3 left
    assert flat.tokens == ["[CLS]", "a", "r", "t", "b", "[SEP]"]
    assert flat.left_out == (
        (0, LeftOut(Triple("a", "is", "very very long"), Rule.LENGTH)),
        (1, LeftOut(Triple("b", "s", "u"), Rule.LENGTH)),
    )
    assert flat.trunk_cuts == ()
    assert flat.soft_positions == [0, 1, 2, 3, 2, 3]


def test_trunk_over_the_limit_is_cut_and_says_so(figure_2):
    flat = flat_of(TIM_COOK, graph=figure_2, max_length=5)
    assert flat.tokens == ["[CLS]", "Tim", "Cook", "is", "[SEP]"]
    assert flat.trunk_cuts == (TrunkCut(sentence=0, kept=3, total=6),)
    assert flat.left_out == (
        (0, LeftOut(CEO, Rule.LENGTH)),
        (1, LeftOut(CAPITAL, Rule.TRUNK_CUT)),
        (1, LeftOut(IS_A, Rule.TRUNK_CUT)),
    )


@pytest.mark.parametrize(("texts", "limit"), [(("a",), 2), (("a", "b"), 3), (("a",), 0)])
def test_limit_without_room_for_text_is_refused(texts, limit):
    special = len(texts) + 1
    with pytest.raises(OptionError, match=rf"{limit} tokens, and {special} .* least {special + 1}"):
        flat_of(*texts, graph=KnowledgeGraph(), max_length=limit)


def test_what_was_left_out_before_flattening_is_still_named(figure_2):
    graph = figure_2.switch_off(CEO)
    flat = flat_of(TIM_COOK, graph=graph, options=InjectionOptions(max_triples=1))
    assert flat.left_out == ((0, LeftOut(CEO, Rule.OFF)), (1, LeftOut(IS_A, Rule.LIMIT)))


def test_two_mentions_in_one_token_do_not_both_hang_on_it():
    graph = KnowledgeGraph([Triple("糖尿病", "r", "t"), Triple("患者", "r", "u")])
    flat = flat_of("糖尿病患者 好", graph=graph)
    assert flat.tokens == ["[CLS]", "糖尿病患者", "r", "t", "好", "[SEP]"]
    assert flat.left_out == ((1, LeftOut(Triple("患者", "r", "u"), Rule.SHARED_TOKEN)),)


def test_branch_without_tokens_is_left_out(tokenizer):
    unseen = Triple("cat", "r", "\u200b")
    graph = KnowledgeGraph([unseen, Triple("\u200b", "r", "s")])
    tree = grow_trees(["cat \u200b"], graph, InjectionOptions(tail_only=True))[0]
    flat = flatten([tree], WordPieces(tokenizer))[0]
    assert flat.tokens == ["[CLS]", "cat", "[SEP]"]
    assert [item.rule for _, item in flat.left_out] == [Rule.NO_TOKENS, Rule.NO_TOKENS]


# Windows


def windows_of(text, graph, limit, special=True, options=ALL):
    tree = grow_trees([text], graph, options)[0]
    return list(flatten([tree], Words(special=special), max_length=limit, windows=True))


def test_text_within_the_limit_makes_one_window(figure_2):
    assert windows_of(TIM_COOK, figure_2, 14) == [flat_of(TIM_COOK, graph=figure_2, max_length=14)]
    assert len(windows_of(TIM_COOK, figure_2, 8)) == 1  # the trunk alone fits
    assert len(windows_of(TIM_COOK, figure_2, None)) == 1
    assert len(windows_of("", figure_2, 3)) == 1


def test_windows_overlap_and_leave_room_for_branches():
    windows = windows_of(" ".join(["e"] * 40), KnowledgeGraph([Triple("e", "r", "t")]), 18)
    starts = [window.trunk_parts[0].first for window in windows]
    ends = [last.first + last.end - last.start for *_, last in (w.trunk_parts for w in windows)]
    assert all(start < end for start, end in zip(starts[1:], ends, strict=False))
    assert all(window.branches for window in windows)


def test_mention_whole_in_one_window_is_not_said_to_be_cut_by_the_next():
    graph = KnowledgeGraph([Triple("f g", "r", "t")])
    for ahead in range(12):
        windows = windows_of("w " * ahead + "f g" + " w" * 12, graph, 10)
        rules = {item.rule for window in windows for _, item in window.left_out}
        assert Rule.TRUNK_CUT not in rules


def test_mention_longer_than_the_overlap_is_named_once_where_no_window_holds_it():
    name = " ".join("abcdefghij")
    graph = KnowledgeGraph([Triple(name, "r", "t")])
    windows = windows_of(f"w w {name} w w", graph, 8)
    left_out = [item for window in windows for item in window.left_out]
    assert left_out == [(0, LeftOut(Triple(name, "r", "t"), Rule.TRUNK_CUT))]


def test_windows_of_a_pair_hold_its_first_sentence_and_its_triples_whole():
    graph = KnowledgeGraph([Triple("e", "r", "t")])
    tree = grow_trees([["q e", " ".join(["w"] * 9 + ["e"] + ["w"] * 9)]], graph, ALL)[0]
    windows = flatten([tree], Words(special=True), max_length=19, windows=True)
    assert len(windows) == 3  # 16 without special tokens, 12 without room for branches, less 2
    for window in windows:
        assert window.trunk_parts[0][:2] == (0, 0)
        assert window.tokens[1:5] == ["q", "e", "r", "t"]
    read = [place for window in windows for place in window.trunk_places if place[0] == 1]
    assert set(read) == {(1, at) for at in range(19)}


def test_a_first_sentence_that_leaves_no_room_for_windows_is_refused(figure_2):
    tree = grow_trees([["a b c d", "w " * 20]], figure_2)[0]
    with pytest.raises(TextError, match=r"The first text has 4 tokens.* has room for 7"):
        flatten([tree], Words(), max_length=10, windows=True)


def test_very_long_text_is_flattened_in_a_moment(figure_2):
    text = "Tim Cook 去了 Beijing 。 " * 5_000
    flat = flat_of(text, graph=figure_2)
    assert len(flat.branches) == 15_000
    assert flat.soft_positions[-1] == 25_001
    windows = windows_of(text, figure_2, 256)
    assert all(window.branches for window in windows)
    assert sum(len(window.branches) + len(window.left_out) for window in windows) < 30_000


# Random texts, with real tokens


@pytest.fixture(scope="module")
def tokenizers():
    tiny = tiny_tokenizer()
    return (*NO_VOCABULARY, WordPieces(tiny), WordPieces(tiny, masks=True))


@pytest.mark.parametrize("start", (0, 50))
def test_random_texts_are_grown_and_flattened_as_the_paper_says(tokenizers, start):
    for seed in range(start, start + 50):
        check_random_batch(seed, tokenizers)


def test_names_and_branches_that_are_kept_no_more_are_read_alike(monkeypatch, figure_2):
    texts = ["Tim Cook", "Beijing", "Tim Cook left Beijing", "beijing", "TIM COOK"] * 2
    tokenizer = Words(special=True)
    expected = [flat.tokens for flat in flatten(grow_trees(texts, figure_2), tokenizer)]
    for kept in ("knowledge.mentions.MOST_NAMES", "kbert.sentence_tree.MOST_NAMES"):
        monkeypatch.setattr(f"kbert_core.{kept}", 1)
    monkeypatch.setattr("kbert_core.kbert.flat_tree.MOST_BRANCHES", 1)
    copy = pickle.loads(pickle.dumps(figure_2))
    rows = [flatten(grow_trees([text], copy), tokenizer)[0].tokens for text in texts]
    assert rows == expected


def test_an_edited_graph_is_read_by_its_own_triples(figure_2):
    before = flatten(grow_trees(["Tim Cook"], figure_2), Words())[0].tokens
    (triple, *_) = figure_2.triples_of("Tim Cook")
    edited = figure_2.switch_off(triple)
    assert flatten(grow_trees(["Tim Cook"], edited), Words())[0].tokens == ["Tim", "Cook"]
    assert flatten(grow_trees(["Tim Cook"], figure_2), Words())[0].tokens == before


def test_a_tree_changed_by_hand_is_flattened_as_it_is(figure_2):
    trees = grow_trees(["Tim Cook left", "Beijing"], figure_2)
    bare = SentenceTree(trees[1].sentences, ())
    flats = flatten([trees[0], bare, trees[1]], Words())
    assert [len(flat.branches) for flat in flats] == [1, 0, 2]
    assert flats[1].tokens == ["Beijing"]


def test_rows_keep_only_the_branches_asked_for(figure_2):
    (flat,) = flatten(grow_trees(["Tim Cook left Beijing"], figure_2), Words(special=True))
    less = flat.keeping(lambda node, triple: triple.tail != "China")
    (wanted,) = flatten([less.tree], Words(special=True))
    assert less == wanted
    assert less.tokens == wanted.tokens
    assert less.identities == wanted.identities
    assert less.trunk_places == wanted.trunk_places


# Batches


def test_batch_is_padded_to_its_longest_row(figure_2):
    batch = collate([flat_of("a", graph=figure_2), flat_of(TIM_COOK, graph=figure_2)], pad_id=9)
    assert batch.input_ids.shape == (2, 14)
    assert batch.input_ids.dtype == torch.int64
    assert batch.input_ids[0].tolist() == [0, 0, 0] + [9] * 11
    assert batch.branch_ids[0].tolist() == [0, 0, 0] + [-1] * 11
    assert batch.real.sum(1).tolist() == [3, 14]
    for name in ("soft_positions", "anchor_ids", "token_type_ids"):
        assert getattr(batch, name)[0].tolist()[3:] == [0] * 11


def test_batch_of_an_empty_text_is_still_whole_numbers(figure_2):
    batch = collate([flat_of("", graph=figure_2, special=False)])
    assert batch.input_ids.shape == (1, 0)
    assert batch.input_ids.dtype == torch.int64


def test_k_query_finds_figure_2(figure_2):
    ((first, second),) = k_query([TIM_COOK], figure_2)
    assert (first.mention.start, first.mention.end, first.used) == (0, 8, (CEO,))
    assert (second.mention.start, second.mention.end) == (21, 28)
    assert second.used == (CAPITAL, IS_A)


def test_k_inject_hangs_relation_and_tail_or_tail_alone(figure_2):
    options = InjectionOptions(tail_only=True)
    both = grow_trees([TIM_COOK], figure_2)[0]
    assert [b.texts for b in both.nodes[1].branches] == [("capital", "China"), ("is_a", "City")]
    alone = grow_trees([TIM_COOK], figure_2, options)[0]
    assert [b.texts for b in alone.nodes[1].branches] == [("China",), ("City",)]
    assert both.used == alone.used == FIGURE_2


def test_k_inject_is_the_second_half_of_growing_a_tree(figure_2):
    texts = [TIM_COOK, ("Beijing", "Paris")]
    nodes = k_query(texts, figure_2)
    assert list(map(k_inject, texts, nodes)) == grow_trees(texts, figure_2)


@pytest.mark.parametrize("sentences", [[], ["a", "b", "c"]])
def test_neither_no_sentence_nor_three_make_a_tree(figure_2, sentences):
    with pytest.raises(TextError, match=f"Got {len(sentences)} sentences, expected one or two"):
        grow_trees([sentences], figure_2)[0]


def test_half_a_character_is_refused(figure_2):
    with pytest.raises(TextError, match=r"Character 3 of the text is half .*U\+D83D"):
        grow_trees(["ok", "abc\ud83d"], figure_2)
