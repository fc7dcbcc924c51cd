"""A gate beside a model: fitted, saved, read, refused; from Python and the command line."""

import json
import shutil

import pytest
from tagged_texts import row, tagged

from kbert_core import NO_KNOWLEDGE, KnowledgeGraph, Pipeline, Triple, load_graph
from kbert_core.errors import CheckpointError, DataError
from kbert_core.knowledge.surface_forms import ALL_RULES
from kbert_core.labels import bio_spans
from kbert_lab import cli
from kbert_lab.study.gated import FILE, Gate, Gated, GatedPrediction
from kbert_lab.training.evaluate import evaluate

FACTS = (("糖尿病", "疾病"), ("心电图", "疾病"), ("布洛芬", "治疗"))
GRAPH = KnowledgeGraph([Triple(head, "类别", tail) for head, tail in FACTS], name="facts")
TEXTS = [
    tagged(f"{before}{name}{after}", *([(name, label)] if label else []))
    for before in ("患者有", "入院后", "给予")
    for name, label in (("糖尿病", "疾病"), ("心电图", None), ("布洛芬", "治疗"))
    for after in ("史", "，", "检查。")
]
SPLITS = {"train": TEXTS, "dev": TEXTS}


@pytest.fixture(scope="module")
def folder(checkpoints, tmp_path_factory):
    """A current folder with a model of random weights and its gate, the graph and data."""
    root = tmp_path_factory.mktemp("gated")
    shutil.copytree(checkpoints["ner"], root / "model")
    lines = ["\t".join((head, "类别", tail)) for head, tail in FACTS]
    (root / "facts.spo").write_text("\n".join(lines) + "\n", "utf-8")
    (root / "data").mkdir()
    table = "\n".join(["text_a\tlabel", *map(row, TEXTS)]) + "\n"
    for split in ("train", "dev", "test"):
        (root / "data" / f"{split}.tsv").write_text(table, "utf-8")
    Gate.fit(Pipeline.from_pretrained(root / "model"), root / "model", SPLITS, GRAPH).save(
        root / "model" / FILE
    )
    return root


@pytest.fixture
def gated(folder):
    return Gated.from_pretrained(folder / "model")


def test_a_gate_writes_names_that_are_right_and_an_empty_graph_is_the_model_alone(gated, folder):
    plain = Pipeline.from_pretrained(folder / "model")
    text = "患者有糖尿病，行心电图"
    alone, through = plain(text), gated(text, graph=GRAPH)
    assert isinstance(through.prediction, GatedPrediction)
    assert [(j.text, j.label, j.written) for j in through.prediction.judged] == [
        ("糖尿病", "疾病", True),
        ("心电图", "疾病", False),
    ]
    assert (3, 6, "疾病") in {(s.start, s.end, s.label) for s in through.prediction.spans}
    assert gated(text).prediction == alone.prediction
    assert type(gated(text).prediction) is type(alone.prediction)
    assert gated("检查。", graph=GRAPH).prediction.judged == ()


def test_spans_and_tags_of_a_gated_prediction_agree_and_one_by_one_is_as_in_a_batch(gated):
    texts = [example.sentences for example in TEXTS]
    together = list(gated.predict(texts, graph=GRAPH))
    for (text,), prediction in zip(texts, together, strict=True):
        tokens = prediction.tokens
        tags = bio_spans([token.tag for token in tokens])
        spans = [(s.start, s.end, s.label) for s in prediction.spans]
        assert [(tokens[a].start, tokens[b - 1].end, la) for a, b, la in tags] == spans
        single = gated(text, graph=GRAPH).prediction
        assert [(s.start, s.end, s.label) for s in single.spans] == spans
        for judged in single.judged:
            own = {s.text: s for s in single.spans}
            assert not judged.written or judged.text in own
        assert json.dumps(prediction.as_dict())


