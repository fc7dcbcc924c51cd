"""Triples and what is wrong with some; graphs of them, and edits that make new graphs."""

import copy
import pickle
import random
import re
import time

import pytest
from conftest import FIGURE_2
from hypothesis import given
from hypothesis import strategies as st

from kbert_core import (
    Edit,
    KnowledgeGraph,
    Triple,
    find_mentions,
    join_graphs,
    load_graph,
    read_triples,
    write_triples,
)
from kbert_core.errors import GraphEditError, GraphFileError, KBertError
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.triple import ALIAS_RELATIONS, AliasRelations

CEO, CAPITAL, IS_A = FIGURE_2
NEW = Triple("Beijing", "mayor", "Yin Yong")


FRANCE, MOVED = Triple("Beijing", "capital", "France"), Triple("Beijing", "CEO", "Apple")
LOUD = Triple("BEIJING", "capital", "China")


def test_graph_lists_entities_relations_and_triples_each_once_in_order(figure_2):
    assert list(figure_2.entities()) == ["tim cook", "beijing"]
    assert figure_2.relations() == {"CEO": 1, "capital": 1, "is_a": 1}
    assert list(figure_2) == list(FIGURE_2)
    assert CEO in figure_2 and NEW not in figure_2
    turned = KnowledgeGraph([IS_A, CEO, CAPITAL, IS_A])
    assert turned.triples_of("Beijing") == (IS_A, CAPITAL)
    assert (len(figure_2), len(turned)) == (3, 3)


def test_entity_is_the_same_however_it_is_written(figure_2):
    graph = figure_2.add(Triple("ＢＥＩＪＩＮＧ", "river", "Yongding"))
    assert len(graph.triples_of("beijing")) == 3
    assert graph.triples_of(" BeiJing ") == graph.triples_of("beijing")
    assert figure_2.triples_of("Tim\u3000 cook") == (CEO,)
    assert figure_2.triples_of("Paris") == figure_2.triples_of("") == ()


def test_nothing_is_found_of_an_empty_graph_or_a_head_that_cannot_be_seen():
    graph = KnowledgeGraph([Triple(" \u3000", "r", "t")])
    for empty in (KnowledgeGraph(), graph, join_graphs([])):
        assert (len(empty), list(empty)) == (0, [])
        assert find_mentions(["Beijing  \u3000  "], empty)[0] == ()
        assert len(empty.add(CEO)) == 1


def test_graphs_are_joined_in_the_order_given_and_what_is_off_stays_off(figure_2):
    other = KnowledgeGraph([NEW, CAPITAL, Triple("Paris", "capital", "France")], name="other")
    one, two = join_graphs([figure_2.switch_off(IS_A), other]), join_graphs([other, figure_2])
    assert one.triples_of("Beijing") == (CAPITAL, IS_A, NEW)
    assert two.triples_of("Beijing") == (NEW, CAPITAL, IS_A)
    assert (len(one), len(two), one.name) == (5, 5, "figure 2 + other")
    assert one.off == {IS_A} and not one.is_on(IS_A) and one.is_on(CAPITAL)
    assert len(one.remove(NEW).add(Triple("c", "r", "x"))) == 5
    assert join_graphs([figure_2, other]).fingerprint != two.fingerprint


def test_files_are_joined_in_the_order_given_and_never_written(tmp_path):
    one, two = tmp_path / "one.spo", tmp_path / "two.tsv"
    one.write_text("a\tr\t1\nbad\n")
    two.write_text("a\tr\t0\na\tr\t1\n")
    with pytest.raises(GraphFileError, match="line 2"):
        load_graph(two, one)
    graph = load_graph(two, one, skip_bad=True)
    assert [t.tail for t in graph.triples_of("a")] == ["0", "1"]
    assert graph.name == "two + one"
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in (one, two)}
    first = Triple("a", "r", "1")
    graph.add(NEW).replace(first, Triple("c", "r", "9")).switch_off(NEW).remove(NEW).undo()
    assert before == {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in tmp_path.iterdir()}


