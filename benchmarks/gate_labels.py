"""How many labelled sentences does a gate need?

    python -m benchmarks.gate_labels

The shipped BERT for clinical entities reads dev and test of the records without leaks. Gates are
fitted on so many sentences of dev, drawn at random several times, and read test. What a draw can't
fit a gate on, as all that the graph finds in it is right or wrong, counts as the model alone.
The figures go to ``results/gate_labels.json``.
"""

import argparse
import random
from pathlib import Path
from statistics import mean

from benchmarks.common import data_folder, machine, print_table
from kbert_core.errors import DataError
from kbert_core.knowledge import load_graph
from kbert_core.pipeline import NO_KNOWLEDGE, Pipeline
from kbert_lab.data.splits import deduplicated
from kbert_lab.study.audit_values import read_data
from kbert_lab.study.dictionary import TagScores, dictionary_spans, learn_tail_labels
from kbert_lab.study.gate import Candidates, Record, fit_gate, gated_spans
from kbert_lab.suites.results import write_json
from kbert_lab.training.evaluate import predict_all
from kbert_lab.training.scores import span_scores

MODEL = "models/medical-ner-bert"
RESULT = Path(__file__).resolve().parents[1] / "results" / "gate_labels.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=(20, 50, 100, 200))
    parser.add_argument("--draws", type=int, default=20)
    args = parser.parse_args()
    data, graph = data_folder() / "kbert" / "medical_ner", data_folder() / "kbert" / "Medical.spo"
    splits = deduplicated(read_data(str(data), "ner", {}, others={}).splits)
    knowledge, pipeline = load_graph(graph), Pipeline.from_pretrained(MODEL)
    labels = learn_tail_labels(splits["train"], knowledge)
    found = {name: dictionary_spans(of, knowledge, labels) for name, of in splits.items()}
    record = Record.of(splits["train"], found["train"])
    read = {name: predict_all(pipeline, splits[name], NO_KNOWLEDGE) for name in ("dev", "test")}

    def candidates(name: str, chosen: list[int]) -> Candidates:
        examples, spans = splits[name], found[name]
        scores = TagScores.of([read[name][number] for number in chosen])
        return Candidates([examples[n] for n in chosen], [spans[n] for n in chosen], scores)

    every = {name: list(range(len(splits[name]))) for name in read}
    test, gold = candidates("test", every["test"]), [one.spans for one in splits["test"]]
    alone = span_scores(gold, test.found)["f1"]

    def f1(chosen: list[int]) -> float:
        try:
            gate = fit_gate(candidates("dev", chosen), record)
        except DataError:
            return float(alone)
        return float(span_scores(gold, gated_spans(gate, test, record))["f1"])

    rows = [{"dev sentences": 0, "mean": alone, "least": alone, "most": alone}]
    for size in (*args.sizes, len(every["dev"])):
        draws = args.draws if size < len(every["dev"]) else 1
        scores = [f1(random.Random(draw).sample(every["dev"], size)) for draw in range(draws)]
        found_of = {"mean": mean(scores), "least": min(scores), "most": max(scores)}
        rows.append({"dev sentences": size, "draws": draws, **found_of})
    rows = [
        {key: round(100 * v, 2) if isinstance(v, float) else v for key, v in row.items()}
        for row in rows
    ]
    head = [*rows[-1]]
    print_table([head, *([str(row.get(name, "")) for name in head] for row in rows)])
    command = "python -m benchmarks.gate_labels"
    about = {"what": "F1 on test by how many sentences of dev a gate was fitted on"}
    write_json(RESULT, {**about, "command": command, "machine": machine("torch"), "rows": rows})


if __name__ == "__main__":
    main()
