"""Does a model read better that has learnt a gate's labels on unlabelled text?

    python -m benchmarks.distilled --seeds 1 2 3

For each seed of the suite ``medical-ner-random`` a BERT is trained as its row says, and a gate is
fitted for it on dev. Both label sentences of medical dialogue that name something of the graph;
none of them is in the data. Then BERT and K-BERT (as in the paper) are trained on these beside
train, for half as many epochs, so that all make about equally many steps. They are compared with
the suite's rows, which have train alone. What is done is kept in ``--work``; the summary stands in
``results/distilled.json``.
"""

import argparse
import json
import lzma
import random
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.common import data_folder, machine, print_table
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.pipeline import NO_KNOWLEDGE
from kbert_lab.data.labelled import Example
from kbert_lab.data.splits import write_rows
from kbert_lab.study.counts import score_run
from kbert_lab.study.dictionary import TagScores, dictionary_spans, learn_tail_labels
from kbert_lab.study.gate import Candidates, Record, fit_gate, gated_spans
from kbert_lab.study.statistics import METRICS, Resampled, unpacked
from kbert_lab.suites.grid import Experiment
from kbert_lab.suites.results import write_json
from kbert_lab.suites.suite import Run, read_suite, train_options
from kbert_lab.training.evaluate import predict_all
from kbert_lab.training.finetune import Fitted, fit

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "results" / "distilled.json"
TEXTS = "text/zh_modern_mix.txt.xz"
DIALOGUE = 60_000  # first lines of it, which are medical dialogue
SENTENCES, LONGEST = 2_500, 100
BERT, KBERT = "BERT", "K-BERT (paper), MedicalKG"
STUDENTS = {BERT: "BERT, distilled", KBERT: "K-BERT (paper), distilled"}


def unlabelled(graph: KnowledgeGraph, known: set[str], seed: int) -> list[Example]:
    """Sentences that name a head of the graph and aren't in the data."""
    with lzma.open(data_folder() / TEXTS, "rt", encoding="utf-8") as lines:
        read = [line for _, line in zip(range(DIALOGUE), lines, strict=False)]
    sentences = dict.fromkeys(
        s for line in read for s in re.findall(r"[^。！？\s]+[。！？]?", line)
    )
    some = [s for s in sentences if 6 <= len(s) <= LONGEST and s not in known]
    random.Random(seed).shuffle(some)
    examples = [Example((text,)) for text in some[: 20 * SENTENCES]]
    labels = {triple.tail: "any" for triple in graph.active_triples()}
    named = dictionary_spans(examples, graph, labels)
    return [e for e, spans in zip(examples, named, strict=True) if spans][:SENTENCES]


def labelled(text: str, spans: Sequence[tuple[int, int, str]]) -> Example:
    """A text with spans as its gold labels, character by character."""
    tags = ["O"] * len(text)
    for start, end, label in spans:
        tags[start:end] = [f"B-{label}", *[f"I-{label}"] * (end - start - 1)]
    return Example((text,), None, tuple((i, i + 1) for i in range(len(text))), tuple(tags))


def trained(experiment: Experiment, run: Run, seed: int, folder: Path, **more: Any) -> Fitted:
    suite = experiment.suite
    return fit(
        train_options(
            suite,
            run,
            seed=seed,
            data=str(experiment.split(seed)[0]),
            kg=experiment.graph_files(run, seed)[0],
            encoder=suite.resolved(run.encoder),
            output=str(folder),
            **more,
        )
    )


def gate_labels(experiment: Experiment, seed: int, work: Path) -> Path:
    """Train the teacher, and write what it and its gate say of unlabelled sentences."""
    path = work / f"labelled-seed{seed}.tsv"
    if path.is_file():
        return path
    run, graph = experiment.suite.row(BERT), experiment.covering
    assert isinstance(run, Run)
    teacher = trained(experiment, run, seed, work / f"teacher-seed{seed}")
    train, dev = teacher.splits["train"], teacher.splits["dev"]
    labels = learn_tail_labels(train, graph)
    record = Record.of(train, dictionary_spans(train, graph, labels))

    def read(examples: Sequence[Example]) -> Candidates:
        scores = TagScores.of(predict_all(teacher.pipeline, examples, NO_KNOWLEDGE))
        return Candidates(examples, dictionary_spans(examples, graph, labels), scores)

    gate = fit_gate(read(dev), record)
    known = {e.sentences[0] for of in teacher.splits.values() for e in of}
    texts = unlabelled(graph, known, seed)
    found = gated_spans(gate, read(texts), record)
    rows = [labelled(e.sentences[0], spans) for e, spans in zip(texts, found, strict=True)]
    write_rows(path, rows)
    return path


def student(experiment: Experiment, name: str, seed: int, work: Path) -> dict[str, Any]:
    """Train one on train and the gate's labels, and score it as the suite does."""
    path = work / f"{'bert' if name == BERT else 'k-bert'}-seed{seed}.json"
    if path.is_file():
        return json.loads(path.read_text(encoding="utf-8"))
    run = experiment.suite.row(name)
    assert isinstance(run, Run)
    more = gate_labels(experiment, seed, work)
    began = time.monotonic()
    epochs = run.train["epochs"] // 2
    fitted = trained(
        experiment, run, seed, path.with_suffix(""), also_train=(str(more),), epochs=epochs
    )
    scored, _, _ = score_run(fitted, experiment.covering)
    scored["seconds"] = round(time.monotonic() - began)
    scored["rows"] = {split: len(of) for split, of in fitted.splits.items()}
    write_json(path, scored)
    return scored


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=(1, 2, 3))
    parser.add_argument("--work", type=Path, default=ROOT / "runs" / "distilled")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    experiment = Experiment(read_suite(ROOT / "results" / "suites" / "medical-ner-random.yaml"))
    made = {
        title: {seed: student(experiment, name, seed, args.work) for seed in args.seeds}
        for name, title in STUDENTS.items()
    }
    counts = dict(experiment.tables(resamples=1).resampled.counts)
    for title, of in made.items():
        counts[title] = {
            seed: unpacked(one["sentences"], experiment.split(seed)[1]) for seed, one in of.items()
        }
    resampled, metrics, rows = Resampled(counts), METRICS["ner"], []
    for name, title in STUDENTS.items():
        for metric in metrics:
            one, two = resampled.score(title, metric), resampled.difference(title, name, metric)
            assert one is not None and two is not None
            rows.append(
                {
                    "row": title,
                    "beside": name,
                    "metric": metric.name,
                    "score": round(100 * one.mean, 2),
                    "by seed": {seed: round(100 * value, 2) for seed, value in one.seeds.items()},
                    "difference": round(100 * two.mean, 2),
                    "interval": [round(100 * two.low, 2), round(100 * two.high, 2)],
                }
            )
    about = {
        "what": "models trained on a gate's labels of unlabelled text beside train, for half as "
        "many epochs, beside those trained on train alone",
        "command": f"python -m benchmarks.distilled --seeds {' '.join(map(str, args.seeds))}",
        "machine": machine("torch", "transformers"),
        "sentences": SENTENCES,
        "rows": rows,
    }
    write_json(RESULT, about)
    shown = ("row", "metric", "score", "difference", "interval")
    print_table([shown, *([str(row[name]) for name in shown] for row in rows)])


if __name__ == "__main__":
    main()
