"""Logits → named entities, beside the way it was before: token by token, and Viterbi over all.

Real texts of 160 characters, read with MedicalKG by the shipped model; both must give the same
entities. One thread, ways in turn, CPU seconds.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from benchmarks.common import data_folder, machine, print_table, spread, write
from kbert_core import Pipeline, Reading, load_graph
from kbert_core.labels import bio_spans
from kbert_core.tasks.ner import LabelledToken, Span
from kbert_lab.data.labelled import read_examples

ROOT = Path(__file__).parents[1]
CHARACTERS = 160
AIM = 10
Spans = list[tuple[int, int, str]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--texts", type=int, default=200, help="default: 200")
    parser.add_argument("--repeats", type=int, default=7, help="at least 2; default: 7")
    args = parser.parse_args()
    torch.set_num_threads(1)
    data = data_folder() / "kbert"
    pipeline = Pipeline.from_pretrained(ROOT / "models" / "medical-ner-kbert", device="cpu")
    examples = read_examples(data / "medical_ner" / "train.tsv", "ner")
    whole = "".join(example.sentences[0] for example in examples)
    cut = [whole[i * CHARACTERS : (i + 1) * CHARACTERS] for i in range(args.texts)]
    readings = pipeline.readings([[text] for text in cut], graph=load_graph(data / "Medical.spo"))
    scored = list(zip(readings, pipeline.reader.logits(readings), strict=True))
    task, labels = pipeline.task, pipeline.labels
    assert task is not None

    def now() -> list[Spans]:
        predictions = [task.decode(*text, labels) for text in scored]
        return [[(s.start, s.end, s.label) for s in made.spans] for made in predictions]

    def before() -> list[Spans]:
        return [token_by_token(*text, labels.names) for text in scored]

    if now() != before():
        raise SystemExit("The two find different entities.")
    ways = {"before": before, "now": now}
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(max(2, args.repeats)):
        for name, way in ways.items():
            start = time.process_time()
            way()
            seconds[name].append(time.process_time() - start)
    result = {
        "what": f"texts of {CHARACTERS} characters a CPU second, from logits to named entities",
        "aim": AIM,
        "machine": machine("torch", "numpy"),
        "texts": len(scored),
        "texts_per_second": {
            name: spread([len(scored) / each for each in times]) for name, times in seconds.items()
        },
        "faster": spread([a / b for a, b in zip(*seconds.values(), strict=True)]),
    }
    speeds = result["texts_per_second"]
    print_table(
        [
            ["", "texts/s", "times before"],
            ["before", f"{speeds['before']['median']:,.0f}", "1"],
            ["now", f"{speeds['now']['median']:,.0f}", f"{result['faster']['median']:.1f}"],
        ]
    )
    write("decoding.json", result)


def token_by_token(reading: Reading, logits: Tensor, names: Sequence[str]) -> Spans:
    """Decode as it was done until the array way: kept here to be compared with."""
    scores = torch.zeros(len(reading.tokens[0]), logits.shape[-1])
    log_probabilities = logits.float().log_softmax(-1).cpu()
    for at in range(len(scores)):
        scores[at] = log_probabilities[at]
    probabilities = scores.exp()
    tags = viterbi(scores, names)
    tokens = reading.tokens[0]
    labelled = [
        LabelledToken(
            tokens.starts[at],
            tokens.ends[at],
            names[tag],
            dict(zip(names, probabilities[at].tolist(), strict=True)),
        )
        for at, tag in enumerate(tags)
    ]
    chosen = scores[range(len(tags)), tags]
    spans = []
    for first, last, label in bio_spans([token.tag for token in labelled]):
        start, end = tokens.starts[first], tokens.ends[last - 1]
        sure = chosen[first:last].mean().exp().item()
        spans.append(Span(start, end, label, reading.sentences[0][start:end], sure))
    return [(span.start, span.end, span.label) for span in spans]


def viterbi(scores: Tensor, names: Sequence[str]) -> list[int]:
    rows, outside = scores.double().numpy(), len(names)
    step = np.array([[_cost(after, before) for after in names] for before in (*names, "O")])
    best = np.full((len(rows) + 1, outside + 1), -np.inf)
    best[0, outside] = 0.0
    came_from = np.zeros((len(rows) + 1, outside), dtype=int)
    for at, row in enumerate(rows, start=1):
        reached = best[at - 1, :, None] + step
        came_from[at] = reached.argmax(0)
        best[at, :outside] = reached.max(0) + row
    tags = [int(best[-1].argmax())]
    for at in range(len(rows), 1, -1):
        tags.append(int(came_from[at, tags[-1]]))
    return tags[::-1]


def _cost(tag: str, before: str) -> float:
    consistent = not tag.startswith("I-") or before in (f"B-{tag[2:]}", tag)
    return 0.0 if consistent else float("-inf")


if __name__ == "__main__":
    main()
