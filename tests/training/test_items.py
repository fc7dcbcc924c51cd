"""What training makes of an example: targets, the recipe, masked tokens."""

import numpy as np
import pytest
import torch
from conftest import tiny_config
from transformers import BertModel

from kbert_core.checkpoints.checkpoint import load_tokenizer
from kbert_core.data.labelled import Example, labels_of
from kbert_core.kbert.ablation import ReadConfig
from kbert_core.kbert.reader import KBertReader, KBertReading
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.knowledge.triple import Triple
from kbert_core.labels import IGNORED, Labels
from kbert_core.pipeline import NO_KNOWLEDGE
from kbert_core.tasks import TASKS
from kbert_core.training.finetune import bucketed
from kbert_core.training.items import ItemMaker, batch_of, learn_type_labels
from kbert_core.training.options import Recipe
from kbert_core.training.vocabulary import character_tokenizer

TEXT = "有糖尿病史"
SICK = Example((TEXT,), None, tuple((i, i + 1) for i in range(5)), ("O", "B-D", "I-D", "I-D", "O"))
GRAPH = KnowledgeGraph([Triple("糖尿病", "类别", "疾病"), Triple("心电图", "类别", "检查")])
LABELS = {"O": 0, "B-D": 1, "I-D": 2, "B-E": 3, "I-E": 4}


def maker(recipe=Recipe(), task="ner", graph=GRAPH, **kwargs):
    tokenizer = character_tokenizer([TEXT, "类别疾病检查心电图"])
    return maker_of(task, tokenizer, LABELS, graph, recipe=recipe, **kwargs)


def maker_of(task, tokenizer, labels, graph, **how):
    encoder = BertModel(tiny_config(vocab_size=len(tokenizer)))
    reader = KBertReader(encoder, TASKS[task].tokenizer(tokenizer))
    return ItemMaker(TASKS[task], reader, labels, graph, reader.config, **how)


def test_labels_stand_on_the_trunk_only():
    (item,) = maker().items(SICK, epoch=0, number=0)
    assert item.row.tokens == ["[CLS]", "有", *"糖尿病", *"类别疾病", "史", "[SEP]"]
    assert item.target == [IGNORED, 0, 1, 2, 2, *[IGNORED] * 4, 0, IGNORED]


def test_without_a_graph_the_labels_are_the_same_and_nothing_is_injected():
    (item,) = maker(graph=NO_KNOWLEDGE).items(SICK, epoch=0, number=0)
    assert item.target == [IGNORED, 0, 1, 2, 2, 0, IGNORED]


def test_a_counterfactual_changes_tail_and_label_together():
    changed = maker(Recipe(counterfactual=1.0), type_labels={"疾病": "D", "检查": "E"})
    (item,) = changed.items(SICK, epoch=0, number=0)
    assert item.row.tokens[5:9] == list("类别检查")
    assert item.target[2:5] == [3, 4, 4]


def test_a_counterfactual_needs_a_tail_that_names_the_type():
    unchanged = maker(Recipe(counterfactual=1.0), type_labels={"症状": "D", "检查": "E"})
    (item,) = unchanged.items(SICK, epoch=0, number=0)
    assert item.row.tokens[5:9] == list("类别疾病")
    assert item.target[2:5] == [1, 2, 2]


def test_an_invented_name_gets_a_type_and_its_label_where_the_graph_has_none():
    text = "有肾结石及糖尿病史"
    tags = ("O", "B-D", "I-D", "I-D", "O", "B-D", "I-D", "I-D", "O")
    example = Example((text,), None, tuple((i, i + 1) for i in range(9)), tags)
    tokenizer = character_tokenizer([text, "类别疾病检查"])
    how = {"recipe": Recipe(invented=1.0), "type_labels": {"疾病": "D", "检查": "E"}}
    made = maker_of("ner", tokenizer, LABELS, GRAPH, **how)
    names = dict(zip(LABELS.values(), LABELS, strict=True))
    seen = set()
    for number in range(60):
        (item,) = made.items(example, epoch=0, number=number)
        old, *new = sorted(item.row.tree.nodes, key=lambda n: n.mention.entity != "糖尿病")
        assert [b.triple for b in old.branches] == [Triple("糖尿病", "类别", "疾病")]
        labels = [names[t] for t in item.target if t != IGNORED]
        assert labels[5:8] == ["B-D", "I-D", "I-D"]  # what the graph knows stays
        for node in new:
            start, end = node.mention.start, node.mention.end
            assert node.mention.entity == text[start:end]
            assert (start, end) == (1, 4) or not set(range(start, end)) & {1, 2, 3, 5, 6, 7}
            tail = node.branches[0].triple.tail
            label = {"疾病": "D", "检查": "E"}[tail]
            assert labels[start:end] == [f"B-{label}"] + [f"I-{label}"] * (end - start - 1)
            seen.add((text[start:end], tail))
    assert {("肾结石", "检查"), ("肾结石", "疾病"), ("有", "检查"), ("史", "疾病")} <= seen


