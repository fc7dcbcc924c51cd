"""Suite files: what they mean, and what is said about bad ones."""

import re
from pathlib import Path

import pytest
import yaml

from kbert_core.errors import CheckpointError, DataError, OptionError
from kbert_core.kbert.visible import Ablation
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.knowledge.surface_forms import BASIC
from kbert_lab.suites.grid import Experiment
from kbert_lab.suites.suite import Baseline, read_suite, train_options
from kbert_lab.training.options import Recipe

ROOT = Path(__file__).parents[3]
SUITES = sorted((ROOT / "results" / "suites").glob("*.yaml"))


def test_a_suite_says_what_every_run_trains_with(written, suite_data):
    text = "{name: hidden, knowledge: none, hiding_kg: kg.spo, ablation: both, seeds: [7]}"
    other = {"encoder": "models/other", "train": {"epochs": 5}}
    suite_data["runs"].append({**yaml.safe_load(text), **other})
    suite = read_suite(written(suite_data))
    assert suite.name == "tiny"
    bert, kbert, hidden = suite.runs
    assert (bert.knowledge, bert.kg) == ("none", ())
    assert (kbert.knowledge, kbert.kg) == ("graph", ("kg.spo",))
    assert kbert.recipe == Recipe(counterfactual=0.3)
    options = train_options(suite, hidden, seed=7, data="d", kg=(), output="o")
    given = {"epochs": 5, "batch_tokens": 128, "seed": 7, "encoder": "models/other"}
    given |= {"ablation": Ablation("hard", "all"), "hiding_kg": ("kg.spo",), "float32": True}
    assert {name: value for name, value in options.flat().items() if name in given} == given
    assert (options.start.hidden_size, bert.train["hidden_size"]) == (None, 64)
    assert hidden.seeds == (7,)
    assert suite.covered_by == ("kg.spo",)
    dictionary = suite.row("dictionary")
    assert isinstance(dictionary, Baseline)
    assert dictionary.kg == ("kg.spo",)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("sedes: [1]", "the suite has the unknown key 'sedes'. Known: name, task"),
        ("task: nre", "task is 'nre', expected one of ner, classify"),
        ("task: classify", "baselines are for named entities"),
        ("{task: mask, data: {folder: d, split: deduplicated}}", "for the task 'mask', a folder's"),
        ("name: a/b", "name is 'a/b', expected letters, digits and hyphens"),
        ("seeds: [1, 1]", r"seeds is \[1, 1\], expected different whole numbers"),
        ("seeds: 3", "seeds is 3, expected a list"),
        ("data: here", "data is 'here', expected keys and values"),
        ("data: {}", "data: folder is missing. Add it"),
        ("data: {folder: d, among: kg.spo}", "among isn't used for split: official"),
        ("data: {folder: d, files: {dev: x}}", "files has no train"),
        (
            "data: {folder: d, split: entity-disjoint, also_train: more.tsv}",
            "data: also_train would bring held-out names into training",
        ),
        ("data: {folder: d, split: substitution}", "'BERT': unseen and split: subst"),
        ("conditions: [{unseen: 2}]", "conditions: number 1: unseen is 2, expected a share"),
        (
            "{conditions: [{known: 0.5}, {known: 0.3}],"
            " runs: [{name: A, known: 0.3}, {name: B, train: {epochs: x}}]}",
            "'B: 50 % known': epochs is 'x', expected a whole number",
        ),
        ("also_compare: [K-BERT, BERT]", "also_compare has 'K-BERT', expected pairs of names"),
        ("also_compare: [[BERT, X]]", "also_compare names 'X'"),
        ("runs: [{name: a, knowledge: none, known: 0.5}]", "run 'a': known and right are"),
        ("runs: []", "runs is empty"),
        ("runs: [{knowledge: none}]", "run 1: name is missing. Add it"),
        ("runs: [{name: a, knowledge: none, kg: kg.spo}]", "run 'a': there is a kg, and"),
        ("runs: [{name: a}, {name: A!}]", "the name 'a' is there twice"),
        ("runs: [{name: a, ablation: none}]", "'none', expected one of .*both, no-segments"),
        ("{kg: null, covered_by: []}", "knowledge is 'graph' and there is no kg"),
        ("train: {epochs: six}", "'BERT': epochs is 'six', expected a whole number"),
        ("train: {seed: 1}", "train has the unknown key 'seed'"),
        ("{encoder: models/zh-mini, train: {hidden_size: 64}}", "hidden_size is 64, but it is"),
        ("compare_with: GPT", "compare_with of 'BERT' names 'GPT', and there is no such run"),
        ("baselines: [{name: d, over: dictionary}]", "over of 'd' names 'dictionary'"),
        ("baselines: [{name: d, judge: gate}]", "baseline 'd': it has the judge 'gate' and has no"),
        (
            "baselines: [{name: d, over: BERT, guided: true, judge: oracle}]",
            "baseline 'd': it is guided and has a judge. Leave one of them out",
        ),
        ("side_by_side: {suites: {a: A, b: 'A '}}", "expected two or more"),
        ("side_by_side: {suites: {a: 1, b: B}}", "side_by_side: suites calls them"),
    ],
)
def test_what_does_not_fit_is_named_with_file_key_and_remedy(written, suite_data, change, message):
    given = yaml.safe_load(change)
    if given.get("runs") or "kg" in given:
        suite_data |= {"baselines": [], "also_compare": []}
        suite_data["runs"] = [{"name": "BERT", "knowledge": "graph"}]
        suite_data["compare_with"] = given.get("runs", suite_data["runs"])[0].get("name")
    path = written({**suite_data, **given})
    with pytest.raises(OptionError, match=message) as caught:
        read_suite(path)
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: [1", "bad.yaml: can't be read as YAML in UTF-8"),
        (b"- 1", r"the suite is \[1\], expected keys and values"),
        ("title: 疾病".encode("gbk"), "bad.yaml: can't be read as YAML in UTF-8 .* correct it"),
        (None, "bad.yaml: can't be read"),
    ],
)
def test_a_file_that_is_no_yaml_or_no_mapping_is_named(folder, content, message):
    if content is not None:
        (folder / "bad.yaml").write_bytes(content)
    with pytest.raises(OptionError, match=message):
        read_suite("bad.yaml")


