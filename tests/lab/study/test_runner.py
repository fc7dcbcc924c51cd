"""A grid of runs: what is made, what is skipped, what is made again."""

import json
import lzma
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from errno import ENOSPC
from unittest.mock import Mock

import psutil
import pytest
from conftest import save_checkpoint
from filelock import FileLock
from kept_results import keep, records, result_of, results_of
from transformers import AutoModel

from kbert_core import Card, Triple, load_graph
from kbert_core.errors import DataError, ExperimentError
from kbert_lab import cli
from kbert_lab.study.dictionary import load_scores
from kbert_lab.suites import results, runner
from kbert_lab.suites.grid import Experiment
from kbert_lab.suites.results import Status
from kbert_lab.suites.suite import read_suite
from kbert_lab.training.trainer import OrderedTrainer
from results.tools import report


def experiment(path):
    return Experiment(read_suite(path))


def states(path):
    made = experiment(path)
    return [made.status(cell).state for cell in made.cells()]


def bare(cell):
    """The least that a result holds."""
    return {"format": 1, "row": cell.row.name, "seed": cell.seed, "seconds": 1.0}


def kbert(*arguments):
    return cli.main(["experiment", "--device", "cpu", *map(str, arguments)])


def only(*rows):
    return [word for row in rows for word in ("--only", row)]


@pytest.fixture
def bert_alone(suite_data):
    """Of the tiny suite only BERT, at one seed."""
    changes = {"runs": suite_data["runs"][:1], "baselines": [], "also_compare": [], "seeds": [1]}
    suite_data |= changes
    return suite_data


def test_a_suite_runs_from_the_command_line_and_is_skipped_when_done(
    written, suite_data, folder, capsys
):
    path = written(suite_data)
    assert kbert(path, "--json") == 0
    made = json.loads(capsys.readouterr().out)
    assert [c["state"] for c in made["suites"]["tiny"]["cells"]] == ["done"] * 8
    assert sorted(results_of()) == sorted(
        f"{row}-seed{seed}"
        for row in ("bert", "k-bert-graph", "dictionary", "bert-dictionary")
        for seed in (1, 2)
    )
    result = result_of("k-bert-graph-seed2")
    assert len(result["learning_curve"]) == 2
    assert result["scores"]["test"]["f1"] >= 0
    assert "f1" in result["without_knowledge"]["test"]
    assert result["edit_response"]["test"]["seen"]["n"] >= 0
    assert len(result["sentences"]["ids"].split()) == 30
    assert result["command"] == "kbert experiment tiny.yaml --only 'K-BERT, graph' --seeds 2"
    assert str(folder) not in json.dumps(result)
    before = records().path.stat().st_mtime_ns
    assert kbert(path) == 0
    assert before == records().path.stat().st_mtime_ns
    assert not list(folder.glob("runs/experiments/tiny/*/checkpoints"))


def test_a_retrained_row_draws_anew_over_the_same_data_and_is_told_as_noise(
    written, bert_alone, folder
):
    bert_alone["runs"].append({"name": "BERT again", "knowledge": "none", "retrained": True})
    path = written(bert_alone)
    assert kbert(path) == 0
    first, second = (result_of(f"{name}-seed1") for name in ("bert", "bert-again"))
    assert first["inputs"] | {"retrained": True} == second["inputs"]
    assert first["learning_curve"] != second["learning_curve"]
    report.main([str(path), "--report", str(folder / "r.md")])
    page = (folder / "r" / "tiny.md").read_text("utf-8")
    reading = (folder / "r" / "how-to-read.md").read_text("utf-8")
    assert "another seed: 1. Of their intervals" in reading
    assert "| *none:* BERT again − BERT | 1, *exploratory* |" in page


