"""Splits that can show what knowledge adds: deduplicated, entity-disjoint, and by substitution.

A published split often shares sentences and most entity names between training and test, so that
a graph has nothing left to add. An **entity-disjoint** split holds entity names out: whatever is
tagged with a test name was never seen with a label. It moves sentences, so that train and test
differ in more than their names. A **substitution** split leaves every sentence where it is, and
writes other names into train.
"""

import json
import logging
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from kbert_core.errors import DataError, OptionError
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import find_mentions
from kbert_core.knowledge.surface_forms import AS_WRITTEN, NameRules
from kbert_core.options import Options, option
from kbert_lab.data.labelled import SPLITS, Example
from kbert_lab.files import or_refused

Splits = dict[str, list[Example]]
FIELD_BREAK = re.compile(r"[\t\n\r]")
TOKEN_BREAK = re.compile(r"[ \t\n\r]")
NO_BREAK = "\N{NO-BREAK SPACE}"
TOLERANCE = 0.01  # how far a share of mentions may be from the one asked for
TRIES = 20  # names drawn for a row that would repeat one of dev or test
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class EntityDisjoint(Options):
    """How to hold names (surface forms) out; each seed draws its own split.

    Attributes:
        seed: which names are held out
        test_share: of entity names, held out for test
        dev_share: of entity names, held out for dev
    """

    seed: int = option(0, least=0)
    test_share: float = option(0.22, above=0, share=True)
    dev_share: float = option(0.10, above=0, share=True)


def entity_disjoint(
    examples: Iterable[Example],
    options: EntityDisjoint = EntityDisjoint(),
    *,
    graph: KnowledgeGraph | None = None,
    rules: NameRules = AS_WRITTEN,
) -> Splits:
    """Split sentences so that the entity names held out for test are in test alone.

    Three disjoint groups of names are drawn, for train, dev and test; a sentence goes to the last
    group that it touches. So no name of dev or test is labelled in train, and none of test in dev.
    Repeated sentences are taken once, at their first place.

    Args:
        graph: hold out only names that this graph knows, so that knowledge has a chance; None:
            any names, at random.
        rules: how names are compared with the graph's.

    Raises:
        DataError: too few names to hold so many out, or no sentence is left for a split.
    """
    unique = list({text_key(e): e for e in reversed(list(examples))}.values())[::-1]
    names = sorted({name for e in unique for name in _names(e)})
    eligible = sorted(known_names(names, graph, rules))
    shares = (options.test_share, options.dev_share)
    for_test, for_dev = (round(share * len(names)) for share in shares)
    if for_test + for_dev > len(eligible) or not for_test or not for_dev:
        where = "" if graph is None else f" that the graph {graph.name} knows"
        raise DataError(
            f"The data have {len(eligible)} entity names{where} ({len(names)} in all). These are "
            f"too few to hold out {for_test} for test and {for_dev} for dev. "
            "Lower the shares, give more data, or take names at random."
        )
    order = np.random.default_rng(options.seed).permutation(len(eligible))
    drawn = [eligible[i] for i in order[: for_test + for_dev]]
    test, dev = set(drawn[:for_test]), set(drawn[for_test:])
    splits: Splits = {split: [] for split in SPLITS}
    for example in unique:
        found = _names(example)
        splits["test" if found & test else "dev" if found & dev else "train"].append(example)
    for split, found_for_it in splits.items():
        if not found_for_it:
            raise DataError(f"No sentence is left for {split}. Lower the shares or give more data.")
    return splits


