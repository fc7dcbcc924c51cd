"""`kbert rank`: a question and several candidate answers → the candidates in order."""

import argparse
import logging
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kbert_core.cli.options import ablation_of, graph_of, injection_of
from kbert_core.errors import TextError

log = logging.getLogger(__name__)


def add_rank_options(parser: argparse.ArgumentParser) -> None:
    """Options of `kbert rank`, besides those of a model and a graph."""
    parser.add_argument("question", help="in quotes")
    parser.add_argument("answer", nargs="*", help="candidate answers, each in quotes")
    parser.add_argument("--candidates", metavar="FILE", help="candidate answers, one a line")
    parser.add_argument("--compare", action="store_true", help="also without any knowledge")


def run_rank(args: argparse.Namespace) -> dict[str, Any]:
    """Rank as the command line says; returns what is printed."""
    from kbert_core.pipeline import NO_KNOWLEDGE, Pipeline  # seconds to start

    answers = _answers(args)
    graph = graph_of(args)
    pipeline = Pipeline.load(args.model, device=args.device)
    common: dict[str, Any] = {
        "options": injection_of(args, pipeline.card.reading.options),
        "ablation": ablation_of(args, pipeline.card),
        "max_length": args.max_length,
    }
    data: dict[str, Any] = {"question": args.question}
    for key, knowledge in (("answers", graph), ("without_knowledge", NO_KNOWLEDGE)):
        if key == "answers" or args.compare:
            ranked = pipeline.rank(args.question, answers, graph=knowledge, **common)
            data[key] = [asdict(answer) for answer in ranked]
    readings = pipeline.readings([(args.question, a) for a in answers], graph=graph, **common)
    cut = sum(any(row.trunk_cuts for row in reading.rows) for reading in readings)
    if cut:
        log.warning("%d of %d candidates are over the length limit and cut", cut, len(answers))
    return data


def rank_text(data: Mapping[str, Any]) -> str:
    """The candidates in order, for reading."""
    lines = [data["question"]]
    for key, title in (("answers", "with knowledge"), ("without_knowledge", "without any")):
        if key in data:
            lines.append(f"{title}:")
            lines += [
                f"{a['rank']:4}.  {100 * a['probability']:5.1f} %  {a['answer']}" for a in data[key]
            ]
    return "\n".join(lines)


def _answers(args: argparse.Namespace) -> list[str]:
    """Candidates from the command line, then those of the file; blank lines are left out."""
    answers = list(args.answer)
    if args.candidates:
        try:
            text = Path(args.candidates).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise TextError(
                f"{args.candidates}: can't be read ({error}). Give a text file in UTF-8."
            ) from error
        answers += [line for line in text.split("\n") if line.strip()]
    if not answers:
        raise TextError(
            "No candidate answer given. Write them after the question, or name a file of one a "
            "line with --candidates FILE."
        )
    return answers
