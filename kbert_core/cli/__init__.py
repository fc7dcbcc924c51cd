"""The `kbert` command: thin, one function per sub-command.

What a user can cause is said on standard error with exit code 2; results go
to standard output, progress to standard error. What needs PyTorch is imported
by the sub-command that does, so that the others and ``--help`` start at once.
"""

import argparse
import logging
import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kbert_core.cli.experiment_options import add_experiment_options
from kbert_core.cli.explain import add_explain_commands
from kbert_core.cli.graphs import add_graph_commands, graph_text
from kbert_core.cli.options import (
    DEFAULT_MODEL,
    add_alias_options,
    add_selection_options,
    graph_of,
    model_of,
    print_result,
)
from kbert_core.cli.rank import add_rank_options, rank_text
from kbert_core.cli.rank import run_rank as rank_answers
from kbert_core.cli.split import add_split_options
from kbert_core.cli.split import run_split as split_data
from kbert_core.cli.text import fields_text, stats_text
from kbert_core.cli.train_options import (
    DATA_SETS,
    add_audit_options,
    add_evaluate_options,
    add_pretrain_options,
    add_select_train_options,
    add_train_options,
)
from kbert_core.errors import KBertError, OptionError
from kbert_core.knowledge import join_graphs, load_graph
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.io.files import read_triples
from kbert_core.knowledge.io.writers import write_triples
from kbert_core.knowledge.store.schema import ENDING
from kbert_core.knowledge.tools.shuffled import shuffled


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; returns its exit code."""
    args = parser().parse_args(arguments)
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    logging.getLogger("kbert_core").setLevel(logging.INFO)
    try:
        args.run(args)
        sys.stdout.flush()
    except KBertError as error:
        print(f"kbert: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader has left (`kbert … | head`); keep Python from writing on at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        print("kbert: stopped", file=sys.stderr)
        return 130
    return 0


# Sub-commands


def run_tree(args: argparse.Namespace) -> None:
    """`kbert tree`: text and graph → sentence tree, positions, visible matrix."""
    from kbert_core.cli import reading as cli_reading

    cli_reading.run_tree(args)


def run_predict(args: argparse.Namespace) -> None:
    """`kbert predict`: text, graph and model → prediction."""
    from kbert_core.cli import reading as cli_reading

    cli_reading.run_predict(args)


def run_rank(args: argparse.Namespace) -> None:
    """`kbert rank`: a question and candidate answers → the candidates in order."""
    print_result(args, dict, rank_text, rank_answers(args))


def run_pretrain(args: argparse.Namespace) -> None:
    """`kbert pretrain`: masked-language-model pretraining without knowledge."""
    from kbert_core.cli import train as commands

    report = commands.run_pretrain(args)
    if commands.processes.is_main():
        print_result(args, dict, fields_text, report)


def run_train(args: argparse.Namespace) -> None:
    """`kbert train`: fine-tune with knowledge or without."""
    from kbert_core.cli import train as commands

    commands.print_report(commands.run_train(args), as_json=args.json)


def run_evaluate(args: argparse.Namespace) -> None:
    """`kbert evaluate`: score a model."""
    from kbert_core.cli import train as commands

    args.model = model_of(args)
    commands.print_report(commands.run_evaluate(args), as_json=args.json)


def run_select_train(args: argparse.Namespace) -> None:
    """`kbert select-train`: learn which triples lower a model's loss."""
    from kbert_core.training import select_train

    print_result(args, dict, fields_text, select_train.run_select_train(args))


def run_experiment(args: argparse.Namespace) -> None:
    """`kbert experiment`: a grid of runs, its statistics and report."""
    from kbert_core.cli import experiment as command

    report = command.run_experiment(args)
    print_result(args, dict, command.list_text, report)
    command.check_failed(report)


def run_audit(args: argparse.Namespace) -> None:
    """`kbert audit`: what a data set and a graph can show together; no model."""
    from kbert_core.cli import audit as audit_command

    print_result(
        args, audit_command.audit_data, audit_command.audit_text, audit_command.run_audit(args)
    )


def run_convert(args: argparse.Namespace) -> None:
    """`kbert convert`: bring a checkpoint of the released code in."""
    from kbert_core.checkpoints.convert import convert

    report = convert(
        args.source, args.target, vocab=args.vocab, config=args.config, heads=args.heads
    )
    print_result(args, dict, fields_text, report.as_dict())


def run_split(args: argparse.Namespace) -> None:
    """`kbert split`: the same sentences, deduplicated or entity-disjoint."""
    print_result(args, dict, fields_text, split_data(args))


def run_data_rank(args: argparse.Namespace) -> None:
    """`kbert data rank`: reading comprehension → a file for answer selection."""
    from kbert_core.data.squad import write_ranking_set

    counts = write_ranking_set(args.input, args.output)
    print_result(args, dict, fields_text, {"output": str(args.output), **asdict(counts)})


