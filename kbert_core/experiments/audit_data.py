"""What an audit reads: the splits of a data folder, their task, and tokens without a model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from kbert_core.data.guess import LOOKED_AT, guess_task
from kbert_core.data.hub import is_hub_name
from kbert_core.data.labelled import Example
from kbert_core.data.sources import read_present
from kbert_core.errors import DataError
from kbert_core.knowledge.names import is_word_character
from kbert_core.text import Characters, Tokenizer, Words


@dataclass(frozen=True)
class Data:
    """A labelled data set.

    Attributes:
        name: of its folder or file, or hf:NAME.
        task: a key of ``TASKS``.
        splits: those that are there, train among them.
    """

    name: str
    task: str
    splits: Mapping[str, Sequence[Example]]


def read_data(
    name: str | Path, task: str | None = None, columns: Mapping[str, str] | None = None
) -> Data:
    """Read train, and dev and test where there are.

    Args:
        name: a folder, or hf:NAME, as for ``read_split``; a single file is a
            training set.
        task: None: guessed from the training set's form.
        columns: our names → the data's, where they can't be guessed.

    Raises:
        DataError: there is no training set, it can't be read, or its form
            doesn't tell the task.
    """
    place = str(name)
    if not is_hub_name(place) and not Path(place).exists():
        raise DataError(
            f"{place}: no such folder. Name the folder that holds train.tsv, one saved by "
            "`datasets`, or a data set of the hub, hf:NAME."
        )
    task = task or guess_task(place, columns)
    splits = read_present(place, task, columns)
    return Data(place if is_hub_name(place) else Path(place).resolve().name, task, splits)


def plain_tokenizer(data: Data) -> Tokenizer:
    """Tokens to count without a model: characters, or words where spaces part them."""
    examples = next(iter(data.splits.values()))[:LOOKED_AT]
    letters = [c for c in chain.from_iterable(s for e in examples for s in e.sentences)]
    letters = [c for c in letters if c.isalpha()]
    spaced = 2 * sum(map(is_word_character, letters)) >= len(letters)
    return (Words if spaced else Characters)(special=True)
