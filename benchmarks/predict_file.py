"""`kbert predict --file` and `kbert evaluate` beside one text at a time, in one run on one thread.

The ways take turns over the same texts: read and predicted one by one, as a caller of
``Pipeline`` does it who has one text; all together, as a file is; that again as the command line
does it, with its JSON lines; and so in bfloat16. The first two must predict the same. Times are CPU
seconds, so that other work on the machine weighs on all ways alike; loading model and graph is no
part of them.
"""

import argparse
import io
import json
import re
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from benchmarks.common import data_folder, machine, print_table, spread, write
from kbert_core import KBertError, Pipeline
from kbert_core.knowledge import load_graph
from kbert_lab import cli
from kbert_lab.data.labelled import Example, read_examples
from kbert_lab.training.evaluate import evaluate, scores_of

ROOT = Path(__file__).parents[1]
MODELS = {  # of the texts of a task, with the graph
    "medical-ner-kbert": ("medical_ner", "ner", "Medical.spo"),
    "sentiment-zh": ("chnsenticorp", "classify", "HowNet.spo"),
}
AIM = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--texts", type=int, default=600, help="a round; default: 600")
    parser.add_argument("--rounds", type=int, default=5, help="at least 2; default: 5")
    parser.add_argument("--longest", type=int, default=20, help="characters of a text; default: 20")
    args = parser.parse_args()
    torch.set_num_threads(1)
    data = data_folder()
    result: dict[str, Any] = {
        "what": "texts a CPU second on one thread; ratios are of ways in the same round",
        "aim": AIM,
        "machine": machine("torch", "transformers", "tokenizers"),
        "longest": args.longest,
        "rounds": args.rounds,
        "models": {},
    }
    for name, (folder, task, kg) in MODELS.items():
        try:
            pipeline = Pipeline.from_pretrained(ROOT / "models" / name, device="cpu")
            graph = load_graph(data / "kbert" / kg)
            examples = read_examples(data / "kbert" / folder / "train.tsv", task)
        except KBertError as error:
            raise SystemExit(str(error)) from error
        if task == "classify":  # few reviews are short, but their sentences are
            examples = [replace(e, sentences=(part,)) for e in examples for part in parts_of(e)]
        short = [e for e in examples if len(e.sentences[0]) <= args.longest]
        drawn = np.random.default_rng(0).permutation(len(short))[: args.texts]
        some = [short[i] for i in drawn]
        result["models"][name] = measured(pipeline, graph, some, args.rounds)
    show(result)
    write("predict_file.json", result)


def measured(
    pipeline: Pipeline, graph: Any, examples: list[Example], rounds: int
) -> dict[str, Any]:
    """Time every way in turns, and compare what they predict."""
    texts = [example.sentences for example in examples]
    with TemporaryDirectory() as folder:
        file = Path(folder) / "texts.txt"
        file.write_text("".join(f"{text}\n" for (text,) in texts), encoding="utf-8")
        command = ["predict", "--file", str(file)]

        def one_by_one() -> list[Any]:
            return [pipeline(*text, graph=graph).prediction for text in texts]

        def together() -> list[Any]:
            return list(pipeline.predict(texts, graph=graph))

        def by_command(*more: str) -> list[Any]:
            printed = io.StringIO()
            loaded = patch.object(Pipeline, "from_pretrained", return_value=pipeline)
            opened = patch("kbert_lab.cli.commands.graph_of", return_value=graph)
            with redirect_stdout(printed), loaded, opened:
                assert cli.main([*command, *more, "--model", "loaded already"]) == 0
            return [json.loads(line) for line in printed.getvalue().splitlines()]

        def scored_one_by_one() -> Any:
            return scores_of(pipeline.card.task or "", examples, one_by_one())

        def scored_together() -> Any:
            return evaluate(pipeline, examples, graph)

        ways: dict[str, Callable[[], Any]] = {
            "one by one": one_by_one,
            "together": together,
            "kbert predict --file": by_command,
            "kbert predict --file --bf16": partial(by_command, "--bf16"),
            "scored one by one": scored_one_by_one,
            "kbert evaluate": scored_together,
        }
        alike = zip(map(answer, one_by_one()), map(answer, together()), strict=True)
        differing = sum(one != all_ for one, all_ in alike)
        if differing:
            raise SystemExit(f"{differing} texts are predicted differently together.")
        whole, half = by_command(), by_command("--bf16")
        assert len(whole) == len(half) == len(texts)
        in_bf16 = sum(labels(one) != labels(other) for one, other in zip(whole, half, strict=True))
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for turn in range(rounds):
            for name, run in list(ways.items())[:: 1 if turn % 2 else -1]:
                begun = time.process_time()
                run()
                seconds[name].append(time.process_time() - begun)
    return {
        "texts": len(texts),
        "predicted differently in bfloat16": in_bf16,
        "characters": spread([len(text) for (text,) in texts]),
        "ways": {name: len(texts) / spread(each)["median"] for name, each in seconds.items()},
        "faster": {
            name: spread([a / b for a, b in zip(seconds[base], seconds[name], strict=True)])
            for name, base in (
                ("together", "one by one"),
                ("kbert predict --file", "one by one"),
                ("kbert predict --file --bf16", "one by one"),
                ("kbert evaluate", "scored one by one"),
            )
        },
    }


def parts_of(example: Example) -> list[str]:
    """The sentences of a review."""
    return re.findall(r"[^。！？!?\s]{4,}[。！？!?]*", example.sentences[0])


def answer(prediction: Any) -> Any:
    """What is predicted, without probabilities: their last digits differ with the batch."""
    if hasattr(prediction, "spans"):
        return [(span.start, span.end, span.label) for span in prediction.spans]
    return prediction.label


def labels(line: dict[str, Any]) -> Any:
    """The same of what the command printed."""
    told = line["prediction"]
    spans = [(own["start"], own["end"], own["label"]) for own in told.get("spans", ())]
    return told.get("label", spans)


def show(result: dict[str, Any]) -> None:
    """Print the ratios."""
    table = [["model", "way", "texts/s", "times one by one"]]
    for name, own in result["models"].items():
        for way, speed in own["ways"].items():
            ratio = own["faster"].get(way)
            times = "" if ratio is None else f"{ratio['median']:.1f}"
            table.append([name, way, f"{speed:.0f}", times])
    print_table(table)


if __name__ == "__main__":
    main()
