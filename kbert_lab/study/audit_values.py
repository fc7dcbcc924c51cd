"""What an audit reads and counts, as values; :mod:`kbert_lab.study.audit` counts."""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kbert_core.errors import DataError
from kbert_core.files import shipped
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.text import Tokenizer
from kbert_core.words import AS_BERT, BETWEEN_SPACES, Characters, Words
from kbert_lab.data.hub import is_hub_name
from kbert_lab.data.labelled import SPLITS, Example
from kbert_lab.data.sources import LOOKED_AT, guess_task, read_present, unused_files
from kbert_lab.data.tagging import words_are_spaced

GROUP_HEADS = 50  # heads a type needs before the share of gold mentions among them means much
SHOWN_FILES = 8  # that weren't used
FROM_GOLD = 0.8  # of a type's heads: more of them gold mentions, and it was made from the data
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Data:
    """A labelled data set."""

    name: str  # of its folder or file, or hf:NAME
    task: str  # a key of ``TASKS``
    splits: Mapping[str, Sequence[Example]]  # those that are there, train among them


def read_data(
    name: str | Path,
    task: str | None = None,
    columns: Mapping[str, str] | None = None,
    *,
    others: Mapping[str, str | None] | None = None,
) -> Data:
    """Read train, and dev and test where there are; the task is guessed where none is given.

    Args:
        others: files to take "dev" or "test" from.

    Raises:
        DataError: there is no training set, it can't be read, or its form
            doesn't tell the task.
    """
    place = str(shipped(name))
    if not is_hub_name(place) and not Path(place).exists():
        raise DataError(
            f"{place}: no such folder. Name the folder that holds train.tsv, one saved by "
            "`datasets`, or a data set of the hub, hf:NAME."
        )
    task = task or guess_task(place, columns)
    splits = read_present(place, task, columns, others=others)
    from_folder = [split for split in SPLITS if not (others or {}).get(split)]
    given = [Path(name) for name in (others or {}).values() if name]
    if Path(place).is_dir() and (unused := unused_files(Path(place), from_folder, given)):
        shown = ", ".join(unused[:SHOWN_FILES]) + ", …" * (len(unused) > SHOWN_FILES)
        log.warning("%s: not used: %s. Name a file with --dev or --test to use it.", place, shown)
    return Data(place if is_hub_name(place) else Path(place).resolve().name, task, splits)


def plain_tokenizer(data: Data) -> Tokenizer:
    """Return a tokenizer to count without a model: words if spaces divide them, or characters."""
    examples = next(iter(data.splits.values()))[:LOOKED_AT]
    if words_are_spaced(text for example in examples for text in example.sentences):
        return Words(special=True, word=BETWEEN_SPACES if data.task == "ner" else AS_BERT)
    return Characters(special=True)


@dataclass(frozen=True, slots=True)
class Share:
    """A count out of a total."""

    count: int
    total: int
    share: float = field(init=False)  # from 0 to 1; 0 of nothing

    def __post_init__(self) -> None:
        """Compute the share, which is written to JSON, too."""
        object.__setattr__(self, "share", self.count / self.total if self.total else 0.0)

    @classmethod
    def of(cls, values: Iterable[object]) -> "Share":
        """Count the values that are true."""
        true = [*map(bool, values)]
        return cls(sum(true), len(true))

    @property
    def odds(self) -> float:
        """Of it against the rest, each half a count more, so that they have a logarithm."""
        return (self.count + 0.5) / (self.total - self.count + 0.5)

    @property
    def percent(self) -> str:
        """The share in per cent, such as "21.1 %"."""
        return f"{100 * self.share:.1f} %"

    def __str__(self) -> str:
        return f"{self.percent} ({self.count:,} of {self.total:,})"


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of some gold mentions a graph knows."""

    known: Share  # mentions whose name names a head of the graph, as names are compared
    reached: Share  # those that the longest match finds, so that the branches hang exactly there


@dataclass(frozen=True, slots=True)
class Matches:
    """How many matches of a split are of each of four kinds.

    A match inside a longer mention, whose tails stand for the mention's label, is wrong for a
    dictionary, and right for a model that reads.
    """

    exact: Share  # a gold mention, border for border
    part: Share  # inside or across one whose label its tails stand for
    other: Share  # inside or across one of another label
    outside: Share  # of no gold mention


@dataclass(frozen=True)
class GoldMentions:
    """The gold mentions of one split; a mention is *seen* if training labels its name."""

    all: Coverage
    by_label: dict[str, Coverage]
    seen: Coverage | None = None  # this and the two below: not of the training set
    unseen: Coverage | None = None
    unseen_names: Share | None = None  # distinct names without a training mention


@dataclass(frozen=True, slots=True)
class Injection:
    """What the graph adds to the length of one split's inputs, in tokens."""

    tokens: int  # of the texts, special tokens included
    added: Share  # tokens of the branches
    longest: int  # tokens of the longest input with its branches
    limit: int  # the length limit
    long_trees: Share  # inputs over it with their branches
    unknown: Share | None  # tokens of the texts that the vocabulary lacks; None: there is none
    added_over: Share  # branch tokens without room, at least: a branch goes in whole or not at all


