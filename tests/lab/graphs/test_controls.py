"""Control graphs: wrong pairs, irrelevant triples among the right ones, wished shares of names."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tagged_texts import tagged

from kbert_core.errors import DataError, OptionError
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.knowledge.triple import AliasRelations, Triple
from kbert_lab.data.labelled import Example
from kbert_lab.graphs.controls import shuffled, with_constant_tail, with_noise
from results.tools.graph_controls import controlled, tail_bits, with_reliability

KINDS = ["疾病", "症状", "部位", "检查"]


def graph_of(types):
    return KnowledgeGraph([Triple(f"n{i}", "类别", t) for i, t in enumerate(types)], name="G")


@given(st.lists(st.sampled_from(KINDS), max_size=60), st.integers(0, 99))
def test_shuffling_keeps_heads_relations_and_how_often_tails_occur(types, seed):
    graph = graph_of(types)
    result = shuffled(graph, seed=seed)
    assert [t.head for t in result.graph] == [t.head for t in graph]
    assert Counter(t.tail for t in result.graph) == Counter(types)
    most = max(Counter(types).values(), default=0)
    assert result.unchanged == max(0, 2 * most - len(types)) / max(1, len(types))


def test_tails_stay_within_their_relation_and_seeds_differ():
    triples = [Triple(f"n{i}", r, f"{r}{i % 5}") for i in range(30) for r in ("甲", "乙")]
    graph = KnowledgeGraph(triples)
    one, two = shuffled(graph, seed=1).graph, shuffled(graph, seed=2).graph
    assert all(t.tail.startswith(t.relation) for t in one)
    assert list(one) != list(two)
    assert list(one) == list(shuffled(graph, seed=1).graph)


def test_what_is_switched_off_is_left_out():
    graph = graph_of(["疾病", "症状", "部位"])
    off = graph.triples_of("n0")[0]
    result = shuffled(graph.switch_off(off))
    assert sorted(t.tail for t in result.graph) == ["症状", "部位"]
    assert not result.graph.triples_of("n0")


LETTERS = KnowledgeGraph([Triple(head, "is", f"t{head}{i}") for head in "abcdef" for i in range(3)])


@pytest.mark.parametrize("place", ["before", "among"])
def test_noise_is_what_others_say_and_the_right_triples_stay_in_order(place):
    noisy = with_noise(LETTERS, ["a"], 4, seed=1, place=place)
    found = noisy.triples_of("a")
    noise = [t for t in found if t not in LETTERS]
    assert len(found) == 7 and len(noise) == 4
    assert [t for t in found if t in LETTERS] == list(LETTERS.triples_of("a"))
    assert all(t.head == "a" and not t.tail.startswith("ta") for t in noise)
    assert noisy.triples_of("b") == LETTERS.triples_of("b")
    if place == "before":
        assert list(found[:4]) == noise


def test_same_seed_draws_the_same_and_more_of_a_larger_count():
    two = with_noise(LETTERS, ["a"], 2, seed=1, place="before")
    five = with_noise(LETTERS, ["a"], 5, seed=1, place="before")
    other = with_noise(LETTERS, ["a"], 5, seed=2, place="before")
    assert two.triples_of("a")[:2] == five.triples_of("a")[:2]
    assert five.triples_of("a") != other.triples_of("a")
    assert five.fingerprint == with_noise(LETTERS, ["a"], 5, seed=1, place="before").fingerprint


def test_no_noise_is_the_graph_itself_and_unknown_names_get_none():
    assert with_noise(LETTERS, ["a"], 0, seed=1) is LETTERS
    assert list(with_noise(LETTERS, ["z"], 2, seed=1)) == list(LETTERS)


def test_another_name_is_not_drawn_from_the_graph_or_another():
    names = [Triple("b", "synonym", f"name{i}") for i in range(20)]
    graph = KnowledgeGraph([*names, Triple("b", "is", "tb"), Triple("a", "is", "ta")])
    for source in (None, (*names, Triple("b", "is", "tb"))):
        noisy = with_noise(graph, ["a"], 3, seed=1, source=source, place="before")
        assert noisy.triples_of("a") == (Triple("a", "is", "tb"), Triple("a", "is", "ta"))
    own = KnowledgeGraph(graph, aliases=AliasRelations(frozenset({"is"})))
    drawn = with_noise(own, ["a"], 3, seed=1).triples_of("a")
    assert {triple.relation for triple in drawn if triple not in own} == {"synonym"}


def test_what_is_switched_off_is_not_drawn():
    off = [triple for triple in LETTERS if triple.head != "b"]
    quiet = LETTERS.apply(*(Edit("switch_off", triple) for triple in off))
    drawn = [t for t in with_noise(quiet, ["a"], 3, seed=1) if t.head == "a" and t not in LETTERS]
    assert sorted(triple.tail for triple in drawn) == ["tb0", "tb1", "tb2"]
    assert tuple(quiet.active_triples()) == LETTERS.triples_of("b")


def test_a_constant_tail_leaves_the_names_and_says_the_same_of_each():
    triples = [
        Triple("胃镜", "类别", "检查"),
        Triple("血尿", "类别", "症状"),
        Triple("发热", "类别", "症状"),
    ]
    other_name = Triple("胃镜", "别名", "胃镜检查")
    off = Triple("咳嗽", "类别", "症状")
    graph = KnowledgeGraph(
        [*triples, Triple("血尿", "程度", "轻"), other_name, off], aliases=AliasRelations(("别名",))
    ).switch_off(off)
    made = with_constant_tail(graph)
    assert [*made] == [
        other_name,
        *(Triple(name, "类别", "症状") for name in ("胃镜", "血尿", "发热")),
    ]
    assert made.aliases == graph.aliases
    rough = with_constant_tail(graph, InjectionOptions(relations=("程度",)))
    assert [*rough] == [other_name, Triple("血尿", "程度", "轻")]
    assert [*with_constant_tail(KnowledgeGraph())] == []


# Graphs that know and match as often as wished, and what their tails tell of labels


TYPES = {"D": "疾病", "S": "症状"}
SECOND = "子丑寅卯辰巳午未申酉戌亥"
SEEN, NEW = [f"甲{x}" for x in SECOND], [f"{a}{x}" for a in "乙丙丁戊己" for x in SECOND]
FILLERS = "天地玄黄宇宙洪荒日月盈昃"


def label_of(name):
    return "DS"[SECOND.index(name[1]) % 2]


def row(dice, name):
    """Four words, a name, four words."""
    before, after = ("".join(dice.choices(FILLERS, k=4)) for _ in range(2))
    return tagged(before + name + after, (name, label_of(name)))


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
