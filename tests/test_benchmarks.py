"""Benchmarks: the page of figures, the count of operations, rows that hold several trees."""

import json
import random
import re
from dataclasses import replace

import torch
from conftest import FIGURE_2, tiny_config, tiny_tokenizer
from torch.utils.flop_counter import FlopCounterMode
from transformers import BertForTokenClassification, BertModel

from benchmarks.gpu import flops, pack, packed, packed_step
from benchmarks.report import PAGE, page
from benchmarks.segments import RESULT, THINGS, pairs, things
from kbert_core import KnowledgeGraph, MaskTransformer, WordPieces, collate, flatten, grow_trees


def test_operations_of_the_formula_are_those_that_pytorch_counts():
    config = tiny_config()
    model = BertModel(config, add_pooling_layer=False).eval()
    model.set_attn_implementation("eager")
    with FlopCounterMode(display=False) as counted, torch.no_grad():
        model(torch.ones(2, 24, dtype=torch.long))
    assert counted.get_total_flops() == 2 * flops(config, 24)


def test_the_words_of_a_pair_do_not_tell_its_label_and_no_word_of_test_is_trained():
    graph, kinds = things(), {split: {*of} for split, of in THINGS.items()}
    made = {split: pairs(split, random.Random(0)) for split in THINGS}
    assert made["test"] == pairs("test", random.Random(0))
    for examples in made.values():
        label = {example.sentences: example.label for example in examples}
        assert len(label) == len(examples)
        assert all({label[one, other], label[other, one]} == {"0", "1"} for one, other in label)
    names = {split: {t.head for t in graph if t.tail in own} for split, own in kinds.items()}
    trained = "".join("".join(example.sentences) for example in made["train"])
    assert not [w for w in names["test"] | names["dev"] | kinds["test"] if w in trained]


def test_the_page_of_segments_holds_what_was_read():
    found = json.loads(RESULT.read_text("utf-8"))
    page = (PAGE.parent / "results" / "segments.md").read_text("utf-8")
    full, none, *_ = means = [row["mean"] for row in found["rows"]]
    assert re.findall(r"^\| [\w ]+ \| ([\d.]+) \|$", page, re.MULTILINE) == [*map(str, means)]
    assert f"answers {none:g} % of the pairs instead of {full:g} %" in page
    assert f"{found['models/matching-zh']} of the {found['pairs']} pairs" in page


def test_a_packed_tree_has_the_states_it_has_alone_and_others_no_influence():
    texts = ["Tim Cook is visiting Beijing now", "Beijing now", "now", "Beijing saw Tim Cook"] * 3
    trees = list(flatten(grow_trees(texts, KnowledgeGraph(FIGURE_2)), WordPieces(tiny_tokenizer())))
    torch.manual_seed(0)
    encoder = MaskTransformer(BertForTokenClassification(tiny_config()))
    rows = pack(trees, 100)
    assert [tree for row in rows for tree in row] == trees
    assert max(sum(map(len, row)) for row in rows) <= 100 and len(rows[0]) > 1
    batch, tree_ids = packed(rows, 100)
    states = packed_step(encoder, batch, tree_ids)
    at = 0
    for tree in rows[0]:
        alone = encoder(collate([tree])).logits[0]
        torch.testing.assert_close(states[0, at : at + len(tree)], alone, atol=1e-5, rtol=1e-4)
        at += len(tree)
    others = replace(batch, input_ids=torch.where(tree_ids > 0, 7, batch.input_ids))
    first = tree_ids == 0
    assert torch.equal(packed_step(encoder, others, tree_ids)[first], states[first])


def test_every_figure_on_the_page_comes_from_the_json():
    assert PAGE.read_text("utf-8") == page()