@dataclass(frozen=True, slots=True)
class Homonyms:
    """Names in one split that may mean several heads."""

    matches: Share  # those with such a name
    rows: Share  # of the rows that name a head those with such a match
    examples: tuple[tuple[str, tuple[str, ...]], ...]  # names and their heads, most frequent first


@dataclass(frozen=True, kw_only=True)
class SplitAudit:
    """The counts of one split; None: not counted for this task, or for the training set."""

    examples: int  # rows
    labels: dict[str, int]  # how often each label stands: of a text, or of a mention
    repeated: Share  # rows whose text stands in an earlier row of the split
    with_match: Share  # rows that name a head of the graph
    matches: int  # places where a head is named
    kinds: Matches | None = None  # of the matches, for named entities
    ambiguous_matches: Share  # matches whose head is ambiguous, see ``Heads``
    homonyms: Homonyms
    mentions: GoldMentions | None = None
    injection: Injection
    answers_known: Share | None = None  # questions with an answer that is a tail of the graph
    majority: Share | None = None  # rows with the training set's most frequent label
    # ``span_scores`` of the dictionary, ``unseen``; wrong spans ``over_mentions``, and ``outside``
    dictionary: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Leak:
    """Rows of one split whose text stands in another."""

    of: str  # a split, such as "test"
    into: str  # another, such as "train"
    texts: Share  # rows of ``of`` whose text (a pair: in either order) is in ``into``


@dataclass(frozen=True, slots=True)
class Conflicts:
    """Identical texts with different labels, over all splits."""

    texts: Share  # distinct texts that are labelled in more than one way
    rows: int  # that have such a text
    examples: tuple[str, ...]


@dataclass(frozen=True)
class Heads:
    """How clearly the graph says what its heads are.

    A head is ambiguous if it has several tails under the relation that looks
    like a type; without such a relation, if its tails stand for several labels.
    """

    relation: str | None  # of most heads, whose tails ten heads share on average
    several: Share  # of its heads those with several tails under it
    examples: tuple[tuple[str, tuple[str, ...]], ...]  # some of them with their tails


@dataclass(frozen=True, slots=True)
class Group:
    """Heads with the same tail or, if no relation looks like a type, the same relation."""

    name: str  # of the tail or relation
    gold: Share  # heads that are, verbatim, gold mentions of any split

    @property
    def from_gold(self) -> bool:
        """Whether its heads seem to be taken from the annotations."""
        return self.gold.total >= GROUP_HEADS and self.gold.share >= FROM_GOLD


@dataclass(frozen=True)
class Answers:
    """Counts that show whether the graph knows names of test as well as names of train."""

    gold_heads: Share  # of the graph's heads those that are gold mentions somewhere
    known_names: dict[str, Share]  # distinct gold names that are heads; "train and test", … → share
    groups: tuple[Group, ...]  # the largest types
    from_gold: Share  # of the held-out mentions that the graph knows: in a group ``from_gold``


def counted(splits: Collection[str]) -> str:
    """Which split a verdict counts: dev, else test, else train.

    What a graph is expected to add on a test set is told without looking at its labels.
    """
    return next(name for name in ("dev", "test", "train") if name in splits)


@dataclass(frozen=True)
class LookedUp:
    """F1 of a trained model on a held-out split, and what names looked up in the graph add."""

    model: str  # what it is called
    split: str  # test, or dev where there is no test set
    alone: float
    # share of the names new to it that it finds in the split that an audit counts; None: it reads
    # a graph
    new_names: float | None
    # by way, with the least and most of 95 % of resampled texts. "dictionary": each name that the
    # graph has a label for is written over the model; "gate": those that a gate fitted on dev lets
    # through (left out where none can be fitted); "oracle": those that are right, the most there is
    gains: Mapping[str, tuple[float, float, float]]


@dataclass(frozen=True, slots=True)
class Gain:
    """F1 expected over BERT, from 0 to 1, with the 95 % interval for one new data set and graph."""

    mean: float
    low: float
    high: float
    outside: bool  # more is right or wrong than in anything that the guess rests on

    def __str__(self) -> str:
        mean, low, high = (f"{100 * f1:+.0f}" for f1 in (self.mean, self.low, self.high))
        return f"{mean} [{low}, {high}]"


@dataclass(frozen=True)
class Audit:
    """All that was counted."""

    data: str  # what the data set is called
    task: str  # "ner", "classify", "multilabel", "pair", "rank" or "qa"
    graph: str  # what the graph is called
    triples: int
    heads: int
    options: InjectionOptions  # that the lengths were counted with
    splits: dict[str, SplitAudit]  # in the order train, dev, test
    missing: tuple[str, ...]  # splits that are not there
    leaks: tuple[Leak, ...]
    conflicts: Conflicts
    ambiguity: Heads
    answers: Answers | None  # for named entities
    tail_labels: dict[str, str]  # the most frequent tails → labels, as learnt from training
    linear: Share | None = None  # of the held-out mentions with a new name a linear tagger finds
    found: tuple[float, float, float] | None = None  # BERT: least, middle, most
    expected: Mapping[str, Gain] = field(default_factory=dict)  # by way; named entities, held out
    looked_up: LookedUp | None = None  # where a trained model was given

    @property
    def held_out(self) -> str:
        """The split that the verdict counts, see :func:`counted`."""
        return counted(self.splits)
