"""What an audit counts, as plain values; :mod:`kbert_core.experiments.audit` makes them."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from kbert_core.data.labelled import SPLITS
from kbert_core.knowledge.selection import InjectionOptions

GROUP_HEADS = 50  # heads a type needs before the share of gold mentions among them means much
FROM_GOLD = 0.8  # of a type's heads: more of them gold mentions, and it was made from the data


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many."""

    count: int
    total: int

    @property
    def share(self) -> float:
        """From 0 to 1; 0 of nothing."""
        return self.count / self.total if self.total else 0.0

    @property
    def percent(self) -> str:
        """Such as "21.1 %"."""
        return f"{100 * self.share:.1f} %"

    def __str__(self) -> str:
        return f"{self.percent} ({self.count:,} of {self.total:,})"


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of some gold mentions a graph knows.

    Attributes:
        known: mentions whose name is a head of the graph.
        reached: mentions that the longest match finds, border for border: the
            branches hang exactly there.
    """

    known: Share
    reached: Share


@dataclass(frozen=True)
class GoldMentions:
    """The gold mentions of one split.

    Attributes:
        all: every mention.
        by_label: the same by label.
        seen, unseen: by whether a training mention has the same name; None
            for the training set itself.
        unseen_by_label: unseen ones by label.
        unseen_names: distinct names without a training mention.
    """

    all: Coverage
    by_label: dict[str, Coverage]
    seen: Coverage | None
    unseen: Coverage | None
    unseen_by_label: dict[str, Coverage]
    unseen_names: Share | None


@dataclass(frozen=True, slots=True)
class Injection:
    """What the graph adds to the length of one split's inputs.

    Attributes:
        tokens: of the texts, special tokens included.
        added: tokens of the branches.
        longest: tokens of the longest input with its branches.
        limit: the length limit, in tokens.
        long_texts: texts that alone are over the limit; for named entities
            they are read in several windows, else cut.
        long_trees: inputs over it with their branches.
        text_over: tokens of text beyond the limit.
        added_over: of the branches' tokens those that find no room, at least;
            a branch goes in whole or not at all.
    """

    tokens: int
    added: Share
    longest: int
    limit: int
    long_texts: Share
    long_trees: Share
    text_over: int
    added_over: Share


@dataclass(frozen=True, slots=True)
class Homonyms:
    """Names in one split that may mean several heads.

    Attributes:
        matches: those with such a name.
        rows: of the rows that name a head those with such a match.
        examples: some of the names as they stand in the texts, the most
            frequent first, with the heads.
    """

    matches: Share
    rows: Share
    examples: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class SplitAudit:
    """One split.

    Attributes:
        examples: rows.
        labels: how often each label stands: of a text, or of a mention.
        repeated: rows whose text stands in an earlier row of the split.
        with_match: rows that name a head of the graph.
        matches: places where a head is named.
        gold_matches: matches that are gold mentions, border for border; None
            where there are none to be.
        ambiguous_matches: matches whose head has several tails under the
            relation that looks like a type; without one, tails that stand for
            several labels.
        homonyms: matches whose name may mean several heads.
        mentions: gold mentions; None for other tasks.
        injection: tokens.
        majority: share of the training set's most frequent label; None for
            named entities.
        dictionary: scores of the dictionary tagger as of ``span_scores``,
            and ``unseen``; None for the training set and other tasks.
    """

    examples: int
    labels: dict[str, int]
    repeated: Share
    with_match: Share
    matches: int
    gold_matches: Share | None
    ambiguous_matches: Share
    homonyms: Homonyms
    mentions: GoldMentions | None
    injection: Injection
    majority: Share | None = None
    dictionary: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Leak:
    """Rows of one split whose text stands in another.

    Attributes:
        of, into: names of the splits, such as "test" and "train".
        texts: rows of ``of`` whose text (a pair: in either order) is in ``into``.
        same_label: of those, the ones labelled as there at least once.
    """

    of: str
    into: str
    texts: Share
    same_label: Share


@dataclass(frozen=True, slots=True)
class Conflicts:
    """Identical texts with different labels, over all splits.

    Attributes:
        texts: distinct texts that are labelled in more than one way.
        rows: how many rows have such a text.
        examples: a few of the texts.
    """

    texts: Share
    rows: int
    examples: tuple[str, ...]


@dataclass(frozen=True)
class Heads:
    """How clearly the graph says what its heads are.

    Attributes:
        relation: the one that looks like a type: of the relations whose tails
            are each shared by ``HEADS_OF_A_TYPE`` heads or more, the one with
            most heads. None: there is none.
        several: of its heads those with several tails under it.
        examples: some of them with their tails.
        several_labels: for named entities, of the heads whose tails (those
            under ``relation``, if there is one) stand for a label those whose
            tails stand for several.
    """

    relation: str | None
    several: Share
    examples: tuple[tuple[str, tuple[str, ...]], ...]
    several_labels: Share | None


@dataclass(frozen=True, slots=True)
class Group:
    """Heads that have a tail (or a relation) in common.

    Attributes:
        name: the tail; the relation where no relation looks like a type.
        gold: heads that are, verbatim, gold mentions of any split.
    """

    name: str
    gold: Share

    @property
    def from_gold(self) -> bool:
        """Whether its heads look as if they had been taken from the annotations."""
        return self.gold.total >= GROUP_HEADS and self.gold.share >= FROM_GOLD


@dataclass(frozen=True)
class Answers:
    """Whether the graph was made from the data's own annotations.

    Attributes:
        gold_heads: of the graph's heads those that are gold mentions somewhere.
        test_only: of the graph's heads those that are mentions of the test
            set only; None where there is no test set.
        test_only_of_gold: the same as a share of ``gold_heads``.
        known_names: share of the distinct gold names that are heads, by the
            splits where the names stand: "train only", "train and test", ….
            An independent graph knows rare names less than common ones; one
            made from all the annotations knows those of the test set as well
            as those of the training set.
        groups: the largest types with the share of their heads that are gold.
        from_gold: of the test set's mentions that the graph knows (the dev
            set's where there is no test set), those whose head belongs to a
            group that is nearly all gold (``Group.from_gold``).
    """

    gold_heads: Share
    test_only: Share | None
    test_only_of_gold: Share | None
    known_names: dict[str, Share]
    groups: tuple[Group, ...]
    from_gold: Share


@dataclass(frozen=True)
class Audit:
    """All that was counted.

    Attributes:
        data: what the data set is called.
        task: "ner", "classify" or "pair".
        graph: what the graph is called.
        triples, heads: how many it has.
        options: injection options that the lengths were counted with.
        splits: by name, in the order train, dev, test.
        missing: splits that are not there.
        leaks: between the splits.
        conflicts: identical texts with different labels.
        ambiguity: of the graph's heads.
        answers: for named entities; None for other tasks.
        tail_labels: for named entities, what the most frequent tails (those
            of the relation that looks like a type, if there is one) stand
            for, as learnt from the training set.
    """

    data: str
    task: str
    graph: str
    triples: int
    heads: int
    options: InjectionOptions
    splits: dict[str, SplitAudit]
    missing: tuple[str, ...]
    leaks: tuple[Leak, ...]
    conflicts: Conflicts
    ambiguity: Heads
    answers: Answers | None
    tail_labels: dict[str, str]

    @property
    def held_out(self) -> str:
        """The split that is to show something: test, else dev, else train."""
        return next(name for name in reversed(SPLITS) if name in self.splits)


def as_plain(value: Any) -> Any:
    """Turn a value of this module into dicts, lists and numbers; shares with their ratio."""
    if isinstance(value, Share):
        return {"count": value.count, "total": value.total, "share": value.share}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: as_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: as_plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [as_plain(item) for item in value]
    return value