def substituted(
    splits: Mapping[str, Sequence[Example]],
    unseen: float,
    *,
    seed: int = 0,
    graph: KnowledgeGraph | None = None,
    rules: NameRules = AS_WRITTEN,
) -> Splits:
    """Make names of dev and test new by replacing them in train.

    Names are drawn at random until the share ``unseen`` of the mentions of dev, and of test, has a
    name that train doesn't label. In train a mention of such a name gets another name of the same
    type that stays, of the same length if there is one, as often as train mentions it. Dev and test
    stay as they are, and so do the numbers of rows, mentions and types of train. Names that occur
    in train only as mentions are drawn first; others may still occur unlabelled or in longer names.

    Args:
        unseen: a share of mentions, each split's.
        graph: hold out only names that it knows, and put only such in their place, as far as it
            knows any of the type; None: any names.
        rules: how names are compared with the graph's.

    Raises:
        OptionError: ``unseen`` is no share.
        DataError: a split has no mention; it can't have this share; no name of a type would stay.
    """
    if not 0 < unseen < 1:
        raise OptionError(f"unseen is {unseen}, expected a share between 0 and 1.")
    held_out = [split for split in SPLITS[1:] if split in splits]
    named = {s: Counter(_mentioned(splits[s])) for s in splits}
    if not held_out or not all(named[split].total() for split in ("train", *held_out)):
        where = next((s for s in ("train", *held_out) if not named[s].total()), "dev and test")
        raise DataError(
            f"There is no mention in {where}, so there is no name to hold out. Give labelled "
            "entities in train, and in dev, test or both."
        )
    shared = sorted({name for split in held_out for name in named[split]} & {*named["train"]})
    known = known_names({*named["train"]}, graph, rules)
    eligible = [name for name in shared if name in known]
    totals = np.array([named[split].total() for split in held_out])
    new = np.array(
        [sum(c for n, c in named[s].items() if n not in named["train"]) for s in held_out]
    )
    weights = np.array([[named[split][n] for split in held_out] for n in eligible])
    random = np.random.default_rng(seed)
    text = "\n".join(example.sentences[0] for example in splits["train"])
    stands = [text.count(name) > named["train"][name] for name in eligible]  # elsewhere in train
    order = sorted(random.permutation(len(eligible)).tolist(), key=stands.__getitem__)
    drawn = drawn_within(weights, np.maximum(0, unseen * totals - new), order)
    out = {eligible[number] for number in drawn}
    reached = (new + weights[drawn].sum(axis=0)) / totals if drawn else new / totals
    for split, share in zip(held_out, reached.tolist(), strict=True):
        if abs(share - unseen) > max(TOLERANCE, 1 / named[split].total()):
            before = new[held_out.index(split)] / named[split].total()
            known_too = "" if graph is None else f", and known to the graph {graph.name}"
            raise DataError(
                f"New names make up {share:.1%} of the mentions of {split}, but you asked for "
                f"{unseen:.1%}. {before:.1%} are new before any is replaced, and {len(eligible)} "
                f"names are in train and also in dev or test{known_too}. Ask for "
                f"{'more' if share > unseen else 'less'}"
                f"{', or take any names (without --kg)' if known_too else ''}."
            )
    others = {text_key(example) for split in held_out for example in splits[split]}
    train = renamed(splits["train"], out, random, known=known, never=others)
    return {**{split: list(of) for split, of in splits.items()}, "train": train}


def renamed(
    train: Sequence[Example],
    out: set[str],
    random: np.random.Generator,
    *,
    known: Collection[str] | None = None,
    never: Collection[tuple[str, ...]] = (),
) -> list[Example]:
    """Replace names: a mention of one of ``out`` gets another of its type that stays.

    The stand-in has the same length if there is one, and is drawn as often as train mentions it.

    Args:
        known: only these are put in, as far as there are any of the type; None: all.
        never: texts, as ``text_key`` compares them, that a row should not become.

    Raises:
        DataError: no name of a type stays.
    """
    stand_ins = _stand_ins(train, out) | _stand_ins(train, out, known)
    rows = []
    for example in train:
        other = example
        for _ in range(TRIES if out & _names(example) else 0):
            other = _with_names(example, out, stand_ins, random)
            if text_key(other) not in never:
                break
        rows.append(other)
    return rows


