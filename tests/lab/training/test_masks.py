"""Texts with masks and what stands there: reading, targets, ranks, training."""

import json

import numpy as np
import pytest
import torch
from conftest import tiny_config, tiny_tokenizer
from transformers import AutoModelForMaskedLM, BertForMaskedLM

from kbert_core import Card, InjectionOptions, KnowledgeGraph, Pipeline, ReadConfig, Triple
from kbert_core.checkpoints.checkpoint import load_model, load_tokenizer
from kbert_core.errors import DataError
from kbert_core.knowbert.candidates import Base
from kbert_core.knowbert.kar import KarOptions
from kbert_core.knowbert.knowbert import KnowBertConfig
from kbert_core.labels import IGNORED
from kbert_core.pipeline import NO_KNOWLEDGE
from kbert_lab.data.labelled import Example, read_examples
from kbert_lab.training.count_scores import mask_columns, scores_of_masks
from kbert_lab.training.finetune import train
from kbert_lab.training.options import TrainOptions
from kbert_lab.training.rows import RowMaker

ASKED = Example(("糖尿病的类别是[MASK][MASK]。",), "疾病")
GRAPH = KnowledgeGraph([Triple("糖尿病", "类别", "疾病"), Triple("心电图", "类别", "检查")])
KAR = {"size": 12, "heads": 3, "inner": 16}


def pipeline_of(checkpoints, system="k-bert", max_length=None):
    if system == "knowbert":
        base = Base(vectors=str(checkpoints["encoder"]), kar=KarOptions(**KAR))
        card = Card("mask", KnowBertConfig(InjectionOptions(), max_length, (base,)))
    else:
        card = Card("mask", ReadConfig(max_length=max_length))
    model = load_model(checkpoints["mask"], AutoModelForMaskedLM, device="cpu")
    return Pipeline(model, load_tokenizer(checkpoints["mask"]), card)


def rows_of(pipeline, example=ASKED, graph=GRAPH, **how):
    made = RowMaker([example], pipeline.task, pipeline.reader, {}, graph, **how)
    return made.rows([0], 0)[0]


def test_a_column_of_fillings_labels_the_masks_and_no_other_does(tmp_path):
    (tmp_path / "a.tsv").write_text("text_a\tfilling\n糖尿病是[MASK][MASK]\t疾病\n")
    (example,) = read_examples(tmp_path / "a.tsv", "mask")
    assert (example.sentences, example.label) == (("糖尿病是[MASK][MASK]",), "疾病")
    (tmp_path / "b.tsv").write_text("label\ttext_a\n1\t糖尿病是[MASK]\n")
    assert read_examples(tmp_path / "b.tsv", "mask")[0].label is None
    (given,) = read_examples(tmp_path / "b.tsv", "mask", {"label": "label"})
    assert given.label == "1"
    (tmp_path / "c.tsv").write_text("text_a\tfilling\n糖尿病是[MASK]\t \n")
    with pytest.raises(DataError, match="line 2: label is blank"):
        read_examples(tmp_path / "c.tsv", "mask")


@pytest.mark.parametrize("system", ["k-bert", "knowbert"])
def test_the_masks_are_told_and_nothing_else_is_hidden(checkpoints, system):
    pipeline = pipeline_of(checkpoints, system)
    (made,) = rows_of(pipeline)
    ids, mask = np.array(made.row.input_ids), pipeline.hugging_face_tokenizer.mask_token_id
    assert made.input_ids is None
    gold = pipeline.hugging_face_tokenizer.convert_tokens_to_ids(["疾", "病"])
    assert made.target[ids == mask].tolist() == gold
    assert (made.target[ids != mask] == IGNORED).all()


def test_the_heads_entity_may_tell_the_tail_that_is_masked(checkpoints):
    (made,) = rows_of(pipeline_of(checkpoints, "knowbert"), held_out=True)
    (span,) = made.row.spans
    assert [own.entity for own in span.span.candidates] == ["糖尿病"]
    assert span.span.candidates[0].triples == (Triple("糖尿病", "类别", "疾病"),)