def test_bfloat16_is_taken_where_a_processor_is_made_for_it_and_is_no_other_run(
    written, bert_alone, monkeypatch
):
    bert_alone["runs"] = [{"name": "BERT", "knowledge": "none", "train": {"bf16": True}}]
    path, made = written(bert_alone), []
    for able, precision in ((True, "bfloat16"), (False, "float32")):
        can = {"amx_bf16": able}
        monkeypatch.setattr("torch.cpu.get_capabilities", lambda can=can: can)
        assert kbert(path, "--again") == 0
        made.append(result_of("bert-seed1"))
        assert made[-1]["precision"] == precision
        assert states(path) == ["done"]
    assert made[0]["inputs"] == made[1]["inputs"]
    losses = [[epoch["train_loss"] for epoch in run["learning_curve"]] for run in made]
    assert losses[0] != losses[1] and losses[0] == pytest.approx(losses[1], rel=0.05)


def test_a_test_curve_changes_nothing_of_a_run(written, bert_alone):
    bert_alone["runs"].append({"name": "watched", "knowledge": "none", "test_curve": True})
    assert kbert(written(bert_alone)) == 0
    plain, curved = (result_of(f"{name}-seed1") for name in ("bert", "watched"))
    assert plain["inputs"] == curved["inputs"] and plain["sentences"] == curved["sentences"]
    curve = curved["learning_curve"]
    on_test = [epoch.pop("test_f1") for epoch in curve]
    assert curve == plain["learning_curve"]
    best = max(range(len(curve)), key=lambda epoch: curve[epoch]["f1"])
    assert on_test[best] == pytest.approx(curved["scores"]["test"]["f1"], abs=1e-4)


def test_a_changed_suite_graph_or_data_makes_results_stale_and_says_why(
    written, suite_data, folder
):
    suite_data["seeds"] = [1]
    path = written(suite_data)
    assert kbert(path) == 0
    assert states(path) == ["done"] * 4
    suite_data["runs"][1]["recipe"] = {"counterfactual": 0.5}
    path = written(suite_data)
    made = experiment(path)
    found = [made.status(cell) for cell in made.cells()]
    assert [s.state for s in found] == ["done", "stale", "done", "done"]
    assert "recipe.counterfactual was 0.3 and is 0.5" in found[1].reason
    with (folder / "kg.spo").open("a", encoding="utf-8") as file:
        file.write("戊病\t类别\t疾病\n")
    made = experiment(path)
    assert "kg has another content" in made.status(made.cells()[2]).reason
    with (folder / "data" / "dev.tsv").open("a", encoding="utf-8") as file:
        file.write("甲 病\tB-D I-D\n")
    assert states(path) == ["stale"] * 4


@pytest.mark.parametrize(
    ("change", "number", "reason"),
    [
        ({"injection": {"strategy": "context", "scorer": "other"}}, 1, "scorer has another"),
        ({"task": "link", "encoder": "other", "train": {}}, 2, "encoder has another"),
    ],
)
def test_another_model_of_the_same_name_makes_results_stale(
    written, bert_alone, folder, change, number, reason
):
    for split in ("train", "dev", "test"):
        (folder / "data" / f"{split}.jsonl").write_text('{"text": "gone", "labels": []}\n')
    save_checkpoint(folder / "other", AutoModel, Card())
    bert_alone["runs"].append({"name": "K-BERT"})
    if "task" in change:
        bert_alone["baselines"] = [{"name": "senses", "senses": "centroid"}]
    path = written({**bert_alone, **change})
    made = experiment(path)
    cell = made.cells()[number]
    keep(bare(cell) | {"inputs": made.inputs(cell)})
    assert made.status(cell).state == "done"
    save_checkpoint(folder / "other", AutoModel, Card(), hidden_size=64)
    assert reason in experiment(path).status(cell).reason


