"""A small set of pairs → more pairs of its texts, so that they must be compared.

In a small set most texts stand in pairs of one label only, and a model learns
which texts these are. Here every text stands in three further pairs: with itself, changed
a little (label 1), with another that looks like it (0), and with itself, a part
of it exchanged for one of that other (0).
"""

import random
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from kbert_core.errors import DataError
from kbert_core.labels import RIGHT, WRONG
from kbert_core.training.datasets import Example, read_examples
from kbert_core.training.splits import write_rows

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
        DataError: a file isn't one of pairs, fewer than two texts are left, or
            the target can't be written.
    """
    labelled = read_examples(source, "pair")
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
    characters (or words) in a row with it, and never one that it is paired with
    already: it may well mean the same. The part is one or two characters (or
    words) in a row, and begins with one that isn't in the text.

    Args:
        labelled: pairs.
        held: texts that are to be in none.
        seed: of every draw.
    """
    dice = random.Random(seed)
    texts = [t for t in texts_of(labelled) if t not in held and len(_pieces(t)) >= SHORTEST]
    paired: defaultdict[str, set[str]] = defaultdict(set)
    for one, other in (example.sentences for example in labelled):
        paired[one] |= {one, other}
        paired[other] |= {one, other}
    words = {text: [piece.strip() for piece in _pieces(text)] for text in texts}
    having: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for text, its in words.items():
        for two in dict.fromkeys(pairwise(its)):
            having[two].append(text)

    def another(text: str) -> str | None:
        its = words[text]
        near = [dice.choice(having[dice.choice([*pairwise(its)])]) for _ in range(LOOKED_AT)]
        near.sort(key=lambda other: len({*words[other]} & {*its}), reverse=True)
        far = [dice.choice(texts) for _ in range(LOOKED_AT)]
        drawn = [*far, *near] if dice.random() < FAR else [*near, *far]
        found = next((other for other in drawn if other not in paired[text]), None)
        return found or next((other for other in texts if other not in paired[text]), None)

    for text in texts:
        drawn = another(text)
        if drawn is None:
            continue
        its, others = _pieces(text), _pieces(drawn)
        exchanged = _exchanged(its, others, dice)
        for pieces, label in ((its, RIGHT), (others, WRONG), (exchanged, WRONG)):
            sides = [text, _changed(pieces, dice)]
            dice.shuffle(sides)
            yield Example((sides[0], sides[1]), label)


def _exchanged(pieces: Sequence[str], others: Sequence[str], dice: random.Random) -> list[str]:
    known = {piece.strip() for piece in pieces}
    new = [at for at, piece in enumerate(others) if piece.strip() not in known] or [0]
    length, at, start = dice.choice(PART), dice.randrange(len(pieces)), dice.choice(new)
    return [*pieces[:at], *others[start : start + length], *pieces[at + length :]]


def _changed(pieces: Sequence[str], dice: random.Random) -> str:
    changed, kind = list(pieces), dice.random()
    if AS_IT_IS <= kind < AS_IT_IS + TURNED:
        at = dice.randrange(1, len(changed))
        changed = changed[at:] + changed[:at]
    if kind >= AS_IT_IS:
        for _ in range(dice.choice(LOST)):
            del changed[dice.randrange(len(changed))]
    return "".join(changed).strip()


def _pieces(text: str) -> list[str]:
    """Its characters and words, each with the spaces behind it; they part its last word, too."""
    return PIECE.findall(text + " " if " " in text else text)


def texts_of(examples: Iterable[Example]) -> list[str]:
    """Every text once, in reading order."""
    return list(dict.fromkeys(text for example in examples for text in example.sentences))
