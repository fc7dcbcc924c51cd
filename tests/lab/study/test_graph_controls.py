"""Graphs that know and match as often as wished, and what their tails tell of labels."""

import random

import pytest

from kbert_core.errors import DataError, OptionError
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.triple import Triple
from kbert_lab.data.labelled import Example
from kbert_lab.graphs.controls import shuffled, with_constant_tail
from results.tools.graph_controls import controlled, tail_bits, with_reliability

TYPES = {"D": "疾病", "S": "症状"}
SECOND = "子丑寅卯辰巳午未申酉戌亥"
SEEN, NEW = [f"甲{x}" for x in SECOND], [f"{a}{x}" for a in "乙丙丁戊己" for x in SECOND]
FILLERS = "天地玄黄宇宙洪荒日月盈昃"


def label_of(name):
    return "DS"[SECOND.index(name[1]) % 2]


def row(dice, name):
    """Four words, a name, four words."""
    before, after = ("".join(dice.choices(FILLERS, k=4)) for _ in range(2))
    text, label = before + name + after, label_of(name)
    tags = ["O"] * 4 + [f"B-{label}", f"I-{label}"] + ["O"] * 4
    return Example((text,), None, tuple((i, i + 1) for i in range(len(text))), tuple(tags))


@pytest.fixture(scope="module")
def splits():
    dice = random.Random(1)
    train = [row(dice, dice.choice(SEEN)) for _ in range(200)]
    held_out = [[row(dice, dice.choice([*SEEN, *NEW, *NEW])) for _ in range(150)] for _ in range(2)]
    return {"train": train, "dev": held_out[0], "test": held_out[1]}


@pytest.fixture(scope="module")
def graph():
    """Knows the names of train and half of the new ones, and a word that is none."""
    triples = [Triple(n, "类别", TYPES[label_of(n)]) for n in [*SEEN, *NEW[:30]]]
    return KnowledgeGraph([*triples, Triple("天", "类别", "疾病")], name="G")


def known(graph, examples):
    """The slow way: of mentions of new names, how many are heads."""
    names = [e.sentences[0][a:b] for e in examples for a, b, _ in e.spans]
    new = [name for name in names if name in NEW]
    return sum(normalise_name(name) in {*graph.entities()} for name in new) / len(new)


def test_what_is_switched_off_is_not_known_and_not_in_the_control(splits, graph):
    off = graph.switch_off(Triple(NEW[0], "类别", TYPES[label_of(NEW[0])]))
    for wish in ({"known": 1.0}, {"right": 0.9}):
        made = controlled(off, splits, **wish, seed=2)
        assert not made.graph.off
        assert (normalise_name(NEW[0]) in {*made.graph.entities()}) == ("known" in wish)
        if "known" in wish:
            assert made.added == 31 and set(made.known.values()) == {1.0}


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 1.0])
def test_a_graph_knows_the_wished_share_of_new_names(splits, graph, share):
    made = controlled(graph, splits, known=share, seed=2)
    for split in ("dev", "test"):
        assert made.known[split] == known(made.graph, splits[split])
        assert made.known[split] == pytest.approx(share, abs=0.02)
    heads = {*made.graph.entities()}
    assert {*SEEN, "天"} <= heads
    before = {*graph.entities()}
    assert (made.added, made.removed) == (len(heads - before), len(before - heads))
    added = [t for t in made.graph if t not in graph]
    assert added == [Triple(t.head, "类别", TYPES[label_of(t.head)]) for t in added]
    assert [*made.graph] == [*controlled(graph, splits, known=share, seed=2).graph]


@pytest.mark.parametrize("share", [0.4, 0.6, 0.9])
def test_matches_are_right_as_often_as_wished_in_every_split(splits, graph, share):
    made = controlled(graph, splits, right=share, seed=2)
    names = {*SEEN, *NEW[:30]}
    for split, examples in splits.items():
        texts = [e.sentences[0] for e in examples]
        heads = sorted({*made.graph.entities()} - names)
        assert not any(head in name for head in heads for name in names)
        right = sum(text.count(name) for text in texts for name in names)
        if all(len(head) == 1 for head in heads):  # else the longest is taken
            wrong = sum(text.count(head) for text in texts for head in heads)
            assert made.right[split] == right / (right + wrong)
        assert made.right[split] == pytest.approx(share, abs=0.02)
    assert names <= {*made.graph.entities()}


