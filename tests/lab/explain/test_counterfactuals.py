"""Counterfactuals: the smallest changes of the graph that flip a prediction."""

from itertools import combinations, pairwise, product

import pytest
from explaining import DISEASE, TEXT
from tagged_texts import triple
from undecided import undecided

from kbert_core import InjectionOptions, KnowledgeGraph, Triple
from kbert_core.errors import OptionError, TextError
from kbert_core.explain.case import Case, Target
from kbert_core.knowledge.edit import Edit
from kbert_lab.explain.counterfactuals import (
    Candidates,
    Search,
    counterfactuals,
    stream_counterfactuals,
)

SAID = (
    *("糖尿病 类别 疾病", "糖尿病 症状 多饮", "布洛芬 类别 治疗", "布洛芬 别名 芬"),
    *("心电图 类别 检查", "心电图 部位 心", "口服 类别 治疗", "口服 部位 口"),
    *("异常 症状 未见", "异常 类别 疾病"),
)
GRAPH = KnowledgeGraph(map(triple, SAID))
THREE = InjectionOptions(max_triples=3)


def ready(folder, *texts):
    return undecided(folder, *texts, graph=GRAPH, options=THREE)


@pytest.fixture(scope="module")
def classifier(checkpoints):
    return ready(checkpoints["classify"], TEXT)


@pytest.fixture(scope="module")
def reader(checkpoints):
    return ready(checkpoints["ner"], TEXT)


@pytest.fixture
def case(reader):
    return case_of(reader, target=DISEASE)


def case_of(pipeline, *texts, **given):
    given.setdefault("options", THREE)
    return Case.of(pipeline, *(texts or (TEXT,)), **{"graph": GRAPH, **given})


def answer_of(case, edits):
    """The slow way: make the edits, read the text as anybody would."""
    graph = case.graph.apply(*edits)
    prediction = case.pipeline(*case.sentences, graph=graph, options=case.config.options).prediction
    return case.target.answer(prediction)


def test_every_counterfactual_flips_the_prediction_and_none_holds_a_smaller_one(case):
    made = counterfactuals(case, search=Search(larger_too=True, most_found=60, budget=300))
    assert {edit.action for one in made.found for edit in one.edits} == {"remove", "replace", "add"}
    for one in made.found:
        assert answer_of(case, one.edits) == one.after.answer != one.before.answer
    for one in made.nearest:
        assert answer_of(case, one.edits) == one.before.answer
    sets = [set(one.edits) for one in made.found]
    assert not any(one < other for one in sets for other in sets)
    sizes = [len(one) for one in sets]
    assert sizes == sorted(sizes) and {1, 2} <= {*sizes}


def test_search_over_removals_finds_what_trying_all_sets_finds(checkpoints):
    """Against the slow way: every set of triples removed, the smallest first."""
    texts, flipped = (TEXT, TEXT + TEXT, "糖尿病布洛芬", "口服布洛芬给予糖尿病异常"), 0
    for text, task in product(texts, ("classify", "ner")):
        pipeline = ready(checkpoints[task], text)
        case = case_of(pipeline, text, target=Target("疾病", 2, 5) if task == "ner" else None)
        before = case.target.answer(case.base.prediction)
        triples = [fact.triple for fact in case.facts]
        smallest: list[set[Triple]] = []
        for gone in (set(s) for n in range(len(triples)) for s in combinations(triples, n + 1)):
            if any(small <= gone for small in smallest):
                continue
            if answer_of(case, [Edit("remove", t) for t in gone]) != before:
                smallest.append(gone)
        search = Search(("remove",), most_edits=len(triples), larger_too=True, budget=1000)
        made = counterfactuals(case, search=search)
        found = [{edit.triple for edit in one.edits} for one in made.found]
        assert sorted(map(sorted, found)) == sorted(map(sorted, smallest))
        assert made.ended == "all"
        flipped += len(found)
    assert flipped > 5


def test_search_goes_on_to_larger_sets_only_where_no_smaller_one_flips(reader, case):
    assert {len(one.edits) for one in counterfactuals(case).found} == {1}
    removals = Search(("remove",), most_edits=1)
    cases = (
        case_of(reader, text, target=Target("疾病", at, at + 1))
        for text in (TEXT, TEXT + TEXT, "糖尿病布洛芬")
        for at in range(len(text))
    )
    stubborn = next(one for one in cases if not counterfactuals(one, search=removals).found)
    steps = list(stream_counterfactuals(stubborn, Search(("remove",))))
    assert max(step.size for step in steps) > 1


def test_runs_are_counted_and_kept_to_the_budget(reader, monkeypatch):
    ran = 0
    real = reader.reader.logits

    def counted(inputs, **given):
        nonlocal ran
        ran += len(inputs)
        return real(inputs, **given)

    monkeypatch.setattr(reader.reader, "logits", counted)
    for budget in (1, 7, 20):
        ran = 0
        case = case_of(reader, target=DISEASE)
        *_, last = stream_counterfactuals(case, Search(budget=budget))
        assert last.runs == ran <= budget
        assert last.ended == "budget"