@pytest.mark.parametrize(
    ("edit", "triples"),
    [
        (lambda graph: graph.add(NEW), (CAPITAL, IS_A, NEW)),
        (lambda graph: graph.add(NEW, index=0), (NEW, CAPITAL, IS_A)),
        (lambda graph: graph.add(NEW, index=1), (CAPITAL, NEW, IS_A)),
        (lambda graph: graph.remove(CAPITAL), (IS_A,)),
        (lambda graph: graph.replace(CAPITAL, FRANCE), (FRANCE, IS_A)),
        (lambda graph: graph.replace(CAPITAL, LOUD), (LOUD, IS_A)),  # only written differently
        (lambda graph: graph.replace(CEO, MOVED), (CAPITAL, IS_A, MOVED)),  # to a new head's end
        (lambda graph: graph.switch_off(CAPITAL), (CAPITAL, IS_A)),
    ],
)
def test_edit_returns_a_new_graph_and_leaves_the_old_one(edit, triples, figure_2):
    fingerprint, graph = figure_2.fingerprint, edit(figure_2)
    assert graph.triples_of("Beijing") == triples
    assert (figure_2.fingerprint, figure_2.history) == (fingerprint, ())
    assert figure_2.triples_of("Beijing") == (CAPITAL, IS_A)
    assert len(graph) == len(list(graph))
    assert graph.undo() is figure_2.undo() is figure_2


def test_triple_switched_off_stays_off_unless_it_is_switched_on_or_removed(figure_2):
    off = figure_2.switch_off(CAPITAL)
    assert CAPITAL in off and len(off) == 3
    assert (off.off, figure_2.off) == ({CAPITAL}, frozenset())
    assert not off.replace(CAPITAL, FRANCE).is_on(FRANCE)
    assert off.switch_on(CAPITAL).is_on(CAPITAL)
    assert off.remove(CAPITAL).add(CAPITAL).is_on(CAPITAL)


def test_history_names_every_edit_and_undo_leads_back_step_by_step(figure_2):
    edited = figure_2.switch_off(CEO).replace(CAPITAL, NEW)
    assert [str(edit) for edit in edited.history] == [
        "switch off (Tim Cook, CEO, Apple)",
        "replace (Beijing, capital, China) by (Beijing, mayor, Yin Yong)",
    ]
    assert figure_2.apply(*edited.history).fingerprint == edited.fingerprint
    assert edited.undo().triples_of("Beijing") == (CAPITAL, IS_A)
    assert not edited.undo().is_on(CEO)
    assert edited.undo().undo() is figure_2
    assert figure_2.replace(CEO, CEO) is figure_2


THERE = "The triple (Tim Cook, CEO, Apple) is in the graph already"


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda graph: graph.add(CEO), f"{THERE}."),
        (lambda graph: graph.switch_off(CEO).add(CEO), f"{THERE} but switched off; switch it on"),
        (lambda graph: graph.replace(CAPITAL, IS_A), "already"),
        *(
            (
                lambda graph, action=action: graph.apply(Edit(action, NEW, CEO)),
                f"Can't {action.replace('_', ' ')} (Beijing, mayor, Yin Yong)",
            )
            for action in ("remove", "switch_off", "switch_on", "replace")
        ),
        (lambda graph: graph.remove(NEW), "the graph 'figure 2' has no such triple. Look up the"),
        (lambda graph: graph.apply(Edit("replace", CEO)), "names no new triple"),
        (lambda graph: graph.add(NEW, index=-1), "place -1: 'Beijing' has 2 triples. Give a place"),
        (lambda graph: graph.add(NEW, index=3), "place 3: 'Beijing' has 2 triples. Give a place"),
        (lambda graph: graph.apply(Edit("remove", CEO), Edit("remove", CEO)), "has no such triple"),
        *(
            (lambda graph, edit=edit, triple=triple: edit(graph, triple), said)
            for edit in (lambda g, triple: g.add(triple), lambda g, triple: g.replace(CEO, triple))
            for triple, said in (
                (Triple("", "r", "t"), "its head is empty"),
                (Triple("a", "r", ""), "its tail is empty"),
                (Triple("a", "r\n", "t"), "its relation holds a line break"),
                (Triple("\u3000", "r", "t"), "its head holds nothing that can be seen"),
            )
        ),
    ],
)
def test_an_edit_that_doesnt_fit_is_refused_and_nothing_is_changed(edit, said, figure_2):
    fingerprint = figure_2.fingerprint
    with pytest.raises(GraphEditError, match=re.escape(said)):
        edit(figure_2)
    assert figure_2.fingerprint == fingerprint


