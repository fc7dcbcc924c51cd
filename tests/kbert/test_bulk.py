"""The codes of many texts at once, beside those of each text by itself."""

import random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from slow_trees import random_scene

from kbert_core import (
    Characters,
    InjectionOptions,
    KnowledgeGraph,
    Triple,
    WordPieces,
    Words,
    collate,
    flatten,
    grow_tree,
)
from kbert_core.errors import OptionError, TextError
from kbert_core.kbert.bulk import CODES, inject

TOKENIZERS = (Characters(), Characters(special=True), Words(), Words(special=True))


def one_by_one(texts, graph, tokenizer, options, max_length):
    trees = [grow_tree([text], graph, options) for text in texts]
    return [flatten(tree, tokenizer, max_length=max_length) for tree in trees]


def assert_same(texts, graph, tokenizer, options=InjectionOptions(), max_length=None):
    codes = inject(texts, graph, tokenizer, options, max_length=max_length)
    flats = one_by_one(texts, graph, tokenizer, options, max_length)
    assert len(codes) == len(flats)
    for text, found, flat in zip(texts, codes, flats, strict=True):
        wanted = np.array([getattr(flat, name) for name in CODES]).reshape(5, -1)
        assert np.array_equal(found, wanted), text
    return codes, flats


@given(
    st.integers(0, 2**32),
    st.sampled_from(TOKENIZERS),
    st.sampled_from([None, 5, 12, 30]),
    st.integers(0, 3),
    st.booleans(),
)
def test_codes_are_those_of_flatten(seed, tokenizer, max_length, max_triples, tail_only):
    dice = random.Random(seed)
    scene = random_scene(dice, 8)
    options = InjectionOptions(max_triples=max_triples, tail_only=tail_only)
    assert_same(scene.texts, scene.graph, tokenizer, options, max_length)


def test_an_entity_under_two_names_has_the_triples_of_each_name():
    graph = KnowledgeGraph([Triple("心肌梗死", "别名", "心梗"), Triple("心肌梗死", "症状", "胸痛")])
    codes, _ = assert_same(["心梗", "心肌梗死，心梗"], graph, Characters())
    assert codes.lengths.tolist() == [2 + 4, 7 + 4 + 4 + 4]


def test_codes_are_those_of_flatten_with_word_pieces(tokenizer):
    graph = KnowledgeGraph(
        [
            Triple("tim cook", "city", "apple"),
            Triple("心电图", "类别", "检查"),
            Triple("ca", "s", "t"),
        ]
    )
    texts = ["Tim Cook's 心电图检查", "cats ca, [MASK] ca", "", "心电图", "  tim   cook  "]
    for max_length in (None, 8):
        assert_same(texts, graph, WordPieces(tokenizer), max_length=max_length)


def test_two_mentions_on_one_token_are_treated_as_by_flatten():
    graph = KnowledgeGraph([Triple("心电", "a", "b"), Triple("图", "c", "d")])
    assert_same(["心电图 心电", "心电 图"], graph, Words(special=True))


def test_a_batch_is_the_one_of_collate(tim_cook, figure_2):
    texts = ["Tim Cook is visiting Beijing now", "Beijing", "now now"]
    codes, flats = assert_same(texts, figure_2, Words(special=True))
    batch, wanted = codes.batch([2, 0], pad_id=9), collate([flats[2], flats[0]], pad_id=9)
    for name in CODES:
        assert torch.equal(getattr(batch, name), getattr(wanted, name))


def test_no_texts_have_no_codes(figure_2):
    assert len(inject([], figure_2, Words())) == 0


def test_half_a_character_is_refused(figure_2):
    with pytest.raises(TextError, match="Character 1 of the text is half a character"):
        inject(["ok", "a\ud800"], figure_2, Characters())


def test_a_limit_without_room_for_text_is_refused(figure_2):
    with pytest.raises(OptionError, match="2 of them are special"):
        inject(["Beijing"], figure_2, Words(special=True), max_length=2)