def test_paths_are_found_here_then_beside_the_suite_and_variables_are_expanded(
    written, suite_data, folder, monkeypatch
):
    (folder / "suites").mkdir()
    written(suite_data, "suites/tiny.yaml")
    resolved = read_suite("suites/tiny.yaml").resolved
    monkeypatch.setenv("SOME_DATA", str(folder))
    assert resolved("$SOME_DATA/kg.spo") == f"{folder}/kg.spo"
    assert resolved("kg.spo") == "kg.spo"
    (folder / "suites" / "own.spo").touch()
    assert resolved("own.spo") == "suites/own.spo"
    assert resolved("bert-base-chinese") == "bert-base-chinese"
    monkeypatch.delenv("SOME_DATA")
    with pytest.raises(OptionError, match="the environment variable SOME_DATA isn't set"):
        resolved("$SOME_DATA/kg.spo")
    with pytest.raises(CheckpointError, match="no_such_package, which isn't installed"):
        resolved("package:no_such_package/model")


@pytest.mark.parametrize("path", SUITES, ids=lambda path: path.stem)
def test_the_suites_of_this_project_can_be_read(path):
    suite = read_suite(path)
    assert suite.name == path.stem
    assert suite.about
    assert suite.task == "link" or any(run.knowledge == "none" for run in suite.runs)


def test_the_suite_in_the_guide_can_be_read(folder):
    guide = (ROOT / "docs" / "compare.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```yaml\n(.*?)```", guide, flags=re.DOTALL)
    (folder / "my.yaml").write_text(block, encoding="utf-8")
    suite = read_suite("my.yaml")
    assert [row.name for row in suite.rows if row.compare_with == "BERT"]
    assert {run.knowledge for run in suite.runs} == {"none", "graph", "shuffled"}


def test_values_may_be_written_as_people_write_them(folder):
    (folder / "rates.yaml").write_text(
        "{task: classify, encoder: models/one, data: {folder: data}, seeds: [1], kg: kg.spo,"
        " train: {learning_rate: 8e-4, bf16: false, adapter: 8},"
        " injection: {max_triples: 1, strategy: context, scorer: package:x, not_relations: 别名},"
        " runs: [{name: K-BERT}]}",
        encoding="utf-8",
    )
    (run,) = read_suite(folder / "rates.yaml").runs
    assert run.train == {"learning_rate": 8e-4, "bf16": False, "adapter": 8}
    chosen = {"strategy": "context", "scorer": "package:x", "not_relations": ("别名",)}
    # names as of earlier suites, unless it names others
    assert run.injection == InjectionOptions(1, **chosen, names=BASIC)


# Conditions

PEER = "  - {name: Peer, unseen: 0.25, known: [0, 0.6], right: 0.6, train: {system: plain-text}}\n"


def test_a_row_that_gives_a_part_of_a_condition_is_run_under_those_that_agree(small):
    suite = small(PEER + "also_compare: [[K-BERT, Peer], [K-BERT, BERT]]\n")
    agreeing = ["25 % new, 60 % known, 60 % right", "25 % new, 0 % known, 60 % right"]
    assert [r.name for r in suite.rows if "Peer" in r.name] == [f"Peer: {c}" for c in agreeing]
    compared = [(f"K-BERT: {c}", f"Peer: {c}") for c in agreeing]
    assert [pair for pair in suite.also_compare if "Peer" in pair[1]] == compared
    assert len(suite.also_compare) == len(compared) + len(suite.conditions)
    with pytest.raises(OptionError, match="'Peer' has an unseen, known or right that no condition"):
        small(PEER.replace("0.25", "0.3"))


def test_a_row_is_asked_for_under_one_condition_or_under_all(small, tmp_path):
    experiment = Experiment(small(), tmp_path, tmp_path)
    every = [row.name for row in experiment.suite.rows if row.called == "K-BERT"]
    assert len(every) == 4
    assert [cell.row.name for cell in experiment.cells(only=["K-BERT"], seeds=[1])] == every
    (one,) = experiment.cells(only=["K-BERT: 50 % new, 60 % known, 60 % right"], seeds=[1])
    assert one.row.name == every[1]
    with pytest.raises(DataError, match=r"There are: 'BERT', 'K-BERT'\. `--list` shows"):
        experiment.cells(only=["K-BERT: 50 % new"])
