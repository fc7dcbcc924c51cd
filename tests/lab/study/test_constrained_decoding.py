"""A dictionary's spans weighed against a model's scores of tags."""

import itertools
from itertools import pairwise

import numpy as np
import pytest

from kbert_core.errors import DataError
from kbert_core.labels import bio_spans
from kbert_core.tasks.ner import LabelledToken, NerPrediction, best_tags
from kbert_lab.study.dictionary import (
    BOOSTS,
    TagScores,
    boosted_tags,
    choose_weight,
    guided_spans,
    load_scores,
    save_scores,
    written_over,
)

NAMES = ("O", "B-x", "I-x", "B-y", "I-y")


def prediction(*rows):
    """A text of one character a token, with the likelihoods of its five tags."""
    tokens = []
    for at, row in enumerate(rows):
        chances = dict(zip(NAMES, np.array(row) / sum(row), strict=True))
        tokens.append(LabelledToken(at, at + 1, max(chances, key=chances.get), chances))
    return NerPrediction((), tuple(tokens))


def slowly_best(scores, boosted, boost):
    """Score every sequence of tags that is consistent."""

    def consistent(tags):
        return all(
            not tag.startswith("I-") or before[1:] == tag[1:] != ""
            for before, tag in pairwise(["O", *tags])
        )

    def score(sequence):
        held = bio_spans([NAMES[tag] for tag in sequence])
        return boost * sum(span in held for span in boosted) + sum(
            scores[range(len(scores)), sequence]
        )

    every = itertools.product(range(len(NAMES)), repeat=len(scores))
    return max((s for s in every if consistent([NAMES[tag] for tag in s])), key=score)


def test_boosted_tags_agree_with_trying_every_sequence():
    dice, changed = np.random.default_rng(0), 0
    for length in [1, 2, 3, 4, 5] * 12:
        scores = np.log(dice.dirichlet(np.ones(5), length))
        boosted = []
        for label in "xxy":
            first = int(dice.integers(length))
            boosted.append((first, int(dice.integers(first + 1, length + 1)), label))
        boosted, boost = list(dict.fromkeys(boosted)), 4 * dice.random()
        tags = boosted_tags(scores, NAMES, boosted, boost)
        assert tags == list(slowly_best(scores, boosted, boost))
        plain = boosted_tags(scores, NAMES, [], 0.0)
        assert plain == best_tags(scores, NAMES).tolist()
        changed += tags != plain
    assert changed > 15


SURE = [prediction((1, 8, 1, 1, 1), (1, 1, 8, 1, 1), (8, 1, 1, 1, 1), (8, 1, 1, 1, 1))]


def test_no_bonus_is_the_model_and_a_great_one_the_dictionary_written_over_it():
    scores = TagScores.of(SURE)
    dictionary = [[(1, 3, "y")]]
    model = guided_spans(scores, dictionary, 0.0)
    assert model == [[(0, 2, "x")]]
    # taking (1, 3, y) for the model's tags costs 3 tokens ln 8 each, one of them twice over
    assert guided_spans(scores, dictionary, 4.0) == model
    over = guided_spans(scores, dictionary, 100.0)
    assert (1, 3, "y") in over[0]
    # the model's tags beside it are decoded anew: what is left of (0, 2, x) stays an entity
    assert written_over(model, dictionary) == [[(1, 3, "y")]]
    assert over == [[(0, 1, "x"), (1, 3, "y")]]


def test_spans_that_no_tokens_border_or_no_label_fits_are_left_out():
    scores = TagScores.of(SURE)
    assert guided_spans(scores, [[(0, 9, "x"), (1, 3, "z")]], 100.0) == [[(0, 2, "x")]]


def test_texts_are_kept_apart():
    two = TagScores.of([*SURE, prediction((8, 1, 1, 1, 1))])
    assert guided_spans(two, [[], [(0, 1, "y")]], 9.0) == [[(0, 2, "x")], [(0, 1, "y")]]


@pytest.mark.parametrize(("gold", "best"), [((0, 2, "x"), 0.0), ((1, 3, "y"), None)])
def test_the_smallest_weight_that_does_best_on_dev_is_taken(gold, best):
    weight, tried = choose_weight(TagScores.of(SURE), [[(1, 3, "y")]], [[gold]])
    assert list(tried) == [f"{w:g}" for w in BOOSTS]
    top = [w for w in BOOSTS if tried[f"{w:g}"] == max(tried.values())]
    assert weight == top[0]
    assert best is None or weight == best
    assert best is not None or weight > 0


def test_scores_are_kept_in_a_file(tmp_path):
    made = TagScores.of(SURE)
    with (tmp_path / "s.npz").open("wb") as file:
        save_scores(file, {"dev": made, "test": made})
    found = load_scores(tmp_path / "s.npz")
    assert list(found) == ["dev", "test"]
    assert found["dev"].names == NAMES
    assert np.array_equal(found["test"].scores, made.scores)


@pytest.mark.parametrize(
    "broken", ["no archive", "cut off", "empty", "damaged", "an array is missing"]
)
def test_a_broken_file_of_scores_is_named(tmp_path, broken):
    path = tmp_path / "s.npz"
    with path.open("wb") as file:
        if broken == "an array is missing":
            np.savez_compressed(file, **{"dev.names": np.array(NAMES)})
        else:
            save_scores(file, {"dev": TagScores.of(SURE)})
    whole = path.read_bytes()
    at = len(whole) // 3
    damage = {
        "no archive": b"no archive",
        "cut off": whole[:-100],
        "empty": b"",
        "damaged": whole[:at] + bytes(64) + whole[at + 64 :],
    }
    path.write_bytes(damage.get(broken, whole))
    with pytest.raises(DataError, match=r"s\.npz: can't be read.*Delete it"):
        load_scores(path)
