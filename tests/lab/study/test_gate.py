"""The gate over a dictionary: features by hand, the fit; saved beside a model, read, refused."""

import json
import shutil
from dataclasses import replace
from math import log

import numpy as np
import pytest
from scipy.special import expit
from tagged_texts import row, tagged

from kbert_core import KnowledgeGraph, Pipeline, Triple
from kbert_core.errors import CheckpointError, DataError
from kbert_core.knowledge.surface_forms import ALL_RULES
from kbert_core.labels import bio_spans
from kbert_core.tasks.ner import LabelledToken, NerPrediction
from kbert_lab.data.labelled import Example
from kbert_lab.study import gate
from kbert_lab.study.dictionary import TagScores, written_over
from kbert_lab.study.gate import (
    FEATURES,
    LOWEST,
    Candidates,
    Record,
    cross_fitted,
    fit_gate,
    folds_of,
    gated_spans,
    judged,
    oracle,
    regression,
    weights_of,
)
from kbert_lab.study.gated import FILE, Gate, Gated, GatedPrediction
from kbert_lab.training.evaluate import evaluate

NAMES = ("O", "B-x", "I-x", "B-y", "I-y")
SURE = (0.8, 0.05, 0.05, 0.05, 0.05)  # of O


def scores(*texts):
    """Of texts of one character a token: their tags' probabilities."""
    predictions = []
    for rows in texts:
        chances = [dict(zip(NAMES, row, strict=True)) for row in rows]
        tokens = [LabelledToken(i, i + 1, "O", chance) for i, chance in enumerate(chances)]
        predictions.append(NerPrediction((), tuple(tokens)))
    return TagScores.of(predictions)


def test_what_a_name_is_worth_is_counted_without_it_where_its_type_speaks():
    train = [tagged("糖尿病", ("糖尿病", "D"))] * 3 + [tagged("糖尿病"), tagged("感冒")]
    train += [tagged("肺炎", ("肺炎", "D"))]
    found = [[(0, len(e.sentences[0]), "D")] for e in train]
    record = Record.of(train, found)
    assert record.names == {"D": {"糖尿病": (3, 4), "感冒": (0, 1), "肺炎": (1, 1)}}
    # the type's other names: 感冒 0 of 1 and 肺炎 1 of 1, with one half more: 1.5 of 3 names
    assert record.of_name("糖尿病", "D") == (4, (3 + 2 * 0.5) / 6, 0.5)
    # of 肺炎 the others are worth 0.75 and 0
    assert record.of_name("肺炎", "D") == (1, pytest.approx((1 + 2 * 1.25 / 3) / 3), 1.25 / 3)
    # one that train hasn't: all three, and nothing of its own
    assert record.of_name("胃炎", "D") == (0, pytest.approx(2.25 / 4), pytest.approx(2.25 / 4))
    assert record.of_name("胃炎", "E") == (0, 0.5, 0.5)


def test_a_span_is_described_by_what_the_model_thinks_and_found_and_by_its_name():
    begins, goes_on = (0.35, 0.4, 0.1, 0.1, 0.05), (0.2, 0.1, 0.6, 0.05, 0.05)
    record = Record({"x": {"乙丙": (1, 2), "丁": (0, 1)}})
    dictionary = [[(1, 3, "x"), (3, 4, "y"), (0, 9, "x"), (1, 2, "z")]]
    texts = Candidates([Example(("甲乙丙丁",))], dictionary, scores([SURE, begins, goes_on, SURE]))
    assert texts.found == [[(1, 3, "x")]]
    made = judged(texts, record)
    assert made.spans == ((0, (1, 3, "x")), (0, (3, 4, "y")))  # the others can't be judged
    first, second = (dict(zip(FEATURES, row, strict=True)) for row in made.features)
    wanted = {
        "spelled": (log(0.4) + log(0.6)) / 2,
        "outside": (log(0.35) + log(0.2)) / 2,
        "begun before": log(0.1 + 0.05),
        "goes on": log(0.05 + 0.05),
        "found": 1,
        "found as another type": 0,
        "inside a longer one": 0,
        "overlaps": 0,
        "length": log(2),
        "seen": log(3),
        "name": log((1 + 2 * 0.25) / 4 / (1 - 1.5 / 4)),
        "type": log(0.25 / 0.75),  # 丁 was wrong: 0.5 of 2 names
    }
    assert first == pytest.approx(wanted, abs=2e-3)  # scores are in half precision
    assert second["goes on"] == LOWEST  # the text ends there
    assert (second["seen"], second["name"], second["found"]) == (0, 0, 0)


