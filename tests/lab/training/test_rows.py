"""What training makes of an example: targets, the recipe, masked tokens."""

import logging

import numpy as np
import pytest
import torch
from conftest import tiny_config
from tagged_texts import tagged
from transformers import BertModel

from kbert_core.checkpoints.checkpoint import load_tokenizer
from kbert_core.kbert.kbert import KBertReader
from kbert_core.kbert.visible import ReadConfig
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.knowledge.triple import Triple
from kbert_core.labels import IGNORED, Labels
from kbert_core.pipeline import NO_KNOWLEDGE
from kbert_core.tasks import TASKS
from kbert_lab.data.labelled import Example, labels_of
from kbert_lab.training.evaluate import tell_of_matches
from kbert_lab.training.options import Recipe
from kbert_lab.training.rows import RowMaker
from kbert_lab.training.vocabulary import character_tokenizer

TEXT = "有糖尿病史"
SICK = tagged(TEXT, ("糖尿病", "D"))
GRAPH = KnowledgeGraph([Triple("糖尿病", "类别", "疾病"), Triple("心电图", "类别", "检查")])
LABELS = {"O": 0, "B-D": 1, "I-D": 2, "B-E": 3, "I-E": 4}
TYPES = {"疾病": "D", "检查": "E"}
ENCODER = BertModel(tiny_config())


def reader_of(tokenizer, task="ner", **options):
    config = ReadConfig(InjectionOptions(**options), max_length=64)
    return KBertReader(ENCODER, TASKS[task].tokenizer(tokenizer), config)


READER = reader_of(character_tokenizer([TEXT, "类别疾病检查心电图"]))


def maker(recipe=Recipe(), task="ner", graph=GRAPH, example=SICK, count=1, **kwargs):
    """Of an example so many times, so that each is drawn for by itself."""
    return RowMaker([example] * count, TASKS[task], READER, LABELS, graph, recipe=recipe, **kwargs)


def drawn(made, epoch=0):
    """The one row of each example."""
    return [row for (row,) in made.rows(range(len(made.examples)), epoch)]


def target_of(row):
    return np.asarray(row.target).tolist()


SAID = "类别疾病"
ANOTHER = {"症状": "D", "检查": "E"}  # no tail of 糖尿病


@pytest.mark.parametrize(
    ("recipe", "types", "branch", "labels"),
    [
        (Recipe(), TYPES, SAID, [1, 2, 2]),  # labels stand on the trunk alone
        (Recipe(counterfactual=1.0), TYPES, "类别检查", [3, 4, 4]),
        (Recipe(counterfactual=1.0), ANOTHER, SAID, [1, 2, 2]),
        (Recipe(invented=1.0), {}, SAID, [1, 2, 2]),
        (Recipe(branch_dropout=1.0), TYPES, "", [1, 2, 2]),
        (Recipe(tree_dropout=1.0), TYPES, "", [1, 2, 2]),
        (None, TYPES, "", [1, 2, 2]),  # without a graph
    ],
)
def test_a_recipe_changes_branch_and_labels_together(recipe, types, branch, labels):
    graph = GRAPH if recipe else NO_KNOWLEDGE
    (row,) = drawn(maker(recipe or Recipe(), graph=graph, type_labels=types))
    assert row.row.tokens == ["[CLS]", "有", *"糖尿病", *branch, "史", "[SEP]"]
    assert target_of(row) == [IGNORED, 0, *labels, *[IGNORED] * len(branch), 0, IGNORED]


def test_an_invented_name_gets_a_type_and_its_label_where_the_graph_has_none():
    text = "有肾结石及糖尿病史"
    example = tagged(text, ("肾结石", "D"), ("糖尿病", "D"))
    made = maker(Recipe(invented=1.0), example=example, count=60, type_labels=TYPES)
    names = dict(zip(LABELS.values(), LABELS, strict=True))
    seen = set()
    for row in drawn(made):
        old, *new = sorted(row.row.tree.nodes, key=lambda n: n.mention.entity != "糖尿病")
        assert [b.triple for b in old.branches] == [Triple("糖尿病", "类别", "疾病")]
        labels = [names[t] for t in target_of(row) if t != IGNORED]
        assert labels[5:8] == ["B-D", "I-D", "I-D"]  # what the graph knows stays
        for node in new:
            start, end = node.mention.start, node.mention.end
            assert node.mention.entity == text[start:end]
            assert (start, end) == (1, 4) or not set(range(start, end)) & {1, 2, 3, 5, 6, 7}
            tail = node.branches[0].triple.tail
            label = TYPES[tail]
            assert labels[start:end] == [f"B-{label}"] + [f"I-{label}"] * (end - start - 1)
            seen.add((text[start:end], tail))
    assert {("肾结石", "检查"), ("肾结石", "疾病"), ("有", "检查"), ("史", "疾病")} <= seen