def test_graphs_with_the_same_triples_are_equal_whatever_led_to_them(figure_2):
    whole = KnowledgeGraph(FIGURE_2, name="other")
    same = [
        (whole, figure_2),
        (figure_2.add(NEW), KnowledgeGraph([CEO, CAPITAL, IS_A, NEW])),
        (figure_2.add(NEW).remove(NEW), figure_2),
        (figure_2.switch_off(CEO).switch_on(CEO), figure_2),
        (figure_2.switch_off(CEO), KnowledgeGraph(FIGURE_2, off=[CEO])),
        (join_graphs([KnowledgeGraph([CEO]), KnowledgeGraph([CAPITAL, IS_A])]), figure_2),
        (pickle.loads(pickle.dumps(figure_2.add(NEW))), figure_2.add(NEW)),
    ]
    for one, other in same:
        assert one == other
        assert hash(one) == hash(other)
    others = [figure_2.add(NEW), figure_2.switch_off(CEO), figure_2.remove(CEO), 0]
    others += [KnowledgeGraph([CEO, IS_A, CAPITAL]), figure_2.replace(CEO, NEW)]
    others += [KnowledgeGraph(FIGURE_2, aliases=AliasRelations(frozenset(["CEO"])))]
    others += [figure_2.add(NEW, index=0)]
    assert figure_2 not in others
    assert len({figure_2, whole, *others}) == 1 + len(others)
    graphs = [figure_2, *filter(bool, others)]
    assert len({graph.fingerprint for graph in graphs}) == len(graphs)
    for one, other in (same[0], *same[2:4]):  # of one source
        assert one.fingerprint == other.fingerprint


def test_a_graph_with_a_thousand_edits_is_pickled_and_copied_with_its_history(figure_2):
    graph = figure_2
    for number in range(1000):
        graph = graph.add(Triple(f"street {number}", "in", "Beijing"))
    graph.name = "long"
    content = pickle.dumps(graph)
    assert len(content) < 100_000  # bytes: each edit counts once
    for again in (pickle.loads(content), copy.copy(graph), copy.deepcopy(graph)):
        assert again == graph
        assert (again.name, again.history) == ("long", graph.history)
        assert again.undo() == graph.undo()