def test_branches_of_names_that_are_no_mention_can_be_dropped_alone():
    graph = KnowledgeGraph([*GRAPH, Triple("病史", "类别", "检查"), Triple("史", "类别", "检查")])
    for number in range(20):
        (item,) = maker(Recipe(mismatch_dropout=1.0), graph=graph).items(
            SICK, epoch=0, number=number
        )
        assert [t.head for t in item.row.tree.used] == ["糖尿病"]
    recipe = Recipe(mismatch_dropout=1.0)
    made = maker_of("classify", character_tokenizer([TEXT]), {"1": 0}, graph, recipe=recipe)
    (item,) = made.items(Example((TEXT,), "1"), epoch=0, number=0)
    assert len(item.row.tree.used) == 2  # where nothing is tagged, nothing is a mismatch


def test_without_tails_that_name_a_type_nothing_is_invented():
    (item,) = maker(Recipe(invented=1.0)).items(SICK, epoch=0, number=0)
    assert item.row.tokens[5:9] == list("类别疾病")


def test_the_twin_hides_the_same_mentions_as_the_model_with_the_graph():
    recipe = Recipe(
        counterfactual=0.3,
        mention_dropout=0.5,
        branch_dropout=0.2,
        tree_dropout=0.2,
        invented=0.3,
    )
    types = {"疾病": "D", "检查": "E"}
    model = maker(recipe, type_labels=types)
    twin = maker(recipe, graph=NO_KNOWLEDGE, hiding_graph=GRAPH, type_labels=types)
    hidden = 0
    for number in range(100):
        (item,) = model.items(SICK, epoch=0, number=number)
        (plain,) = twin.items(SICK, epoch=0, number=number)
        assert plain.row.tokens == ["[CLS]", *TEXT, "[SEP]"]
        assert plain.target == [IGNORED, 0, 1, 2, 2, 0, IGNORED]  # never a counterfactual label
        ids = item.input_ids or item.row.input_ids
        trunk = [ids[i] for i, branch in enumerate(item.row.branch_ids) if branch == 0]
        assert trunk == list(plain.input_ids or plain.row.input_ids)
        hidden += plain.input_ids is not None
    assert 20 < hidden < 60


def test_branch_dropout_and_tree_dropout_leave_the_sentence_alone():
    for recipe in (Recipe(branch_dropout=1.0), Recipe(tree_dropout=1.0)):
        (item,) = maker(recipe).items(SICK, epoch=0, number=0)
        assert item.row.tokens == ["[CLS]", *TEXT, "[SEP]"]
        assert item.target == [IGNORED, 0, 1, 2, 2, 0, IGNORED]


def test_mention_dropout_hides_the_mention_and_keeps_its_label():
    (item,) = maker(Recipe(mention_dropout=1.0)).items(SICK, epoch=0, number=0)
    row = item.row
    assert item.input_ids is not None
    changed = [i for i in range(len(row)) if item.input_ids[i] != row.input_ids[i]]
    assert changed
    assert set(changed) <= {2, 3, 4}
    assert item.target[2:5] == [1, 2, 2]


def test_an_epoch_is_the_same_each_time_and_differs_from_the_next():
    made = maker(Recipe(0.5, 0.5, 0.5, 0.2), type_labels={"疾病": "D", "检查": "E"})
    again = maker(Recipe(0.5, 0.5, 0.5, 0.2), type_labels={"疾病": "D", "检查": "E"})

    def epochs(source):
        return [
            (i.row.input_ids, i.target, i.input_ids)
            for epoch in range(20)
            for i in source.items(SICK, epoch=epoch, number=3)
        ]

    assert epochs(made) == epochs(again)
    assert len({str(e) for e in epochs(made)}) > 3