BEGIN, INSIDE = (0.01, 0.96, 0.01, 0.01, 0.01), (0.01, 0.01, 0.96, 0.01, 0.01)


@pytest.mark.parametrize(
    ("found", "label", "way"),
    [
        ((SURE, BEGIN, INSIDE, SURE), "x", "found"),
        ((SURE, BEGIN, INSIDE, SURE), "y", "found as another type"),
        ((BEGIN, INSIDE, INSIDE, SURE), "x", "inside a longer one"),
        ((SURE, SURE, BEGIN, SURE), "x", "overlaps"),
        ((SURE, SURE, BEGIN, INSIDE), "x", "overlaps"),
        ((SURE, SURE, SURE, BEGIN), "x", None),
    ],
)
def test_what_the_model_found_there_is_one_way_or_none(found, label, way):
    texts = Candidates([Example(("甲乙丙丁",))], [[(1, 3, label)]], scores(found))
    ways = dict(zip(FEATURES, judged(texts, Record({})).features[0], strict=True))
    four = ("found", "found as another type", "inside a longer one", "overlaps")
    assert [name for name in four if ways[name]] == ([way] if way else [])


def test_the_weights_are_those_of_the_regression_in_the_units_of_the_features():
    dice = np.random.default_rng(0)
    features = dice.normal(size=(200, 3)) * (1, 100, 0) + (0, 7, 4)  # the last is always 4
    right = dice.random(200) < expit(features[:, 0])
    weights, bias = weights_of(features, right)
    chances = expit(features @ weights + bias)
    assert chances == pytest.approx(regression().fit(features, right).predict_proba(features)[:, 1])
    assert chances.sum() == pytest.approx(right.sum(), abs=1e-4)  # no penalty on the bias
    assert weights[0] == pytest.approx(1, abs=0.3) and weights[2] == 0


def test_no_span_is_judged_by_a_classifier_that_saw_its_fold_and_equal_texts_share_one():
    assert folds_of(["a", "b", "a", "c", "d", "e", "f", "a"]).tolist() == [0, 1, 0, 2, 3, 4, 0, 0]
    features, right = np.arange(12.0)[:, None], np.arange(12) % 3 == 0
    folds = np.arange(12) % 4
    before = cross_fitted(features, right, folds)
    own = folds == 2
    after = cross_fitted(features, np.where(own, ~right, right), folds)
    assert np.array_equal(before[own], after[own])  # its own labels change nothing of it
    assert not np.array_equal(before[~own], after[~own])


def dev(count):
    """Texts with two names: of 甲 the model thinks little and it is right, of 乙 it is wrong."""
    examples = [tagged(f"甲乙{i}", ("甲", "x")) for i in range(count)]
    rows = [(0.6, 0.3, 0.04, 0.03, 0.03), (0.95, 0.02, 0.01, 0.01, 0.01), SURE]
    texts = [rows + [SURE] * (len(e.sentences[0]) - 3) for e in examples]
    return Candidates(examples, [[(0, 1, "x"), (1, 2, "x")]] * count, scores(*texts))


def test_a_gate_writes_what_it_has_learnt_to_be_right():
    texts = dev(12)
    fitted = fit_gate(texts, Record({}))
    assert (fitted.matches, fitted.right) == (24, 12)
    assert fitted.dev_f1 == {"model": 0.0, "dictionary": 0.6667, "gate": 1.0, "oracle": 1.0}
    assert fitted.threshold < 1
    written = gated_spans(fitted, texts, Record({}))
    assert written == [[(0, 1, "x")]] * 12
    assert written == written_over([[]] * 12, oracle(texts.examples, texts.spans))


def test_the_score_on_dev_is_by_thresholds_that_have_not_seen_their_fold(monkeypatch):
    missed, longer = (tagged(f"甲乙{i}", (name, "x")) for i, name in enumerate(("甲", "甲乙")))
    examples = [missed, tagged("甲乙丙", ("甲", "x")), longer, tagged("甲乙丁", ("甲乙", "x"))]
    of_model = scores(*[[SURE] * 3] * 2, *[[BEGIN, INSIDE, SURE]] * 2)
    alike = np.full(4, 0.9)
    monkeypatch.setattr(gate, "cross_fitted", lambda *arguments: alike)
    fitted = fit_gate(Candidates(examples, [[(0, 1, "x")]] * 4, of_model), Record({}))
    # without one of the first two, most names are wrong; without one of the others, most are right
    assert (fitted.dev_f1["model"], fitted.dev_f1["gate"]) == (0.6667, 0.0)
    assert fitted.threshold == 1  # of all: two gained, two lost


