"""The response to edits, worked by hand on a reader whose rules are known."""

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from small_data import tuning
from tagged_texts import triple
from transformers import AutoModelForTokenClassification

from kbert_core import Card, Pipeline, ReadConfig
from kbert_core.checkpoints.checkpoint import load_model, load_tokenizer
from kbert_core.kbert.sentence_tree import grow_trees
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.knowledge.triple import Triple
from kbert_core.systems import SYSTEMS, reading_of
from kbert_lab.data.labelled import Example
from kbert_lab.training.edits import edit_response
from kbert_lab.training.finetune import train
from kbert_lab.training.options import Recipe
from kbert_lab.training.recipe import learn_type_labels, type_relations

TYPES = {"疾病": "D", "检查": "E"}
FACTS = ("甲病 类别 疾病", "乙图 类别 检查", "丙病 类别 疾病", "戊病 类别 疾病")
GRAPH = KnowledgeGraph(map(triple, FACTS))
TRUE = {"甲病": "D", "乙图": "E", "丙病": "D", "戊病": "D"}


class Reader:
    """Labels a mention as its first branch says, but for what these rules say.

    Args:
        odd: of a name whose branch says anything but its true type: the label
            it gets, None for no span.
        alone: place → label: found without any branch.
        startled: of a name whose branch says anything but its true type: the
            sentence's other spans get this label, and its first character is
            a span of it.
    """

    def __init__(self, odd=None, alone=None, startled=None):
        self.odd, self.alone, self.startled = odd or {}, alone or {}, startled or {}
        self.configs, self.trees = [], []
        self.reader = self

    def batches(self, readings):
        raise AssertionError("no model reads here")

    def configured(self, **changes):
        return replace(ReadConfig(), **changes)

    def readings(self, texts, graph, config):
        trees = list(grow_trees(texts, graph, config.options))
        self.configs.append(config)
        self.trees += trees
        return [
            SimpleNamespace(
                tree=tree,
                mentions=[mention for mention, _ in tree.by_mention],
                by_mention=tree.by_mention,
            )
            for tree in trees
        ]

    def predicted(self, readings, batch_size):
        spans = [self.spans(own.tree) for own in readings]
        return [SimpleNamespace(prediction=SimpleNamespace(spans=own)) for own in spans]

    def spans(self, tree):
        found = dict(self.alone)
        edited = set()
        for node in tree.nodes:
            mention, label = node.mention, TYPES[node.branches[0].triple.tail]
            if label != TRUE.get(mention.entity, label):
                edited.add(mention.entity)
                label = self.odd.get(mention.entity, label)
            found[mention.start, mention.end] = label
        for name in edited & set(self.startled):
            others = {n.mention.entity: (n.mention.start, n.mention.end) for n in tree.nodes}
            own = others.pop(name)
            found = {p: lab if p == own else self.startled[name] for p, lab in found.items()}
            found[0, 1] = self.startled[name]
        return [
            SimpleNamespace(start=start, end=end, label=label)
            for (start, end), label in sorted(found.items())
            if label is not None
        ]


def example(text, *spans):
    tags = ["O"] * len(text)
    for start, end, label in spans:
        tags[start:end] = [f"B-{label}"] + [f"I-{label}"] * (end - start - 1)
    return Example((text,), None, tuple((i, i + 1) for i in range(len(text))), tuple(tags))


def respond(reader, *examples, graph=GRAPH, types=TYPES, seen=("甲病",), **how):
    return edit_response(reader, examples, graph, types, seen=set(seen), **how)


def test_replaced_tails_are_counted_by_what_becomes_of_the_span():
    text = example("有甲病乙图丙病戊病", (1, 3, "D"), (3, 5, "E"), (5, 7, "D"), (7, 9, "D"))
    found = respond(Reader(odd={"乙图": "E", "丙病": None, "戊病": "M"}), text)
    nothing_else = {"others_changed": 0.0, "others_new": 0.0}
    assert found["seen"] == {"new": 1.0, "kept": 0.0, "other": 0.0, "lost": 0.0} | (
        {**nothing_else, "n": 1}
    )
    third = pytest.approx(1 / 3)
    assert found["unseen"] == {"new": 0.0, "kept": third, "other": third, "lost": third} | (
        {**nothing_else, "n": 3}
    )


