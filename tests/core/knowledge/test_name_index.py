"""Names in a trie, and edits of them: no place where a key starts is passed over."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbert_core.knowledge.name_index import AddedNames, JoinedNames, Names
from kbert_core.tokens import code_points

KEYS = st.lists(st.text("abc心电图\U00020000", min_size=1, max_size=6), max_size=8)
TEXTS = st.text("abcd心电图糖\U00020000\ud800", max_size=20)


def names_of(keys):
    return Names.of((key, f"of {key}") for key in keys)


def keys_in(keys, text, start):
    return sorted({key for key in keys if text.startswith(key, start)}, key=len)


def check(names, keys, text):
    starts = names.may_start(code_points(text))
    every = names.keys_at(text, range(len(text)))
    for place in range(len(text)):
        here = keys_in(keys, text, place)
        assert every[place] == here
        assert starts[place] or not here
    for key in keys:
        assert names.meant_by(key) == (f"of {key}",)


@given(KEYS, TEXTS)
def test_names_are_found_wherever_they_stand(keys, text):
    check(names_of(keys), keys, text)


@given(KEYS, KEYS, TEXTS)
def test_joined_names_are_those_of_every_part(first, second, text):
    check(JoinedNames([names_of(first), names_of(second)]), {*first, *second}, text)


@given(KEYS, st.lists(KEYS, max_size=5), KEYS, TEXTS)
def test_edited_names_are_those_of_before_with_those_added_and_not_removed(base, steps, gone, text):
    names, there = AddedNames(), set()
    for keys in steps:
        forms = [(key, f"of {key}") for key in keys]
        names = names.edited(added=forms, removed=())
        there |= {*keys}
    forms = [(key, f"of {key}") for key in gone]
    names = names.edited(added=(), removed=forms)
    check(JoinedNames([names_of(base), *names.parts]), {*base, *there.difference(gone)}, text)


def test_an_entity_that_is_gone_is_meant_by_no_key_until_it_has_a_triple_again():
    names = Names.of([("a", "a"), ("a", "b")])
    assert names.meant_by("a") == ("a", "b")
    assert JoinedNames([names], {"a": ()}).meant_by("a") == ("b",)
    assert JoinedNames([names], {"a": ("a triple",)}).meant_by("a") == ("a", "b")


def test_a_key_means_its_entities_in_the_order_in_which_they_came():
    forms = [("java", "java (island)"), ("java", "java"), ("java", "a"), ("java", "java")]
    assert Names.of(forms).meant_by("java") == ("java (island)", "java", "a")


@pytest.mark.parametrize("count", [10, 5000])
def test_few_other_places_pass_the_prefix_filter(count):
    keys = [f"{0x4E00 + 7 * i:c}{0x5E00 + 11 * i % 999:c}{i:05}" for i in range(count)]
    text = "".join(chr(0x4E00 + 13 * i % 4000) for i in range(5000))
    assert np.mean(Names.of(zip(keys, keys, strict=True)).may_start(code_points(text))) < 0.02
