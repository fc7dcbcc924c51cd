"""A linear tagger: which new names it finds, and that it learns from training alone."""

import random

import numpy as np
import pytest

from kbert_lab.data.labelled import Example
from kbert_lab.study import linear
from kbert_lab.study.linear import linear_recall

FIRST = 3616601341270193008
FILLER = "天地玄黄宇宙洪荒日月盈昃辰宿列张"
OF_NAMES = "寒来暑往秋收冬藏闰余成岁律吕调阳云腾致雨露结为霜"


def sentence(name, before, label, *, filler="".join(FILLER)):
    """A text of single characters in which a name of two follows a word."""
    text = f"{filler}{before}{name}{filler[:2]}"
    start = len(filler) + len(before)
    tags = ["O"] * len(text)
    tags[start : start + 2] = [f"B-{label}", f"I-{label}"]
    words = tuple((at, at + 1) for at in range(len(text)))
    return Example((text,), words=words, tags=tuple(tags))


def drawn(count, seed, given_away):
    """Sentences with a name each; the word before it says its label, or nothing does."""
    made, rng = [], random.Random(seed)
    for number in range(count):
        label = ("Symptom", "Cure")[number % 2]
        name = "".join(rng.sample(OF_NAMES, 2))
        before = (
            {"Symptom": "患有", "Cure": "服用"}[label] if given_away else rng.choice("甲乙丙丁")
        )
        rest = "".join(rng.sample(FILLER, 6))
        made.append(sentence(name, before, label, filler=rest))
    return made


def test_new_names_that_their_neighbours_give_away_are_found():
    recall = linear_recall(drawn(200, 1, given_away=True), drawn(60, 2, given_away=True))
    assert recall.total > 20
    assert recall.share > 0.9


def test_names_whose_label_nothing_gives_away_are_mostly_not_found():
    recall = linear_recall(drawn(200, 1, given_away=False), drawn(60, 2, given_away=False))
    assert recall.total > 20
    assert recall.share < 0.7  # one label or the other, where it finds the borders


def test_only_names_new_to_train_count():
    train = [sentence("寒来", "患有", "Symptom"), sentence("暑往", "服用", "Cure")] * 5
    held_out = [sentence("寒来", "患有", "Symptom"), sentence("秋收", "患有", "Symptom")]
    assert linear_recall(train, held_out).total == 1
    none = linear_recall(train, held_out[:1])
    assert (none.count, none.total, none.odds) == (0, 0, 1)


def test_a_token_has_the_same_features_in_every_process():
    """Unlike Python's own hash, which differs by process."""
    (first, *_), *_ = linear._features([sentence("寒来", "患有", "Symptom")], words=False).tolist()
    assert first == FIRST


def test_endings_of_words_give_their_label_away():
    def of(stem, ending, label):
        words = ["the", "patient", "took", f"{stem}{ending}", "today"]
        text, ends = " ".join(words), np.cumsum([len(word) + 1 for word in words]) - 1
        spans = tuple(
            (int(end) - len(word), int(end)) for word, end in zip(words, ends, strict=True)
        )
        tags = ("O", "O", "O", f"B-{label}", "O")
        return Example((text,), words=spans, tags=tags)

    def many(seed, count):
        rng = random.Random(seed)
        stems = ["".join(rng.choice("bcdfgklmnprt") for _ in range(5)) for _ in range(count)]
        ends = (("statin", "Cure"), ("itis", "Disease"))
        return [of(stem, *ends[number % 2]) for number, stem in enumerate(stems)]

    assert linear_recall(many(5, 120), many(6, 40)).share > 0.95


@pytest.mark.parametrize(
    ("train", "held_out"),
    [
        ([Example(("天地",), words=((0, 1), (1, 2)), tags=("O", "O"))], drawn(3, 1, True)),
        (drawn(3, 1, True), [Example(("",))]),
    ],
)
def test_where_there_is_nothing_to_learn_or_read_nothing_is_found(train, held_out):
    assert linear_recall(train, held_out).count == 0


def test_texts_without_a_token_change_nothing():
    train, held_out, empty = drawn(60, 3, True), drawn(30, 4, True), [Example(("",))]
    plain = linear_recall(train, held_out)
    assert linear_recall(empty + train + empty, empty + held_out + empty) == plain


def test_a_label_that_train_does_not_have_is_not_found_and_half_a_character_is_read():
    train = drawn(60, 3, given_away=True)
    held_out = [sentence("结为", "患有", "Organ"), sentence("\ud83d霜", "患有", "Symptom")]
    recall = linear_recall(train, held_out)
    assert recall.total == 2 and recall.count <= 1


def test_a_text_is_not_the_neighbour_of_the_next():
    one = sentence("寒来", "患有", "Symptom")
    alone = linear._features([one], words=False)
    both = linear._features([sentence("暑往", "服用", "Cure"), one], words=False)
    assert (both[-len(alone) :] == alone).all()


def test_of_many_texts_every_other_is_read(monkeypatch):
    train, held_out = drawn(40, 1, given_away=True), drawn(10, 2, given_away=True)
    read, features = [], linear._features
    monkeypatch.setattr(linear, "_features", lambda e, w: read.append(len(e)) or features(e, w))
    size = sum(len(e.words) for e in train)
    for most in (size, size - 1):
        monkeypatch.setattr(linear, "MOST", most)
        linear_recall(train, held_out)
    assert read == [40, 10, 20, 10]


def test_of_very_many_features_the_most_frequent_are_kept(monkeypatch):
    train, held_out = drawn(200, 1, given_away=True), drawn(60, 2, given_away=True)
    sizes, fitted = [], linear._fitted
    monkeypatch.setattr(linear, "_fitted", lambda *of: sizes.append(of[0].shape) or fitted(*of))
    monkeypatch.setattr(linear, "MOST_WEIGHTS", 5 * 300)  # five labels
    assert linear_recall(train, held_out).share > 0.9
    assert sizes[0][1] == 300


def test_adam_ends_near_the_least_loss_of_the_same_model():
    """A second way to fit: gradient descent, long."""
    rng = np.random.default_rng(3)
    columns, tags = rng.integers(0, 6, (80, 3)), rng.integers(0, 3, 80)
    rows = linear._rows(columns, np.arange(6))

    def loss(weights):
        logits = rows @ weights
        return (np.log(np.exp(logits).sum(1)) - logits[np.arange(80), tags]).mean()

    weights = np.zeros((6, 3))
    for _ in range(3000):
        chances = np.exp(rows @ weights)
        chances /= chances.sum(1, keepdims=True)
        chances[np.arange(80), tags] -= 1
        weights -= 0.3 * (rows.T @ chances) / 80
    fitted = linear._fitted(rows, tags, 3)
    assert loss(weights) <= loss(fitted) < loss(weights) + 0.02 < loss(np.zeros((6, 3)))
