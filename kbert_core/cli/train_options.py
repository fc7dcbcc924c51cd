"""Options of `kbert pretrain`, `train` and `evaluate`, apart so that `--help` is quick."""

import argparse

TASK_NAMES = ("ner", "classify", "pair", "rank", "mask")
DATA_SETS = (
    "folder of train.tsv, dev.tsv and test.tsv (or .conll, with one token a line), or saved by "
    "Hugging Face's datasets; or a data set of its hub, hf:NAME or hf:NAME/CONFIG"
)


def add_train_options(parser: argparse.ArgumentParser) -> None:
    """Options of `kbert train` that no other command has."""
    add = parser.add_argument
    add("--task", required=True, choices=TASK_NAMES, help="kind of task")
    for split in ("train", "dev", "test"):
        add(f"--{split}", metavar="FILE", help=f"take {split} from this file, not from --data")
    add(
        "--dev-share",
        type=float,
        default=0.0,
        metavar="P",
        help="where there is no dev set: this share of train, drawn by --seed",
    )
    add(
        "--also-train",
        nargs="+",
        default=[],
        metavar="FILE",
        help="further training sets of the same task, from which no dev is drawn; rows of dev or "
        "test in them are left out",
    )
    add_columns(parser)
    add(
        "--output",
        required=True,
        metavar="DIR",
        help="where the model goes; a run that was cut off goes on there",
    )
    add(
        "--encoder",
        default="scratch",
        metavar="DIR|NAME|package:NAME|scratch",
        help="encoder to start from: a folder, a hub name, an installed Python package that "
        "holds one, or a new small BERT (default)",
    )
    add(
        "--adapter",
        type=int,
        metavar="RANK",
        help="train a low-rank adapter (8 or 16 is usual) and the task head; the encoder stays as "
        "it is and where it is; an adapter of this rank or a higher one in its place is trained "
        "further",
    )
    add("--adapter-alpha", type=float, metavar="A", help="its scale is A / RANK; default: 2 RANK")
    add("--device", default="auto", help="auto, cpu or cuda")
    add("--epochs", type=int, default=4, help="times through the training set; default: 4")
    add(
        "--negatives",
        type=int,
        metavar="N",
        help="for answer selection: each epoch reads so many of a question's wrong answers, drawn "
        "anew; default: all",
    )
    add("--seed", type=int, default=0, help="of everything random; default: 0")
    add("--batch-tokens", type=int, default=1024, help="tokens read at once; default: 1024")
    add("--patience", type=int, default=0, help="stop after so many epochs without a better dev")
    add(
        "--learning-rate",
        type=float,
        help="default: 1e-3 for an adapter, else by the encoder's width",
    )
    add("--dropout", type=float, default=0.1, help="default: 0.1")
    add("--hidden-size", type=int, help="of a BERT from scratch; default: 256")
    add("--layers", type=int, help="of a BERT from scratch; default: 4")
    add("--float32", action="store_true", help="save single, not half precision")
    _add_step_options(parser)
    recipe = parser.add_argument_group(
        "what happens to knowledge in training (shares from 0 to 1, default 0)"
    )
    for flag, text in (
        ("--counterfactual", "of gold mentions trained with another type and its label"),
        ("--mention-dropout", "of gold mentions with branches whose characters are hidden"),
        ("--branch-dropout", "of branches left out"),
        ("--tree-dropout", "of sentences trained without knowledge"),
        ("--mismatch-dropout", "of branches of names that aren't gold mentions left out"),
        ("--invented", "of sentences in which a name gets a type that the graph doesn't give it"),
    ):
        recipe.add_argument(flag, type=float, default=0.0, metavar="P", help=text)


def add_columns(parser: argparse.ArgumentParser) -> None:
    """The option that names columns, see ``parse_columns``."""
    parser.add_argument(
        "--columns",
        metavar="NAME=COLUMN,…",
        help="which columns to take, if not the usual ones: text_a=, text_b=, label=, qid=",
    )


def add_evaluate_options(parser: argparse.ArgumentParser) -> None:
    """Options of `kbert evaluate` that no other command has."""
    parser.add_argument(
        "--split",
        default="test",
        choices=("train", "dev", "test"),
        help="which part of a folder or data set; default: test",
    )
    add_columns(parser)
    parser.add_argument(
        "--train-data",
        metavar="FILE",
        help="training set, to tell entities seen in it from those unseen",
    )
    parser.add_argument(
        "--edits",
        action="store_true",
        help="also measure the response to replaced and added triples (needs --train-data)",
    )
    parser.add_argument(
        "--release",
        action="store_true",
        help="also count named entities as the released K-BERT does, to compare published figures",
    )
    parser.add_argument("--seed", type=int, default=0, help="which other type an edit takes")