def test_an_option_that_is_new_and_has_its_default_makes_no_result_stale(written, suite_data):
    suite_data |= {"seeds": [1], "injection": {"max_triples": 1}}
    made = experiment(written(suite_data))
    cell = made.cells()[1]
    inputs = made.inputs(cell)
    assert inputs["options"]["recipe"] == {"counterfactual": 0.3}  # of five shares
    assert inputs["options"]["injection"] == {"max_triples": 1}
    assert "ablation" not in inputs["options"]
    recorded = bare(cell) | {"inputs": inputs}
    # as recorded before: what has its default written out, and an option there wasn't yet not
    inputs["options"]["recipe"] |= {"tree_dropout": 0.0, "branch_dropout": 0.0}
    inputs["options"]["injection"] |= {"tail_only": False, "relations": None}
    keep(recorded)
    assert made.status(cell).state == "done"
    inputs["options"]["recipe"]["tree_dropout"] = 0.1
    keep(recorded)
    assert made.status(cell).reason == "options.recipe.tree_dropout was 0.1 and is unset"
    inputs["options"] |= {"recipe": {"counterfactual": 0.3}, "injection": None}
    keep(recorded)
    assert "options.injection was unset and is" in made.status(cell).reason


def test_a_list_is_made_without_the_data_and_says_what_it_has_not_checked(
    written, suite_data, folder, capsys
):
    path = written({**suite_data, "seeds": [1]})
    assert kbert(path, "--only", "dictionary") == 0
    (folder / "data").rename(folder / "data.away")
    capsys.readouterr()
    assert kbert(path, "--list", "--only", "dictionary") == 0
    said = capsys.readouterr().out
    assert said.count("not checked: data: can't be read") == 1
    assert "1 of 1 done" in said
    assert kbert(path, "--only", "dictionary") == 2  # to run, they are needed


def test_a_run_cut_off_while_it_is_scored_goes_on_and_is_not_trained_again(
    written, bert_alone, folder, monkeypatch
):
    path, interrupted = written(bert_alone), Mock(side_effect=KeyboardInterrupt)
    with monkeypatch.context() as patch:
        patch.setattr(runner, "score_run", interrupted)
        assert kbert(path) == 130
    assert states(path) == ["left"]
    assert list(folder.glob("runs/experiments/tiny/bert-seed1-*/checkpoints/*"))
    monkeypatch.setattr(OrderedTrainer, "training_step", interrupted)
    assert kbert(path) == 0
    assert len(result_of("bert-seed1")["learning_curve"]) == 2


def test_a_run_that_fails_is_recorded_and_the_rest_goes_on(written, bert_alone, capsys):
    bert_alone["runs"].append({"name": "K-BERT"})
    bert_alone["runs"][0]["train"] = {"learning_rate": 1e25}
    path = written(bert_alone)
    assert kbert(path) == 2
    out, err = capsys.readouterr()
    assert "Failed: BERT, seed 1" in err
    assert "1 of 2 done" in out
    assert states(path) == ["failed", "done"]
    made = experiment(path)
    assert "The loss is" in made.status(made.cells()[0]).reason
    bert_alone["runs"][0]["train"] = {"learning_rate": 1e-3}
    assert kbert(written(bert_alone)) == 0
    assert states(path) == ["done", "done"]


def test_a_dictionary_over_a_run_whose_predictions_are_gone_says_what_to_do(
    written, suite_data, folder, caplog
):
    path = written({**suite_data, "seeds": [1]})
    assert kbert(path, "--only", "BERT + dictionary") == 2
    assert "aren't in" in caplog.text
    assert "--only BERT --seeds 1 --again" in caplog.text


def test_a_run_guided_by_a_dictionary_is_decoded_anew_with_the_weight_best_on_dev(
    written, suite_data, folder
):
    suite_data["baselines"].append({"name": "guided", "over": "BERT", "guided": True})
    path = written({**suite_data, "seeds": [1]})
    assert kbert(path, *only("BERT", "BERT + dictionary", "guided")) == 0
    rows = ("bert", "bert-dictionary", "guided")
    bert, over, guided = (result_of(f"{row}-seed1") for row in rows)
    on_dev = guided["dev_f1_by_weight"]
    assert on_dev["0"] == round(bert["scores"]["dev"]["f1"], 4)
    assert on_dev[f"{guided['weight']:g}"] == max(on_dev.values())
    assert guided["scores"]["test"]["f1"] >= bert["scores"]["test"]["f1"]
    assert "weight" not in over
    kept = next(folder.glob("runs/experiments/tiny/bert-seed1-*/tag_scores.npz"))
    scores = load_scores(kept)
    assert len(scores["dev"].sizes) == 20
    assert len(scores["test"].sizes) == 30


