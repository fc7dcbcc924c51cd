"""Tags of named entities: which scheme a set of them is in, and the same entities in BIO.

BIO (IOB2) is what the rest reads: B- at the first token of an entity, I- at its others. The same
borders are I-, and B- only between two neighbours of one type, in IOB1 (CoNLL-2003 as published);
B-, I-, E- and S- for a single token in BIOES; B-, M-, E-, S- in BMES; B-, I-, L-, U- in BILOU.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from kbert_core.errors import DataError
from kbert_core.knowledge.names import is_word_character
from kbert_core.labels import OUTSIDE

BIO, IOB1 = "BIO", "IOB1"
OF_OTHERS = {"BILOU": {"L", "U"}, "BMES": {"M"}, "BIOES": {"E", "S"}}  # borders that only they have
BEGIN = ("B", "S", "U")
TAG = re.compile(rf"{OUTSIDE}|[BIMESLU]-.+", re.DOTALL)
NO_NAME = re.compile(r"LABEL_\d+")  # of a model whose labels got no names
LIKE_TAG = re.compile(rf"{OUTSIDE}|[BIMESLU]-\S+|{NO_NAME.pattern}")  # tells what a file holds
LONE = re.compile(r"[BIMESLU][-_]?")
ALMOST = re.compile(r"(?P<border>[BIMESLU])_(?P<type>\S+)|(?P<type2>\S+)[-_](?P<border2>[BIMESLU])")


def scheme_of(rows: Iterable[Sequence[str]]) -> str:
    """Name the scheme of a whole set of rows of tags.

    It is IOB1 if an entity begins with I-, and B- stands only after a token of its type: one
    B- at another place, and it is BIO with entities whose B- is missing.
    """
    pairs = {pair for tags in rows for pair in pairwise([OUTSIDE, *tags])}
    borders = {tag[0] for _, tag in pairs}
    for scheme, those in OF_OTHERS.items():
        if borders & those:
            return scheme
    begin = [pair for pair in pairs if pair[1][0] == "B"]
    neighbours = all(before[1:] and before[2:] == tag[2:] for before, tag in begin)
    return IOB1 if neighbours and any(is_stray(*pair) for pair in pairs) else BIO


def is_stray(before: str, tag: str) -> bool:
    """Say whether a tag, after another, goes on with an entity that hasn't begun."""
    begun = before[0] in "BIM" and before[2:] == tag[2:]
    return tag != OUTSIDE and tag[0] not in BEGIN and not begun


def as_bio(tags: Sequence[str], scheme: str) -> list[str]:
    """Write the tags of a row in BIO; in IOB1 a stray one begins an entity, else it is O."""
    if scheme == BIO:
        return [*tags]
    instead = "B-{}" if scheme == IOB1 else OUTSIDE
    return [
        OUTSIDE
        if tag == OUTSIDE
        else instead.format(tag[2:])
        if is_stray(before, tag)
        else f"{'B' if tag[0] in BEGIN else 'I'}-{tag[2:]}"
        for before, tag in pairwise([OUTSIDE, *tags])
    ]


def tag_remedy(wrong: str) -> str:
    """Say what to write for a word that isn't a tag: a sentence after a space, or nothing."""
    if NO_NAME.fullmatch(wrong):
        return " It is the number of a label. Write the tag that it stands for."
    if almost := ALMOST.fullmatch(wrong):
        border, type_ = (almost[name] or almost[f"{name}2"] for name in ("border", "type"))
        return f" Write {border}-{type_} for it."
    if LONE.fullmatch(wrong):
        return f" It names no type. Write it with one, as in {wrong[0]}-Disease."
    if not wrong[:1].isalpha():
        return ""
    return (
        f" If '{wrong}' is a type, write B-{wrong} for the first token of an entity and I-{wrong} "
        "for its others."
    )


def check_tags(tokens: Sequence[str], tags: Sequence[str], where: str) -> None:
    """Refuse another number of tags than of tokens, an empty token, and what is no tag."""
    if len(tokens) != len(tags):
        raise DataError(
            f"{where}: {len(tokens)} tokens and {len(tags)} labels. "
            "Expected one label for each token, both separated by single spaces."
        )
    if "" in tokens:
        raise DataError(
            f"{where}: token {list(tokens).index('') + 1} is empty. Write a token there, or "
            "delete its label and the extra space."
        )
    for number, (token, wrong) in enumerate(zip(tokens, tags, strict=True), start=1):
        if not TAG.fullmatch(wrong):
            raise DataError(
                f"{where}: the label '{wrong}' isn't a BIO tag (token {number}, '{token}'). "
                f"Expected O, B-TYPE or I-TYPE.{tag_remedy(wrong)}"
            )


def words_are_spaced(texts: Iterable[str]) -> bool:
    """Say whether texts are mostly in a script with spaces between words."""
    letters = [character for text in texts for character in text if character.isalpha()]
    return 2 * sum(map(is_word_character, letters)) >= len(letters)


def spaced(tokens: Sequence[str]) -> bool:
    """Say whether tokens are mostly words of a script with spaces between words."""
    if all(len(token) <= 1 for token in tokens):
        return False
    borders = [token[0] for token in tokens if token[:1].isalpha()]
    return 2 * sum(map(is_word_character, borders)) >= len(borders)


def joined(tokens: Sequence[str], spaced: bool) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Join tokens to a text; also their spans in characters."""
    text, before, words = "", "", []
    for token in tokens:
        if before and (spaced or _two_words(before, token)):
            text += " "
        words.append((len(text), len(text) + len(token)))
        text, before = text + token, token
    return text, tuple(words)


def _two_words(before: str, after: str) -> bool:
    """Say whether two tokens of a text without spaces still need a space between them."""
    borders = (before[-1:], after[:1])
    return (len(before) > 1 or len(after) > 1) and all(
        border.isalpha() and is_word_character(border) for border in borders
    )