def test_of_equal_thresholds_the_one_that_writes_least_is_taken():
    texts = dev(12)
    gold_is_found = scores(*[[BEGIN] + [SURE] * (len(e.words) - 1) for e in texts.examples])
    fitted = fit_gate(replace(texts, scores=gold_is_found), Record({}))
    assert fitted.dev_f1["model"] == 1.0
    assert fitted.threshold == 1.0  # nothing that is written could make it better
    assert gated_spans(fitted, texts, Record({})) == [[]] * 12


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([[]] * 6, "gives no label to any name in dev"),
        ([[(0, 1, "x")]] * 6, r"All 6 names .* are right\. A gate needs both"),
        ([[(1, 2, "x")]] * 6, r"All 6 names .* are wrong"),
        (
            [[(0, 1, "x"), (1, 2, "x")], *[[]] * 5],
            r"Of the 2 names .* 1 are right. They are in too few",
        ),
    ],
)
def test_a_gate_needs_names_some_right_and_some_wrong_in_several_texts(spans, message):
    with pytest.raises(DataError, match=message):
        fit_gate(replace(dev(6), spans=spans), Record({}))


# Beside a model

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
        for name in single.judged:
            own = {s.text: s for s in single.spans}
            assert not name.written or name.text in own
        assert json.dumps(prediction.as_dict())


def test_a_model_trained_without_a_graph_does_not_read_it(gated, folder):
    assert not gated.gate.injected  # its card names no graph
    assert gated("患者有糖尿病", graph=GRAPH).used == ()
    injected = Gate.fit(gated, folder / "model", SPLITS, GRAPH, injected=True)
    assert Gated(gated, injected)("患者有糖尿病", graph=GRAPH).used == (
        Triple("糖尿病", "类别", "疾病"),
    )


def test_a_gate_finds_names_in_other_words_and_an_older_one_as_written(gated, folder, tmp_path):
    assert (gated.gate.rules, gated.gate.names["疾病"]["心电图"]) == (ALL_RULES, (0, 9))
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
        ({"format": 2}, "format: Input should be 1"),
        ({"threshold": float("nan")}, "threshold: Input should be a finite number"),
        ({"features": {"length": 1.0}}, "features: Value error, 1 features, expected the 12"),
        ({"names": {"疾病": {"心电图": [2, 1]}}}, "more often than it was matched"),
        ({"name_rules": ["spelling"]}, "'spelling' isn't a rule"),
    ],
)
def test_a_broken_gate_is_refused(folder, tmp_path, change, problem):
    data = json.loads((folder / "model" / FILE).read_text("utf-8"))
    (tmp_path / FILE).write_text(json.dumps({**data, **change}), "utf-8")
    with pytest.raises(
        CheckpointError, match=rf"gate\.json: this isn't a gate of this version.*{problem}"
    ):
        Gate.load(folder / "model", tmp_path / FILE)


def test_a_gate_is_fitted_for_named_entities_of_the_models_labels_only(gated, checkpoints, folder):
    def fit(dev, pipeline=gated):
        return Gate.fit(pipeline, folder / "model", {"train": TEXTS, "dev": dev}, GRAPH)

    with pytest.raises(DataError, match="'B-X' is not among those of the model"):
        fit([tagged("患者有糖尿病", ("糖尿病", "X"))])
    classifier = Pipeline.from_pretrained(checkpoints["classify"])
    with pytest.raises(CheckpointError, match="judges named entities, and the model is for 'class"):
        fit(TEXTS, classifier)
    with pytest.raises(CheckpointError, match="judges named entities"):
        Gated(classifier, gated.gate)


@pytest.fixture
def here(folder, tmp_path, monkeypatch):
    """A copy of the folder to work in."""
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


FIT = "gate model --kg facts.spo --data data --device cpu".split()
PREDICT = "predict 患者有糖尿病，行心电图 --model model --kg facts.spo --gate".split()