def test_results_stream_in_and_only_grow_until_enough_is_found(case):
    steps = list(stream_counterfactuals(case, Search(larger_too=True)))
    assert [step.runs for step in steps] == sorted(step.runs for step in steps)
    for one, other in pairwise(steps):
        assert {f.edits for f in one.found} <= {f.edits for f in other.found}
        assert not one.ended
    assert steps[-1].ended
    made = counterfactuals(case, search=Search(most_found=2))
    assert made.ended == "enough"
    assert 2 <= len(made.found) <= 2 + 16  # a batch is finished


def test_same_seed_gives_the_same_search_and_another_one_other_candidates(classifier):
    tails = "疾病治疗检查症状部位口服多饮心电图"
    graph = KnowledgeGraph(
        [*GRAPH, *(Triple("入院", "症状", a + b) for a in tails for b in "好史")]
    )
    case = case_of(classifier, graph=graph)
    one, same, other = (
        [edits for edits in Candidates(case, per_place=6, seed=seed).edits()] for seed in (1, 1, 2)
    )
    assert one == same != other
    first, second = (counterfactuals(case, search=Search(seed=1)) for _ in range(2))
    found = [[(one.edits, one.after, one.runs) for one in of.found] for of in (first, second)]
    assert found[0] == found[1]


def test_candidates_are_made_of_what_the_graph_says(classifier):
    case = case_of(classifier)
    edits = list(Candidates(case, per_place=50, seed=0).edits())
    assert len(edits) == len(set(edits))
    hung = [fact.triple for fact in case.facts]
    assert [e.triple for e in edits if e.action == "remove"] == hung
    said, relations = {(t.relation, t.tail) for t in GRAPH}, {t.relation for t in GRAPH}
    for old, new in ((e.triple, e.new) for e in edits if e.action == "replace"):
        assert old in hung and new not in GRAPH and new.head == old.head
        if new.relation == old.relation:
            assert (new.relation, new.tail) in said
        else:
            assert new.tail == old.tail and new.relation in relations
    for edit in (e for e in edits if e.action == "add"):
        triple = edit.triple
        assert edit.index == 0 and triple not in GRAPH
        assert triple.head in {"糖尿病", "布洛芬", "口服"}
        assert (triple.relation, triple.tail) in said
    changed = [edit.new or edit.triple for edit in edits if edit.action != "remove"]
    assert "别名" not in {triple.relation for triple in changed}  # they never give another name
    # of 布洛芬, which is a 治疗 as 口服 is: what is said of 口服
    assert Edit("add", Triple("布洛芬", "部位", "口"), index=0) in edits
    assert Edit("replace", hung[0], Triple("糖尿病", "类别", "治疗")) in edits


def test_candidates_begin_where_the_target_stands(reader):
    case = case_of(reader, target=Target("治疗", 9, 12))
    edits = list(Candidates(case, per_place=3, seed=0).edits())
    assert edits[0].triple.head == "布洛芬"
    assert next(edit for edit in edits if edit.action == "replace").triple.head == "布洛芬"


def test_changes_that_the_model_never_reads_cost_no_run(classifier):
    only_tails = InjectionOptions(max_triples=1, tail_only=True)
    case = case_of(classifier, "布洛芬", options=only_tails, graph=GRAPH)
    edits = Candidates(case, per_place=12, seed=0).edits(("replace",))
    relations = [edit for edit in edits if edit.new.tail == edit.triple.tail]
    made = counterfactuals(case, search=Search(("replace",), most_edits=1))
    assert made.unread == len(relations) > 0
    assert made.ended == "all"


def test_search_for_a_label_finds_that_label_and_no_other(case):
    before = case.target.answer(case.base.prediction)
    labels = {one.after.answer for one in counterfactuals(case).found}
    wished = sorted(labels & {"疾病", "治疗", "O"})[0]
    made = counterfactuals(case, search=Search(to=wished))
    assert made.found
    assert {one.after.answer for one in made.found} == {wished}
    assert made.target == Target(wished, 3, 6)
    gains = [one.change for one in made.nearest]
    assert gains == sorted(gains, reverse=True)
    with pytest.raises(OptionError, match="already"):
        counterfactuals(case, search=Search(to=before))
    with pytest.raises(TextError, match="no label"):
        counterfactuals(case, search=Search(to="Q"))


@pytest.mark.parametrize(
    ("task", "texts"),
    [
        ("classify", (TEXT,)),
        ("pair", (TEXT, "布洛芬口服好转")),
        ("mask", ("患者有[MASK]尿病史给予布洛芬口服",)),
    ],
)
def test_search_flips_predictions_of_every_task(checkpoints, task, texts):
    case = case_of(ready(checkpoints[task], *texts), *texts)
    made = counterfactuals(case, search=Search(budget=300, larger_too=True, most_found=3))
    assert made.found
    for one in made.found:
        assert answer_of(case, one.edits) == one.after.answer != one.before.answer


def test_search_without_knowledge_in_the_text_ends_at_once(classifier):
    made = counterfactuals(case_of(classifier, "好转"))
    assert (made.found, made.nearest, made.runs, made.ended) == ((), (), 1, "all")
    assert made.to_frame().empty
    assert made.figure()


def test_search_refuses_what_makes_no_sense():
    with pytest.raises(OptionError, match="kind is 'turn'"):
        Search(("turn",))
    with pytest.raises(OptionError, match="budget is 0"):
        Search(budget=0)