def test_a_model_trained_without_a_graph_does_not_read_it(gated, folder):
    assert not gated.gate.injected  # its card names no graph
    assert gated("患者有糖尿病", graph=GRAPH).used == ()
    injected = Gate.fit(gated, folder / "model", SPLITS, GRAPH, injected=True)
    assert Gated(gated, injected)("患者有糖尿病", graph=GRAPH).used == (
        Triple("糖尿病", "类别", "疾病"),
    )


def test_a_gated_model_is_scored_as_any_other(gated, folder):
    through, alone = (evaluate(gated, TEXTS, graph) for graph in (GRAPH, NO_KNOWLEDGE))
    assert through["f1"] > alone["f1"]
    assert alone == evaluate(Pipeline.from_pretrained(folder / "model"), TEXTS, NO_KNOWLEDGE)


def test_a_saved_gate_is_the_one_that_was_fitted(gated, folder):
    again = Gate.load(folder / "model")
    assert again.record == gated.gate.record
    assert again.fitted.as_dict() == gated.gate.fitted.as_dict()
    assert again.record.names["疾病"]["心电图"] == (0, 9)
    assert set(again.labels) == {"疾病", "治疗"}


def test_a_gate_finds_names_in_other_words_and_an_older_one_as_written(gated, folder, tmp_path):
    assert gated.gate.rules == Gate.load(folder / "model").rules == ALL_RULES
    (named,) = gated("患者有糖 尿病", graph=GRAPH).prediction.judged
    assert named.text == "糖 尿病"
    data = json.loads((folder / "model" / FILE).read_text("utf-8"))
    del data["name_rules"]
    (tmp_path / FILE).write_text(json.dumps(data), "utf-8")
    older = Gated.from_pretrained(folder / "model", gate=tmp_path / FILE)
    assert older("患者有糖 尿病", graph=GRAPH).prediction.judged == ()


def test_a_gate_of_another_graph_or_model_is_refused(gated, folder, tmp_path):
    edited = GRAPH.add(Triple("口服", "类别", "治疗"))
    with pytest.raises(CheckpointError, match=r"another graph \(facts, 3 triples\) than this one"):
        gated("患者有糖尿病", graph=edited)
    with pytest.raises(CheckpointError, match="another graph"):
        list(gated.predict([("患者有糖尿病",)], graph=edited))
    other = tmp_path / "other"
    shutil.copytree(folder / "model", other)
    weights = (other / "model.safetensors").read_bytes()
    (other / "model.safetensors").write_bytes(weights[:-4] + b"\0\0\0\0")
    with pytest.raises(CheckpointError, match="fitted for another model than"):
        Gated.from_pretrained(other)
    with pytest.raises(CheckpointError, match=r"there is no gate\. Fit one"):
        Gated.from_pretrained(folder / "model", gate=tmp_path / "none.json")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"format": 2}, "format 2"),
        ({"bias": None}, "TypeError"),
        ({"threshold": float("nan")}, "a weight is no number"),
        ({"features": {"length": 1.0}}, "with 1 features"),
        ({"names": {"疾病": {"心电图": [2, 1]}}}, "more often than it was matched"),
        ({"names": {"疾病": 3}}, "AttributeError"),
        ({"graph": {}}, "KeyError"),
        ({"name_rules": ["spelling"]}, "OptionError"),
    ],
)
def test_a_broken_gate_is_refused(folder, tmp_path, change, problem):
    data = json.loads((folder / "model" / FILE).read_text("utf-8"))
    (tmp_path / FILE).write_text(json.dumps({**data, **change}), "utf-8")
    with pytest.raises(
        CheckpointError, match=rf"gate\.json: this isn't a gate of this version.*{problem}"
    ):
        Gate.load(folder / "model", tmp_path / FILE)