def test_a_gate_is_fitted_read_and_scored_from_the_command_line(here, kbert):
    (here / "model" / FILE).unlink()
    assert "model/gate.json: there is no gate. Fit one" in kbert(*PREDICT, code=2).err
    report = kbert(*FIT, "--json")
    assert (report["names_in_dev"], report["of_these_right"]) == (27, 18)
    assert report["f1_on_dev"]["gate"] > report["f1_on_dev"]["model"]
    before = (here / "model" / FILE).read_bytes()
    shown = kbert(*FIT).out
    assert "of these right: 18" in shown and "oracle 80.0" in shown
    assert (here / "model" / FILE).read_bytes() == before  # the same again
    data = kbert(*PREDICT, "--compare", "--json")
    assert [name["written"] for name in data["prediction"]["gate"]] == [True, False]
    assert "gate" not in data["without_knowledge"]
    out = kbert(*PREDICT, "model/gate.json").out
    assert "judged by the gate" in out and "糖尿病" in out
    evaluate = "evaluate --model model --kg facts.spo --data data --json".split()
    alone, gated = (kbert(*evaluate, *way) for way in ((), ("--gate",)))
    assert gated["scores"]["f1"] > alone["scores"]["f1"]
    assert gated["without_knowledge"] == alone["without_knowledge"]


def test_a_gate_replaces_only_a_gate_for_its_graph(here, kbert):
    (here / "other.spo").write_bytes((here / "facts.spo").read_bytes())
    other = [word.replace("facts", "other") for word in FIT]
    gate, config = here / "model" / FILE, here / "model" / "config.json"
    before = gate.read_bytes(), config.read_bytes()
    for words, message in (
        ((*FIT, "--output", "model/config.json"), "config.json: there is a file here already, and"),
        ((*FIT, "--output", "data"), "data: there is a file here already"),
        (other, "there is a gate for another graph here (facts)"),
    ):
        assert message in kbert(*words, code=2).err
    assert (gate.read_bytes(), config.read_bytes()) == before
    kbert(*other, "--output", "other.json")
    gate.write_text("{}")  # a broken one is fitted again, as reading it advises
    kbert(*FIT)
    assert gate.read_bytes() == before[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, "100.0 % of dev's texts stand in train"),  # as these are
        ({"THRESHOLDS": (1.0,)}, "The gate lets no name through"),
        (
            {"THRESHOLDS": (0.5,), "written_over": lambda found, _: found},
            "On dev the gate does no better than the model alone: better not use it",
        ),
    ],
)
def test_a_gate_of_little_use_is_warned_of(here, monkeypatch, kbert, caplog, change, message):
    for name, value in change.items():
        monkeypatch.setattr(gate, name, value)
    kbert(*FIT)
    assert message in caplog.text and ("better not" in caplog.text) == ("better not" in message)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "predict 糖尿病 --model model --gate",
            "--gate writes names of a graph, and there is none",
        ),
        ("predict --model model --kg facts.spo --gate 糖尿病", "糖尿病: there is no gate"),
        ("evaluate --model model --kg facts.spo --data data --gate --release", "Leave --gate out"),
        ("gate model --kg facts.spo --train data/train.tsv", "with facts: There is no dev set"),
        ("gate model --kg facts.spo --data data --output no/where.json", "can't be written"),
    ],
)
def test_a_gate_that_cannot_be_is_refused_and_nothing_is_overwritten(
    here, folder, kbert, words, message
):
    assert message in kbert(*words.split(), code=2).err
    assert (here / "model" / FILE).read_bytes() == (folder / "model" / FILE).read_bytes()


def test_a_share_of_train_can_be_the_dev_set(here, kbert):
    words = "gate model --kg facts.spo --train data/train.tsv --dev-share 0.5 --output shared.json"
    assert 10 < kbert(*words.split(), "--json")["names_in_dev"] < 20
    assert Gate.load("model", "shared.json").graph.fingerprint == GRAPH.fingerprint


def test_an_audit_with_a_model_says_what_looking_up_makes_of_it(here, kbert):
    report = kbert(*"audit --data data --kg facts.spo --model model --json".split())
    looked = report["looked_up"]
    alone, gains = looked["alone"], looked["gains"]
    model, gate = Pipeline.from_pretrained("model"), Gated.from_pretrained("model")
    assert alone == pytest.approx(evaluate(model, TEXTS, GRAPH)["f1"], abs=1e-4)
    mean, low, high = gains["gate"]
    assert alone + mean == pytest.approx(evaluate(gate, TEXTS, GRAPH)["f1"], abs=2e-4)
    assert low <= mean <= high
    assert gains["oracle"][0] >= max(mean, gains["dictionary"][0], 0.01)
    texts = {f["kind"]: f["text"] for f in report["verdict"]["findings"]}
    assert 0 <= looked["new_names"] < 1
    said = f"dev {100 * mean:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}], a perfect judge"
    assert texts["looked_up"].startswith("model reaches F1") and said in texts["looked_up"]
