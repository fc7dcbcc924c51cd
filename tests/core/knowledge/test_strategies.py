"""Which triples of a mention are injected: what each strategy keeps, and what it says of it."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbert_core import InjectionOptions, KnowledgeGraph, LeftOut, Rule, Triple, grow_trees
from kbert_core.errors import OptionError
from kbert_core.knowledge.mentions import Mention
from kbert_core.knowledge.selection import Strategy
from kbert_core.knowledge.strategies import select_triples
from kbert_core.knowledge.surface_forms import ALL_RULES, AS_WRITTEN, RULES, NameRules

FRUIT = Triple("苹果（水果）", "类别", "水果")
TREE = Triple("苹果（水果）", "长在", "果树")
FIRM = Triple("苹果（公司）", "类别", "公司")
PHONE = Triple("苹果（公司）", "产品", "手机")
SENSES = KnowledgeGraph([FRUIT, TREE, FIRM, PHONE])
APPLE = Mention(0, 2, "苹果(水果)", others=("苹果(公司)",))
COMPANY = Mention(0, 2, "苹果(公司)")
TEXT = ("苹果卖得好",)


class Given:
    """Scores triples as it is told, 0 for the others, and counts how often it is asked."""

    def __init__(self, scores):
        self.scores, self.calls = scores, 0

    def score(self, asked):
        self.calls += 1
        return [[self.scores.get(triple, 0.0) for triple in one.triples] for one in asked]


def chosen(graph, mention, text=TEXT, scores=None, **options):
    scorer = None if scores is None else Given(scores)
    return select_triples([text], [mention], graph, InjectionOptions(**options), scorer)[0]


def whys(selection):
    return {item.triple: item.why for item in selection.left_out}


# The first, by rules

X = [Triple("x", relation, tail) for relation, tail in ("ra", "sb", "rc", "sd")]
OFF, RELATION, LIMIT = Rule.OFF, Rule.RELATION, Rule.LIMIT


@pytest.mark.parametrize(
    ("off", "options", "used", "rules"),
    [
        ("", {}, "ab", {"c": LIMIT, "d": LIMIT}),
        ("a", {}, "bc", {"a": OFF, "d": LIMIT}),  # the next takes its place
        ("a", {"keep_places": True}, "b", {"a": OFF, "c": LIMIT, "d": LIMIT}),
        ("", {"relations": ("s",)}, "bd", {"a": RELATION, "c": RELATION}),  # before counting
        ("", {"not_relations": ("s",)}, "ac", {"b": RELATION, "d": RELATION}),
        ("", {"relations": "rs", "not_relations": "r"}, "bd", {"a": RELATION, "c": RELATION}),
        ("b", {"max_triples": 0}, "", {"a": LIMIT, "b": OFF, "c": LIMIT, "d": LIMIT}),
    ],
)
def test_the_first_triples_that_no_rule_leaves_out_are_used(off, options, used, rules):
    graph = KnowledgeGraph(X, off=[triple for triple in X if triple.tail in off])
    options = {name: tuple(v) if isinstance(v, str) else v for name, v in options.items()}
    made = chosen(graph, Mention(0, 0, "x"), **options)
    assert "".join(triple.tail for triple in made.used) == used
    assert {item.triple.tail: item.rule for item in made.left_out} == rules
    assert sorted(made.left_out, key=lambda item: X.index(item.triple)) == [*made.left_out]


SHORT = Triple("Myocardial infarction", "synonym", "Heart attack")
LETTERS = Triple("Myocardial infarction", "synonym", "MI")
CHEST = Triple("Myocardial infarction", "symptom", "chest pain")


@pytest.mark.parametrize("strategy", [Strategy.FIRST, Strategy.RARE])
def test_triple_that_only_says_the_name_in_the_text_takes_no_place(strategy):
    graph = KnowledgeGraph([SHORT, LETTERS, CHEST])
    options = InjectionOptions(strategy=strategy)
    texts = ("a heart  attack", "had MI", "myocardial infarction")
    by_name, by_letters, by_head = (tree.nodes[0] for tree in grow_trees(texts, graph, options))
    assert {branch.triple for branch in by_name.branches} == {LETTERS, CHEST}
    assert by_name.left_out == (LeftOut(SHORT, Rule.OWN_NAME),)
    assert {branch.triple for branch in by_letters.branches} == {SHORT, CHEST}
    assert by_letters.left_out == (LeftOut(LETTERS, Rule.OWN_NAME),)
    assert SHORT in [branch.triple for branch in by_head.branches]


@pytest.mark.parametrize(
    ("tail", "text", "rules", "says"),
    [
        ("高血压", "有高血壓史", ALL_RULES, True),
        ("heart attack", "two heart-attacks", ALL_RULES, True),
        ("Heart attack (disease)", "a heart attack", ALL_RULES, True),
        ("heart attack", "a heart attack", NameRules.of(["alias"]), True),
        ("heart attack", "many heart attacks", NameRules.of(["alias", "plural"]), True),
        ("angina", "a heart attack", ALL_RULES, False),
    ],
)
def test_the_name_in_the_text_is_known_however_it_is_written(tail, text, rules, says):
    """By the rules by which it was found."""
    name = Triple("Myocardial infarction", "synonym", tail)
    found = Triple("Myocardial infarction", "synonym", "heart attack")
    graph = KnowledgeGraph([name, found, CHEST])
    (node,) = grow_trees([text], graph, InjectionOptions(names=rules))[0].nodes
    assert (LeftOut(name, Rule.OWN_NAME) in node.left_out) is says


def test_the_name_is_said_by_a_triple_of_another_head_or_where_aliases_dont_count():
    triple = Triple("MI", "synonym_of", "Myocardial infarction")
    assert grow_trees(["had MI"], KnowledgeGraph([triple, CHEST]))[0].used == (triple, CHEST)
    graph = KnowledgeGraph([Triple("MI", "synonym", "mi")])
    options = InjectionOptions(names=NameRules(alias=False))
    assert grow_trees(["had MI"], graph, options)[0].used == tuple(graph)


def test_preferred_relations_come_first_in_their_own_order():
    triples = [Triple("x", r, t) for r, t in (("r", "a"), ("s", "b"), ("t", "c"), ("s", "d"))]
    options = InjectionOptions(max_triples=3, first_relations=("t", "s"))
    made = select_triples([("x",)], [Mention(0, 1, "x")], KnowledgeGraph(triples), options)[0]
    assert made.used == (triples[2], triples[1], triples[3])
    assert str(made.reasons[0]) == "its relation comes first; first in graph order"
    assert [item.triple for item in made.left_out] == [triples[0]]


# First


def test_first_says_why_and_takes_the_senses_of_a_name_in_order_and_says_which():
    made = chosen(SENSES, COMPANY, max_triples=1)
    assert [str(reason) for reason in made.reasons] == ["first in graph order"]
    assert whys(made) == {PHONE: "over the limit of triples per mention"}
    made = chosen(SENSES, APPLE, max_triples=3)
    assert made.used == (FRUIT, TREE, FIRM)
    assert str(made.reasons[2]) == "first in graph order; sense 苹果(公司)"


# Tail in text


@pytest.mark.parametrize(
    ("tail", "text", "kept"),
    [
        ("手机", ("苹果的手机",), True),
        ("手机", ("苹果好吃",), False),
        ("手机", ("苹果好吃", "手机好用"), True),  # the other sentence of a pair
        ("果", ("苹果好吃",), False),  # within the mention itself
        ("果", ("苹果结果",), True),
        ("苹果手机", ("苹果手机",), True),  # more than the mention
        ("cat", ("苹果 concatenates",), False),  # no word of its own
        ("cat", ("苹果 and a CAT!",), True),
        ("ＣＡＴ", ("苹果 and a cat!",), True),
        ("tim  cook", ("苹果 Tim Cook",), True),
    ],
)
def test_tail_in_text_keeps_triples_whose_tail_the_text_has_too(tail, text, kept):
    triple = Triple("苹果", "r", tail)
    made = chosen(KnowledgeGraph([triple]), Mention(0, 2, "苹果"), text, strategy="tail_in_text")
    assert made.used == ((triple,) if kept else ())
    if kept:
        assert str(made.reasons[0]) == "tail occurs in the text"
    else:
        assert whys(made) == {triple: "its tail does not occur in the text"}


# Rare


def test_rare_takes_the_triples_of_rare_relations_first_in_the_graph_as_it_is():
    triples = [Triple("x", "r", "a"), Triple("x", "s", "b"), Triple("y", "r", "c")]
    made = chosen(KnowledgeGraph(triples), Mention(0, 1, "x"), max_triples=1, strategy="rare")
    assert made.used == (triples[1],)
    assert str(made.reasons[0]) == "rarity 1.10, rank 1 of 2"  # ln 3
    said = "over the limit of triples per mention; rarity 0.41, rank 2 of 2"
    assert whys(made) == {triples[0]: said}
    fewer = KnowledgeGraph(triples).remove(triples[2])
    assert chosen(fewer, Mention(0, 1, "x"), max_triples=1, strategy="rare").used == (triples[0],)


# Scores


def test_best_scores_are_used_the_best_first_and_ties_in_graph_order():
    made = chosen(SENSES, APPLE, scores={PHONE: 0.6, FIRM: 0.2, TREE: 0.2}, strategy="context")
    assert made.used == (PHONE, TREE)
    assert str(made.reasons[0]) == "similarity 0.60, rank 1 of 4; sense 苹果(公司)"
    assert [item.triple for item in made.left_out] == [FRUIT, FIRM]  # in graph order
    assert made.left_out[1].score == 0.2
    assert whys(made)[FIRM] == (
        "over the limit of triples per mention; similarity 0.20, rank 3 of 4; sense 苹果(公司)"
    )


def test_one_sense_keeps_the_triples_of_the_best_ones_entity_alone():
    scores = {PHONE: 0.6, FRUIT: 0.5, TREE: 0.4, FIRM: 0.1}
    made = chosen(SENSES, APPLE, scores=scores, strategy="context", one_sense=True)
    assert made.used == (PHONE, FIRM)
    assert {item.rule for item in made.left_out} == {Rule.SENSE}


def test_what_is_ruled_out_is_not_scored():
    graph = SENSES.switch_off(PHONE)
    made = chosen(graph, APPLE, scores={PHONE: 1.0, FIRM: 0.5}, strategy="context")
    assert made.used == (FIRM, FRUIT)
    assert (PHONE, Rule.OFF) in [(item.triple, item.rule) for item in made.left_out]


def test_scored_strategy_without_a_scorer_is_refused():
    with pytest.raises(OptionError, match="'context' needs a model to score with"):
        grow_trees(["苹果(公司)"], SENSES, InjectionOptions(strategy="context"))[0]


# Options


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"strategy": "best"}, "strategy is 'best', expected one of first, tail_in_text, context"),
        ({"threshold": 0.1}, "threshold is given, and the strategy 'first' has no scores"),
        ({"strategy": "tail_in_text", "one_sense": True}, "one_sense is given"),
        ({"strategy": "rare", "scorer": "x"}, "the strategy 'rare' needs none"),
        ({"max_triples": -1}, "max_triples is -1, expected 0 to 1000"),
        ({"max_triples": 1001}, "max_triples is 1001, expected 0 to 1000"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, said):
    with pytest.raises(OptionError, match=said):
        InjectionOptions(**options)


def test_options_as_plain_data_say_only_what_was_chosen():
    old = {"max_triples": 2, "tail_only": False, "relations": None}
    assert InjectionOptions().as_dict() == {**old, "names": list(RULES)}
    assert InjectionOptions.from_dict(old) == InjectionOptions(names=AS_WRITTEN)
    options = InjectionOptions(
        3, True, ("r",), not_relations=("s",), strategy="context", threshold=0.2, scorer="minilm"
    )
    assert InjectionOptions.from_dict(options.as_dict()) == options
    assert options.as_dict()["strategy"] == "context"
    assert "one_sense" not in options.as_dict()


# What holds of any mention

triples = st.lists(
    st.builds(Triple, st.sampled_from("xy"), st.sampled_from("rst"), st.sampled_from("abcdefghij")),
    max_size=12,
    unique=True,
)
mentions = st.sampled_from(
    [Mention(0, 1, "x"), Mention(0, 1, "y", others=("x",)), Mention(0, 1, "x", others=("y",))]
)
scored = st.sampled_from([Strategy.CONTEXT, Strategy.RARE])


@st.composite
def options(draw, strategies=tuple(Strategy)):
    strategy = draw(st.sampled_from(sorted(strategies)))
    has_scores = strategy in (Strategy.CONTEXT, Strategy.RARE)
    return InjectionOptions(
        draw(st.integers(0, 5)),
        relations=draw(st.none() | st.just(("r", "s"))),
        not_relations=draw(st.sampled_from([(), ("s",)])),
        first_relations=draw(st.sampled_from([(), ("t", "r")])),
        strategy=strategy,
        threshold=draw(st.none() | st.floats(0, 1)) if has_scores else None,
        one_sense=has_scores and draw(st.booleans()),
    )


def run(all_triples, mention, option, text="x a b c"):
    graph = KnowledgeGraph(all_triples)
    scorer = Given({t: (ord(t.tail) * 7 % 10) / 10 for t in all_triples})
    made = select_triples([(text,)], [mention], graph, option, scorer)[0]
    return graph, made


@given(triples, mentions, options())
def test_every_triple_of_the_mention_is_used_or_left_out_and_never_both(some, mention, option):
    graph, made = run(some, mention, option)
    every = [t for entity in mention.entities for t in graph.triples_of(entity)]
    left = [item.triple for item in made.left_out]
    assert sorted([*made.used, *left]) == sorted(every)
    assert left == [t for t in every if t in left]
    assert len(made.used) <= option.max_triples
    assert len(made.reasons) == len(made.used)


@given(triples, mentions, options((Strategy.FIRST, Strategy.TAIL_IN_TEXT, Strategy.CONTEXT)))
def test_where_places_are_kept_switching_a_triple_off_takes_it_away_and_brings_no_other(
    some, mention, option
):
    option = dataclasses.replace(option, keep_places=True)
    graph, before = run(some, mention, option)
    scorer = Given({t: (ord(t.tail) * 7 % 10) / 10 for t in some})
    for triple in some:
        off = graph.switch_off(triple)
        made = select_triples([("x a b c",)], [mention], off, option, scorer)[0]
        assert made.used == tuple(t for t in before.used if t != triple)
        rules = {item.triple: item.rule for item in made.left_out}
        assert rules.get(triple, Rule.OFF) is Rule.OFF


@given(triples, mentions, scored, st.floats(0, 1), st.floats(0, 1))
def test_higher_threshold_keeps_no_more(some, mention, strategy, one, two):
    low, high = sorted((one, two))
    kept = [
        set(run(some, mention, InjectionOptions(3, strategy=strategy, threshold=threshold))[1].used)
        for threshold in (low, high)
    ]
    assert kept[1] <= kept[0]


@given(triples, mentions, options(strategies=(Strategy.CONTEXT,)))
def test_what_is_kept_scores_no_less_than_what_is_over_the_limit(some, mention, option):
    option = dataclasses.replace(option, first_relations=())
    _, made = run(some, mention, option)
    over = [item.score for item in made.left_out if item.rule is Rule.LIMIT]
    if over and made.reasons and option.max_triples:
        assert min(reason.score for reason in made.reasons) >= max(over)
