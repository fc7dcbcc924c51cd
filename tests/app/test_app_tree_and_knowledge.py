"""The tree as drawn, the table's rows, and what a table edit means."""

import re

import pytest

from kbert_core import (
    Characters,
    InjectionOptions,
    KBertError,
    KnowledgeGraph,
    Rule,
    Triple,
    collate,
    flatten,
    grow_trees,
)
from kbert_core.kbert.visible import FULL
from kbert_core.knowledge.edit import Edit
from kbert_lab.lab.selection import Marks, code_of
from kbert_lab.lab.texts import speaking
from kbert_lab.lab.views import knowledge, names, tree
from kbert_lab.lab.views.html import escape, markdown, shown
from kbert_lab.lab.views.names import nearest_names
from kbert_lab.lab.views.neighbourhood import (
    Drawn,
    laid_out,
    neighbourhood,
    places_of,
)

APPLE = Triple("Tim Cook", "CEO", "Apple")
CHINA = Triple("Beijing", "capital", "China")
CITY = Triple("Beijing", "is_a", "City")
ASIA = Triple("Beijing", "located_in", "Asia")
EVIL = "<script>alert('1')</script>&\"\n`$:red[x]"


def test_tree_hangs_every_branch_from_its_mention(graph, run):
    view = tree.tree_view(run(graph))
    mentions = [node for node in view.nodes if node.mention]
    assert [[tok.text for tok in node.tokens] for node in mentions] == [
        ["Tim", "Cook"],
        ["Beijing"],
    ]
    drawn = [[(tok.text, tok.soft, tok.hard) for tok in b.tokens] for b in mentions[1].branches]
    assert drawn == [
        [("capital", 6, 8), ("China", 7, 9)],
        [("is_a", 6, 10), ("City", 7, 11)],
    ]


def test_a_pair_is_one_picture_with_two_trunks(graph, run):
    view = tree.tree_view(run(graph, ["Tim Cook now", "Beijing now"]))
    trunks = [
        [tok.text for node in view.nodes if node.sentence == number for tok in node.tokens]
        for number in (0, 1)
    ]
    assert trunks == [["[CLS]", "Tim", "Cook", "now", "[SEP]"], ["Beijing", "now", "[SEP]"]]
    drawn = tree.tree_html(view)
    assert drawn.count('class="kb-trunk-row"') == 2
    assert "kb-trunk-row" not in tree.tree_html(tree.tree_view(run(graph)))  # one sentence
    assert drawn.index("CEO") < drawn.index(">Beijing<") < drawn.index("capital")


@pytest.mark.parametrize(("text", "is_so"), [("مرحبا Beijing", True), ("Beijing مرحبا", False)])
def test_a_text_from_right_to_left_is_drawn_so(run, graph, text, is_so):
    assert ("kb-rtl" in tree.tree_html(tree.tree_view(run(graph, text)))) is is_so


def test_tree_says_what_is_new_and_what_is_gone(graph, run):
    before = run(graph).rows[0]
    view = tree.tree_view(run(graph.switch_off(CHINA)), 0, before)
    status = {b.triple: b.status for node in view.nodes for b in node.branches}
    assert status == {APPLE: "same", CITY: "same", ASIA: "added", CHINA: "removed"}
    drawn = [branch.triple for node in view.nodes for branch in node.branches]
    assert drawn.index(CHINA) == [b.branch.triple for b in before.branches].index(CHINA)