@pytest.mark.parametrize(
    ("made", "wrong"),
    [
        (lambda: KnowledgeGraph("medical.spo"), "Got 'medical.spo' as a graph. Open a file"),
        (lambda: KnowledgeGraph(None), "Got None as a graph"),
        (lambda: KnowledgeGraph([("a", "r", "b")]), r"Got \('a', 'r', 'b'\) as a triple. Give Tri"),
        (lambda: KnowledgeGraph().add(("a", "r", "b")), "as a triple"),
        (lambda: KnowledgeGraph([CEO]).replace(CEO, "b"), "Got 'b' as a triple"),
        (lambda: load_graph(None), "Got None as a file of triples, expected its path"),
        (lambda: load_graph(["a.spo", "b.spo"]), "as a file of triples"),
        (lambda: read_triples(5), "Got 5 as a file of triples"),
        (lambda: write_triples("a.spo", KnowledgeGraph()), "as a file of triples, expected its"),
        (lambda: write_triples(5, "a.spo"), "Got 5 as triples, expected several, or a graph"),
        (lambda: ("a", "r", "b") in KnowledgeGraph(), "as a triple"),
        (lambda: KnowledgeGraph(off=[("a", "r", "b")]), "as a triple"),
        (lambda: KnowledgeGraph().is_on("b"), "Got 'b' as a triple"),
        (lambda: KnowledgeGraph().triples_of(None), "Got None as an entity. Give its name"),
        (lambda: KnowledgeGraph().apply(1), "Got 1 as an edit"),
        (lambda: KnowledgeGraph([Triple("a", "", "b")]), "its relation is empty; give it a text"),
        (lambda: KnowledgeGraph([Triple("a", "r", None)]), "its tail is None; give it a text"),
        (lambda: KnowledgeGraph([Triple("a", "r\t", "b")]), r"its relation holds .*U\+0009"),
        (lambda: KnowledgeGraph().add(Triple("a", 1, "b")), "its relation is 1; give it a text"),
        (lambda: Triple.checked(None, "r", "b"), "its head is None"),
        (lambda: join_graphs(["a.spo"]), "Got 'a.spo' as a graph"),
    ],
)
def test_what_is_no_graph_and_no_triple_is_refused(made, wrong):
    with pytest.raises(KBertError, match=wrong):
        made()


class SlowGraph:
    """A list of triples and a set of those switched off; every question reads all of it."""

    def __init__(self, triples):
        self.triples = list(dict.fromkeys(triples))
        self.off = set()

    def of(self, entity):
        key = normalise_name(entity)
        return tuple(t for t in self.triples if normalise_name(t.head) == key)

    def edit(self, edit):
        if edit.action == "add":
            self.triples.append(edit.triple)
        elif edit.action == "remove":
            self.triples.remove(edit.triple)
            self.off.discard(edit.triple)
        elif edit.action == "switch_off":
            self.off.add(edit.triple)
        elif edit.action == "switch_on":
            self.off.discard(edit.triple)
        else:
            place = self.triples.index(edit.triple)
            if normalise_name(edit.triple.head) == normalise_name(edit.new.head):
                self.triples[place] = edit.new
            else:
                del self.triples[place]
                self.triples.append(edit.new)
            if edit.triple in self.off:
                self.off = self.off - {edit.triple} | {edit.new}


TRIPLES = [Triple(h, "r", t) for h in ("a", "A", "b", "糖", "糖 尿") for t in "xyz"]


def some_edit(dice, there):
    action = dice.choice(["add", "remove", "replace", "replace", "switch_off", "switch_on"])
    absent = [t for t in TRIPLES if t not in there]
    if (action == "add" or not there) and absent:
        return Edit("add", dice.choice(absent))
    old = dice.choice(there)
    if action == "replace" and absent:
        return Edit("replace", old, dice.choice(absent))
    return Edit(action if action not in ("add", "replace") else "remove", old)


@pytest.mark.parametrize("seed", range(40))
def test_edited_graph_agrees_with_an_edited_list(seed):
    dice = random.Random(seed)
    loaded = dice.sample(TRIPLES, dice.randint(0, 8))
    start, slow, steps, edits = KnowledgeGraph(loaded), SlowGraph(loaded), [], []
    graph = start
    for _ in range(25):
        steps.append((graph, graph.fingerprint, list(graph)))
        edit = some_edit(dice, slow.triples)
        edits.append(edit)
        graph = graph.apply(edit)
        slow.edit(edit)
        for head in ("a", "b", "糖", "糖  尿", "c"):
            assert graph.triples_of(head) == slow.of(head)
        assert sorted(graph) == sorted(slow.triples)
        assert len(graph) == len(slow.triples)
        assert [t for t in TRIPLES if not graph.is_on(t)] == [t for t in TRIPLES if t in slow.off]
        assert (
            find_mentions(["a b 糖 尿糖"], graph)[0]
            == find_mentions(["a b 糖 尿糖"], KnowledgeGraph(slow.triples))[0]
        )
    together = start.apply(*edits)
    for before, fingerprint, triples in reversed(steps):
        assert (together.fingerprint, list(together)) == (graph.fingerprint, list(graph))
        assert (together.off, together.history) == (graph.off, graph.history)
        graph, together = graph.undo(), together.undo()
        assert graph is before
        assert (graph.fingerprint, list(graph)) == (fingerprint, triples)