def test_spans_elsewhere_that_change_or_are_new_are_both_counted():
    text = example("有甲病乙图丙病", (1, 3, "D"), (3, 5, "E"), (5, 7, "D"))
    found = respond(Reader(startled={"甲病": "E"}), text)
    # After the edit of 甲病: 乙图 stays E, 丙病 becomes E, and 有 is a span that wasn't there.
    assert (found["seen"]["others_changed"], found["seen"]["others_new"]) == (1 / 2, 1 / 2)
    assert (found["unseen"]["others_changed"], found["unseen"]["others_new"]) == (0.0, 0.0)
    lost = respond(Reader(startled={"甲病": None}), text)
    assert (lost["seen"]["others_changed"], lost["seen"]["others_new"]) == (1.0, 0.0)


def test_a_second_mention_of_the_edited_name_is_meant_to_change():
    twice = example("甲病乙图甲病", (0, 2, "D"), (2, 4, "E"), (4, 6, "D"))
    found = respond(Reader(), twice)
    assert found["seen"]["n"] == 2
    assert found["seen"]["new"] == 1.0
    assert found["seen"]["others_changed"] == 0.0  # of 乙图 alone, twice
    found = respond(Reader(odd={"乙图": None}), twice)
    assert found["unseen"] | {"n": 1, "lost": 1.0, "others_changed": 0.0} == found["unseen"]


def test_what_is_not_tagged_rightly_or_has_no_type_triple_is_not_edited():
    text = example("甲病乙图", (0, 2, "E"), (2, 4, "E"))  # 甲病 is tagged D
    facts = GRAPH.replace(Triple("乙图", "类别", "检查"), Triple("乙图", "部位", "心"))
    reader = Reader()
    reader.spans = lambda tree: [SimpleNamespace(start=2, end=4, label="E")]
    found = respond(reader, text, graph=facts)
    assert [found[group]["n"] for group in ("unseen", "seen")] == [0, 0]
    assert found["unseen"]["new"] is None


def test_a_missing_triple_is_added_for_every_gold_mention_that_the_graph_does_not_know():
    texts = [
        example("甲病己病", (0, 2, "D"), (2, 4, "D")),  # 己病 is missed: right once added
        example("庚图", (0, 2, "E")),  # found as D: right once added
        example("甲病辛", (0, 3, "D")),  # overlaps a mention: known
        example("乙图壬", (2, 3, "M")),  # no tail says M
    ]
    reader = Reader()
    plain = reader.spans
    reader.spans = lambda tree: (
        [SimpleNamespace(start=0, end=2, label="D")]
        if tree.sentences == ("庚图",) and not tree.nodes
        else plain(tree)
    )
    found = respond(reader, *texts, seen=("庚图",))["added"]
    added = {"n": 1, "right_before": 0.0, "right_after": 1.0, "missed": 1, "missed_right": 1.0}
    others = {"unseen": 0.0, "seen": None}  # beside 庚图 there is no other span
    for group, share in others.items():
        assert found[group] == {**added, "others_changed": share, "others_new": share}
    assert Triple("己病", "类别", "疾病") in {t for tree in reader.trees for t in tree.used}


def test_one_type_is_enough_to_add_and_too_few_to_replace():
    text = example("甲病己病", (0, 2, "D"), (2, 4, "D"))
    found = respond(Reader(), text, types={"疾病": "D"})
    assert [found[group]["n"] for group in ("unseen", "seen")] == [0, 0]
    assert (found["added"]["unseen"]["n"], found["added"]["seen"]["n"]) == (1, 0)
    assert found["added"]["seen"]["right_after"] is None


