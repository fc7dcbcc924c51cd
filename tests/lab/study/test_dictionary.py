"""A dictionary's spans, against cases worked by hand, alone and weighed against a model's tags."""

import itertools
from itertools import pairwise

import numpy as np
import pytest
from tagged_texts import tagged, triple, worded

from kbert_core.errors import DataError
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.triple import Triple
from kbert_core.labels import bio_spans
from kbert_core.tasks.ner import LabelledToken, NerPrediction
from kbert_lab.study.dictionary import (
    BOOSTS,
    TagScores,
    choose_weight,
    dictionary_spans,
    guided_spans,
    learn_tail_labels,
    load_scores,
    save_scores,
    written_over,
)

SAID = ("糖尿病 类别 疾病", "糖尿病肾病 类别 疾病", "心电图 类别 检查")
SAID += ("头痛 来源 书", "头痛 类别 疾病", "头痛 类别 检查")
TYPES = KnowledgeGraph(map(triple, SAID))
LABELS = {"疾病": "D", "检查": "E"}


def test_the_longest_head_is_tagged_with_the_label_of_its_first_tail_that_has_one():
    texts = [tagged("糖尿病肾病及糖尿病"), tagged("头痛行心电图"), tagged("无")]
    assert dictionary_spans(texts, TYPES, LABELS) == [
        [(0, 5, "D"), (6, 9, "D")],
        [(0, 2, "D"), (3, 6, "E")],
        [],
    ]


def test_a_head_without_a_labelled_tail_and_a_triple_that_is_off_tag_nothing():
    off = TYPES.switch_off(Triple("糖尿病", "类别", "疾病"))
    assert dictionary_spans([tagged("有糖尿病")], off, LABELS) == [[]]
    assert dictionary_spans([tagged("有糖尿病")], TYPES, {"检查": "E"}) == [[]]


def test_a_match_that_cuts_a_word_is_no_span():
    graph = KnowledgeGraph([Triple("beta", "is_a", "drug")])
    texts = [worded("beta alpha", "O O"), worded("beta-blocker", "O")]
    assert dictionary_spans(texts, graph, {"drug": "C"}) == [[(0, 4, "C")], []]


def test_matches_that_are_gold_mentions_say_what_a_tail_means():
    train = [tagged("有糖尿病", ("糖尿病", "D"))] * 3 + [tagged("有糖尿病", ("糖尿病", "S"))] * 2
    train += [tagged("行心电图", ("心电图", "E"))] * 2
    # 疾病: 3 D, 2 S. 检查: 2 matches are too few, and its relation 类别 has 3 D, 2 S, 2 E.
    assert learn_tail_labels(train, TYPES) == {"疾病": "D", "检查": "D"}
    train += [tagged("有心电图")]
    assert learn_tail_labels(train, TYPES) == {"疾病": "D", "检查": "E"}


def test_a_tail_whose_matches_are_hardly_ever_mentions_means_nothing():
    train = [tagged("行心电图", ("心电图", "E"))] + [tagged("有心电图")] * 9
    assert learn_tail_labels(train, TYPES) == {"疾病": "E", "检查": "E"}  # 1 in 10
    train += [tagged("有心电图")]
    assert learn_tail_labels(train, TYPES) == {}  # 1 in 11, of the tail and of its relation


def test_a_gold_mention_that_is_only_part_of_a_match_does_not_vote():
    train = [tagged("糖尿病肾病", ("糖尿病", "D"))] * 9
    assert learn_tail_labels(train, TYPES) == {}


def test_a_rare_tail_means_what_its_relation_does():
    graph = KnowledgeGraph(
        [Triple(f"病{n}", "症状", tail) for n, tail in enumerate(["热", "咳", "痛", "晕"])]
        + [Triple("药", "治", "热")]
    )
    train = [tagged(f"有病{n}。", (f"病{n}", "D")) for n in range(3)]
    assert learn_tail_labels(train, graph) == {"热": "D", "咳": "D", "痛": "D", "晕": "D"}
    assert dictionary_spans([tagged("病3")], graph, learn_tail_labels(train, graph)) == [
        [(0, 2, "D")]
    ]