@pytest.mark.parametrize("text", [EVIL, "a\u202eb", " ", ""])
def test_shown_leaves_no_markup_and_nothing_invisible(text):
    drawn = shown(text)
    assert "<" not in drawn and '"' not in drawn and drawn.strip()
    assert "\u202e" not in drawn and "\n" not in drawn


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("Use `kbert audit`.", "Use `kbert audit`\\."),
        ("`--strategy context --one-sense` keeps", "`--strategy context --one-sense` keeps"),
        (
            "用 `kbert kg import FILE --output GRAPH.kg` 制成",
            "用 `kbert kg import FILE --output GRAPH.kg` 制成",
        ),
        ("`rm -r` and `x`", "\\`rm \\-r\\` and \\`x\\`"),
        ("`kbert <b>`", "\\`kbert \\<b\\>\\`"),
        ("``kbert a``b`", "\\``kbert a`\\`b\\`"),
    ],
)
def test_a_command_in_a_text_stays_code_and_nothing_else_does(text, marked):
    assert markdown(text) == marked


def test_escape_and_markdown_take_the_meaning_out_of_markup():
    assert escape(EVIL).count("<") == 0
    assert "\\<script\\>" in markdown(EVIL) and "\\:red\\[x\\]" in markdown(EVIL)


@pytest.mark.parametrize("text", ["http://a.b", "HTTPS://a.b/c", "www.a.b", "me@a.b", "(http://a)"])
def test_markdown_leaves_nothing_that_becomes_a_link(text):
    """Streamlit's Markdown links what looks like an address once backslashes are gone."""
    drawn = re.sub(r"\\(.)", r"\1", markdown(f"![x]({text})"))
    assert drawn.replace("\u2060", "") == f"![x]({text})"
    assert not re.search(r"https?://|www\.|[-.\w+]@", drawn, re.IGNORECASE)


def test_rows_say_which_triple_moved_up(graph, run):
    edited = graph.switch_off(CHINA)
    rows = knowledge.triple_rows(run(edited), edited, run(graph))
    assert knowledge.moved_up(rows) == (ASIA,)
    assert {row.triple: row.state for row in rows}[ASIA] == "injected, moved up"
    assert {row.triple: row.state for row in rows}[CHINA] == "switched off"


def test_an_entity_named_twice_has_its_triples_listed_once(graph, run):
    rows = knowledge.triple_rows(run(graph, "Beijing and Beijing", max_length=7), graph)
    assert [row.triple for row in rows] == [CHINA, CITY, ASIA]
    assert rows[0].state == "injected at 1 of 2 mentions; else no room within the length limit"


ROWS = tuple((triple, True) for triple in (APPLE, CHINA, CITY, ASIA))


HEBEI = Triple("Beijing", "capital", "Hebei")


@pytest.mark.parametrize(
    ("changes", "edits"),
    [
        ({"edited_rows": {0: {"on": False}, 1: {"on": True}}}, (Edit("switch_off", APPLE),)),
        ({"edited_rows": {"1": {"tail": " Hebei "}}}, (Edit("replace", CHINA, HEBEI),)),
        ({"deleted_rows": [1]}, (Edit("remove", CHINA),)),
        (
            {"added_rows": [{"head": "Beijing", "relation": "capital", "tail": "Hebei"}]},
            (Edit("add", HEBEI, index=0),),
        ),
    ],
)
def test_what_is_changed_added_and_deleted_in_a_table_makes_edits(changes, edits):
    assert knowledge.table_edits(ROWS, ROWS, changes) == edits


@pytest.mark.parametrize(
    ("tail", "problem"),
    [("", "its tail is empty"), (None, "its tail is empty"), ("a\tb", "control character")],
)
def test_what_is_typed_in_a_table_and_is_no_triple_says_why(tail, problem):
    with pytest.raises(KBertError, match=problem):
        knowledge.table_edits(ROWS, ROWS, {"edited_rows": {0: {"on": False}, 1: {"tail": tail}}})


def test_nearest_names_share_characters_with_the_text():
    graph = KnowledgeGraph(
        [
            Triple("急性胃炎", "类别", "疾病"),
            Triple("骨折", "类别", "疾病"),
            Triple("Paris", "a", "b"),
        ]
    )
    assert nearest_names(["患者慢性胃炎"], graph)[0] == "急性胃炎"
    assert nearest_names(["visiting Pari"], graph) == ("Paris",)
    assert nearest_names(["zzz"], graph) == ()