NAMED = [f"{first}{second}病" for first in "甲乙丙丁" for second in "子丑寅"]
NAMES_GRAPH = KnowledgeGraph([Triple(name, "类别", "疾病") for name in NAMED])


def of_names(recipe, **how):
    """Rows of as many examples as there are names, each of one."""
    examples = [tagged(f"有{name}史", (name, "D")) for name in NAMED]
    reader = reader_of(character_tokenizer([*NAMED, "有史类别疾病"]))
    how = {"graph": NAMES_GRAPH, "seed": 3, **how}
    return RowMaker(examples, TASKS["ner"], reader, LABELS, recipe=recipe, **how)


def name_in(row):
    text = "".join(row.row.tokens)
    return next(name for name in NAMED if f"有{name}" in text)


def test_new_names_stand_in_one_epoch_of_six_with_their_branch_and_label():
    made = of_names(Recipe(new_names=1.0))
    named = []
    for epoch in range(6):
        rows = drawn(made, epoch)
        named.append({name_in(row) for row in rows})
        for row in rows:
            (node,) = row.row.tree.nodes
            assert node.mention.entity == name_in(row)
            assert target_of(row)[2:5] == [1, 2, 2]
    assert all(len(names) == 2 for names in named) and set.union(*named) == set(NAMED)
    again = [name_in(row) for row in drawn(of_names(Recipe(new_names=1.0)), 7)]
    assert again == [name_in(row) for row in drawn(made, 7)] and {*again} == named[1]
    whole = [row for (row,) in made.rows(range(12), 2)]
    parts = [row for (row,) in [*made.rows([7, 3], 2), *made.rows([5], 2)]]
    assert [row.row.tokens for row in parts] == [whole[n].row.tokens for n in (7, 3, 5)]


def test_some_sentences_keep_their_names_others_in_every_epoch():
    made = of_names(Recipe(new_names=0.5))
    kept = [
        [name_in(row) == name for row, name in zip(drawn(made, epoch), NAMED, strict=True)]
        for epoch in range(30)
    ]
    assert 0.4 < np.mean(kept) < 0.75  # some of the new ones are their own
    assert all(0 < np.mean(of_one) < 1 for of_one in zip(*kept, strict=True))


def test_the_twin_without_knowledge_gets_the_same_new_names():
    recipe = Recipe(new_names=0.5, mention_dropout=0.5)
    for one, other in zip(
        drawn(of_names(recipe)), drawn(of_names(recipe, only_hides=True)), strict=True
    ):
        assert name_in(one) == name_in(other)
        assert (one.input_ids is None) == (other.input_ids is None)


def test_branches_of_names_that_are_no_mention_can_be_dropped_alone():
    graph = KnowledgeGraph([*GRAPH, Triple("病史", "类别", "检查"), Triple("史", "类别", "检查")])
    recipe = Recipe(mismatch_dropout=1.0)
    for row in drawn(maker(recipe, graph=graph, count=20)):
        assert [t.head for t in row.row.tree.used] == ["糖尿病"]
    made = RowMaker(
        [Example((TEXT,), "1")], TASKS["classify"], READER, {"1": 0}, graph, recipe=recipe
    )
    (row,) = drawn(made)
    assert len(row.row.tree.used) == 2  # where nothing is tagged, nothing is a mismatch


def test_the_twin_hides_the_same_mentions_as_the_model_with_the_graph():
    recipe = Recipe(
        counterfactual=0.3, mention_dropout=0.5, branch_dropout=0.2, tree_dropout=0.2, invented=0.3
    )
    model = maker(recipe, type_labels=TYPES, count=100)
    twin = maker(recipe, only_hides=True, type_labels=TYPES, count=100)
    hidden = 0
    for row, plain in zip(drawn(model), drawn(twin), strict=True):
        assert plain.row.tokens == ["[CLS]", *TEXT, "[SEP]"]
        assert target_of(plain) == [IGNORED, 0, 1, 2, 2, 0, IGNORED]  # never another label
        ids = row.row.input_ids if row.input_ids is None else row.input_ids
        trunk = [int(ids[i]) for i, branch in enumerate(row.row.branch_ids) if branch == 0]
        assert trunk == list(plain.row.input_ids if plain.input_ids is None else plain.input_ids)
        hidden += plain.input_ids is not None
    assert 20 < hidden < 60


