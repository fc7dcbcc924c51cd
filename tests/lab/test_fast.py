"""Many texts at once: the last layers of a BERT run in part, and give the same."""

import pytest
import torch

from kbert_core import Intervention, KnowledgeGraph, Pipeline, Triple
from kbert_core.kbert.interventions import CLS, TRUNK
from kbert_core.kbert.kbert import FASTER
from kbert_core.reader import Reader
from kbert_lab import fast

GRAPH = KnowledgeGraph([Triple("糖尿病", "类别", "疾病"), Triple("心电图", "类别", "检查")])
LINES = ["患者有糖尿病史，入院后行心电图检查未见异常", "糖尿病", "未见异常", "心电图检查，糖尿病"]


def texts_for(task):
    return [(line, LINES[0]) if task == "pair" else (line,) for line in LINES]


class Inserted(torch.nn.Module):
    """A layer of somebody else's."""


@pytest.fixture(params=["ner", "classify", "pair"])
def pipeline(request, checkpoints):
    return Pipeline.from_pretrained(checkpoints[request.param], device="cpu")


def assert_same(pipeline):
    readings = pipeline.readings(texts_for(pipeline.card.task), graph=GRAPH)
    whole = Reader.logits(pipeline.reader, readings, batch_size=3)
    narrowed = pipeline.reader.logits(readings, batch_size=3)
    assert pipeline.reader in fast._twins
    for one, other in zip(whole, narrowed, strict=True):
        torch.testing.assert_close(other, one, atol=1e-5, rtol=0)
    return torch.cat([own.flatten() for own in narrowed])


def test_logits_of_many_texts_are_those_of_the_whole_model(pipeline):
    assert_same(pipeline)


@torch.no_grad()
def test_logits_follow_changed_and_replaced_weights(pipeline):
    first = assert_same(pipeline)
    layer = pipeline.reader.model.base_model.encoder.layer[-1]
    layer.output.dense.weight.mul_(-1)
    changed = assert_same(pipeline)
    assert not torch.allclose(first, changed, atol=1e-3)
    weight = layer.attention.self.query.weight
    layer.attention.self.query.weight = torch.nn.Parameter(weight.flip(0) * 30)
    assert not torch.allclose(changed, assert_same(pipeline), atol=1e-3)


def test_branches_are_computed_by_no_query_of_the_last_layer(checkpoints):
    pipeline = Pipeline.from_pretrained(checkpoints["ner"], device="cpu")
    readings = pipeline.readings([[line] for line in LINES], graph=GRAPH)
    pipeline.reader.logits(readings)
    seen = []
    twin = fast._twins[pipeline.reader]
    last = twin.model.base_model.encoder.layer[-1].attention.self
    for part in (last.query, last.key):
        part.register_forward_hook(lambda _, __, output: seen.append(output.shape[1]))
    pipeline.reader.logits(readings)
    assert seen == [len(LINES[0]), max(len(own.rows[0]) for own in readings)]


def test_interventions_and_windows_are_read_by_the_whole_model(checkpoints):
    pipeline = Pipeline.from_pretrained(checkpoints["ner"], device="cpu")
    edit = Intervention("block", CLS, TRUNK)
    readings = pipeline.readings([[line] for line in LINES], graph=GRAPH, interventions=(edit,))
    pipeline.reader.logits(readings)
    windows = pipeline.readings([[line * 3] for line in LINES], graph=GRAPH, max_length=16)
    assert any(len(own.rows) > 1 for own in windows)
    pipeline.reader.logits(windows)
    assert pipeline.reader not in fast._twins


def test_only_a_plain_bert_is_narrowed(checkpoints):
    model = Pipeline.from_pretrained(checkpoints["ner"], device="cpu").reader.model
    assert fast.NarrowedTwin.takes(model)
    model.base_model.encoder.layer[0].add_module("inserted", Inserted())
    assert not fast.NarrowedTwin.takes(model)


def test_without_the_lab_the_whole_model_is_run(checkpoints, monkeypatch):
    pipeline = Pipeline.from_pretrained(checkpoints["ner"], device="cpu")
    readings = pipeline.readings([[line] for line in LINES], graph=GRAPH)
    monkeypatch.setattr("kbert_core.kbert.kbert.FASTER", f"not_installed.{FASTER}")
    alone = pipeline.reader.logits(readings)
    assert all(map(torch.equal, alone, Reader.logits(pipeline.reader, readings)))
