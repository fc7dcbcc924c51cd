"""Tiny Roof-BERTs with random weights, taggers."""

import torch
from conftest import BIO
from transformers import AutoModelForTokenClassification

from kbert_core import Card, KnowledgeGraph, Pipeline, Triple
from kbert_core.checkpoints.checkpoint import load_model, load_tokenizer
from kbert_core.roof.roof_bert import RoofConfig

GRAPH = KnowledgeGraph(
    [
        Triple("心电图", "类别", "检查"),
        Triple("糖尿病", "类别", "疾病"),
        Triple("糖尿病", "症状", "多饮"),
        Triple("布洛芬", "类别", "治疗"),
    ],
    name="kg",
)
TEXT = "患者有糖尿病史，行心电图检查"


def tagger(source, **options):
    """A tagger whose every input matters."""
    torch.manual_seed(0)
    labels = {"id2label": dict(enumerate(BIO)), "label2id": {b: i for i, b in enumerate(BIO)}}
    model = load_model(source, AutoModelForTokenClassification, device="cpu", **labels)
    card = Card("ner", RoofConfig(**options), knowledge=("kg",))
    card.write_to(model.config)
    return Pipeline(model, load_tokenizer(source), card)
