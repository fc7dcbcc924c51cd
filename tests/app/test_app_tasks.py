"""Every task and model in the Lab, run as Streamlit runs it, with tiny random checkpoints."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import sessions
from conftest import save_checkpoint
from explaining_pages import choose, classifier, opened, said, tagger
from sessions import session
from transformers import AutoModelForTokenClassification

from kbert_core import Ablation, Card
from kbert_core.tasks import LabelsPrediction
from kbert_lab.lab.models import read_model
from kbert_lab.lab.views import prediction
from kbert_lab.lab.views.prediction import outcome, turning
from kbert_lab.lab.views.targets import answer_name, name_of, targets

PAIR = ("患者有糖尿病史", "给予布洛芬口服好转")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A models folder: one or two of every task, and a model for elsewhere."""
    root = tmp_path_factory.mktemp("models")
    tagger(root / "tags-zh-kbert", ("kg",))
    tagger(root / "tags-zh-bert", num_hidden_layers=2)
    classifier(root / "moods-zh", "classify", data="shopping")
    classifier(root / "pairs-zh", "pair", ("kg",))
    classifier(root / "pairs-zh-bert", "pair")
    classifier(root / "answers-zh", "rank")
    classifier(root / "signs-zh", "multilabel")
    borders = {"id2label": {0: "start", 1: "end"}, "label2id": {"start": 0, "end": 1}}
    reader = root / "reader-zh", AutoModelForTokenClassification, Card("qa")
    save_checkpoint(*reader, **borders)
    return root


@pytest.fixture
def lab(models, monkeypatch):
    monkeypatch.setenv("KBERT_MODELS", str(models))
    monkeypatch.setenv("KBERT_OPEN_PATHS", "1")
    return opened("lab.py")


def drawn(at):
    html = [str(item.proto.body) for item in at.get("html")]
    return "\n".join([*html, *(tree["html"] for tree in sessions.drawn(at, "tree"))])


def test_every_task_there_is_a_model_for_is_offered(lab):
    assert lab.selectbox(key="lab.task").options == [
        "Named entities",
        "Sentence classification",
        "Several labels a text",
        "Sentence-pair classification",
        "Answer selection",
        "Reading comprehension",
        "Tree and matrix only",
    ]


def test_another_task_brings_a_model_and_an_example_of_its_own(lab):
    choose(lab, "lab.task", "classify")
    assert lab.selectbox(key="lab.model").options == ["moods-zh · no graph"]
    assert "冷淡" in lab.text_area(key="lab.text").value
    assert lab.session_state["lab.example"].startswith("冷淡")
    assert "0 · negative" in drawn(lab) and "1 · positive" in drawn(lab)
    assert "Reads Chinese · trained on shopping without knowledge" in said(lab)


def test_a_text_of_the_visitors_own_stays_when_the_task_changes(lab):
    lab.text_area(key="lab.text").set_value(PAIR[0]).run()
    choose(lab, "lab.task", "classify")
    assert lab.text_area(key="lab.text").value == PAIR[0]
    assert "positive" in drawn(lab)


@pytest.mark.parametrize(
    ("before", "now", "said", "explained"),
    [
        (None, "01", "0, 1", ["0", "1"]),
        ("0", "01", "0 → 0, 1", ["0", "1"]),
        ("1", "", "1 → no label", ["0"]),
        ("1", "1", "1", ["1"]),
    ],
)
def test_several_labels_are_said_drawn_and_explained(models, before, now, said, explained):
    info = read_model(str(models / "signs-zh"))
    chances = {"0": 0.7, "1": 0.6}
    after, was = (
        None if own is None else LabelsPrediction("0", chances, tuple(own)) for own in (now, before)
    )
    assert prediction.headline(PAIR, info, after, was) == said
    html = prediction.drawn(PAIR, prediction.before_and_now(info, after, was))
    assert "60.0" in html and "70.0" in html
    trace = SimpleNamespace(prediction=after, reading=None)
    assert [target.label for target in targets(trace)] == explained
    names = [name_of(target, trace, info) for target in targets(trace, every=True)]
    assert names == ["0, 70.0 %", "1, 60.0 %"]
    assert answer_name("not 1", info, "") == "not 1"
    if was is not None:
        turned = said if "→" in said else ""
        assert turning(info, "", after, was) == turned
        becomes = (said.rpartition(" → ")[2], True) if turned else ("no change", False)
        assert outcome(info, "", was, after, (0, 0)) == becomes


