"""What an audit reads: the splits of a data folder, their task, and tokens without a model."""

import lzma
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from kbert_core.errors import DataError
from kbert_core.knowledge.names import is_word_character
from kbert_core.tasks.ner import OUTSIDE
from kbert_core.tokens import Characters, Tokenizer, Words
from kbert_core.training.datasets import SPLITS, Example, find_split, read_examples

TASKS = {
    "ner": "named entities",
    "classify": "classification",
    "pair": "sentence pairs",
    "rank": "answer selection",
}
LOOKED_AT = 50  # rows of the training set, to guess the task


@dataclass(frozen=True)
class Data:
    """A labelled data set.

    Attributes:
        name: of its folder.
        task: a key of ``TASKS``.
        splits: those that are there, train among them.
    """

    name: str
    task: str
    splits: Mapping[str, Sequence[Example]]


def read_data(folder: str | Path, task: str | None = None) -> Data:
    """Read train, and dev and test where there are.

    Args:
        task: None: guessed from the training set's form.

    Raises:
        DataError: there is no training set, or a file can't be read.
    """
    folder = Path(folder)
    paths = {"train": find_split(folder, "train")}
    for split in SPLITS[1:]:
        try:
            paths[split] = find_split(folder, split)
        except DataError:  # the folder is there: this split isn't, and the audit says so
            continue
    task = task or guess_task(paths["train"])
    splits = {split: read_examples(paths[split], task) for split in SPLITS if split in paths}
    return Data(folder.resolve().name, task, splits)


def guess_task(path: Path) -> str:
    """Tell the task from a file's header and first rows.

    A second text makes it a pair, with a question's number answer selection;
    as many BIO tags as there are tokens make it named entities.

    Raises:
        DataError: the file can't be read.
    """
    try:
        with (lzma.open if path.suffix == ".xz" else open)(path, "rb") as file:
            lines = [line.decode("utf-8-sig").rstrip("\r\n") for line in islice(file, LOOKED_AT)]
    except (OSError, UnicodeDecodeError, lzma.LZMAError) as error:
        raise DataError(f"{path}: can't be read ({error}). Save it as UTF-8 text.") from error
    if not lines:
        raise DataError(f"{path}: the file is empty. Expected a header and labelled rows.")
    header = lines[0].split("\t")
    if "text_b" in header:
        return "rank" if "qid" in header else "pair"
    if "text_a" not in header or "label" not in header:
        return "classify"  # read_examples says which column is missing
    text, label = header.index("text_a"), header.index("label")
    rows = [line.split("\t") for line in lines[1:] if line]
    tagged = [_tagged(row[text], row[label]) for row in rows if len(row) == len(header)]
    return "ner" if tagged and all(tagged) else "classify"


def plain_tokenizer(data: Data) -> Tokenizer:
    """Tokens to count without a model: characters, or words where spaces part them."""
    examples = next(iter(data.splits.values()))[:LOOKED_AT]
    letters = [c for c in chain.from_iterable(s for e in examples for s in e.sentences)]
    letters = [c for c in letters if c.isalpha()]
    spaced = 2 * sum(map(is_word_character, letters)) >= len(letters)
    return (Words if spaced else Characters)(special=True)


def _tagged(text: str, label: str) -> bool:
    tags = label.split(" ")
    borders = all(tag == OUTSIDE or tag[:2] in ("B-", "I-") for tag in tags)
    return borders and len(tags) == len(text.split(" "))
