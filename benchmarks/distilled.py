"""Does a model read better that has learnt a gate's labels on unlabelled text?

    python -m benchmarks.distilled --seeds 1 2 3

For each seed of the suite ``medical-ner-random`` a BERT is trained as its row says, and a gate is
fitted for it on dev. Both label sentences of medical dialogue that name something of the graph;
none of them is in the data. Then BERT and K-BERT (as in the paper) are trained on these beside
train, for half as many epochs, so that all make about equally many steps. They are compared with
the suite's rows, which have train alone. What is done is kept in ``--work``; the summary stands in
``results/distilled.json``.
"""

import lzma
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.common import data_folder
from benchmarks.variants import arguments, beside, scored, trained
from kbert_core.data.labelled import Example
from kbert_core.data.splits import write_rows
from kbert_core.experiments.dictionary import TagScores, dictionary_spans, learn_tail_labels
from kbert_core.experiments.gate import Record, fit_gate, gated_spans
from kbert_core.experiments.grid import Experiment
from kbert_core.experiments.suite import Run, read_suite
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.pipeline import NO_KNOWLEDGE
from kbert_core.training.evaluate import predict_all
from kbert_core.training.finetune import Fitted

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

    def scores(examples: Sequence[Example]) -> TagScores:
        return TagScores.of(predict_all(teacher.pipeline, examples, NO_KNOWLEDGE))

    gate = fit_gate(dev, dictionary_spans(dev, graph, labels), scores(dev), record)
    known = {e.sentences[0] for of in teacher.splits.values() for e in of}
    texts = unlabelled(graph, known, seed)
    found = gated_spans(gate, texts, dictionary_spans(texts, graph, labels), scores(texts), record)
    rows = [labelled(e.sentences[0], spans) for e, spans in zip(texts, found, strict=True)]
    write_rows(path, rows)
    return path


def student(experiment: Experiment, name: str, seed: int, work: Path) -> dict[str, Any]:
    """Train one on train and the gate's labels, and score it as the suite does."""
    run = experiment.suite.row(name)
    assert isinstance(run, Run)
    folder = work / f"{'bert' if name == BERT else 'k-bert'}-seed{seed}"

    def train() -> Fitted:
        more = (str(gate_labels(experiment, seed, work)),)
        epochs = run.train["epochs"] // 2
        return trained(experiment, run, seed, folder, also_train=more, epochs=epochs)

    return scored(experiment, folder, train)


def main() -> None:
    args = arguments(__doc__, ROOT / "runs" / "distilled")
    experiment = Experiment(read_suite(ROOT / "results" / "suites" / "medical-ner-random.yaml"))
    made = {
        title: {seed: student(experiment, name, seed, args.work) for seed in args.seeds}
        for name, title in STUDENTS.items()
    }
    about = {
        "what": "models trained on a gate's labels of unlabelled text beside train, for half as "
        "many epochs, beside those trained on train alone",
        "command": f"python -m benchmarks.distilled --seeds {' '.join(map(str, args.seeds))}",
        "sentences": SENTENCES,
    }
    beside(RESULT, about, experiment, made, [(title, name) for name, title in STUDENTS.items()])


if __name__ == "__main__":
    main()