def add_select_train_options(parser: argparse.ArgumentParser) -> None:
    """Options of `kbert select-train` that no other command has."""
    add = parser.add_argument
    add("--model", required=True, metavar="DIR", help="whose loss is to fall; one with labels")
    add("--data", required=True, metavar="FILE|DIR|hf:NAME", help=f"training set; {DATA_SETS}")
    add("--output", required=True, metavar="DIR", help="where the scorer goes")
    add("--max-texts", type=int, default=1000, metavar="N", help="texts tried; default: 1000")
    add(
        "--noise",
        type=int,
        default=0,
        metavar="K",
        help="give every mention K triples of other entities, to learn to leave such out; "
        "default: 0",
    )
    add("--seed", type=int, default=0, help="of texts, triples and noise; default: 0")
    add("--device", default="auto", help="auto, cpu or cuda")


def add_audit_options(parser: argparse.ArgumentParser) -> None:
    """Options of `kbert audit` that no other command has."""
    parser.add_argument(
        "--task",
        choices=("ner", "classify", "pair", "rank"),
        help="kind of task; default: as the training set looks",
    )
    add_columns(parser)
    parser.add_argument("--max-length", type=int, metavar="N", help="in tokens; default: 256")
    parser.add_argument(
        "--model",
        metavar="DIR",
        help="count tokens and triples as this model does; default: characters, or words of a "
        "language with spaces, and two triples a mention",
    )


def add_pretrain_options(parser: argparse.ArgumentParser) -> None:
    """Options of `kbert pretrain`."""
    add = parser.add_argument
    add(
        "--text",
        required=True,
        nargs="+",
        metavar="FILE",
        help=".txt or .txt.xz, one passage a line",
    )
    add("--output", required=True, metavar="DIR", help="a run that was cut off goes on there")
    add(
        "--exclude",
        nargs="+",
        default=[],
        metavar="FILE",
        help="labelled files of test sets (.tsv, .txt, also .xz, or .json in SQuAD's form); "
        "passages that hold one of their texts are left out, white space apart",
    )
    add("--vocabulary", metavar="DIR", help="take this tokenizer; default: made from the text")
    add(
        "--words",
        nargs="+",
        default=[],
        metavar="FILE",
        help="words to mask whole: a word a line, or triples, whose heads are taken",
    )
    add(
        "--whole-words",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="mask the word pieces of a word, and --words, together",
    )
    for flag, kind, value, text in (
        ("--steps", int, 10_000, "optimiser steps in all; a run that goes on may have more"),
        ("--batch-tokens", int, 2048, "tokens read at once, by each process"),
        ("--row-length", int, 128, "tokens of a packed row"),
        ("--hidden-size", int, 256, "of the BERT"),
        ("--layers", int, 4, "of the BERT"),
        ("--attention-heads", int, 4, "of the BERT"),
        ("--max-positions", int, 512, "of the BERT"),
        ("--dropout", float, 0.0, "of the BERT"),
        ("--learning-rate", float, 1e-3, "after warm-up"),
        ("--warmup", int, 500, "steps in which the rate rises, at most half of all"),
        ("--decay", float, 0.25, "share of the steps after warm-up in which the rate falls"),
        ("--vocabulary-size", int, 6000, "at most so many tokens"),
        ("--word-pieces", int, 0, "of them for words of Latin letters and digits; 0: characters"),
        ("--min-count", int, 10, "characters seen less often are unknown"),
        ("--save-every", int, 500, "steps between checkpoints"),
        ("--seed", int, 0, "of everything random"),
    ):
        add(flag, type=kind, default=value, help=f"{text}; default: {value}")
    add("--device", default="auto", help="auto, cpu or cuda")
    _add_step_options(parser)


def _add_step_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--accumulate",
        type=int,
        default=1,
        metavar="N",
        help="read so many batches for one step; default: 1",
    )
    add("--log-every", type=int, default=50, metavar="N", help="steps; default: 50")
    add(
        "--bf16",
        action=argparse.BooleanOptionalAction,
        help="compute in bfloat16; default: on CUDA",
    )