def test_type_labels_are_learned_from_matched_mentions():
    heart = Example(("心电图",), None, ((0, 1), (1, 2), (2, 3)), ("B-E", "I-E", "I-E"))
    found = learn_type_labels([SICK] * 12 + [heart] * 12, GRAPH, InjectionOptions())
    assert found == {"疾病": "D", "检查": "E"}
    assert learn_type_labels([SICK] * 3, GRAPH, InjectionOptions()) == {}
    assert labels_of([SICK, heart])[0] == "O"


def test_a_tail_that_only_some_mentions_of_a_label_have_names_no_type():
    names = ("甲", "乙", "丙")
    graph = KnowledgeGraph(Triple(name, "治疗", tail) for name, tail in zip(names, "ABC"))  # noqa: B905
    examples = [Example((name,), None, ((0, 1),), ("B-D",)) for name in names * 12]
    assert learn_type_labels(examples, graph, InjectionOptions()) == {}
    assert learn_type_labels(examples[::3], graph, InjectionOptions()) == {"A": "D"}


def test_every_piece_of_a_word_carries_its_tag_and_no_gold_span_is_lost(minilm_folder):
    words = ["Naloxone", "reverses", "pan-cytopenia", "."]
    text, starts = " ".join(words), [0, 9, 18, 32]
    spans = tuple((s, s + len(w)) for s, w in zip(starts, words, strict=True))
    example = Example((text,), None, spans, ("B-C", "O", "B-D", "O"))
    labels = {"O": 0, "B-C": 1, "I-C": 2, "B-D": 3, "I-D": 4}
    graph = KnowledgeGraph([Triple("naloxone", "treats", "overdose")])
    made = maker_of("ner", load_tokenizer(minilm_folder), labels, graph)
    (item,) = made.items(example, epoch=0, number=0)
    logits = torch.zeros(len(item.row), len(labels))
    for place, target in enumerate(item.target):
        logits[place, max(target, 0)] = 9.0
    reading = KBertReading((item.row,), ReadConfig(), tree=item.row.tree)
    names = Labels(enumerate(labels))
    found = TASKS["ner"].decode(reading, reading.on_text([logits]), names)
    assert [(s.text, s.label) for s in found.spans] == [("Naloxone", "C"), ("pan-cytopenia", "D")]
    starts_of_pieces = item.row.trunk_tokens[0].starts
    of_naloxone = [
        target
        for target, (_, at) in zip(item.target, item.row.trunk_places, strict=True)
        if at >= 0 and starts_of_pieces[at] < len("Naloxone")
    ]
    assert len(of_naloxone) > 2  # several pieces, the first B-, the others I-
    assert of_naloxone == [1] + [2] * (len(of_naloxone) - 1)


def test_masked_tokens_are_on_the_trunk_and_told_by_their_old_ids():
    made = maker(task="mask")
    for epoch in range(30):
        (item,) = made.items(Example((TEXT,)), epoch=epoch, number=0)
        places = [i for i, t in enumerate(item.target) if t != IGNORED]
        assert places
        for i in places:
            assert item.row.trunk_places[i][0] == 0
            assert item.target[i] == item.row.input_ids[i]


def test_a_batch_is_padded_to_its_longest_row_and_padding_has_no_label():
    long, short = maker(), maker(graph=NO_KNOWLEDGE)
    items = [*long.items(SICK, epoch=0, number=0), *short.items(SICK, epoch=0, number=0)]
    batch, labels = batch_of(items, pad_id=0)
    assert batch.input_ids.shape == labels.shape == (2, 11)
    assert (labels[1, 7:] == IGNORED).all()
    assert (batch.branch_ids[1, 7:] == -1).all()


@pytest.mark.parametrize("budget", [64, 256, 1024])
def test_buckets_hold_every_example_once_within_the_budget(budget):
    random = np.random.default_rng(0)
    lengths = [int(n) for n in random.integers(3, 200, 500)]
    groups = bucketed(lengths, budget, np.random.default_rng(1))
    assert sorted(n for group in groups for n in group) == list(range(500))
    for group in groups:
        assert len(group) == 1 or max(lengths[n] for n in group) * len(group) <= budget