def test_tails_carry_fewer_bits_permuted_than_true_and_none_when_constant(splits):
    graph = KnowledgeGraph(Triple(n, "类别", TYPES[label_of(n)]) for n in NEW)
    examples = splits["test"]
    true = tail_bits(examples, graph)
    assert true == pytest.approx(1.0, abs=0.05)  # two types, about as many of each
    assert tail_bits(examples, shuffled(graph, seed=1).graph) == pytest.approx(true)  # recoded
    permuted = [
        tail_bits(examples, shuffled(graph, seed=s, deranged=False).graph) for s in range(5)
    ]
    assert max(permuted) < 0.3 * true
    assert tail_bits(examples, with_constant_tail(graph)) == 0
    assert tail_bits(examples, KnowledgeGraph()) == 0


def test_matches_are_counted_where_train_labels_every_name(splits, graph):
    seen = {"train": splits["train"], "test": splits["train"][:50]}
    made = controlled(graph, seen, right=0.9)
    assert (made.known, made.right["test"]) == ({}, pytest.approx(0.9, abs=0.02))


def test_a_relation_says_how_often_other_names_alike_are_right_and_never_the_name_itself():
    def texts(right, wrong):
        tags = {**dict.fromkeys(right, ("B-D", "I-D")), **dict.fromkeys(wrong, ("O", "O"))}
        return [Example((name,), None, ((0, 1), (1, 2)), said) for name, said in tags.items()]

    right = ["肺炎", "胃炎", "肝炎", "脑炎", "肾炎", "肠炎"]
    wrong = ["发热", "低热", "高热", "潮热"]
    graph = KnowledgeGraph(Triple(n, "类别", "疾病") for n in [*right, *wrong, "喉炎", "骨折"])
    made = with_reliability(graph, texts(right, wrong))
    digits = {t.head: int(t.relation.removeprefix("类别")) for t in made}
    assert digits["喉炎"] == digits["肺炎"] == 4 and digits["发热"] == 1  # 喉炎 isn't in train
    assert digits["骨折"] == 2  # as all its type: 6 of 10, and no name ends like it
    turned = with_reliability(graph, texts([*right[1:], "发热"], [*wrong[1:], "肺炎"]))
    again = {t.head: int(t.relation.removeprefix("类别")) for t in turned}
    assert again["肺炎"] == 4 and again["发热"] == 1  # what they are themselves doesn't count


SILENT = KnowledgeGraph([Triple("天", "类别", "疾病")])
DISEASES = KnowledgeGraph(Triple(n, "类别", "疾病") for n in SEEN if label_of(n) == "D")


@pytest.mark.parametrize(
    ("shares", "other", "message"),
    [
        ({"known": 1.5}, {}, "known is 1.5, expected a share from 0 to 1"),
        ({"right": 0}, {}, "right is 0, expected a share above 0 to 1"),
        ({"right": 0.05}, {}, "too few words outside of mentions"),
        ({"known": 0.5}, {"dev": [], "test": []}, "neither dev nor test"),
        ({"known": 0.5}, {"dev": "train"}, "Train has every name of dev"),
        ({"known": 0.5}, {"graph": SILENT}, r"names no mention of train\. Use a graph that names"),
        ({"right": 0.5}, {"graph": SILENT}, r"No match .* mention in train\. Use a graph that na"),
        ({"known": 1.0}, {"graph": DISEASES}, "names no mention of the type S in train"),
    ],
)
def test_what_can_not_be_had_is_refused(splits, graph, shares, other, message):
    graph = other.get("graph", graph)
    if other.get("dev") == []:
        splits = {"train": splits["train"]}
    elif "dev" in other:
        splits = {**splits, "dev": splits["train"][:9]}
    with pytest.raises((OptionError, DataError), match=message):
        controlled(graph, splits, **shares)