def test_a_gate_and_an_oracle_judge_what_is_written_over_a_run(written, suite_data, folder):
    judges = [{"name": n, "over": "BERT", "judge": n} for n in ("gate", "oracle")]
    suite_data["baselines"] += judges
    with (folder / "kg.spo").open("a", encoding="utf-8") as file:
        file.write("明显\t类别\t疾病\n")  # which is never a mention
    path = written({**suite_data, "seeds": [1]})
    rows = ("BERT", "BERT + dictionary", "gate", "oracle")
    assert kbert(path, *only(*rows)) == 0
    names = ("bert", "bert-dictionary", "gate", "oracle")
    bert, over, gate, oracle = (result_of(f"{name}-seed1") for name in names)
    on_dev = gate["gate"]["dev_f1"]
    assert on_dev["model"] == round(bert["scores"]["dev"]["f1"], 4)
    assert on_dev["oracle"] >= on_dev["gate"] >= max(on_dev["model"], on_dev["dictionary"])
    f1 = [result["scores"]["test"]["f1"] for result in (over, gate, oracle)]
    assert f1[0] < f1[1] <= f1[2]
    made = experiment(path)
    assert ("gate", "BERT") in made.tables(resamples=50).pairs
    assert ("oracle", "BERT") not in made.tables(resamples=50).pairs  # it knows the answers
    bert["sentences"]["columns"]["right"] = bert["sentences"]["columns"]["gold"]
    keep(bert)  # as if made on another machine
    (told,) = {made.status(cell).reason for cell in made.cells(only=rows[1:])}
    assert told == "the run under it has another result"


def test_several_runs_at_a_time_give_the_same_results_as_one(written, bert_alone):
    path = written({**bert_alone, "baselines": [{"name": "both", "over": "BERT"}]})
    assert kbert(path, "--jobs", "2") == 0  # the second waits for the first
    assert kbert(path, "--results", "single") == 0
    for row in ("bert-seed1", "both-seed1"):
        assert result_of(row)["sentences"] == result_of(row, results="single")["sentences"]


@pytest.mark.soak
def test_a_killed_experiment_leaves_no_run_behind(written, suite_data, folder):
    suite_data["train"] |= {"epochs": 1000}
    path = written(suite_data)
    command = [sys.executable, "-m", "kbert_lab.cli", "experiment", str(path)]
    parent = psutil.Process(subprocess.Popen([*command, "--jobs", "2"], cwd=folder).pid)
    checkpoints = "runs/experiments/tiny/*/checkpoints/*"
    until(lambda: len({f.parent for f in folder.glob(checkpoints)}) == 2)
    processes = parent.children(recursive=True)
    assert len(processes) >= 2
    parent.kill()
    until(lambda: not any(p.is_running() and p.status() != "zombie" for p in processes))
    suite_data["train"] |= {"epochs": 2}
    assert kbert(written(suite_data), "--only", "BERT") == 0  # no lock is left


def until(true, seconds=300):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it didn't come true"
        time.sleep(0.1)


def test_each_seed_draws_its_own_entity_disjoint_split(written, suite_data, folder):
    suite_data["data"] |= {"split": "entity-disjoint", "among": "kg.spo"}
    made = experiment(written(suite_data))
    folders = [made.split(seed) for seed in (1, 2, 1)]
    assert folders[0] == folders[2]
    assert folders[0][1] != folders[1][1]