def test_an_invented_name_is_followed_where_the_exact_span_gets_the_type_of_its_triple():
    texts = [
        example("甲病CT图腹", (0, 2, "D"), (2, 5, "E"), (5, 6, "B")),
        example("乙图", (0, 2, "E")),
    ]
    reader, again = Reader(), Reader()
    invented = respond(reader, *texts)["invented"]
    assert invented == {"D": {"n": 3, "followed": 1.0}, "E": {"n": 3, "followed": 1.0}}
    added, *names = [t for tree in reader.trees for t in tree.used if t.head not in TRUE]
    assert added.head == "CT图"
    assert [triple.tail for triple in names] == ["疾病", "检查"] * 3
    assert re.fullmatch("[甲病图腹乙]{2}", names[0].head)  # letters of the texts; 腹 is a word
    assert re.fullmatch("[CT]{2}[甲病图腹乙]", names[2].head)
    assert respond(again, *texts) and [t.used for t in again.trees] == [
        t.used for t in reader.trees
    ]
    plain = reader.spans

    def deaf(tree):
        """No test is found any more, and a disease with one letter too many."""
        found = [span for span in plain(tree) if span.label == "D"]
        return [SimpleNamespace(start=s.start, end=s.end + (s.end == 5), label="D") for s in found]

    reader.spans = deaf
    invented = respond(reader, *texts)["invented"]
    assert invented == {
        "D": {"n": 3, "followed": pytest.approx(2 / 3)},
        "E": {"n": 3, "followed": 0.0},
    }


@pytest.mark.parametrize("system", ["k-bert", "plain-text", "knowbert", "roof-bert", "toy"])
def test_any_system_is_edited_by_what_it_reads(system, checkpoints, monkeypatch):
    monkeypatch.setitem(SYSTEMS, "toy", "toy_reader:ToyReader")
    encoder = str(checkpoints["encoder"])
    reading = reading_of(system, ReadConfig(max_length=48)).trained_from(encoder)
    model = load_model(checkpoints["ner"], AutoModelForTokenClassification, device="cpu")
    pipeline = Pipeline(model, load_tokenizer(encoder), Card("ner", reading))

    def predicted(readings, batch_size):
        """Labels a mention as the first triple says that was read at it."""
        for own in readings:
            named = [(m.start, m.end, TYPES[triples[0].tail]) for m, triples in own.by_mention]
            spans = [SimpleNamespace(start=a, end=b, label=label) for a, b, label in named]
            yield SimpleNamespace(prediction=SimpleNamespace(spans=spans))

    monkeypatch.setattr(pipeline, "predicted", predicted)
    text = example("有甲病乙图己病", (1, 3, "D"), (3, 5, "E"), (5, 7, "D"))
    found = respond(pipeline, text)
    for group in ("seen", "unseen"):
        assert (found[group]["n"], found[group]["new"], found[group]["others_changed"]) == (1, 1, 0)
    added = found["added"]["unseen"]
    assert (added["n"], added["right_before"], added["right_after"]) == (1, 0, 1)
    texts = [pipeline.readings([text.sentences], graph=GRAPH)[0]] * 10
    assert learn_type_labels([text] * 10, texts) == TYPES


def test_the_relation_of_an_added_triple_is_one_that_is_injected():
    graph = KnowledgeGraph([Triple("甲", "是", "疾病"), Triple("乙", "类别", "疾病")])
    assert type_relations(graph, TYPES, InjectionOptions()) == {"疾病": "是"}
    named = InjectionOptions(relations=("类别",))
    assert type_relations(graph, TYPES, named) == {"疾病": "类别"}


def only_diseases(data):
    """Leave one type of entity and one type in the graph."""
    for split in ("train", "dev", "test"):
        header, *rows = (data / f"{split}.tsv").read_text(encoding="utf-8").splitlines()
        rows = [row for row in rows if "B-D" in row]
        (data / f"{split}.tsv").write_text(
            "\n".join([header, *rows, *rows]) + "\n", encoding="utf-8"
        )
    lines = (data / "kg.spo").read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if line.endswith("疾病")][1:]  # one name is unknown to it
    (data / "kg.spo").write_text("\n".join(kept) + "\n", encoding="utf-8")


def test_a_model_of_one_type_trains_and_says_what_edits_do(data, caplog):
    only_diseases(data)
    recipe = Recipe(counterfactual=0.2)
    report = train(tuning(data, recipe=recipe, epochs=3, num_hidden_layers=1))
    assert "--counterfactual 0.2 has no effect: it needs 2 or more tails that name" in caplog.text
    assert "the graph has these: 疾病" in caplog.text
    response = report["edit_response"]["dev"]
    assert response["seen"]["n"] == 0
    assert response["added"]["seen"]["n"] > 0
    card = (data / "model" / "README.md").read_text(encoding="utf-8")
    assert "counterfactual 0.2 (without effect" in card
    assert "also follows a wrong triple" not in card