def run_kg_shuffle(args: argparse.Namespace) -> None:
    """`kbert kg shuffle`: the same names and tails, wrongly paired."""
    if not args.kg:
        raise OptionError("No graph given. Name one or more with --kg FILE.")
    result = shuffled(graph_of(args), seed=args.seed)
    write_triples(result.graph, args.output)
    data = {
        "output": str(args.output),
        "triples": len(result.graph),
        "share with a true tail still": round(result.unchanged, 4),
    }
    print_result(args, dict, fields_text, data)


def run_kg_stats(args: argparse.Namespace) -> None:
    """`kbert kg stats`: what a graph holds."""
    if not args.kg:
        raise OptionError("No graph given. Name one or more with --kg FILE.")
    files, graphs = [], []
    for path in args.kg:
        stored = Path(path).suffix == ENDING
        file = None if stored else read_triples(path, skip_bad=args.skip_bad)
        graphs.append(KnowledgeGraph(file.triples) if file else load_graph(path))
        files.append(
            {
                "file": str(path),
                "triples": len(graphs[-1]),
                "duplicates": file.duplicates if file else 0,
                "bad_lines": list(file.problems) if file else [],
            }
        )
    graph = graphs[0] if len(graphs) == 1 else join_graphs(graphs)
    relations: Counter[str] = Counter()
    sizes: dict[str, int] = {}
    for entity, triples in graph.items():
        sizes[entity] = len(triples)
        relations.update(triple.relation for triple in triples)
    most = sorted(sizes, key=lambda entity: -sizes[entity])[:10]
    data = {
        "files": files,
        "triples": sum(sizes.values()),
        "entities": len(sizes),
        "entities_with_several_triples": sum(size > 1 for size in sizes.values()),
        "longest_name": max(sizes, key=len, default=""),
        "most_triples": {entity: sizes[entity] for entity in most},
        "relations": dict(relations.most_common()),
    }
    print_result(args, dict, stats_text, data)


def run_kg_get(args: argparse.Namespace) -> None:
    """`kbert kg get`: fetch a public graph and check it."""
    from kbert_core.knowledge.io.download import PUBLIC, fetch

    def progress(done: int, total: int | None) -> None:
        of = f" of {total >> 10}" if total else ""
        print(f"\r{done >> 10}{of} kB", end="", file=sys.stderr)

    path = fetch(args.name, args.output, progress=progress if sys.stderr.isatty() else None)
    known = PUBLIC[args.name]
    data = {"name": args.name, "file": str(path), "triples": known.triples, "url": known.url}
    said = f"{path}: {known.triples:,} triples. Use it: --kg {path}"
    print_result(args, dict, lambda _: said, data)


# The parser