@pytest.mark.parametrize(
    ("control", "tails", "unchanged"),
    [
        ("shuffled", {"检查", "疾病"}, {"shuffled_unchanged": 0}),
        ("permuted", {"检查", "疾病"}, None),
        ("constant", {"疾病"}, {}),
    ],
)
def test_control_graphs_keep_the_names_and_lose_what_is_said_of_them(
    written, suite_data, folder, control, tails, unchanged
):
    suite_data["runs"][1]["knowledge"] = control
    made = experiment(written(suite_data))
    (file,), about = made.graph_files(made.suite.runs[1], 1)
    before, after = load_graph("kg.spo"), load_graph(file)
    assert [t.head for t in after] == [t.head for t in before]
    assert {t.tail for t in after} == tails
    assert unchanged is None or about == unchanged


def test_a_control_has_a_relation_that_is_injected(written, suite_data, folder):
    (folder / "kg.spo").write_text("甲\t类别\t疾病\n乙\t类别\t疾病\n甲\t见\t丙\n", "utf-8")
    suite_data["runs"][1] |= {"knowledge": "constant", "injection": {"relations": ["见"]}}
    made = experiment(written(suite_data))
    graph, _ = made.graph(made.suite.runs[1], 1)
    assert [*graph] == [Triple("甲", "见", "丙")]
    for control in ("graph", "shuffled", "constant"):
        suite_data["runs"][1] |= {"knowledge": control, "injection": {"relations": ["属于"]}}
        made = experiment(written(suite_data))
        with pytest.raises(ExperimentError, match="has no relation that injection uses"):
            made.graph(made.suite.runs[1], 1)


def test_rows_run_under_each_condition_on_their_own_split_and_graph(
    written, suite_data, folder, capsys
):
    labels = {"疾病": "D", "检查": "E"}
    facts = [line.split("\t") for line in (folder / "kg.spo").read_text("utf-8").splitlines()]
    of_all = [f"见 {' '.join(n)} 。\tO B-{labels[t]} I-{labels[t]} O" for n, _, t in facts]
    text = "\n".join(["text_a\tlabel", *of_all, ""])
    (folder / "data" / "train.tsv").write_text(text, "utf-8")  # every name is seen
    suite_data["data"] |= {"split": "substitution"}
    suite_data["train"] |= {"steps": 6}
    suite_data["seeds"] = [1]
    suite_data["conditions"] = [
        {"unseen": 0.2, "known": 0.5},
        {"unseen": 0.2, "known": 1},
        {"unseen": 0.5, "known": 1},
    ]
    assert kbert(written(suite_data)) == 0
    made = experiment(written(suite_data))
    few, all_, many = "20 % new, 50 % known", "20 % new, 100 % known", "50 % new, 100 % known"
    results = made.tables(resamples=10).results
    known = {name: of[1].get("control", {}).get("known", {}) for name, of in results.items()}
    assert known["BERT: 20 % new"] == {}
    for row in ("K-BERT, graph", "dictionary", "BERT + dictionary"):
        assert 0.3 < known[f"{row}: {few}"]["test"] < 0.7
        assert known[f"{row}: {all_}"]["test"] == known[f"{row}: {many}"]["test"] == 1
    data = {name: of[1]["inputs"]["data"]["sha256"] for name, of in results.items()}
    assert data[f"dictionary: {few}"] == data[f"dictionary: {all_}"] != data[f"dictionary: {many}"]
    assert len(results[f"K-BERT, graph: {few}"][1]["learning_curve"]) == 2
    assert results[f"K-BERT, graph: {few}"][1]["learning_curve"][-1]["step"] == 6


SPLIT = {"folder": "data", "split": "deduplicated"}
FILES = {"folder": "data", "files": {"train": "train.tsv", "dev": "dev.tsv"}}
MAP = {
    **{"data": {"folder": "data", "split": "substitution"}, "runs": [{"name": "K-BERT"}]},
    **{"conditions": [{"unseen": 0.5, "known": 0.5}], "compare_with": None},
    **{"baselines": [], "also_compare": []},
}
NO_TEST = "data: no test"


