"""Texts to flat trees, many at once in arrays, beside the slow and obvious way."""

import pickle
import random

import numpy as np
import pytest
import torch
from conftest import tiny_tokenizer
from random_texts import NO_VOCABULARY, check_random_batch
from slow_flatten import assert_same_rows, slow_flatten
from slow_trees import random_scene

from kbert_core import (
    Characters,
    InjectionOptions,
    KnowledgeGraph,
    SentenceTree,
    Triple,
    WordPieces,
    Words,
    collate,
    flatten,
    grow_trees,
)
from kbert_core.errors import OptionError, TextError
from kbert_core.kbert.flat_tree import CODES

MI = KnowledgeGraph([Triple("心肌梗死", "别名", "心梗"), Triple("心肌梗死", "症状", "胸痛")])


@pytest.fixture(scope="module")
def tokenizers():
    tiny = tiny_tokenizer()
    return (*NO_VOCABULARY, WordPieces(tiny), WordPieces(tiny, masks=True))


@pytest.mark.parametrize("start", (0, 50))
def test_texts_are_read_as_one_by_one(tokenizers, start):
    for seed in range(start, start + 50):
        check_random_batch(seed, tokenizers)


def test_scenes_of_spaced_words_are_read_as_one_by_one():
    dice = random.Random(0)
    for _ in range(100):
        scene = random_scene(dice, dice.choice([1, 2]))
        options = InjectionOptions(max_triples=dice.randint(0, 3), tail_only=dice.random() < 0.5)
        trees = grow_trees([scene.texts] * 2, scene.graph, options)
        tokenizer, limit = dice.choice(NO_VOCABULARY), dice.choice([None, 5, 12, 30])
        rows = slow_flatten(trees[0], tokenizer, max_length=limit)
        assert_same_rows(flatten(trees, tokenizer, max_length=limit), rows * 2)


def test_an_entity_under_two_names_has_the_triples_of_each_name():
    flats = flatten(grow_trees(["心梗", "心肌梗死，心梗"], MI), Characters())
    assert flats.lengths.tolist() == [2 + 4, 7 + 4 + 4 + 4]


def test_names_that_are_begun_anew_read_alike(monkeypatch, figure_2):
    texts = ["Tim Cook", "Beijing", "Tim Cook left Beijing", "beijing", "TIM COOK"] * 2
    tokenizer = Words(special=True)
    expected = [flat.tokens for flat in flatten(grow_trees(texts, figure_2), tokenizer)]
    monkeypatch.setattr("kbert_core.knowledge.mentions.MOST_NAMES", 1)
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


def test_a_batch_is_that_of_the_rows_it_is_cut_from(figure_2):
    texts = ["Tim Cook is visiting Beijing now", "Beijing", "now now"]
    flats = flatten(grow_trees(texts, figure_2), Words(special=True))
    batch = collate([flats[2], flats[0]], pad_id=9)
    rows = [flats[2].keeping(lambda *_: True), flats[0].keeping(lambda *_: True)]
    for other in (collate([flats[2], flats[0]], pad_id=9), collate(rows, pad_id=9)):
        for name in CODES:
            assert torch.equal(getattr(batch, name), getattr(other, name))
    assert batch.input_ids[0].tolist() == [0] * 4 + [9] * (len(flats[0]) - 4)
    assert batch.branch_ids[0].tolist() == [0] * 4 + [-1] * (len(flats[0]) - 4)


def test_rows_keep_only_the_branches_asked_for(figure_2):
    (flat,) = flatten(grow_trees(["Tim Cook left Beijing"], figure_2), Words(special=True))
    less = flat.keeping(lambda node, triple: triple.tail != "China")
    (wanted,) = flatten([less.tree], Words(special=True))
    assert np.array_equal(less.codes, wanted.codes)
    assert less.tokens == wanted.tokens
    assert less.identities == wanted.identities
    assert less.trunk_places == wanted.trunk_places


def test_no_texts_have_no_rows(figure_2):
    flats = flatten(grow_trees([], figure_2), Words())
    assert (len(flats), flats.values.shape) == (0, (5, 0))


def test_half_a_character_is_refused(figure_2):
    with pytest.raises(TextError, match="Character 1 of the text is half a character"):
        grow_trees(["ok", "a\ud800"], figure_2)


def test_a_limit_without_room_for_text_is_refused(figure_2):
    with pytest.raises(OptionError, match="2 of them are special"):
        flatten(grow_trees(["Beijing"], figure_2), Words(special=True), max_length=2)