@pytest.mark.parametrize(
    ("task", "fields", "shown"),
    [
        ("multilabel", ["Sentence"], "<th>Label</th>"),
        ("pair", ["First sentence", "Second sentence"], "<th>Label</th>"),
        ("rank", ["Question", "Candidate answer"], "Probability that the answer is right"),
        ("qa", ["Question", "Paragraph"], "<mark>"),
    ],
)
def test_a_task_has_its_fields_and_needs_the_texts_of_all(lab, task, fields, shown):
    choose(lab, "lab.task", task)
    assert [box.label for box in lab.text_area] == fields
    for box, text in zip(lab.text_area, PAIR, strict=False):
        box.set_value(text)
    page = drawn(lab.run())
    assert shown in page and not lab.exception
    assert page.count('class="kb-trunk-row"') in (len(fields), 0)  # a row a text, if several
    lab.text_area[-1].set_value(" ").run()
    assert not lab.exception
    if len(fields) > 1:
        assert f"Write both texts above: “{fields[1]}” is empty" in said(lab)


def beside_the_twin(lab):
    choose(lab, "lab.compare", "models")
    return re.findall(r'class="kb-column"><b>([^<]*)</b> <span>([^<]*)<', drawn(lab))


def test_the_twin_stands_beside_and_stays_there(lab):
    assert beside_the_twin(lab)[-1] == ("Twin", "tags-zh-bert, no graph")
    choose(lab, "lab.task", "pair")
    assert session(lab).compare == "models"
    assert "pairs-zh-bert" in drawn(lab)
    choose(lab, "lab.compare", "auto")
    assert "pairs-zh-bert" not in drawn(lab)


def test_segments_are_a_choice_where_a_pair_is_read(lab):
    controls = lambda: {control.key for control in lab.segmented_control}  # noqa: E731
    assert "lab.visible" in controls() and "lab.segments" not in controls()
    choose(lab, "lab.task", "pair")
    lab.segmented_control(key="lab.segments").set_value("none").run()
    assert session(lab).scene().ablation == Ablation(segments="none")
    assert "A, B: segments" not in drawn(lab) and "no segments" in said(lab)


def test_from_the_twins_side_the_model_with_knowledge_reads_the_graph(lab, models):
    choose(lab, "lab.model", str(models / "tags-zh-bert"))
    title, about = beside_the_twin(lab)[-1]
    assert title == "Twin" and about.startswith("tags-zh-kbert, ") and "triple" in about


def test_a_model_without_a_twin_has_none_beside_it(lab):
    choose(lab, "lab.compare", "models")
    choose(lab, "lab.task", "classify")
    assert lab.selectbox(key="lab.compare").value == "auto"
    assert "models" not in lab.selectbox(key="lab.compare").options


def test_a_broken_twin_is_not_offered(tmp_path, monkeypatch):
    tagger(tmp_path / "my-kbert", ("kg",))
    tagger(tmp_path / "my-bert")
    (tmp_path / "my-bert" / "model.safetensors").write_bytes(b"broken")
    monkeypatch.setenv("KBERT_MODELS", str(tmp_path))
    at = opened("lab.py")
    assert not at.error
    assert "the model and its twin" not in " ".join(at.selectbox(key="lab.compare").options)
    assert any("can't be used" in name for name in at.selectbox(key="lab.model").options)


# A folder of the visitor's own


def rename_task(folder, task):
    config = (folder / "config.json").read_text(encoding="utf-8")
    assert '"task": "classify"' in config
    changed = config.replace('"task": "classify"', f'"task": "{task}"')
    (folder / "config.json").write_text(changed, encoding="utf-8")


def open_model(at, path):
    at.button(key="lab.open_model").click().run()
    at.text_input(key="lab.model_path").set_value(str(path)).run()
    at.button(key="lab.open_model_path").click().run()
    assert not at.exception
    return said(at)


@pytest.mark.parametrize(
    ("break_it", "why"),
    [
        (lambda own: own / "missing", "/missing: there is no such folder"),
        (lambda own: own / "config.json", "/config.json: there is no such folder"),
        (lambda own: own / ("x" * 5000), "x…: there is no such folder"),
        (lambda own: (own / "model.safetensors").unlink(), "found no weights"),
        (lambda own: (own / "model.safetensors").write_bytes(b"x"), "can't be read"),
        (lambda own: (own / "config.json").write_text("{"), "config.json: can't be read"),
        (lambda own: (own / "config.json").unlink(), "no config.json"),
        (lambda own: (own / "tokenizer.json").unlink(), "found no tokenizer"),
        (lambda own: rename_task(own, "juggle"), "No task 'juggle'"),
    ],
)
def test_a_bad_folder_is_refused_with_its_reason_and_changes_nothing(lab, tmp_path, break_it, why):
    own = classifier(tmp_path / "own", "classify")
    changed = break_it(own)
    before = (lab.selectbox(key="lab.task").value, lab.selectbox(key="lab.model").value)
    found = open_model(lab, changed if isinstance(changed, Path) else own)
    assert "Not opened, and nothing was changed." in found
    assert why in found
    assert (lab.selectbox(key="lab.task").value, lab.selectbox(key="lab.model").value) == before