@pytest.mark.parametrize(
    ("change", "spoilt", "text", "reason"),
    [
        ({}, "data/test.tsv", None, NO_TEST),
        ({"data": SPLIT}, "data/test.tsv", None, NO_TEST),
        ({"data": FILES}, "data/test.tsv", None, NO_TEST),
        ({}, "kg.spo", None, "kg.spo: can't be read"),
        (MAP, "data/test.tsv", "text_a\tlabel\n", "test.tsv: no labelled"),
        (MAP, "data/dev.tsv", None, "data: no dev.tsv"),
        (MAP, "kg.spo", "天\t类别\t疾病\n", "The graph names no mention of train"),
        (MAP, "data/train.tsv", "text_a\tlabel\n甲 病\tO O\n", "There is no mention in train"),
    ],
)
def test_data_and_graphs_that_cannot_serve_are_told_before_anything_is_trained(
    written, suite_data, folder, monkeypatch, capsys, caplog, change, spoilt, text, reason
):
    monkeypatch.setattr(runner, "fit", Mock(side_effect=AssertionError("trained")))
    (folder / spoilt).unlink()
    if text is not None:
        (folder / spoilt).write_text(text, "utf-8")
    assert kbert(written({**suite_data, "seeds": [1], **change})) == 2
    assert reason in capsys.readouterr().err + caplog.text
    assert not list(folder.rglob("*.jsonl.xz"))


def test_more_sets_to_train_on_go_into_the_split(written, suite_data, folder):
    (folder / "more.tsv").write_text("text_a\tlabel\n甲 炎 早 。\tB-D I-D O O\n", "utf-8")
    alone = experiment(written(suite_data)).split(1)[0] / "train.tsv"
    suite_data["data"] |= {"also_train": "more.tsv"}
    together = experiment(written(suite_data)).split(1)[0] / "train.tsv"
    new = together.read_text("utf-8").removeprefix(alone.read_text("utf-8").rstrip())
    assert "甲 炎 早 。" in new
    assert len(new.split("\n")) == 3


def test_several_processes_for_one_experiment_are_refused(
    written, suite_data, folder, monkeypatch, capsys
):
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert kbert(written(suite_data)) == 2
    said = capsys.readouterr().err
    assert "was started in 2 processes, as by torchrun" in said
    assert "--jobs 2" in said
    assert not (folder / "results").exists()


def test_an_unknown_run_or_seed_is_named_with_those_there_are(written, suite_data, folder, capsys):
    suite_data["runs"][0]["seeds"] = [7]
    path = written(suite_data)
    for asked, said in (
        (only("XLNet"), "no run 'xlnet'. There are: 'BERT', 'K-BERT, graph'"),
        (("--seeds", "1", "9"), "tiny.yaml: no run with the seed 9. There are: 1, 2, 7."),
        ((*only("BERT"), "--seeds", "1"), "no run with the seed 1. There are: 7."),
    ):
        assert kbert(path, *asked) == 2
        assert said in capsys.readouterr().err
    assert not (folder / "results").exists()


@pytest.mark.parametrize("option", ["--results", "--work"])
@pytest.mark.parametrize("more", [(), ("--list",)])
def test_a_file_where_a_folder_is_needed_is_refused_by_the_options_name(
    written, suite_data, folder, capsys, option, more
):
    (folder / "taken").touch()
    assert kbert(written(suite_data), option, "taken", *more) == 2
    said = capsys.readouterr().err
    assert f"{option}: taken" in said
    assert "Name another folder" in said
    assert not list(folder.rglob("*.jsonl.xz"))


def test_time_left_goes_by_the_runs_that_are_done(written, suite_data, folder):
    made = experiment(written(suite_data))
    cells = made.cells()
    done = Status(cells[0], "done", seconds=100.0)
    assert runner.seconds_left([done], [], 1) == 0
    assert runner.seconds_left([], list(cells), 1) is None
    # seed 1 K-BERT as long as BERT took; dictionaries take no time to speak of
    assert runner.seconds_left([done], list(cells[1:4]), 1) == pytest.approx(100.0)
    assert runner.seconds_left([done], list(cells[1:]), 2) == pytest.approx(150.0)


