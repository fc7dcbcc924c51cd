"""Which data set is read: its files by split, its columns, the columns that a task needs.

Nothing here reads a file, so that a command line that only shows its help is quick.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kbert_core.errors import OptionError
from kbert_core.files import shipped
from kbert_core.options import Options, option

DATA_SETS = (
    "folder of train.tsv, dev.tsv and test.tsv (or .conll, with one token per line), "
    "or saved by Hugging Face's datasets; or a data set of its hub, hf:NAME or "
    "hf:NAME/CONFIG"
)
OURS = ("text_a", "text_b", "label", "qid")
NEEDED = {
    "ner": ("label", "text_a"),
    "classify": ("label", "text_a"),
    "multilabel": ("label", "text_a"),
    "pair": ("label", "text_a", "text_b"),
    "rank": ("label", "text_a", "text_b"),
    "mask": ("text_a",),
}


def parse_columns(text: str | None) -> dict[str, str]:
    """Read ``text_a=sentence1,label=gold``; OptionError for another form or unknown name."""
    found = {}
    for part in text.split(",") if text else ():
        ours, equals, theirs = (piece.strip() for piece in part.partition("="))
        if ours not in OURS or not equals or not theirs:
            raise OptionError(
                f"--columns has '{part}', expected NAME=COLUMN with one of {', '.join(OURS)} as "
                "NAME, several of them with commas between."
            )
        found[ours] = theirs
    return found


@dataclass(frozen=True)
class DataFiles(Options):
    """Where a data set's splits are.

    Attributes:
        data (DIR|hf:NAME): folder of train.tsv, dev.tsv and test.tsv (or .conll, with one token per
            line), or saved by Hugging Face's datasets; or a data set of its hub, hf:NAME or
            hf:NAME/CONFIG; not needed where --train names a file. A single file is train
        train (FILE): take train from this file
        dev (FILE): take dev from this file
        test (FILE): take test from this file
        dev_share (P): if there is no dev set: this share of train, drawn by --seed
        columns (NAME=COLUMN,…): which columns to take, if not the usual ones: text_a=, text_b=,
            label=, qid=
        also_train (FILE): more training sets of the same task; no dev is drawn from them, and rows
            of dev or test are left out
    """

    data: str = option("")
    train: str | None = option(None)
    dev: str | None = option(None)
    test: str | None = option(None)
    dev_share: float = option(0.0)
    columns: Mapping[str, str] = option(factory=dict, parse=parse_columns)
    also_train: tuple[str, ...] = option(())

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.data and not self.train:
            raise OptionError("No data given. Name a folder with --data, or a file with --train.")
        if not 0 <= self.dev_share < 1:
            raise OptionError(f"dev_share is {self.dev_share}, expected a share from 0 to below 1.")
        if self.dev_share and self.dev:
            raise OptionError("Both --dev and --dev-share are given. Give one of them.")

    @property
    def name(self) -> str:
        """A name to show: the folder's, or that of the file to train on."""
        return Path(self.data).name if self.data else Path(self.train or "").parent.name

    def named(self, split: str) -> str:
        """Return what was given for a split: its file, else the data set, else nothing."""
        own = {"train": self.train, "dev": self.dev, "test": self.test}[split]
        alone = split != "train" and shipped(self.data).is_file()
        return own or ("" if alone else self.data)