def test_a_large_graph_is_not_looked_through_to_its_end(monkeypatch):
    graph = KnowledgeGraph([Triple(name, "类别", "疾病") for name in ("骨折", "胃炎", "急性胃炎")])
    monkeypatch.setattr(names, "MOST_LOOKED_AT", 2)
    assert names.nearest_names(["患者慢性胃炎"], graph) == ("胃炎",)


@pytest.mark.parametrize("order", [1, -1])
def test_neighbourhood_draws_an_entity_once_whatever_the_order(order):
    chain = [Triple("A", "r", "B"), Triple("B", "r", "C")][::order]
    drawn = neighbourhood([Drawn(triple, True, "") for triple in chain], dark=False)
    assert sorted(node["id"] for node in drawn["nodes"]) == ["A", "B", "C"]
    assert [edge["triple"] for edge in drawn["edges"]] == [(x.head, "r", x.tail) for x in chain]


def test_names_stay_where_they_stand_when_a_triple_is_added(graph, run):
    rows = knowledge.triple_rows(run(graph), graph)
    before = places_of(neighbourhood(rows, dark=False))
    more = graph.add(Triple("Beijing", "hosts", "games"))
    after = laid_out(knowledge.triple_rows(run(more), more), before)
    assert {name: after[name] for name in before} == before
    assert after["games"] not in before.values()


def test_a_name_in_the_drawing_leads_to_its_first_token_in_the_text(graph, run):
    trace = run(graph)
    rows = knowledge.triple_rows(trace, graph)
    nodes = neighbourhood(rows, dark=False, flat=trace.rows[0])["nodes"]
    assert {node["id"]: node["token"] for node in nodes if node["token"]} == {
        "Tim Cook": '["trunk",0,0]',
        "Beijing": '["trunk",0,4]',
    }


def test_a_later_state_of_a_table_is_read_beyond_what_was_taken():
    pear = Triple("Tim Cook", "CEO", "Pear")
    state = {"edited_rows": {"0": {"tail": "Pear"}}}
    now = knowledge.rows_changed(ROWS, state)
    assert now == ((pear, True), *ROWS[1:])
    state["edited_rows"] |= {"0": {"tail": "Pear", "on": False}, "1": {"on": False}}
    wanted = knowledge.rows_changed(ROWS, state)
    assert wanted == ((pear, False), (CHINA, False), *ROWS[2:])
    later = knowledge.table_edits(now, ROWS, state)
    assert later == (Edit("switch_off", pear), Edit("switch_off", CHINA))


def test_left_out_counts_every_triple_once_however_often_it_is_named(graph, run):
    trace = run(graph, "Beijing, Beijing and Beijing", max_triples=1)
    rows = knowledge.triple_rows(trace, graph)
    assert knowledge.left_out(rows) == {Rule.LIMIT: 2}


def test_state_of_a_triple_says_how_it_stood_among_the_others(run):
    graph = KnowledgeGraph([CHINA, CITY, Triple("Oslo", "capital", "Norway")])

    def states(text, strategy):
        trace = run(graph, text, max_triples=1, strategy=strategy)
        return {row.triple: row.state for row in knowledge.triple_rows(trace, graph)}

    assert states("Beijing now", "rare") == {
        CHINA: "over the limit per mention · rarity 0.41, rank 2 of 2",
        CITY: "injected · rarity 1.10, rank 1 of 2",
    }
    assert states("Beijing, a City", "tail_in_text") == {
        CHINA: "tail not in the text",
        CITY: "injected · tail in the text",
    }