def test_on_a_full_disk_every_run_is_tried_and_says_so(
    written, suite_data, folder, monkeypatch, caplog
):
    @contextmanager
    def full(path):
        raise OSError(ENOSPC, "No space left on device")
        yield

    made = experiment(written(suite_data))
    monkeypatch.setattr(results, "replaced", full)
    cells = list(made.cells(only=["dictionary"]))
    assert runner.run_all(made, cells) == cells
    assert "Free some space" in caplog.text
    assert "Traceback" not in caplog.text


def test_a_run_that_another_process_is_at_is_left_to_it(written, suite_data, folder, caplog):
    made = experiment(written({**suite_data, "seeds": [1]}))
    cell = made.cells()[0]
    made.work.mkdir(parents=True)
    with FileLock(made.error_file(cell).with_suffix(".lock")):
        assert runner.run_all(made, [cell]) == []
    assert "another process already runs it" in caplog.text
    assert made.status(cell).state == "left"


def test_a_run_that_another_process_has_made_meanwhile_is_not_made_again(
    written, suite_data, folder, monkeypatch
):
    made = experiment(written(suite_data))
    first, second, *_ = cells = made.cells()[:3]
    tried = []

    def attempt(experiment, cell, device):
        tried.append(cell)
        if cell == first:  # meanwhile another process runs the second
            keep(bare(second))
        return True

    keep(bare(cells[2]))  # of before: it is asked for again
    monkeypatch.setattr(runner, "attempt", attempt)
    assert runner.run_all(made, cells) == []
    assert tried == [first, cells[2]]


ONE = {"format": 1, "row": "BERT", "seed": 1}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (lzma.compress(b"{}\n" + b" " * 9)[:-9], "can't be read (Compressed file ended"),
        (b"plain text", "can't be read (Input format not supported"),
        (lzma.compress(b'{"format": 1'), "can't be read (Expecting"),
        (lzma.compress(json.dumps(ONE).encode() + b"\n[1]\n"), "line 2: no result of this"),
        (lzma.compress(json.dumps({**ONE, "format": 9}).encode()), "line 1: no result of this"),
        (lzma.compress(b'{"format": 1, "seed": 1}'), "line 1: no result of this version"),
    ],
)
def test_a_file_of_results_that_is_broken_is_named_and_stays(tmp_path, content, said):
    path = tmp_path / "tiny.jsonl.xz"
    path.write_bytes(content)
    for use in (lambda kept: kept.all(), lambda kept: kept.add([ONE])):
        with pytest.raises(DataError, match=re.escape(f"{path}")) as raised:
            use(results.Records(path))
        assert said in str(raised.value)
        assert path.read_bytes() == content


def test_processes_that_write_to_one_file_of_results_lose_none(tmp_path):
    def write(first):
        kept = results.Records(tmp_path / "tiny.jsonl.xz")
        for seed in range(first, first + 10):
            kept.add([{**ONE, "seed": seed}])

    with ThreadPoolExecutor() as pool:
        list(pool.map(write, (0, 10, 20)))
    assert len(results.Records(tmp_path / "tiny.jsonl.xz").all()) == 30


def test_results_made_elsewhere_are_merged_and_those_of_other_suites_refused(
    written, suite_data, folder, capsys
):
    path = written({**suite_data, "seeds": [1]})
    made = experiment(path)
    here, there = (bare(cell) | {"inputs": made.inputs(cell)} for cell in made.cells()[:2])
    keep(here)
    elsewhere = results.Records(folder / "elsewhere.jsonl.xz")
    elsewhere.add([there | {"suite": "tiny"}])
    assert kbert(path, "--list", "--merge", elsewhere.path) == 0
    assert states(path) == ["done", "done", "left", "left"]
    elsewhere.add([there | {"suite": "tiny"}, there | {"suite": "other", "row": "x"}])
    assert kbert(path, "--list", "--merge", elsewhere.path) == 2
    assert "holds results of other, tiny, expected some of tiny." in capsys.readouterr().err
    assert kbert(path, "--list", "--merge", "nowhere") == 2
    assert "--merge nowhere: is missing or holds nothing" in capsys.readouterr().err
