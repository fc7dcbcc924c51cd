"""The table of openings: no place where a key begins is passed over."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kbert_core.knowledge.added_names import AddedNames
from kbert_core.knowledge.openings import Openings

KEYS = st.lists(st.text("abc心电图\U00020000", min_size=1, max_size=4), max_size=8)
TEXTS = st.text("abcd心电图糖\U00020000\ud800", max_size=20)


def begins(keys, text):
    return {i for i in range(len(text)) for key in keys if text.startswith(key, i)}


@given(KEYS, TEXTS)
def test_no_place_where_a_key_begins_is_passed_over(keys, text):
    table = Openings.of(keys)
    codes = np.array([ord(character) for character in text], np.uint32)
    assert begins(keys, text) <= set(table.places(text))
    assert table.places(text) == np.flatnonzero(table.may_begin(codes)).tolist()


def test_few_other_places_are_named():
    keys = [chr(0x4E00 + 7 * i) + chr(0x5E00 + 11 * i) for i in range(1000)]
    text = "".join(chr(0x6000 + 13 * i % 4000) for i in range(2000))
    assert len(Openings.of(keys).places(text)) < 0.3 * len(text)


@given(st.lists(KEYS, max_size=5), KEYS, TEXTS)
def test_added_names_are_those_added_and_not_removed(steps, gone, text):
    made, there = AddedNames(), {}
    for keys in steps:
        made = made.changed(((key, f"of {key}") for key in keys), ())
        there |= dict.fromkeys(keys)
    made = made.changed((), ((key, f"of {key}") for key in gone))
    left = there.keys() - set(gone)
    assert bool(made) == bool(left)
    codes = np.array([ord(character) for character in text], np.uint32)
    for places in (made.places(text), np.flatnonzero(made.may_begin(codes)).tolist()):
        assert begins(left, text) <= set(places)
    for place in range(len(text)):
        assert made.at(text, place) == sorted(
            (key for key in left if text.startswith(key, place)), key=len
        )
    assert all(made.meant_by(key) == (f"of {key}",) for key in left)


def test_many_added_names_cost_no_copy_of_all_of_them_each():
    made = AddedNames()
    for number in range(600):
        made = made.changed([(f"{chr(0x4E00 + number)}名", "x")], ())
    assert all(made.places(f"，{chr(0x4E00 + number)}名") == [1] for number in range(600))
