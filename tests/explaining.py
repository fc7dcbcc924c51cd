"""One clinical sentence, three triples, and the tiny random models that read it."""

import pytest

from kbert_core import KnowledgeGraph, Pipeline, Triple, write_triples
from kbert_core.explain.case import Case, Target
from kbert_lab import cli

TEXT = "患者有糖尿病史给予布洛芬口服好转"
IS_DISEASE = Triple("糖尿病", "类别", "疾病")
HAS_SYMPTOM = Triple("糖尿病", "症状", "多饮")
IS_CURE = Triple("布洛芬", "类别", "治疗")
GRAPH = KnowledgeGraph([IS_DISEASE, HAS_SYMPTOM, IS_CURE], name="three")
DISEASE = Target("疾病", 3, 6)  # of TEXT


@pytest.fixture(scope="session")
def ner(checkpoints):
    """A tiny random reader of entities, at most three triples a mention, tails alone."""
    return Pipeline.from_pretrained(checkpoints["ner"], device="cpu")


@pytest.fixture(scope="session")
def classifier(checkpoints):
    """A tiny random reader of whole sentences."""
    return Pipeline.from_pretrained(checkpoints["classify"], device="cpu")


@pytest.fixture
def case(ner):
    """The sentence as it was read, its disease explained."""
    return Case.of(ner, TEXT, graph=GRAPH, target=DISEASE)


@pytest.fixture
def score(ner):
    """Score the disease in a run of its own: graph → nats."""

    def of(graph, target=DISEASE, **reading):
        trace = ner(TEXT, graph=graph, **reading)
        return target.score(trace.reading, trace.logits_on_text(), ner.labels)

    return of


@pytest.fixture
def explain(capsys, checkpoints, tmp_path):
    """Run `kbert explain …` with a tiny model and three triples; returns what it printed."""
    write_triples(GRAPH, tmp_path / "three.spo")

    def run(*arguments, code=0, model="ner"):
        command = ["explain", *map(str, arguments), "--model", str(checkpoints[model])]
        command += ["--kg", str(tmp_path / "three.spo"), "--device", "cpu"]
        assert cli.main(command) == code
        return capsys.readouterr()

    return run