def test_a_predicted_span_that_overlaps_a_dictionary_span_gives_way():
    predicted = [[(0, 3, "D"), (3, 5, "E"), (9, 10, "S")], [(0, 1, "D")], []]
    dictionary = [[(2, 3, "E"), (6, 7, "D")], [], [(4, 5, "D")]]
    assert written_over(predicted, dictionary) == [
        [(2, 3, "E"), (3, 5, "E"), (6, 7, "D"), (9, 10, "S")],
        [(0, 1, "D")],
        [(4, 5, "D")],
    ]


# Weighed against a model

NAMES = ("O", "B-x", "I-x", "B-y", "I-y")


def prediction(*rows):
    """A text of one character a token, with the likelihoods of its five tags."""
    chances = [dict(zip(NAMES, np.array(row) / sum(row), strict=True)) for row in rows]
    tokens = [LabelledToken(at, at + 1, "O", chance) for at, chance in enumerate(chances)]
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


def test_guided_decoding_agrees_with_trying_every_sequence():
    dice, changed = np.random.default_rng(0), 0
    for length in [1, 2, 3, 4, 5] * 12:
        borders = [0, *sorted({*dice.integers(1, length + 1, 2).tolist()})]
        boosted = [(a, b, "xy"[dice.integers(2)]) for a, b in pairwise(borders)]
        boost = 4 * dice.random()
        scores = TagScores.of([prediction(*dice.dirichlet(np.ones(5), length))])
        (text,) = scores.by_text()
        (found,) = guided_spans(scores, [boosted], boost)
        tags = [NAMES[tag] for tag in slowly_best(text.scores, boosted, boost)]
        assert found == bio_spans(tags)
        changed += found != guided_spans(scores, [[]], 0.0)[0]
    assert changed > 15


SURE = [prediction((1, 8, 1, 1, 1), (1, 1, 8, 1, 1), (8, 1, 1, 1, 1), (8, 1, 1, 1, 1))]


def test_no_boost_is_the_model_and_a_great_one_the_dictionary_written_over_it():
    scores = TagScores.of(SURE)
    dictionary = [[(1, 3, "y")]]
    model = guided_spans(scores, dictionary, 0.0)
    assert model == [[(0, 2, "x")]]
    # taking (1, 3, y) for the model's tags costs 3 tokens ln 8 each, one of them twice over
    assert guided_spans(scores, dictionary, 4.0) == model
    # the model's tags beside it are decoded anew: what is left of (0, 2, x) stays an entity
    assert written_over(model, dictionary) == [[(1, 3, "y")]]
    assert guided_spans(scores, dictionary, 100.0) == [[(0, 1, "x"), (1, 3, "y")]]
    # what no tokens border or no label fits is left out
    assert guided_spans(scores, [[(0, 9, "x"), (1, 3, "z")]], 100.0) == model
    two = TagScores.of([*SURE, prediction((8, 1, 1, 1, 1))])  # texts are kept apart
    assert guided_spans(two, [[], [(0, 1, "y")]], 9.0) == [[(0, 2, "x")], [(0, 1, "y")]]


@pytest.mark.parametrize(("gold", "kept"), [((0, 2, "x"), True), ((1, 3, "y"), False)])
def test_the_smallest_weight_that_does_best_on_dev_is_taken(gold, kept):
    weight, tried = choose_weight(TagScores.of(SURE), [[(1, 3, "y")]], [[gold]])
    assert list(tried) == [f"{w:g}" for w in BOOSTS]
    assert weight == next(w for w in BOOSTS if tried[f"{w:g}"] == max(tried.values()))
    assert (weight == 0) == kept


def test_scores_come_back_from_their_file_and_a_broken_one_is_named(tmp_path):
    path, made = tmp_path / "s.npz", TagScores.of(SURE)
    with path.open("wb") as file:
        save_scores(file, {"dev": made, "test": made})
    found = load_scores(path)
    assert (list(found), found["dev"].names) == (["dev", "test"], NAMES)
    assert np.array_equal(found["test"].scores, made.scores)
    whole = path.read_bytes()
    at = len(whole) // 3
    for broken in (b"no archive", whole[:-100], b"", whole[:at] + bytes(64) + whole[at + 64 :]):
        path.write_bytes(broken)
        with pytest.raises(DataError, match=r"s\.npz: can't be read.*Delete it"):
            load_scores(path)
    np.savez_compressed(path, **{"dev.names": np.array(NAMES)})  # an array is missing
    with pytest.raises(DataError, match=r"s\.npz: can't be read.*Delete it"):
        load_scores(path)