def by_fold(train: Sequence[Example], folds: int, number: int, *, seed: int = 0) -> list[Example]:
    """Return rows with the names of one fold alone, as far as it has any of a type.

    The names of each type are dealt to the folds at random. A name of another fold is replaced by
    one of this: see :func:`renamed`.

    Args:
        folds, number: how many there are, and which is taken, from 0.
        seed: of the dealing, and with the number of the stand-ins.
    """
    types: dict[str, dict[str, None]] = {}  # of a name, the first mention's first
    for example in train:
        for start, end, label in example.spans:
            types.setdefault(example.sentences[0][start:end], {})[label] = None
    random, own = np.random.default_rng(seed), set()
    for label in sorted({label for of_name in types.values() for label in of_name}):
        names = sorted(name for name, of_name in types.items() if next(iter(of_name)) == label)
        own |= {names[place] for place in random.permutation(len(names))[number::folds]}
    having = {label for name in own for label in types[name]}
    out = {name for name, of_name in types.items() if name not in own and {*of_name} <= having}
    return renamed(train, out, np.random.default_rng((seed, number)))


def drawn_within(weights: np.ndarray, room: np.ndarray, order: Iterable[int]) -> list[int]:
    """Take items in an order; an item is taken if it fits into the rest of every budget.

    Args:
        weights: (N, K) how much of each budget an item needs; items that need nothing are left out.
        room: (K,) the budgets.

    Returns:
        The items taken, in that order.
    """
    left, taken = np.array(room, float), []
    for number in order:
        if weights[number].any() and (weights[number] <= left).all():
            left -= weights[number]
            taken.append(int(number))
    return taken


def _stand_ins(
    train: Iterable[Example], out: set[str], known: Collection[str] | None = None
) -> dict[str, dict[int, list[Example]]]:
    """Return the mentions whose name stays: type → length in characters → their rows."""
    found: dict[str, dict[int, list[Example]]] = {}
    for mention in (m for example in train for m in _mentions(example)):
        name, (_, _, label) = mention.sentences[0], mention.spans[0]
        if name not in out and (known is None or name in known):
            found.setdefault(label, {}).setdefault(len(name), []).append(mention)
    return found


def _with_names(
    example: Example,
    out: set[str],
    stand_ins: Mapping[str, Mapping[int, Sequence[Example]]],
    random: np.random.Generator,
) -> Example:
    """Return a row in which other names replace those held out."""
    (text,), words, tags = example.sentences, example.words, example.tags
    for start, end, label in reversed(example.spans):
        if text[start:end] not in out:
            continue
        if label not in stand_ins:
            raise DataError(
                f"Train would keep no name of the type {label} that can replace the held-out "
                "names. Ask for a smaller share of new names."
            )
        of_length = stand_ins[label]
        length = min(of_length, key=lambda length: (abs(length - (end - start)), length))
        name = of_length[length][int(random.integers(len(of_length[length])))]
        first, stop = [a for a, _ in words].index(start), [b for _, b in words].index(end) + 1
        moved = length - (end - start)
        after = ((a + moved, b + moved) for a, b in words[stop:])
        words = (*words[:first], *((a + start, b + start) for a, b in name.words), *after)
        tags = (*tags[:first], *name.tags, *tags[stop:])
        text = text[:start] + name.sentences[0] + text[end:]
    return replace(example, sentences=(text,), words=words, tags=tags)


def deduplicated(splits: Mapping[str, Sequence[Example]]) -> Splits:
    """Remove texts that stand in another split, too: dev's if in test, train's if in either.

    So test keeps all its texts, and train loses those that leak. Width, case and
    white space don't count when texts are compared. A text that a split repeats
    is taken once. DataError if a split has no text left.
    """
    taken: set[tuple[str, ...]] = set()
    kept: Splits = {}
    for split in reversed([split for split in SPLITS if split in splits]):
        first: dict[tuple[str, ...], Example] = {}
        for example in splits[split]:
            first.setdefault(text_key(example), example)
        kept[split] = [example for key, example in first.items() if key not in taken]
        taken |= first.keys()
        if not kept[split]:
            raise DataError(
                f"No labelled row is left for {split}: all its texts are also in a later split. "
                "Check that the files are different."
            )
    return {split: kept[split] for split in reversed(kept)}


