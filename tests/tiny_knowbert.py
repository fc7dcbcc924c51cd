"""Tiny KnowBerts with random weights: a linker of two senses, and a tagger."""

import torch
from conftest import BIO, save_checkpoint
from transformers import AutoModelForTokenClassification

from kbert_core import Card, InjectionOptions, KnowledgeGraph, Pipeline, Triple
from kbert_core.checkpoints.checkpoint import load_model, load_tokenizer
from kbert_core.knowbert.candidates import Base
from kbert_core.knowbert.kar import KarOptions
from kbert_core.knowbert.knowbert import KnowBertConfig

TEXT = "患者行心电图检查"
PLACE = (3, 6)
TEST, PICTURE = Triple("心电图.n.01", "gloss", "一种检查"), Triple("心电图.n.02", "gloss", "一张图")
SENSES = KnowledgeGraph(
    [
        TEST,
        Triple("心电图.n.01", "synonym", "心电图"),
        Triple("心电图.n.01", "count", "心电图 3"),
        PICTURE,
        Triple("心电图.n.02", "synonym", "心电图"),
    ],
    name="senses",
)


def knowbert_in(folder, checkpoints, *, head=True, null=False):
    """Save a tagger, or without a head a linker; its weights make every candidate matter."""
    kar = KarOptions(size=12, heads=3, inner=16, null_candidate=null)
    base = Base(("gloss",), "{tail}", vectors=str(checkpoints["encoder"]), kar=kar)
    config = KnowBertConfig(InjectionOptions(max_triples=4), None, (base,))
    if head:
        labels = {"id2label": dict(enumerate(BIO)), "label2id": {b: i for i, b in enumerate(BIO)}}
        source = save_checkpoint(folder, AutoModelForTokenClassification, Card("ner"), **labels)
        model = load_model(source, AutoModelForTokenClassification, device="cpu")
    else:
        source = checkpoints["encoder"]
        model = load_model(source, device="cpu")
    card = Card("ner" if head else "link", config, knowledge=("senses",))
    pipeline = Pipeline(model, load_tokenizer(source), card)
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in pipeline.reader.kars[0].parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    card.write_to(model.config)
    model.save_pretrained(folder)
    pipeline.hugging_face_tokenizer.save_pretrained(folder)
    return pipeline
