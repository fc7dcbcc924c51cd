"""A folder with a card is enough to appear: its language, its twin, what its card says."""

import json
from pathlib import Path

import pytest

from kbert_lab.lab.models import CHINESE, ENGLISH, LATIN, read_model, twin_of
from kbert_lab.lab.views import model_facts


@pytest.fixture
def folder(tmp_path):
    """Write a model's folder: name and card → its path."""

    def write(name, task="ner", knowledge=(), vocabulary=None, **notes):
        path = tmp_path / name
        path.mkdir()
        card = {"task": task, "knowledge": list(knowledge), "notes": notes}
        (path / "config.json").write_text(json.dumps({"kbert": card}), encoding="utf-8")
        if vocabulary is not None:
            tokens = {token: i for i, token in enumerate(vocabulary)}
            text = json.dumps({"model": {"vocab": tokens}})
            (path / "tokenizer.json").write_text(text, encoding="utf-8")
        return str(path)

    return write


def twin(path):
    models = [read_model(str(own)) for own in Path(path).parent.iterdir()]
    found = twin_of(read_model(path), models)
    return found.folder if found else None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("my-kbert", "my-bert"),
        ("my-knowbert", "my-bert"),
        ("my", "my-bert"),
        ("my-kbert", "my"),
    ],
)
def test_twins_are_found_by_their_names_from_either_side(folder, one, other):
    one, other = folder(one, knowledge=["kg"]), folder(other)
    assert twin(one) == other.rsplit("/", 1)[1]
    assert twin(other) == one.rsplit("/", 1)[1]


def test_a_card_names_its_twin_whatever_that_is_called(folder):
    assert twin(folder("mine", knowledge=["kg"], twin="without")) is None
    folder("mine-bert")
    folder("without")
    assert twin(folder("also", knowledge=["kg"], twin="without")) == "without"


@pytest.mark.parametrize(
    "other",
    [
        {"task": "classify"},
        {"knowledge": ["other"]},
        {"data": "other"},
        {"encoder": "other"},
        {"twin": "third"},
    ],
)
def test_a_model_that_was_trained_otherwise_is_no_twin(folder, other):
    one = folder("my-kbert", knowledge=["kg"], data="data", encoder="mini")
    folder("my-bert", **{"data": "data", "encoder": "mini", **other})
    assert twin(one) is None


def test_a_twin_is_a_folder_beside_the_model_and_nowhere_else(folder, tmp_path):
    inner = tmp_path / "inner"
    inner.mkdir()
    folder("outside")
    one = folder("inner/mine", knowledge=["kg"], twin="../outside")
    assert twin(one) is None


def test_a_broken_card_is_told_and_no_twin(folder, tmp_path):
    one = folder("my-kbert", knowledge=["kg"])
    (tmp_path / "my-bert").mkdir()
    (tmp_path / "my-bert" / "config.json").write_text("{", encoding="utf-8")
    assert twin(one) is None
    broken = read_model(str(tmp_path / "my-bert"))
    assert "my-bert/config.json: can't be read" in broken.problem
    assert model_facts.option_name(broken) == "my-bert · can't be used"


def test_language_is_the_cards_word_else_the_names_else_the_vocabularys(folder):
    chinese = ["中", "文", "a"]
    assert read_model(folder("one", vocabulary=chinese)).language == CHINESE
    assert read_model(folder("two", vocabulary=["a", "b"])).language == LATIN
    assert read_model(folder("ner-en", vocabulary=chinese)).language == ENGLISH
    assert read_model(folder("three-en", language="zh")).language == CHINESE
    assert read_model(folder("four", language="Thai")).language == "Thai"
    assert read_model(folder("five")).language is None


@pytest.mark.parametrize(
    ("name", "text", "knows"),
    [
        ("x-zh", "患者给予布洛芬 100 mg", True),
        ("x-zh", "The patient was given it", False),
        ("x-en", "The patient was given it", True),
        ("x-en", "患者给予布洛芬", False),
        ("x", "患者给予布洛芬", True),
        ("x-en", "", True),
    ],
)
def test_a_text_in_a_script_that_the_model_hardly_knows_is_noticed(folder, name, text, knows):
    assert read_model(folder(name)).knows(text) is knows


def test_facts_say_language_data_knowledge_trust_and_scores(folder):
    scores = {"test": {"f1": 0.905, "unseen": {"gold": 148, "recall": 0.554}}}
    invented = {"D": {"n": 3, "followed": 1.0}, "E": {"n": 1, "followed": 0.0}}
    response = {"dev": {"seen": {"n": 10, "new": 0.98}, "invented": invented}}
    info = read_model(
        folder(
            "m-zh",
            knowledge=["Medical"],
            data="notes (of a ward)",
            recipe={"counterfactual": 0.25},
            type_labels={"疾病": "D", "检查": "E"},
            scores=scores,
            edit_response=response,
        )
    )
    assert model_facts.facts(info) == (
        "Reads Chinese · trained on notes with knowledge (Medical) · trusts the graph, wrong "
        "triples too · follows 98.0 % of rewritten types (dev) · "
        "follows 75.0 % of types of invented names (dev) · "
        "test: F1 90.5, recall on unseen entities 55.4"
    )


@pytest.mark.parametrize(
    ("task", "notes", "said"),
    [
        ("ner", {"recipe": {"counterfactual": 0.0}, "scores": {"dev": {"f1": 1}}}, "dev: F1 100.0"),
        ("classify", {"scores": {"test": {"accuracy": 0.9, "macro_f1": 0.8}}}, "90.0, macro F1 80"),
        ("pair", {"scores": {"test": {"accuracy": 0.9, "f1": 0.7}}}, "accuracy 90.0, F1 70.0"),
        ("rank", {"scores": {"test": {"mrr": 0.9, "p_at_1": 0.8}}}, "test: MRR 90.0, P@1 80.0"),
        ("link", {"scores": {"test": {"f1": 0.71, "first": 0.652}}}, "F1 71.0, always the first c"),
        ("mask", {"perplexity": 27.53, "accuracy": 0.421}, "perplexity 27.5, 42.1 % of masked"),
        (
            "ner",
            {"data": "d", "scores": {"test": {"f1": "much"}}},
            "trained on d without knowledge",
        ),
        ("ner", {"data": "d", "scores": "good"}, "trained on d without knowledge"),
    ],
)
def test_scores_are_those_of_the_task_and_odd_ones_are_left_out(folder, task, notes, said):
    info = read_model(folder("m", task=task, **notes))
    assert said in model_facts.facts(info)
    assert "trusts" not in model_facts.facts(info)


def test_scores_of_twins_stand_in_one_order_from_either_side(folder):
    def at(value):
        return {"test": {"f1": value}}

    one = read_model(
        folder("a-kbert", knowledge=["kg"], data="d", scores=at(0.9), without_knowledge=at(0.8))
    )
    other = read_model(folder("a-bert", data="d", scores=at(0.7), without_knowledge={}))
    said = model_facts.scores_of_twins(one, other)
    assert said == model_facts.scores_of_twins(other, one)
    assert (
        "F1 90.0 with the graph and 80.0 with the graph off (a-kbert), and 70.0 for its twin"
        in said
    )
    bare = read_model(folder("b-bert", data="d"))
    assert model_facts.scores_of_twins(one, bare) is None
    elsewhere = read_model(folder("c-bert", data="e", scores=at(0.7)))
    assert model_facts.scores_of_twins(one, elsewhere) is None
