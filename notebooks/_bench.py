"""The bench of notebook 7a: two trained models, every setting of K-BERT scored, and answers folded.

A score is measured once; `reveal` folds it away, beside what a student guessed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import numpy as np

from _charts import line_chart
from _tools import Folded, slider
from kbert_core import NO_KNOWLEDGE, Ablation, KnowledgeGraph, Pipeline, load_graph
from kbert_lab.data.labelled import Example, read_examples
from kbert_lab.data.sources import read_present
from kbert_lab.graphs.controls import shuffled, with_constant_tail, with_noise
from kbert_lab.suites.results import Records
from kbert_lab.training.evaluate import evaluate

DATA = "demo_kgs/example_data"
ROWS: dict[str, dict[str, Any]] = {
    "K-BERT": {},
    "the graph left off": {"graph": "none"},
    "hard positions": {"positions": "hard"},
    "everything visible": {"visible": "all"},
    "both": {"positions": "hard", "visible": "all"},
    "tail only": {"tail_only": True},
    "1 triple": {"triples": 1},
    "5 triples": {"triples": 5},
    "everyday graph": {"graph": "everyday"},
    "shuffled tails": {"tails": "shuffled"},
    "constant tail": {"tails": "constant"},
    "2 triples of noise": {"noise": 2},
}
# The 2 × 2, trained as in the paper: row of the bench → row of the suite
CLINICAL = {
    "K-BERT": "K-BERT (paper), MedicalKG",
    "hard positions": "K-BERT (paper), hard positions",
    "everything visible": "K-BERT (paper), everything visible",
    "both": "K-BERT (paper), hard positions and everything visible",
    "constant tail": "K-BERT (paper), constant tail",
    "the graph left off": "BERT",
}
RESUMES = CLINICAL | {"K-BERT": "K-BERT (paper), HowNet"}
ENGLISH = {
    "K-BERT": "K-BERT + tree dropout, English medical graph",
    "the graph left off": "BERT",
    "shuffled tails": "K-BERT + tree dropout, shuffled graph",
}


class Side(NamedTuple):
    """One language of the bench."""

    model: Pipeline
    examples: list[Example]
    medical: KnowledgeGraph
    everyday: KnowledgeGraph


@cache
def sides() -> dict[str, Side]:
    """The models of both languages, with their sentences and graphs."""
    parts = read_present(f"{DATA}/medical_ner", "ner").values()  # train, dev and test
    chinese = list({example.sentences: example for part in parts for example in part}.values())
    english = read_examples(f"{DATA}/medical_ner_en.tsv", "ner")
    return {
        name: Side(
            Pipeline.from_pretrained(f"models/{model}", device="cpu"),
            examples,
            *(load_graph(f"demo_kgs/{graph}.spo") for graph in graphs),
        )
        for name, model, examples, graphs in (
            ("Chinese", "medical-ner-kbert", chinese, ("medical_zh", "everyday_zh")),
            ("English", "ner-en", english, ("medical_en", "general_en")),
        )
    }


@cache
def measure(
    language: str = "Chinese",
    *,
    positions: str = "soft",
    visible: str = "tree",
    tail_only: bool = False,
    triples: int = 2,
    graph: str = "medical",
    tails: str = "true",
    noise: int = 0,
    seed: int = 1,
) -> dict[str, Any]:
    """F1 in per cent, precision, recall and counts of one setting."""
    side = sides()[language]
    given = NO_KNOWLEDGE
    if graph != "none":
        given = side.medical if graph == "medical" else side.everyday
        if tails == "shuffled":
            given = shuffled(given, seed=seed).graph  # each name has the tails of another
        elif tails == "constant":
            given = with_constant_tail(given)  # every triple says the same
        given = with_noise(given, given.entities(), noise, seed=seed)  # what is said of others
    options = replace(
        side.model.card.reading.options, max_triples=triples + noise, tail_only=tail_only
    )
    ablation = Ablation(positions, visible)
    found = evaluate(side.model, side.examples, given, options=options, ablation=ablation)
    return found | {"f1": 100 * found["f1"]}


def measured() -> dict[str, dict[str, dict[str, Any]]]:
    """Row → language → scores, of every row of the bench."""
    return {row: {name: measure(name, **how) for name in sides()} for row, how in ROWS.items()}


def turn(**choices: Any) -> None:
    """A control for one setting: it prints the score in one line."""

    def shown(language: str, **how: Any) -> None:
        found, base = measure(language, **how), measure(language)
        print(
            f"F1 {found['f1']:.1f} ({found['f1'] - base['f1']:+.1f} to K-BERT): {found['right']} "
            f"right of {found['predicted']} found; {found['gold']} are labelled"
        )

    slider(shown, language=list(sides()), **choices)


def reveal(guesses: Mapping[str, Any], *rows: str) -> Folded:
    """Fold away what some rows score, beside the guess of the Chinese score."""
    lines = [f"{'':20} {'Chinese F1':>18} {'your guess':>12} {'English F1':>18}"]
    for row in ("K-BERT", *rows):
        zh, en = (
            f"{of:8.1f} ({of - measure(name)['f1']:+6.1f})"
            for name in sides()
            for of in [measure(name, **ROWS[row])["f1"]]
        )
        guess = guesses.get(row, ...)
        lines.append(f"{row:20} {zh} {'' if guess is ... else f'{guess:.0f}':>12} {en}")
    return Folded(f"Reveal: {', '.join(rows)}", "\n".join(lines))


def reveal_along(setting: str, values: Sequence[int], seeds: Sequence[int] = (1,)) -> Folded:
    """Fold away how the score goes with a number: a mean of the seeds, and their range."""
    lines = {
        name: [[measure(name, **{setting: n}, seed=s)["f1"] for s in seeds] for n in values]
        for name in sides()
    }
    says = [f"{setting:8}" + "".join(f"{n:7}" for n in values)]
    says += [
        f"{name:8}" + "".join(f"{mean(v):7.1f}" for v in points) for name, points in lines.items()
    ]
    chart = line_chart(
        [str(n) for n in values],
        lines,
        across=f"{setting}, per name",
        up="F1, %",
        levels={"Chinese, no graph": measure("Chinese", graph="none")["f1"]},
    )
    return Folded(f"Reveal: {setting}, from {values[0]} to {values[-1]}", "\n".join(says), chart)


def trained(suite: str, row: str) -> list[float]:
    """F1 on test in per cent of the first three seeds of a row, from the file of the runs."""
    return [100 * _runs(suite)[row, seed]["scores"]["test"]["f1"] for seed in (1, 2, 3)]


@cache
def _runs(suite: str) -> Any:
    return Records(Path(f"results/{suite}.jsonl.xz")).all()


def reveal_trained(title: str, suite: str, rows: Mapping[str, str], language: str = "") -> Folded:
    """Fold away rows that were trained, beside the same read (of a language's model)."""
    lines = [f"{'':20} {'read so' if language else '':>18} {'trained so':>18}   seeds 1, 2, 3"]
    base = mean(trained(suite, rows["K-BERT"]))
    for row, of_suite in rows.items():
        values = trained(suite, of_suite)
        read = ""
        if language:
            f1 = measure(language, **ROWS[row])["f1"]
            read = f"{f1:8.1f} ({f1 - measure(language)['f1']:+6.1f})"
        lines.append(
            f"{row:20} {read:>18} {mean(values):9.1f} ({mean(values) - base:+5.1f})    "
            f"{', '.join(f'{value:.1f}' for value in values)}"
        )
    return Folded(f"Reveal: {title}", "\n".join(lines))


def interval(row: str, draws: int = 1000) -> list[float]:
    """Where the middle 95 % of differences to K-BERT lie if sentences are drawn anew, Chinese."""
    side, how = sides()["Chinese"], ROWS[row]
    graph = NO_KNOWLEDGE if how.get("graph") == "none" else side.medical
    ablation = Ablation(how.get("positions", "soft"), how.get("visible", "tree"))

    def counts(graph: KnowledgeGraph, ablation: Ablation) -> np.ndarray:
        found = []
        for example in side.examples:
            spans = side.model(
                example.sentences[0], graph=graph, ablation=ablation
            ).prediction.spans
            named = {(s.start, s.end, s.label) for s in spans}
            found.append((len(named & {*example.spans}), len(named) + len(example.spans)))
        return np.array(found)

    random = np.random.default_rng(0)
    one, other = counts(graph, ablation), counts(side.medical, Ablation())
    drawn = random.integers(len(one), size=(draws, len(one)))

    def f1(of: np.ndarray) -> np.ndarray:
        right, both = of[drawn].sum(1).T
        return 200 * right / both

    return np.percentile(f1(one) - f1(other), [2.5, 97.5]).tolist()