@pytest.mark.parametrize("action", ["switch_off", "remove", "replace"])
def test_many_edits_at_once_cost_as_much_as_each_of_them(action):
    triples = [Triple("a" if i % 2 else f"h{i}", "r", str(i)) for i in range(4_000)]
    graph = KnowledgeGraph(triples)
    edits = [Edit(action, t, Triple(t.head, "s", t.tail)) for t in triples]
    seconds = {500: [], 4_000: []}
    for count in (*seconds, *seconds, *seconds):
        begun = time.process_time()
        assert graph.apply(*edits[:count]).undo() is not graph
        seconds[count].append(time.process_time() - begun)
    few, many = map(min, seconds.values())  # collecting garbage may fall into one, not into all
    assert many < 40 * few, "8 times is linear, 64 times is quadratic"


some_names = st.sampled_from(["a", "A", "ab", "阿司匹林", "阿司", "b c"])
some_triples = st.builds(Triple, some_names, st.sampled_from("rs"), st.sampled_from("xy"))


@given(st.lists(st.lists(some_triples, max_size=6), min_size=1, max_size=3))
def test_joined_graphs_are_as_one_of_all_their_triples(parts):
    one = KnowledgeGraph(triple for part in parts for triple in part)
    joined = join_graphs(KnowledgeGraph(part) for part in parts)
    assert list(joined.entities()) == list(one.entities())
    assert (list(joined), len(joined)) == (list(one), len(one))
    texts = ("ab a 阿司匹林阿司 b c", "阿司", "")
    assert find_mentions(texts, joined) == find_mentions(texts, one)


# Triples


def test_triple_reads_as_in_the_paper():
    assert str(Triple("Tim Cook", "CEO", "Apple")) == "(Tim Cook, CEO, Apple)"


def test_checked_triple_is_stripped():
    assert Triple.checked(" a ", "\tb", "c\u3000") == Triple("a", "b", "c")


@pytest.mark.parametrize(
    "relation",
    [
        *("别名", "又名", "又称", "简称", "俗称", "全称", "英文名", "同义词"),
        *("alias", "also_called", "also_known_as", "has_synonym", "abbreviation", "synonym"),
        *("altLabel", "Also known as", "ALSO-KNOWN-AS", " Alias "),
    ],
)
def test_the_tail_is_another_name_of_the_head(relation):
    assert ALIAS_RELATIONS.aliases_in(Triple("糖尿病", relation, "消渴")) == ("消渴", "糖尿病")


@pytest.mark.parametrize("relation", ["alias_of", "synonym_of", "Synonym of", "synonymOf"])
def test_the_head_is_another_name_of_the_tail(relation):
    assert ALIAS_RELATIONS.aliases_in(Triple("消渴", relation, "糖尿病")) == ("消渴", "糖尿病")


def test_other_relations_give_no_alias():
    assert ALIAS_RELATIONS.aliases_in(Triple("糖尿病", "类别", "疾病")) is None
    assert ALIAS_RELATIONS.aliases_in(Triple("a", "aliased", "b")) is None


def test_alias_relations_can_be_chosen():
    own = AliasRelations(frozenset({"Spitz Name"}))
    assert own.aliases_in(Triple("Tim Cook", "spitz_name", "Tim")) == ("Tim", "Tim Cook")
    assert own.aliases_in(Triple("糖尿病", "别名", "消渴")) is None
