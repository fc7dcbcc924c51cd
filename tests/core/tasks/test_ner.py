"""Token labelling: consistent BIO tags, typed spans, windows joined."""

import itertools
import random
import time
from types import SimpleNamespace

import pytest
import torch
from conftest import BIO

from kbert_core import Words
from kbert_core.errors import CheckpointError
from kbert_core.labels import Labels, bio_spans
from kbert_core.tasks import TASKS
from kbert_core.tasks.ner import best_tags

NER = TASKS["ner"]
LABELS = Labels(enumerate(BIO))


def consistent(tags):
    return all(
        not tag.startswith("I-") or before in (f"B-{tag[2:]}", f"I-{tag[2:]}")
        for before, tag in zip(["O", *tags], tags, strict=False)
    )


def slowly_best(scores, names):
    """Score every sequence of tags that is consistent."""
    sequences = itertools.product(range(len(names)), repeat=len(scores))
    allowed = [s for s in sequences if consistent([names[tag] for tag in s])]

    return max(allowed, key=lambda s: sum(float(scores[i, tag]) for i, tag in enumerate(s)))


@pytest.mark.parametrize("names", [BIO, ("I-x", "O", "B-x"), ("B-a", "B-b", "I-b", "I-a", "O")])
def test_best_tags_agree_with_trying_every_sequence(names):
    dice = torch.Generator().manual_seed(0)
    for length in [1, 2, 3, 4, 5] * 12:
        scores = torch.randn(length, len(names), generator=dice).log_softmax(-1).numpy()
        tags = best_tags(scores, names).tolist()
        assert consistent([names[tag] for tag in tags])
        assert tags == list(slowly_best(scores, names))


def test_best_tags_of_a_very_long_text_take_no_minute():
    scores = torch.randn(100_000, 5).log_softmax(-1).numpy()
    began = time.perf_counter()
    assert len(best_tags(scores, BIO)) == 100_000
    assert time.perf_counter() - began < 15


@pytest.mark.parametrize(
    ("tags", "spans"),
    [
        ("O O", []),
        ("B-x I-x O", [(0, 2, "x")]),
        ("B-x B-x I-x", [(0, 1, "x"), (1, 3, "x")]),
        ("B-x I-y", [(0, 1, "x")]),  # an inside tag of another type begins nothing
        ("I-x I-x B-y", [(2, 3, "y")]),
        ("B-x O I-x", [(0, 1, "x")]),
        ("B-a-b I-a-b", [(0, 2, "a-b")]),
        ("", []),
    ],
)
def test_spans_are_read_off_bio_tags(tags, spans):
    assert bio_spans(tags.split()) == spans


def test_spans_agree_with_seqeval_on_random_tags():
    from seqeval.metrics.sequence_labeling import get_entities
    from seqeval.scheme import IOB2, Entities

    assert get_entities  # the lenient reading is another function
    dice = random.Random(5)
    for _ in range(300):
        tags = [dice.choice(BIO) for _ in range(dice.randint(1, 8))]
        strict = Entities([tags], IOB2).entities[0]
        assert bio_spans(tags) == [(e.start, e.end, e.tag) for e in strict]


def read(text):
    return SimpleNamespace(sentences=(text,), tokens=tuple(Words().tokenize([text])))


def logits_for(tags):
    """Logits that put a given tag on each token of the text."""
    logits = torch.zeros(len(tags), len(BIO))
    logits[range(len(tags)), [BIO.index(tag) for tag in tags]] = 5
    return logits


def test_prediction_is_read_on_the_texts_tokens():
    tags = ["O", "B-疾病", "O"]
    prediction = NER.decode(read("有 糖尿病  史"), logits_for(tags), LABELS)
    (span,) = prediction.spans
    assert (span.start, span.end, span.label, span.text) == (2, 5, "疾病", "糖尿病")
    assert 0.9 < span.probability < 1
    assert [(t.start, t.end, t.tag) for t in prediction.tokens] == [
        (0, 1, "O"),
        (2, 5, "B-疾病"),
        (7, 8, "O"),
    ]
    for token in prediction.tokens:
        assert list(token.probabilities) == list(BIO)
        assert sum(token.probabilities.values()) == pytest.approx(1, abs=1e-5)


def test_span_over_several_tokens_has_the_texts_own_characters():
    tags = ["O", "B-疾病", "I-疾病"]
    prediction = NER.decode(read("see Tim \t Cook."), logits_for(tags), LABELS)
    assert prediction.spans[0].text == "Tim \t Cook."


@pytest.mark.parametrize(
    ("names", "tags", "spans"),
    [
        ("O PER LOC", "PER PER O LOC", ["ab PER", "d LOC"]),  # bare types: runs
        ("O PER LOC", "PER LOC LOC O", ["a PER", "bc LOC"]),
        ("O I-PER I-LOC", "I-PER I-PER I-LOC O", ["ab PER", "c LOC"]),
        ("O B-x I-x E-x S-x", "B-x E-x S-x O", ["ab x", "c x"]),
        ("O B-x I-x E-x S-x", "B-x I-x E-x S-x", ["abc x", "d x"]),
        ("O B-x I-x L-x U-x", "U-x U-x B-x L-x", ["a x", "b x", "cd x"]),
        ("O B-x M-x E-x S-x", "B-x M-x E-x O", ["abc x"]),
        ("O B-x y", "B-x y y O", ["a x", "bc y"]),
        ("O B-O-x I-O-x", "B-O-x I-O-x O O", ["ab O-x"]),
    ],
)
def test_labels_of_other_schemes_give_spans(names, tags, spans):
    labels = Labels(enumerate(names.split()))
    logits = torch.zeros(4, len(labels))
    logits[range(4), [labels.numbers[tag] for tag in tags.split()]] = 5
    prediction = NER.decode(read("a b c d"), logits, labels)
    found = [f"{own.text.replace(' ', '')} {own.label}" for own in prediction.spans]
    assert found == spans
    assert [token.tag for token in prediction.tokens] == tags.split()
    for own in prediction.spans:
        of = labels.tags_of(own.label, 2)
        assert bio_spans([labels.bio[labels.numbers[tag]] for tag in of if tag in labels.numbers])
        assert {f"B-{own.label}", f"I-{own.label}"} & {*labels.known_tags}


@pytest.mark.parametrize("names", ["LABEL_0 LABEL_1 LABEL_2", "NOUN VERB"])
def test_labels_without_an_outside_are_refused_with_what_to_write(names):
    labels = Labels(enumerate(names.split()))
    listed = ", ".join(names.split())
    with pytest.raises(CheckpointError, match=f"labels are {listed}. None .* B-TYPE and I-TYPE"):
        NER.decode(read("a b"), torch.zeros(2, len(labels)), labels)


def test_empty_text_has_no_spans():
    prediction = NER.decode(read(""), torch.zeros(0, 5), LABELS)
    assert prediction.spans == ()
    assert prediction.tokens == ()
