"""A small set of pairs → more pairs of its texts, so that they must be compared.

    python models/contrast_pairs.py --input train.tsv --leave-out test.tsv --output more.tsv

In a small set most texts stand in pairs of one label only, and a model learns
which texts these are. Here every text stands in three further pairs: with itself, changed
a little (label 1), with another that looks like it (0), and with itself, a part
of it exchanged for one of that other (0). `matching-zh` was trained on such a
set, with `kbert train --also-train more.tsv`.
"""

import argparse
import random
import re
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import networkx as nx

from kbert_core.errors import DataError, KBertError
from kbert_core.labels import RIGHT, WRONG
from kbert_lab.data.labelled import Example, read_examples
from kbert_lab.data.splits import write_rows

PIECE = re.compile(r"[0-9A-Za-z\u00c0-\u024f]+\s*|\S\s*")  # a character, or a word that spaces part
OF_EACH = 3  # pairs
SHORTEST = 4  # pieces; of less nothing can be left out
AS_IT_IS, TURNED = 0.25, 0.35  # shares of the copies
LOST = (0, 1, 1, 2)  # pieces left out of the others, drawn
PART = (1, 2)  # pieces exchanged for others, drawn
FAR = 0.3  # share of the other texts drawn among all
LOOKED_AT = 4  # texts, of which the most alike is taken


def write_contrast_set(
    source: str | Path, target: str | Path, *, leave_out: Sequence[str | Path] = (), seed: int = 0
) -> dict[str, int]:
    """Write pairs made of the texts of a file of labelled pairs.

    Args:
        leave_out: files of pairs whose texts are to be in none, dev and test.

    Returns:
        Counts: texts in the source, those left out, pairs written.

    Raises:
        DataError: a file isn't one of pairs, it has other labels than 1 (they mean the same)
            and 0, fewer than two texts are left, or the target can't be written.
    """
    labelled = read_examples(source, "pair")
    other = sorted({str(example.label) for example in labelled} - {RIGHT, WRONG})
    if other:
        raise DataError(
            f"{source}: has the label '{other[0]}'. Pairs can be made of a set whose labels are "
            f"{RIGHT} (the two mean the same) and {WRONG}. Write these in its place."
        )
    held = {text for file in leave_out for text in texts_of(read_examples(file, "pair"))}
    pairs = list(contrast_pairs(labelled, held, seed=seed))
    if not pairs:
        raise DataError(
            f"{source}: too few texts to make pairs of. Used are those of {SHORTEST} characters or "
            "words at least that are in no file to leave out. Give a larger file, or leave out "
            "fewer."
        )
    write_rows(target, pairs)
    texts = len(texts_of(labelled))
    return {"texts": texts, "left_out": texts - len(pairs) // OF_EACH, "pairs": len(pairs)}


def contrast_pairs(
    labelled: Sequence[Example], held: Collection[str] = (), *, seed: int
) -> Iterator[Example]:
    """Pair each text with itself (1), with another (0), and with itself with a part of that (0).

    The second is changed: some have their halves turned round, and most lack a
    character or two. The other text is for the greater part one that shares two
    characters (or words) in a row with it. It has a character (or word) that
    the text hasn't, and is none that may well mean the same: none that it is
    paired with, and none that a chain of pairs with label 1 leads to. The part
    is one or two characters (or words) in a row, and brings a new one.

    Args:
        labelled: pairs; label 1: the two mean the same.
        held: texts that are to be in none.
        seed: of every draw.
    """
    dice = random.Random(seed)
    texts = [t for t in texts_of(labelled) if t not in held and len(_pieces(t)) >= SHORTEST]
    paired: defaultdict[str, set[str]] = defaultdict(set)
    for one, other in (example.sentences for example in labelled):
        paired[one].add(other)
        paired[other].add(one)
    same = nx.Graph(example.sentences for example in labelled if example.label == RIGHT)
    group = {text: its for its in nx.connected_components(same) for text in its}
    words = {text: [piece.strip() for piece in _pieces(text)] for text in texts}
    having: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for text, its in words.items():
        for two in dict.fromkeys(pairwise(its)):
            having[two].append(text)

    def differs(text: str, other: str) -> bool:
        related = other in paired[text] or other in group.get(text, ())
        return not related and bool(_new(words[other], words[text]))

    def another(text: str) -> str | None:
        its = words[text]
        near = [dice.choice(having[dice.choice([*pairwise(its)])]) for _ in range(LOOKED_AT)]
        near.sort(key=lambda other: len({*words[other]} & {*its}), reverse=True)
        far = [dice.choice(texts) for _ in range(LOOKED_AT)]
        drawn = [*far, *near] if dice.random() < FAR else [*near, *far]
        return next((other for other in (*drawn, *texts) if differs(text, other)), None)

    for text in texts:
        drawn = another(text)
        if drawn is None:
            continue
        its, others = _pieces(text), _pieces(drawn)
        copies = [
            (_changed(its, dice), RIGHT),
            (_changed(others, dice), WRONG),
            (_exchanged(its, others, dice), WRONG),
        ]
        for pieces, label in copies:
            sides = [text, "".join(pieces).strip()]
            dice.shuffle(sides)
            yield Example((sides[0], sides[1]), label)


def _new(pieces: Iterable[str], known: Iterable[str]) -> set[str]:
    """The words and characters that aren't known; punctuation isn't counted."""
    return {piece for piece in pieces if piece.isalnum()} - {*known}


def _exchanged(pieces: Sequence[str], others: Sequence[str], dice: random.Random) -> list[str]:
    """Draw until something new is left in it."""
    new = _new((piece.strip() for piece in others), (piece.strip() for piece in pieces))
    while True:
        length, at = dice.choice(PART), dice.randrange(len(pieces))
        start = dice.choice([at for at, piece in enumerate(others) if piece.strip() in new])
        exchanged = [*pieces[:at], *others[start : start + length], *pieces[at + length :]]
        changed = _changed(exchanged, dice)
        if new.intersection(piece.strip() for piece in changed):
            return changed


def _changed(pieces: Sequence[str], dice: random.Random) -> list[str]:
    changed, kind = list(pieces), dice.random()
    if AS_IT_IS <= kind < AS_IT_IS + TURNED:
        at = dice.randrange(1, len(changed))
        changed = changed[at:] + changed[:at]
    if kind >= AS_IT_IS:
        for _ in range(dice.choice(LOST)):
            del changed[dice.randrange(len(changed))]
    return changed


def _pieces(text: str) -> list[str]:
    """Its characters and words, each with the spaces behind it; they part its last word, too."""
    return PIECE.findall(text + " " if " " in text else text)


def texts_of(examples: Iterable[Example]) -> list[str]:
    """Every text once, in reading order."""
    return list(dict.fromkeys(text for example in examples for text in example.sentences))


def main(words: Sequence[str] | None = None) -> None:
    """Write the pairs of a file, and print their counts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    add = parser.add_argument
    add("--input", required=True, help="pairs with label 1 (they mean the same) or 0")
    add("--leave-out", nargs="+", default=[], help="pairs whose texts to leave out")
    add("--output", required=True, help="label and texts, .tsv, for --also-train")
    add("--seed", type=int, default=0, help="default: 0")
    args = parser.parse_args(words)
    try:
        counts = write_contrast_set(
            args.input, args.output, leave_out=args.leave_out, seed=args.seed
        )
    except KBertError as error:
        sys.exit(str(error))
    print(", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in counts.items()))


if __name__ == "__main__":
    main()