def test_masks_past_the_length_limit_are_not_told(checkpoints):
    pipeline = pipeline_of(checkpoints, max_length=10)  # [CLS] 糖尿病的类别是[MASK] [SEP]
    (made,) = rows_of(pipeline, graph=NO_KNOWLEDGE)
    (gold,) = pipeline.hugging_face_tokenizer.convert_tokens_to_ids(["疾"])
    assert [own for own in made.target if own != IGNORED] == [gold]


@pytest.mark.parametrize(
    ("filling", "words"), [("病", "text: 2, tokens of '病': 1"), ("疾病史", "'疾病史': 3")]
)
def test_fillings_that_do_not_fit_the_masks_are_said(checkpoints, filling, words):
    with pytest.raises(DataError, match=words):
        rows_of(pipeline_of(checkpoints), Example(ASKED.sentences, filling))


def test_ranks_are_those_of_the_whole_vocabulary_by_hand(checkpoints):
    pipeline = pipeline_of(checkpoints)
    other = Example(("心电图的类别是[MASK][MASK]。",), "检查")
    columns = mask_columns(pipeline, [ASKED, other], GRAPH, [ASKED], batch_size=1)
    vocabulary = pipeline.hugging_face_tokenizer.get_vocab()
    for number, example in enumerate((ASKED, other)):
        (reading,) = pipeline.readings([example.sentences], graph=GRAPH)
        logits = pipeline.reader.logits([reading])[0]
        masks = [7, 8]  # the text's own tokens, from 0
        ranks = [
            [int(i) for i in logits[place].argsort(descending=True)].index(vocabulary[piece]) + 1
            for place, piece in zip(masks, example.label, strict=True)
        ]
        assert columns["reciprocal"][number] == pytest.approx(sum(1 / rank for rank in ranks))
        assert columns["right"][number] == ranks.count(1)
        assert columns["count"][number] == 2
    assert columns["new"] == [0, 2]  # no training text has 检查
    assert columns["new_reciprocal"] == [0, columns["reciprocal"][1]]
    scores = scores_of_masks(columns)
    assert scores["mrr"] == pytest.approx(sum(columns["reciprocal"]) / 4)
    assert scores["new_mrr"] == pytest.approx(columns["reciprocal"][1] / 2)
    together = mask_columns(pipeline, [ASKED, other], GRAPH, [ASKED])
    assert together["reciprocal"] == pytest.approx(columns["reciprocal"])


@pytest.fixture
def facts(tmp_path, checkpoints):
    """A folder of facts as sentences, a graph of them, and an encoder with its head."""
    names = {"疾病": ("糖尿病", "口病", "多饮"), "检查": ("心电图", "图检", "行电")}
    triples = [Triple(head, "类别", tail) for tail, heads in names.items() for head in heads]
    rows = [f"{t.head}的类别是[MASK][MASK]\t{t.tail}" for t in triples]
    for split, times in {"train": 8, "dev": 1, "test": 1}.items():
        (tmp_path / f"{split}.tsv").write_text("\n".join(["text_a\tfilling", *rows * times]) + "\n")
    lines = (f"{t.head}\t{t.relation}\t{t.tail}\n" for t in triples)
    (tmp_path / "facts.spo").write_text("".join(lines))
    torch.manual_seed(0)
    BertForMaskedLM(tiny_config()).save_pretrained(tmp_path / "encoder")
    tiny_tokenizer().save_pretrained(tmp_path / "encoder")
    return tmp_path


@pytest.mark.parametrize("system", ["k-bert", "knowbert"])
def test_facts_are_learned_and_scored_by_mean_reciprocal_rank(facts, system):
    base = (json.dumps({"kar": KAR}),) if system == "knowbert" else ()
    how = {"task": "mask", "system": system, "base": base, "device": "cpu", "epochs": 5}
    how |= {"data": str(facts), "kg": (str(facts / "facts.spo"),), "batch_tokens": 64}
    how |= {"encoder": str(facts / "encoder"), "output": str(facts / "model")}
    report = train(TrainOptions.of(**how, learning_rate=3e-3))
    scores = report["scores"]["test"]
    assert scores["count"] == 12
    assert scores["mrr"] > 0.5 > report["learning_curve"][0]["mrr"]
    assert report["without_knowledge"]["test"].keys() == scores.keys()
    assert "| accuracy | mrr |" in (facts / "model" / "README.md").read_text(encoding="utf-8")