def test_a_drawn_triple_names_its_tokens_and_an_entity_those_that_say_it(graph, run):
    flat = run(graph).rows[0]
    rows = [Drawn(triple, True, "") for triple in (CHINA, CITY, ASIA)]
    data = neighbourhood(rows, dark=False, flat=flat)
    code = dict(zip(map(code_of, flat.identities), flat.tokens, strict=True))
    said = [[code[name] for name in edge["names"]] for edge in data["edges"]]
    assert said == [["capital", "China"], ["is_a", "City"], []]  # over the limit
    entities = {node["id"]: [code[name] for name in node["names"]] for node in data["nodes"]}
    assert entities == {
        "Beijing": ["Beijing"],
        "China": ["capital", "China"],
        "City": ["is_a", "City"],
        "Asia": [],
    }


def holes(run, graph, text):
    """Of every mention with branches, whether these make a hole in the trunk."""
    drawn = tree.tree_html(tree.tree_view(run(graph, text)))
    kinds = re.findall(r'class="kb-node kb-mention([^"]*)"', drawn)
    return ["kb-free" not in kind for kind in kinds]


def test_branches_make_a_hole_in_the_trunk_only_where_the_next_ones_would_touch_them(graph, run):
    assert holes(run, graph, "Beijing is a large and old place") == [False]
    assert holes(run, graph, "Tim Cook Beijing is a large and old place") == [True, False]
    assert holes(run, graph, "Tim Cook was in those days in Beijing and so on") == [False, False]
    assert holes(run, graph, "Beijing and so on " * 8) == [True] * 8  # in several lines


def test_a_branch_has_a_switch_and_one_that_is_off_another(graph, run):
    before, off = run(graph), graph.switch_off(APPLE)
    view = tree.tree_view(run(off), 0, before.rows[0])
    assert view.triples == (APPLE, CHINA, CITY)
    drawn = tree.tree_html(view, Marks(), {APPLE})
    said = re.findall(r'data-switch="[^>]* aria-label="([^"]*)"', drawn)
    assert said == [f"Switch on {APPLE}", f"Switch off {CHINA}", f"Switch off {CITY}"]
    assert "data-switch" not in tree.tree_html(view)  # a picture
    moved = tree.tree_html(view, Marks())  # gone, though it is on: it can't be switched
    assert moved.count("data-switch") == 2


def test_the_tail_of_a_branch_that_is_in_can_be_changed_in_the_lab_alone(graph, run):
    evil = Triple("Beijing", "is_a", '"><b>')
    view = tree.tree_view(run(graph.replace(CHINA, evil)), 0, run(graph).rows[0])
    drawn = tree.tree_html(view, Marks(), edits=True)
    tails = re.findall(r'data-edit="" data-tail="([^"]*)"', drawn)
    assert tails == ["Apple", "&#34;&gt;&lt;b&gt;", "City"]
    assert "data-edit" not in tree.tree_html(view, Marks())
    gone = next(b for node in view.nodes for b in node.branches if b.status == "removed")
    assert [[tok.text for tok in field] for field in gone.fields] == [["capital"], ["China"]]


def test_names_of_the_chinese_graphs_are_glossed_for_who_reads_english_alone(trace_of):
    cough, own = Triple("咳嗽", "常见于", "肺炎"), Triple("咳嗽", "症状", "自己写的")
    graph = KnowledgeGraph([cough, own])
    row = flatten(grow_trees(["他咳嗽"], graph, InjectionOptions()), Characters())[0]
    trace = trace_of(row, collate([row]), FULL)
    drawn = tree.tree_html(tree.tree_view(trace))
    glosses = re.findall(r'<i class="kb-gloss"[^>]*>([^<]*)</i>', drawn)
    assert glosses == ["cough", "common in", "pneumonia", "symptom"]
    assert f'title="{cough} · cough, common in, pneumonia"' in drawn
    edges = neighbourhood([Drawn(cough, True, "on")], dark=False)["edges"]
    assert edges[0]["title"] == f"{cough}: on · cough, common in, pneumonia"
    with speaking("zh"):
        assert "cough" not in tree.tree_html(tree.tree_view(trace))
