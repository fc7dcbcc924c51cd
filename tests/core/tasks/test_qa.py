"""Reading comprehension: answers of the paragraph alone, the loss by hand, windows of a pair."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from conftest import save_checkpoint
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModelForTokenClassification

from kbert_core import Card, InjectionOptions, KnowledgeGraph, Pipeline, ReadConfig, Triple
from kbert_core.errors import TextError
from kbert_core.knowbert.candidates import Base
from kbert_core.knowbert.kar import KarOptions
from kbert_core.knowbert.knowbert import KnowBertConfig
from kbert_core.labels import IGNORED, Labels
from kbert_core.plain_text import PlainTextConfig
from kbert_core.tasks import TASKS
from kbert_core.tasks.qa import MOST_TOKENS
from kbert_core.tokens import Tokens, text_places
from kbert_lab.data.labelled import Example
from kbert_lab.training.rows import RowMaker, answer_tokens, batch_of

QA = TASKS["qa"]
LABELS = Labels({0: "start", 1: "end"})
QUESTION, PARAGRAPH = "什么病？", "患者有糖尿病病史，今查心电图。"
ANSWER = (3, "糖尿病")
GRAPH = KnowledgeGraph([Triple("糖尿病", "类别", "疾病"), Triple("心电图", "类别", "检查")])
SYSTEMS = ["k-bert", "plain-text", "knowbert"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    labels = {"id2label": {0: "start", 1: "end"}, "label2id": {"start": 0, "end": 1}}
    place = tmp_path_factory.mktemp("qa") / "model"
    return save_checkpoint(place, AutoModelForTokenClassification, Card("qa"), **labels)


def pipeline_of(folder, checkpoints, system="k-bert", **how):
    pipeline = Pipeline.from_pretrained(folder, device="cpu")
    options = InjectionOptions()
    if system == "knowbert":
        kar = KarOptions(size=12, heads=3, inner=16)
        config = KnowBertConfig(
            options, bases=(Base(vectors=str(checkpoints["encoder"]), kar=kar),)
        )
    else:
        config = (ReadConfig if system == "k-bert" else PlainTextConfig)(options)
    card = Card("qa", replace(config, **how))
    return Pipeline(pipeline.reader.model, pipeline.hugging_face_tokenizer, card)


def text_of(question, paragraph):
    """A reading of which every character is a token."""
    tokens = [
        Tokens(range(len(t)), range(len(t)), range(1, len(t) + 1)) for t in (question, paragraph)
    ]
    return SimpleNamespace(sentences=(question, paragraph), tokens=tokens)


def test_the_best_answer_has_the_likeliest_start_and_end_in_order():
    logits = torch.tensor([[9.0, 9], [0, 0], [2, 3], [0, 0], [1, 2]])  # of one character, and four
    found = QA.decode(text_of("?", "abcd"), logits, LABELS)
    starts, ends = [math.exp(v) for v in (0, 2, 0, 1)], [math.exp(v) for v in (0, 3, 0, 2)]
    best = found.answers[0]
    assert (best.start, best.end, best.text) == (1, 2, "b")
    assert best.probability == pytest.approx(starts[1] * ends[1] / sum(starts) / sum(ends))
    assert (found.answers[1].text, found.answers[2].text) == ("bcd", "ab")
    assert found.start_probabilities == pytest.approx([v / sum(starts) for v in starts])
    assert found.end_probabilities == pytest.approx([v / sum(ends) for v in ends])


@given(st.integers(0, 5), st.integers(1, 50), st.integers(0, 2**32))
def test_answers_are_parts_of_the_paragraph_and_the_best_of_all(question, size, seed):
    logits = 3 * torch.randn(question + size, 2, generator=torch.Generator().manual_seed(seed))
    paragraph = "".join(chr(0x4E00 + n) for n in range(size))
    found = QA.decode(text_of("?" * question, paragraph), logits, LABELS).answers
    start, end = logits[question:].double().softmax(0).T.tolist()
    every = sorted(
        (start[i] * end[j] for i in range(size) for j in range(i, min(size, i + MOST_TOKENS))),
        reverse=True,
    )
    assert [own.probability for own in found] == pytest.approx(every[:5], rel=1e-5)
    assert len({(own.start, own.end) for own in found}) == len(found)
    for own in found:
        assert 0 <= own.start < own.end <= size
        assert own.end - own.start <= MOST_TOKENS
        assert own.text == paragraph[own.start : own.end]


def test_tokens_of_one_character_make_one_answer():
    tokens = [Tokens([], [], []), Tokens([1, 2, 3], [0, 0, 1], [1, 1, 2])]
    text = SimpleNamespace(sentences=("", "Ⅷb"), tokens=tokens)
    found = QA.decode(text, torch.zeros(3, 2), LABELS).answers
    assert sorted(own.text for own in found) == ["b", "Ⅷ", "Ⅷb"]


def test_a_paragraph_without_a_token_is_refused():
    tokens = [Tokens([1], [0], [1]), Tokens([], [], [])]
    text = SimpleNamespace(sentences=("?", "  "), tokens=tokens)
    with pytest.raises(TextError, match="The paragraph '  ' has no token"):
        QA.decode(text, torch.zeros(1, 2), LABELS)


# Targets and loss


def test_the_loss_is_that_of_a_hand_computation():
    targets = torch.tensor(
        [
            [IGNORED, IGNORED, 1, 0, 2],
            [IGNORED, 3, 0, IGNORED, IGNORED],
            [IGNORED, 0, 0, 0, IGNORED],  # a window without the answer
            [IGNORED] * 5,  # a window with a part of it
        ]
    )
    values_of = torch.arange(40.0).reshape(4, 5, 2).sin()
    logits = values_of.clone().requires_grad_()
    total = 0.0
    for row, places, *gold in ((0, [2, 3, 4], 2, 4), (1, [1, 2], 1, 1), (2, [1, 2, 3], -1, -1)):
        for kind, at in enumerate(gold):
            values = {place: math.exp(float(values_of[row, place, kind])) for place in places}
            values[-1] = 1.0  # the score of "not here" is 0
            total -= math.log(values[at] / sum(values.values())) / 2
    loss = QA.loss(logits, targets)
    assert loss.item() == pytest.approx(total, rel=1e-5)
    loss.backward()
    assert logits.grad.isfinite().all()
    assert logits.grad[0, :2].eq(0).all()  # of question and special tokens
    assert logits.grad[3].eq(0).all()
    assert (QA.counted(targets) != IGNORED).sum() == 3  # rows that are trained


def test_rows_without_an_answer_alone_make_no_loss():
    logits = torch.randn(2, 4, 2, requires_grad=True)
    loss = QA.loss(logits, torch.full((2, 4), IGNORED))
    loss.backward()
    assert loss.item() == 0
    assert logits.grad.eq(0).all()


@pytest.mark.parametrize("system", SYSTEMS)
def test_targets_stand_on_the_paragraph_alone_and_branches_have_none(folder, checkpoints, system):
    pipeline = pipeline_of(folder, checkpoints, system)
    example = Example((QUESTION, PARAGRAPH), answers=(ANSWER,))
    maker = RowMaker([example], QA, pipeline.reader, {}, GRAPH)
    ((row,),) = maker.rows([0], 0)
    (reading,) = pipeline.readings([example.sentences], graph=GRAPH)
    assert reading.used
    part_of = [part for part in row.row.trunk_parts if part.sentence == 1]
    places = [at for part in part_of for at in range(part.start, part.end)]
    ids = [row.row.input_ids[at] for at in places]
    assert ids == list(reading.tokens[1].ids)
    target = np.asarray(row.target)
    assert np.flatnonzero(target != IGNORED).tolist() == places
    assert [target[at] for at in places] == [0, 0, 0, 1, 0, 2] + [0] * (len(places) - 6)
    assert len(target) > len(places) + len(QUESTION) + 3 or system == "knowbert"  # branches
    batch, labels = batch_of([row], pipeline.reader, pipeline.config)
    logits = pipeline.reader.forward(batch, pipeline.config)["logits"]
    assert torch.isfinite(QA.loss(logits, labels))


@pytest.mark.parametrize("system", SYSTEMS)
def test_windows_with_the_whole_answer_train_and_one_without(folder, checkpoints, system):
    pipeline = pipeline_of(folder, checkpoints, system, max_length=24)
    example = Example((QUESTION, "今查。" * 8 + PARAGRAPH), answers=((27, "糖尿病"),))
    (rows,) = RowMaker([example], QA, pipeline.reader, {}, KnowledgeGraph()).rows([0], 0)
    (reading,) = pipeline.readings([example.sentences])
    assert 0 < len(rows) < len(reading.rows)
    *holding, without = rows
    assert (np.max(without.target), np.min(without.target)) == (0, IGNORED)
    for row in holding:
        target = list(row.target)
        words = row.row.input_ids[target.index(1) : target.index(2) + 1]
        assert list(words) == list(pipeline.tokenizer.tokenize(["糖尿病"])[0].ids)
    cut = pipeline.reader.configured(None, windows=False)
    ((row,),) = RowMaker([example], QA, pipeline.reader, {}, KnowledgeGraph(), cut).rows([0], 0)
    assert (np.asarray(row.target) == IGNORED).all()  # the end is cut


def test_an_answer_is_found_only_if_its_tokens_are_all_read():
    tokens = Tokens([1, 2, 3], [0, 1, 3], [1, 3, 4])
    assert answer_tokens(tokens, 1, "bc") == (1, 2)
    assert answer_tokens(tokens, 1, "bcd ") == (1, 3)
    assert answer_tokens(tokens.first(2), 1, "bcd") is None
    assert answer_tokens(tokens.first(1), 1, "bc") is None
    assert answer_tokens(tokens, -1, "bc") is None


# Reading in windows


@pytest.mark.parametrize("system", SYSTEMS)
def test_windows_agree_with_a_single_row_where_one_is_enough(folder, checkpoints, system):
    pipeline = pipeline_of(folder, checkpoints, system)
    one, other = (
        pipeline(QUESTION, PARAGRAPH, graph=GRAPH, windows=windows) for windows in (True, False)
    )
    assert len(one.rows) == 1
    assert one.prediction == other.prediction
    assert one.logits.equal(other.logits)


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_token_of_a_long_paragraph_is_read_and_none_outside_answers(
    folder, checkpoints, system
):
    pipeline = pipeline_of(folder, checkpoints, system, max_length=40)
    paragraph = PARAGRAPH * 5
    trace = pipeline(QUESTION, paragraph, graph=GRAPH)
    question = list(pipeline.tokenizer.tokenize([QUESTION])[0].ids)
    assert len(trace.rows) > 2
    for row in trace.rows:
        first = row.trunk_parts[0]
        assert (first.sentence, first.first) == (0, 0)
        assert list(row.input_ids[first.start : first.start + 4]) == question[:4]
        assert len(row) <= 40
    assert len(trace.prediction.tokens) == len(pipeline.tokenizer.tokenize([paragraph])[0])
    for answer in trace.prediction.answers:
        assert paragraph[answer.start : answer.end] == answer.text
    (many,) = pipeline.predict([(QUESTION, paragraph)], graph=GRAPH)
    assert [own.text for own in many.answers] == [own.text for own in trace.prediction.answers]
    cut = pipeline(QUESTION, paragraph, graph=GRAPH, windows=False)
    assert len(cut.rows) == 1
    assert max(cut.prediction.tokens.ends) < len(paragraph)


def test_a_token_of_a_pair_is_taken_from_the_window_with_most_context(folder, checkpoints):
    pipeline = pipeline_of(folder, checkpoints, max_length=40)
    (reading,) = pipeline.readings([(QUESTION, PARAGRAPH * 5)])
    parts = [row.trunk_parts for row in reading.rows]
    sizes = list(map(len, reading.tokens))
    rows, places = text_places(parts, sizes)
    assert rows[: sizes[0]].tolist() == [0] * sizes[0]
    spans = [(own[-1].first, own[-1].first + own[-1].end - own[-1].start) for own in parts]
    for at in range(sizes[1]):
        near = [
            min(
                at - first if first else sizes[1],
                last - 1 - at if last < sizes[1] else sizes[1],
            )
            if first <= at < last
            else -1
            for first, last in spans
        ]
        row, place = rows[sizes[0] + at], places[sizes[0] + at]
        assert near[row] == max(near)
        assert reading.rows[row].input_ids[place] == reading.tokens[1].ids[at]


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_question_that_leaves_no_room_is_refused_with_its_size(folder, checkpoints, system):
    pipeline = pipeline_of(folder, checkpoints, system, max_length=24)
    with pytest.raises(TextError, match="The first text has 20 tokens"):
        pipeline("什么病？" * 5, PARAGRAPH)
    assert pipeline("什么病？" * 5, PARAGRAPH, windows=False).prediction.answers
