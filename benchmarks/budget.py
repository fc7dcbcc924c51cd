"""What knowledge costs the text: tokens given up and answers found, as triples a name grow.

K-BERT and plain text hang their triples in the text's own row of at most ``--length`` tokens, and
the end of the paragraph gives way; Roof-BERT reads its triples beside it. Each model answers the
questions of one test file, as trained and with more triples a name than it was trained with.
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
from kbert_core.data.labelled import Example, read_examples
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.training.evaluate import evaluate

BUDGETS = (0, 1, 2, 4, 8, 16)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="+", type=Path, help="of reading comprehension")
    parser.add_argument("--test", type=Path, default=Path("runs/reading/cmrc/test.json"))
    parser.add_argument("--length", type=int, default=256, help="tokens of a row; default: 256")
    args = parser.parse_args()
    torch.set_num_threads(1)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    rows = []
    try:
        examples = read_examples(args.test, "qa")
        graph = load_graph(data_folder() / "kbert" / "HowNet.spo")
        for folder in args.models:
            pipeline = Pipeline.load(folder, device="cpu")
            for budget in BUDGETS:
                rows.append(measured(pipeline, examples, graph, budget, args.length))
                print_table([[str(value) for value in rows[-1].values()]])
    except KBertError as error:
        raise SystemExit(str(error)) from error
    result = {
        "what": "share of the text's tokens that knowledge takes the place of, and scores, by "
        "triples a name",
        "machine": machine("torch", "transformers"),
        "test": args.test.as_posix(),
        "length": args.length,
        "questions": len(examples),
        "rows": rows,
    }
    write("budget.json", result)


def measured(
    pipeline: Pipeline, examples: Sequence[Example], graph: KnowledgeGraph, budget: int, length: int
) -> dict[str, Any]:
    """One model at one budget."""
    options = replace(pipeline.config.options, max_triples=max(1, budget))
    reading = {"options": options, "max_length": length, "windows": False}
    known = graph if budget else NO_KNOWLEDGE
    texts = [example.sentences for example in examples]
    kept, whole = (
        sum(len(own) for one in pipeline.readings(texts, graph=of, **reading) for own in one.tokens)
        for of in (known, NO_KNOWLEDGE)
    )
    scores = evaluate(pipeline, examples, known, **reading)
    return {
        "system": pipeline.card.system,
        "triples": budget,
        "text_lost": round(1 - kept / whole, 4),
        **{name: round(scores[name], 4) for name in ("read", "f1", "exact")},
    }


if __name__ == "__main__":
    main()