def write_split(folder: str | Path, splits: Mapping[str, Sequence[Example]]) -> None:
    """Write splits in the release's format, ``train.tsv`` and so on, to be read as they were.

    The format has no sign for a tab or a line break inside a text, nor for a space inside a token
    or for a text without tokens: a space, a no-break space and nothing stand for them, and a
    warning says so.
    """
    folder = Path(folder)
    with or_refused(folder, DataError, "Name another folder."):
        folder.mkdir(parents=True, exist_ok=True)
    for split, examples in splits.items():
        write_rows(folder / f"{split}.tsv", examples)


def write_rows(path: str | Path, examples: Sequence[Example]) -> None:
    """Write one file as :func:`write_split` does."""
    tagged = any(example.tags for example in examples)
    kept = [example for example in examples if example.words or not tagged]
    if len(kept) < len(examples):
        first = next(example for example in examples if not example.words)
        told = "%s: %d rows without a single token are left out. The first: %s"
        log.warning(told, path, len(examples) - len(kept), first.place)
    breaks, instead = (TOKEN_BREAK, NO_BREAK) if tagged else (FIELD_BREAK, " ")
    numbered = any(e.group and e.group != e.sentences[0] for e in kept)
    header, lines, changed = ["text_a", "label"] if tagged else ["label", "text_a"], [], []
    for example in kept:
        fields = _fields(example, numbered=numbered)
        header = max(header, [*fields], key=len)
        whole = [[breaks.sub(instead, piece) for piece in field] for field in fields.values()]
        if whole != [*fields.values()]:
            changed.append(example)
        lines.append("\t".join(" ".join(field) for field in whole))
    if changed:
        log.warning(
            "%s: %d rows have a tab or a line break in a text, or white space in a token. The "
            "format can't store these, so they are now spaces. The first row: %s",
            *(path, len(changed), changed[0].place),
        )
    text = "".join(f"{line}\n" for line in ("\t".join(header), *lines))
    with or_refused(path, DataError, "Name another place."):
        Path(path).write_text(text, encoding="utf-8", newline="\n")


def _fields(example: Example, *, numbered: bool) -> dict[str, list[str]]:
    """The fields of a row by column, each as a list of pieces to be joined by single spaces."""
    first = example.sentences[0]
    if example.tags:
        return {"text_a": [first[a:b] for a, b in example.words], "label": list(example.tags)}
    label = example.label
    if label is None:
        label = json.dumps(example.classes, ensure_ascii=False) if example.classes else ""
    question = {"qid": [example.group or first]} if numbered else {}
    texts = zip(("text_a", "text_b"), ([sentence] for sentence in example.sentences), strict=False)
    return {**question, "label": [label], **dict(texts)}


def known_names(
    names: Collection[str], graph: KnowledgeGraph | None, rules: NameRules
) -> Collection[str]:
    """Return those of some names that name a head of a graph; without a graph all."""
    if graph is None:
        return names
    texts = sorted({*names})
    found = zip(texts, find_mentions(texts, graph, rules=rules), strict=True)
    return {name for name, of in found if of and (of[0].start, of[0].end) == (0, len(name))}


def _names(example: Example) -> set[str]:
    return {*_mentioned([example])}


def _mentioned(examples: Iterable[Example]) -> Iterator[str]:
    return (e.sentences[0][start:end] for e in examples for start, end, _ in e.spans)


def _mentions(example: Example) -> Iterator[Example]:
    """Return a row for every mention."""
    for start, end, _ in example.spans:
        inside = [n for n, (a, b) in enumerate(example.words) if start <= a and b <= end]
        words = tuple((a - start, b - start) for a, b in (example.words[n] for n in inside))
        tags = tuple(example.tags[n] for n in inside)
        yield Example((example.sentences[0][start:end],), None, words, tags)


def text_key(example: Example) -> tuple[str, ...]:
    """Return what makes texts equal: their characters, but for width, case and spaces."""
    return tuple(
        "".join(unicodedata.normalize("NFKC", s).casefold().split()) for s in example.sentences
    )
