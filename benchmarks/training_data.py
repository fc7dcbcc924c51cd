"""What share of a training step is spent on data, and what a GPU would need of it.

    python -m benchmarks.training_data

Steps of `kbert train` take turns: the batch is made, then the model reads it,
forward, backward and AdamW. CPU seconds of one thread. *kept* trains without a
recipe, so that rows are made once; *recipe* makes some of them anew in every
epoch. The first epoch, in which all rows are made, is not counted.

For a GPU there is arithmetic alone: a token of training takes 6 floating-point
operations a parameter, of which an H200 does 989e12 a second in bfloat16, and
40 % of that is a good share. Batches are made ahead by worker processes there,
so what counts is how many of them it takes to make as many tokens a second.
"""

import argparse
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.common import data_folder, machine, print_table, write
from kbert_core.kbert.kbert import KBertReader
from kbert_core.kbert.visible import ReadConfig
from kbert_core.knowledge import load_graph
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.pipeline import Pipeline
from kbert_lab.data.labelled import labels_of, read_examples
from kbert_lab.training.batches import READ, Batches
from kbert_lab.training.options import Recipe, TrainOptions
from kbert_lab.training.rows import RowMaker

ROOT = Path(__file__).parents[1]
RECIPES = {
    "kept": Recipe(),
    "recipe": Recipe(0.3, mention_dropout=0.3, branch_dropout=0.1, tree_dropout=0.1),
}
H200, REACHED = 989e12, 0.4  # floating-point operations a second in bfloat16, and the share
BERT_BASE = 85_054_464  # parameters of its 12 layers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default=str(ROOT / "models" / "medical-ner-kbert"))
    parser.add_argument("--sentences", type=int, default=2000, help="default: 2000")
    parser.add_argument("--steps", type=int, default=60, help="timed, of the later epochs")
    args = parser.parse_args()
    torch.set_num_threads(1)
    data = data_folder() / "kbert"
    pipeline = Pipeline.from_pretrained(args.model, device="cpu")
    examples = read_examples(data / "medical_ner" / "train.tsv", "ner")[: args.sentences]
    graph = load_graph(data / "Medical.spo")
    config = ReadConfig(InjectionOptions(max_triples=2, tail_only=True), max_length=256)
    reader = pipeline.reader
    assert isinstance(reader, KBertReader)
    labels = {label: number for number, label in enumerate(labels_of(examples))}
    rows = []
    for name, recipe in RECIPES.items():
        maker = RowMaker(
            examples,
            pipeline.task,
            reader,
            labels,
            graph,
            config,
            recipe=recipe,
        )
        options = TrainOptions.of(task="ner", data="-", output="-", epochs=3)
        batches = Batches(maker, options, parts=1)
        first = batches.epoch_ends[0]
        for index in range(first):  # an epoch, in which rows are made that are kept
            batches[index]
        rows.append({"run": name, **timed(pipeline, batches, range(first, first + args.steps))})
    needed = REACHED * H200 / (6 * BERT_BASE)
    for row in rows:
        row["processes_for_an_h200"] = round(needed / row["tokens_per_s_of_data"], 1)
    result = {
        "what": "CPU seconds of a step's data and of its model, and processes for BERT base",
        "model": Path(args.model).name,
        "tokens_per_s_an_h200_reads": round(needed),
        "machine": machine("torch", "transformers"),
        "rows": rows,
    }
    write("training_data.json", result)
    names = list(rows[0])
    print_table([names, *[[str(row[name]) for name in names] for row in rows]])


def timed(pipeline: Pipeline, batches: Batches, steps: range) -> dict[str, float]:
    """Time data and model of some steps, each by its median, and count real tokens."""
    model = pipeline.reader.model.train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.0, fused=True)
    made, read, tokens = [], [], 0
    for index in steps:
        began = time.process_time()
        item = batches[index]
        between = time.process_time()
        train_on(pipeline, batches, item).backward()
        optimiser.step()
        optimiser.zero_grad()
        made.append(between - began)
        read.append(time.process_time() - between)
        tokens += int((item[READ].branch_ids >= 0).sum())
    share = float(np.sum(made) / (np.sum(made) + np.sum(read)))
    return {
        "data_ms": round(1000 * median(made), 2),
        "model_ms": round(1000 * median(read), 1),
        "share_of_data": round(share, 4),
        "tokens_per_s_of_data": round(tokens / np.sum(made)),
    }


def train_on(pipeline: Pipeline, batches: Batches, item: dict[str, Any]) -> Tensor:
    """The loss of one batch; labels are those of the data, whatever head the model has."""
    logits = pipeline.reader.forward(item[READ], batches.maker.config)["logits"]
    assert pipeline.task is not None
    return pipeline.task.loss(logits, item["labels"].clamp(max=logits.shape[-1] - 1))


if __name__ == "__main__":
    main()