def parser() -> argparse.ArgumentParser:
    """The command line of `kbert`."""
    parser = argparse.ArgumentParser(
        prog="kbert",
        description="See, edit and measure what injected knowledge does to a BERT.",
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    tree = _add(commands, "tree", run_tree, "show the sentence tree of a text")
    _text_options(tree)
    _graph_options(tree)
    _form_options(tree)
    how = tree.add_mutually_exclusive_group()
    how.add_argument(
        "--words", action="store_true", help="the text is split by spaces: one token a word"
    )
    how.add_argument("--chars", action="store_true", help="every character a token")
    how.add_argument("--model", metavar="DIR", help="tokens of this model's tokenizer")
    tree.add_argument("--special", action="store_true", help="add [CLS] and [SEP]")
    tree.epilog = (
        "Without --words, --chars or --model, a text mostly of Latin letters is split into words "
        "and any other into characters. A model's tokenizer always adds its special tokens."
    )

    predict = _add(commands, "predict", run_predict, "predict with a model and a graph")
    _text_options(predict)
    _model_options(predict)
    predict.add_argument("--compare", action="store_true", help="also without any knowledge")

    explain = commands.add_parser("explain", help="measure what the triples do to a prediction")
    add_explain_commands(explain, _model_options)

    rank = _add(commands, "rank", run_rank, "put candidate answers to a question in order")
    add_rank_options(rank)
    rank.add_argument("--model", required=True, metavar="DIR", help="one for the task rank")
    _graph_options(rank)
    _reading_options(rank)

    pretrain = _add(commands, "pretrain", run_pretrain, "pretrain an encoder without knowledge")
    train = _add(commands, "train", run_train, "fine-tune a model with knowledge or without")
    train.add_argument("--data", default="", metavar="DIR|hf:NAME", help=DATA_SETS)
    _graph_options(train)
    _form_options(train)

    evaluate = _add(commands, "evaluate", run_evaluate, "score a model on labelled data")
    evaluate.add_argument(
        "--data",
        required=True,
        metavar="FILE|DIR|hf:NAME",
        help=f"a labelled .tsv, .conll, .parquet, .csv or .json; {DATA_SETS}",
    )
    _model_options(evaluate)

    select_train = _add(
        commands, "select-train", run_select_train, "learn which triples lower a model's loss"
    )
    _graph_options(select_train)
    add_select_train_options(select_train)

    experiment = _add(
        commands, "experiment", run_experiment, "run a grid of trainings and compare them"
    )
    add_experiment_options(experiment)

    split = _add(commands, "split", run_split, "split a data set so that knowledge can show")
    _graph_files(split)
    add_split_options(split)

    audit = _add(commands, "audit", run_audit, "count what data and a graph can show together")
    audit.add_argument("--data", required=True, metavar="DIR|hf:NAME", help=DATA_SETS)
    _graph_options(audit)
    add_audit_options(audit)

    add_pretrain_options(pretrain)
    add_train_options(train)
    add_evaluate_options(evaluate)

    convert = _add(commands, "convert", run_convert, "bring in a checkpoint of the released K-BERT")
    convert.add_argument("source", type=Path, help="a .bin file, or a folder that holds one")
    convert.add_argument("target", type=Path, help="folder for the safetensors model")
    convert.add_argument("--vocab", type=Path, metavar="FILE", help="vocabulary, one token a line")
    convert.add_argument("--config", type=Path, metavar="FILE", help="JSON of sizes")
    convert.add_argument(
        "--heads", type=int, metavar="N", help="attention heads; default: width/64"
    )

    data = commands.add_parser("data", help="make data sets of others")
    makers = data.add_subparsers(title="commands", required=True, metavar="COMMAND")
    rank_set = _add(
        makers,
        "rank",
        run_data_rank,
        "make a set for answer selection of CMRC 2018, DRCD or another in SQuAD's form",
    )
    rank_set.add_argument(
        "--input", required=True, metavar="FILE", help="such as cmrc2018_dev.json"
    )
    rank_set.add_argument(
        "--output", required=True, metavar="FILE", help="qid, label and texts, .tsv"
    )

    kg = commands.add_parser("kg", help="make, look at, edit, compare and check graphs")
    kinds = kg.add_subparsers(title="commands", required=True, metavar="COMMAND")
    stats = _add(kinds, "stats", run_kg_stats, "count what a graph holds")
    _graph_files(stats)
    shuffle = _add(kinds, "shuffle", run_kg_shuffle, "give every head a wrong tail, as a control")
    _graph_files(shuffle)
    shuffle.add_argument("--output", type=Path, required=True, metavar="FILE", help="new graph")
    shuffle.add_argument("--seed", type=int, default=0, help="default: 0")
    _graph_commands(kinds)
    get = _add(kinds, "get", run_kg_get, "fetch MedicalKG or HowNet from their public home")
    get.add_argument("name", choices=["medical", "hownet"], help="which graph")
    get.add_argument("--output", type=Path, metavar="FILE", help="where to put it")
    return parser


def _add(
    commands: Any, name: str, run: Callable[[argparse.Namespace], None], text: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)
    return parser


def _graph_commands(kinds: Any) -> None:
    """The commands of ``cli_graphs``, each printed alike."""
    added: dict[str, argparse.ArgumentParser] = {}

    def add(name: str, text: str) -> argparse.ArgumentParser:
        added[name] = kinds.add_parser(name, help=text, description=text)
        added[name].add_argument("--json", action="store_true", help="print JSON")
        return added[name]

    def printed(run: Callable[[argparse.Namespace], dict[str, Any]]) -> Callable[..., None]:
        return lambda args: print_result(args, dict, graph_text, run(args))

    for name, run in add_graph_commands(add).items():
        added[name].set_defaults(run=printed(run), command_name=name)


def _text_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", nargs="*", help="a sentence, or two for a pair")
    parser.add_argument(
        "--file",
        metavar="F",
        help="one text a line, answered in JSON lines; - for standard input, one line at a time",
    )
    parser.add_argument(
        "--pair", action="store_true", help="lines of --file hold two sentences, a tab between"
    )


def _graph_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kg",
        action="append",
        metavar="FILE",
        help="graph file (.kg) or text file of triples, packed or not; repeatable",
    )
    parser.add_argument(
        "--skip-bad", action="store_true", help="leave bad lines of a graph out, and list them"
    )
    add_alias_options(parser)


def _graph_options(parser: argparse.ArgumentParser) -> None:
    _graph_files(parser)
    add_selection_options(parser)


def _reading_options(parser: argparse.ArgumentParser) -> None:
    _form_options(parser)
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")


def _form_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--max-length", type=int, metavar="N", help="at most so many tokens")
    parser.add_argument(
        "--positions", choices=["soft", "hard"], help="default: the model's card, else soft"
    )
    parser.add_argument(
        "--visible", choices=["tree", "all"], help="default: the model's card, else tree"
    )


def _model_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", metavar="DIR", help=f"default: {DEFAULT_MODEL}")
    _graph_options(parser)
    _reading_options(parser)