def test_a_gate_is_not_fitted_where_there_is_no_dev_no_match_or_one_kind(
    gated, checkpoints, folder
):
    def fit(dev, graph=GRAPH, pipeline=gated):
        return Gate.fit(pipeline, folder / "model", {"train": TEXTS, "dev": dev}, graph)

    with pytest.raises(DataError, match=r"There is no dev set.*--dev"):
        fit([])
    with pytest.raises(DataError, match="gives no label to any name in dev"):
        fit(TEXTS, KnowledgeGraph([Triple("胃镜", "类别", "检查")]))
    with pytest.raises(DataError, match="All 9 names that the graph finds in dev are right"):
        fit(TEXTS, KnowledgeGraph([Triple("糖尿病", "类别", "疾病")]))
    with pytest.raises(DataError, match="'B-X' is not among those of the model"):
        fit([tagged("患者有糖尿病", ("糖尿病", "X"))])
    with pytest.raises(CheckpointError, match="judges named entities, and the model is for 'class"):
        fit(TEXTS, pipeline=Pipeline.from_pretrained(checkpoints["classify"]))
    with pytest.raises(CheckpointError, match="judges named entities"):
        Gated(Pipeline.from_pretrained(checkpoints["classify"]), gated.gate)


def kbert(capsys, *words):
    code = cli.main([str(word) for word in words])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_a_gate_is_fitted_read_and_scored_from_the_command_line(
    folder, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / "model" / FILE).unlink()
    model, graph = ("--model", "model"), ("--kg", "facts.spo")
    text = "患者有糖尿病，行心电图"
    code, _, said = kbert(capsys, "predict", text, *model, *graph, "--gate")
    assert code == 2 and "model/gate.json: there is no gate. Fit one" in said
    fit = ("gate", "model", *graph, "--data", "data", "--device", "cpu")
    code, made, _ = kbert(capsys, *fit, "--json")
    assert code == 0
    report = json.loads(made)
    assert (report["names_in_dev"], report["of_these_right"]) == (27, 18)
    assert report["f1_on_dev"]["gate"] > report["f1_on_dev"]["model"]
    before = (tmp_path / "model" / FILE).read_bytes()
    code, shown, _ = kbert(capsys, *fit)
    assert "of these right: 18" in shown and "oracle 80.0" in shown
    assert (tmp_path / "model" / FILE).read_bytes() == before  # the same again
    code, out, _ = kbert(capsys, "predict", text, *model, *graph, "--gate", "--compare", "--json")
    data = json.loads(out)
    assert [name["written"] for name in data["prediction"]["gate"]] == [True, False]
    assert "gate" not in data["without_knowledge"]
    code, out, _ = kbert(capsys, "predict", text, *model, *graph, "--gate", "model/gate.json")
    assert "judged by the gate" in out and "糖尿病" in out
    scores = {}
    for way in ((), ("--gate",)):
        given = ("evaluate", *model, *graph, "--data", "data", *way, "--json")
        scores[way] = json.loads(kbert(capsys, *given)[1])
    assert scores["--gate",]["scores"]["f1"] > scores[()]["scores"]["f1"]
    assert scores["--gate",]["without_knowledge"] == scores[()]["without_knowledge"]


def test_a_gate_that_writes_nothing_is_said_to(folder, tmp_path, monkeypatch, capsys, caplog):
    monkeypatch.chdir(folder)
    monkeypatch.setattr("kbert_lab.study.gate.THRESHOLDS", (1.0,))
    fit = "gate model --kg facts.spo --data data --device cpu --output".split()
    assert kbert(capsys, *fit, tmp_path / "gate.json")[0] == 0
    assert "The gate lets no name through" in caplog.text


def test_a_gate_replaces_only_a_gate_for_its_graph(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / "other.spo").write_bytes((tmp_path / "facts.spo").read_bytes())
    fit = "gate model --data data --device cpu --kg".split()
    gate, config = tmp_path / "model" / FILE, tmp_path / "model" / "config.json"
    before = gate.read_bytes(), config.read_bytes()
    code, _, said = kbert(capsys, *fit, "facts.spo", "--output", config)
    assert code == 2 and "config.json: there is a file here already, and it isn't a gate" in said
    code, _, said = kbert(capsys, *fit, "facts.spo", "--output", "data")
    assert code == 2 and "data: there is a file here already" in said
    code, _, said = kbert(capsys, *fit, "other.spo")
    assert code == 2 and "there is a gate for another graph here (facts)" in said
    assert (gate.read_bytes(), config.read_bytes()) == before
    assert kbert(capsys, *fit, "other.spo", "--output", "other.json")[0] == 0
    gate.write_text("{}")  # a broken one is fitted again, as reading it advises
    assert kbert(capsys, *fit, "facts.spo")[0] == 0 and gate.read_bytes() == before[0]