def test_names_that_are_no_mention_are_hidden_as_often_as_those_that_are_where_asked():
    graph = KnowledgeGraph([*GRAPH, Triple("有", "类别", "检查")])

    def hidden(**recipe):
        shares = []
        for row in drawn(maker(Recipe(mention_dropout=0.5, **recipe), graph=graph, count=400)):
            ids = np.array(row.row.input_ids)
            changed = ids != (ids if row.input_ids is None else row.input_ids)
            trunk = changed[np.asarray(row.row.branch_ids) == 0]
            shares.append((trunk[1], trunk[2:5].any()))
            assert not trunk[5]  # in no name
            labels = [label for label in target_of(row) if label != IGNORED]
            assert labels == [0, 1, 2, 2, 0]
        return np.mean(shares, axis=0)

    assert hidden()[0] == 0
    false, true = hidden(mismatch_hiding=0.5)
    assert 0.3 < false < 0.6
    assert false == pytest.approx(true, abs=0.15)  # a random character may be the one it hides


def test_an_epoch_is_the_same_each_time_whatever_was_read_before_and_differs_from_the_next():
    def epochs(made, order):
        rows = {}
        for epoch in order:
            for row in drawn(made, epoch):
                ids = None if row.input_ids is None else row.input_ids.tolist()
                own = (list(row.row.input_ids), target_of(row), ids)
                rows.setdefault(epoch, []).append(str(own))
        return rows

    made, again = (maker(Recipe(0.5, 0.5, 0.5, 0.2), type_labels=TYPES, count=4) for _ in "ab")
    first = epochs(made, range(20))
    assert first == epochs(again, reversed(range(20)))
    assert len(set(map(str, first.values()))) > 3


def types_of(examples, graph):
    return RowMaker(examples, TASKS["ner"], READER, LABELS, graph).type_labels


def test_type_labels_are_learned_from_matched_mentions():
    heart = Example(("心电图",), None, ((0, 1), (1, 2), (2, 3)), ("B-E", "I-E", "I-E"))
    assert types_of([SICK] * 12 + [heart] * 12, GRAPH) == TYPES
    assert types_of([SICK] * 3, GRAPH) == {}
    assert labels_of([SICK, heart])[0] == "O"


def test_a_tail_that_only_some_mentions_of_a_label_have_names_no_type():
    names = ("甲", "乙", "丙")
    graph = KnowledgeGraph(Triple(name, "治疗", tail) for name, tail in zip(names, "ABC"))  # noqa: B905
    examples = [Example((name,), None, ((0, 1),), ("B-D",)) for name in names * 12]
    assert types_of(examples, graph) == {}
    assert types_of(examples[::3], graph) == {"A": "D"}


def test_every_piece_of_a_word_carries_its_tag_and_no_gold_span_is_lost(minilm_folder):
    words = ["Naloxone", "reverses", "pan-cytopenia", "."]
    text, starts = " ".join(words), [0, 9, 18, 32]
    spans = tuple((s, s + len(w)) for s, w in zip(starts, words, strict=True))
    example = Example((text,), None, spans, ("B-C", "O", "B-D", "O"))
    labels = {"O": 0, "B-C": 1, "I-C": 2, "B-D": 3, "I-D": 4}
    graph = KnowledgeGraph([Triple("naloxone", "treats", "overdose")])
    reader = reader_of(load_tokenizer(minilm_folder))
    ((row,),) = RowMaker([example], TASKS["ner"], reader, labels, graph).rows([0], 0)
    (reading,) = reader.read([(text,)], graph)
    (on_text,) = [reading.on_text([torch.from_numpy(row.target)])]
    logits = torch.nn.functional.one_hot(on_text, len(labels)).float() * 9
    found = TASKS["ner"].decode(reading, logits, Labels(dict(enumerate(labels))))
    assert [(s.text, s.label) for s in found.spans] == [("Naloxone", "C"), ("pan-cytopenia", "D")]
    pieces = sum(start < len("Naloxone") for start in reading.tokens[0].starts)
    assert pieces > 2  # of which the first is B-, the others I-
    assert on_text[:pieces].tolist() == [1] + [2] * (pieces - 1)


def test_masked_tokens_are_on_the_trunk_and_told_by_their_old_ids():
    made = maker(task="mask", example=Example((TEXT,)))
    for epoch in range(30):
        (row,) = drawn(made, epoch)
        places = np.flatnonzero(row.target != IGNORED)
        assert len(places)
        for i in places:
            assert row.row.branch_ids[i] == 0
            assert row.target[i] == row.row.input_ids[i]


@pytest.mark.parametrize(
    ("used", "of", "relations", "level", "text"),
    [
        (0, 9, False, "WARNING", "0 of 9 rows of train (0.0%)"),
        (1, 4, False, "INFO", "1 of 4 rows of train (25.0%)"),
        (0, 1, True, "WARNING", "the graph has the relations of --relations"),
    ],
)
def test_the_share_of_rows_that_the_graph_knows_is_told(caplog, used, of, relations, level, text):
    caplog.set_level(logging.INFO)
    tell_of_matches([n < used for n in range(of)], "train", relations=relations)
    (record,) = caplog.records
    assert record.levelname == level
    assert text in record.getMessage()
