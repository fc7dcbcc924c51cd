"""What knowledge costs the text: tokens given up and answers found, as triples a name grow.

The released K-BERT cuts a row at its end once triples hang in it, so that text gives way; this one
lays the text first and leaves out triples that don't fit; Roof-BERT reads its triples beside the
row. Each answers the questions of one test file with more triples a name than it was trained with.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from transformers.utils import logging

from benchmarks.common import data_folder, machine, print_table, write
from kbert_core import NO_KNOWLEDGE, KBertError, Pipeline, load_graph
from kbert_core.kbert.flat_tree import flatten
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.selection import Rule, Strategy
from kbert_lab.data.labelled import Example
from kbert_lab.data.squad import read_comprehension
from kbert_lab.training.evaluate import evaluate

BUDGETS = (0, 1, 2, 4, 8, 16)
RELEASED = "k-bert, cut as released"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="+", type=Path, help="of reading comprehension")
    parser.add_argument("--test", type=Path, default=Path("runs/reading/cmrc/test.json"))
    parser.add_argument("--kg", default="kg/zh_open_nlpcc_kbqa.spo", help="in the data's folder")
    parser.add_argument("--length", type=int, default=256, help="tokens of a row; default: 256")
    args = parser.parse_args()
    torch.set_num_threads(1)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    rows: list[dict[str, Any]] = []
    try:
        examples, graph = read_comprehension(args.test), load_graph(data_folder() / args.kg)
        for folder in args.models:
            pipeline = Pipeline.from_pretrained(folder, device="cpu")
            system = pipeline.card.system
            for name in (system, RELEASED) if system == "k-bert" else (system,):
                for budget in BUDGETS:
                    rows.append(measured(pipeline, name, examples, graph, budget, args.length))
                    print_table([[str(value) for value in rows[-1].values()]])
    except KBertError as error:
        raise SystemExit(str(error)) from error
    result = {
        "what": "share of the text's tokens that knowledge takes the place of, share of the "
        "triples that don't fit, and scores, by triples a name",
        "machine": machine("torch", "transformers"),
        "test": args.test.as_posix(),
        "kg": args.kg,
        "length": args.length,
        "questions": len(examples),
        "rows": rows,
    }
    write("budget.json", result)


def measured(
    pipeline: Pipeline,
    name: str,
    examples: Sequence[Example],
    graph: KnowledgeGraph,
    budget: int,
    length: int,
) -> dict[str, Any]:
    """One model at one budget."""
    options = replace(pipeline.config.options, max_triples=max(1, budget), strategy=Strategy.FIRST)
    reading: dict[str, Any] = {"options": options, "max_length": length, "windows": False}
    known = graph if budget else NO_KNOWLEDGE
    texts = [example.sentences for example in examples]
    whole = tokens_of(pipeline.readings(texts, graph=NO_KNOWLEDGE, **reading))
    if name == RELEASED:
        examples = [cut_as_released(pipeline, e, known, reading) for e in examples]
    readings: Any = pipeline.readings([e.sentences for e in examples], graph=known, **reading)
    hung = sum(len(own.facts) for own in readings)
    out = sum(left.rule is Rule.LENGTH for own in readings for _, left in own.left_out)
    scores = evaluate(pipeline, examples, known, **reading)
    return {
        "system": name,
        "triples": budget,
        "text_lost": round(1 - tokens_of(readings) / whole, 4),
        "triples_lost": round(out / max(1, hung + out), 4),
        **{score: round(scores[score], 4) for score in ("read", "f1", "exact")},
    }


def tokens_of(readings: Sequence[Any]) -> int:
    """Of the texts, in all rows."""
    return sum(len(own) for reading in readings for own in reading.tokens)


def cut_as_released(
    pipeline: Pipeline, example: Example, graph: KnowledgeGraph, reading: dict[str, Any]
) -> Example:
    """Cut the paragraph where the released code does: where the row, its triples hung, is full."""
    read: Any
    (read,) = pipeline.readings([example.sentences], graph=graph, **reading)
    row = flatten([read.tree], pipeline.tokenizer)[0]
    last = reading["max_length"] - 1  # [SEP]
    kept = sum(
        max(0, min(part.end, last) - part.start) for part in row.trunk_parts if part.sentence == 1
    )
    question, paragraph = example.sentences
    end = row.trunk_tokens[1].ends[kept - 1] if kept else 1
    return replace(example, sentences=(question, paragraph[:end]))


if __name__ == "__main__":
    main()