def test_a_gate_that_is_no_better_or_has_a_dev_set_of_train_is_warned_of(
    folder, tmp_path, monkeypatch, capsys, caplog
):
    monkeypatch.chdir(folder)
    fit = "gate model --kg facts.spo --data data --device cpu --output".split()
    assert kbert(capsys, *fit, tmp_path / "gate.json")[0] == 0
    assert "100.0 % of dev's texts stand in train" in caplog.text  # as these are
    assert "better not use it" not in caplog.text
    monkeypatch.setattr("kbert_lab.study.gate.written_over", lambda found, _: found)
    monkeypatch.setattr("kbert_lab.study.gate.THRESHOLDS", (0.5,))
    assert kbert(capsys, *fit, tmp_path / "gate.json")[0] == 0
    assert "On dev the gate does no better than the model alone" in caplog.text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "predict 糖尿病 --model model --gate",
            "--gate writes names of a graph, and there is none",
        ),
        ("predict --model model --kg facts.spo --gate 糖尿病", "糖尿病: there is no gate"),
        ("evaluate --model model --kg facts.spo --data data --gate --release", "Leave --gate out"),
        ("gate model --data data", "No graph given. Name one or more with --kg FILE"),
        ("gate model --kg facts.spo", "No data given"),
        (
            "gate model --kg facts.spo --train data/train.tsv",
            "data/train.tsv, with facts: There is no dev set",
        ),
        ("gate model --kg facts.spo --data data --output no/where.json", "can't be written"),
        ("gate nowhere --kg facts.spo --data data", "nowhere"),
    ],
)
def test_a_gate_that_cannot_be_is_refused_and_nothing_is_overwritten(
    folder, monkeypatch, capsys, words, message
):
    monkeypatch.chdir(folder)
    before = (folder / "model" / FILE).read_bytes()
    code, _, said = kbert(capsys, *words.split())
    assert code == 2 and message in said
    assert (folder / "model" / FILE).read_bytes() == before


def test_a_share_of_train_can_be_the_dev_set(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    words = ("gate", "model", "--kg", "facts.spo", "--train", "data/train.tsv", "--dev-share", 0.5)
    code, out, _ = kbert(capsys, *words, "--output", "shared.json", "--json")
    assert code == 0
    assert 10 < json.loads(out)["names_in_dev"] < 20
    gate = Gate.load("model", "shared.json")
    assert gate.graph == load_graph("facts.spo").fingerprint


def test_an_audit_with_a_model_says_what_looking_up_makes_of_it(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert not cli.main(
        ["audit", "--data", "data", "--kg", "facts.spo", "--model", "model", "--json"]
    )
    report = json.loads(capsys.readouterr().out)
    looked = report["looked_up"]
    read = {"model": Pipeline.from_pretrained("model"), "gate": Gated.from_pretrained("model")}
    f1 = {name: evaluate(own, TEXTS, GRAPH)["f1"] for name, own in read.items()}
    alone, gains = looked["alone"], looked["gains"]
    assert alone == pytest.approx(f1["model"], abs=1e-4)
    assert alone + gains["gate"][0] == pytest.approx(f1["gate"], abs=2e-4)
    assert gains["oracle"][0] >= max(gains["gate"][0], gains["dictionary"][0])
    assert gains["oracle"][0] > 0
    texts = {f["kind"]: f["text"] for f in report["verdict"]["findings"]}
    assert 0 <= looked["new_names"] < 1 and "over the F1 of this model: K-BERT" in texts["expected"]
    said = texts["looked_up"]
    mean, low, high = (100 * value for value in gains["gate"])
    assert low <= mean <= high
    assert said.startswith("model reaches F1")
    assert f"dev {mean:+.1f} [{low:+.1f}, {high:+.1f}], a perfect judge" in said
