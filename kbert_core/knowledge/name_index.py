"""Names: the keys under which a graph's entities stand in texts, kept in a trie.

A *key* is a name without all that name rules may forgive (``names.loose_key``),
and texts are loosened before they are looked through (``names.loosen``).
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import chain
from typing import Any

import marisa_trie
import numpy as np
from numpy.typing import NDArray

from kbert_core.tokens import CodePoints, Ints, code_points

_DEPTH = 4  # first characters of a key that the prefix filter knows
_SLOTS = 32  # per key, at least
_MOST = 27  # logarithm of a filter's slots
_AT_ONCE = 100_000  # keys
_LARGE = 200_000  # keys
_MULTIPLIER = np.uint32(0x9E3779B1)
_HALF = re.compile("[\ud800-\udfff]")
_MEANS = "\x01"  # in the trie, between a key, two ranks and an entity that it may mean


class PrefixFilter:
    """Bloom filters of the first characters of keys: of 1, 2, 3, and of 4 or more characters.

    Args:
        table: (S,) uint8, the filters end to end, 1 in both slots of every prefix; then the
            logarithm of every filter's size, 0 for none.
    """

    def __init__(self, table: NDArray[np.uint8]) -> None:
        self.table, bits = table, table[-_DEPTH:].tolist()
        if max(bits) > _MOST or sum(1 << n for n in bits if n) + _DEPTH != len(table):
            raise ValueError("a table of prefixes has another size than it says")
        self._filters: dict[int, tuple[NDArray[np.bool_], np.uint32, np.uint32]] = {}
        start = 0
        for size, n in enumerate(bits, start=1):
            if n:
                end = start + (1 << n)
                shift, mask = np.uint32(32 - n), np.uint32((1 << n) - 1)
                self._filters[size] = table[start:end].view(np.bool_), shift, mask
                start = end

    @classmethod
    def sized(cls, counts: Ints) -> "PrefixFilter":
        """Make empty filters for at most so many keys of each of the four lengths."""
        bits = [min((_SLOTS * int(count)).bit_length(), _MOST) for count in counts]
        slots = np.zeros(sum(1 << n for n in bits if n), np.uint8)
        return cls(np.concatenate([slots, np.array(bits, np.uint8)]))

    def add(self, keys: Sequence[str]) -> None:
        """Put keys in."""
        for first in range(0, len(keys), _AT_ONCE):
            some = keys[first : first + _AT_ONCE]
            lengths = np.fromiter(map(len, some), np.int64, len(some))
            starts = lengths.cumsum() - lengths
            sizes = np.minimum(lengths, _DEPTH)
            for size, hashes in enumerate(_hashes(code_points("".join(some)), _DEPTH), start=1):
                if size in self._filters:
                    table, shift, mask = self._filters[size]
                    hashes = hashes[starts[sizes == size]]
                    table[hashes >> shift] = table[hashes & mask] = True

    def may_start(self, codes: CodePoints) -> NDArray[np.bool_]:
        """See ``Names.may_start``."""
        result = np.zeros(len(codes), np.bool_)
        for size, hashes in enumerate(_hashes(codes, _DEPTH), start=1):
            if size in self._filters:
                table, shift, mask = self._filters[size]
                places = table[hashes >> shift].nonzero()[0]
                result[places[table[hashes[places] & mask]]] = True
        return result


def sizes_of(keys: Sequence[str]) -> Ints:
    """(4,) how many keys have 1, 2, 3, and 4 or more characters."""
    lengths = np.fromiter(map(len, keys), np.int64, len(keys))
    return np.bincount(np.minimum(lengths, _DEPTH), minlength=_DEPTH + 1)[1:]


def with_meanings(key: str, entities: Iterable[tuple[int, int, str]]) -> Iterator[str]:
    """Yield what follows a key in a trie: (rank, then, entity) of all that it may mean."""
    for rank, then, entity in entities:
        yield f"{key}{_MEANS}{rank:x}{_MEANS}{then:x}{_MEANS}{entity}"


class Names:
    """Keys in tries, which may be mapped from a file.

    A key that means only the entity of the same name stands alone. Any other is followed, in
    keys of their own, by all that it may mean, in the order of two numbers:
    ``key \\x01 rank \\x01 then \\x01 entity``.

    Args:
        tries: each with its first key, in their order, "" for the first trie. A trie repeats those
            keys of earlier ones that its first key begins with, so a place in a text needs one.
        longest: characters of the longest key.
        prefixes: of the keys; they keep the file open.

    Attributes:
        large: whether there are so many keys that even few places are sooner filtered than
            looked at.
    """

    def __init__(
        self, tries: Iterable[tuple[str, marisa_trie.Trie]], longest: int, prefixes: PrefixFilter
    ) -> None:
        self._firsts, self._tries = zip(*tries, strict=True)
        self._longest, self.prefixes = longest, prefixes
        self.large = sum(map(len, self._tries)) >= _LARGE

    @classmethod
    def of(cls, forms: Iterable[tuple[str, str]]) -> "Names":
        """Index pairs of a key and an entity that it may mean; a key may have several pairs."""
        meant: dict[str, dict[str, None]] = {}
        for key, entity in forms:
            meant.setdefault(key, {})[entity] = None
        keys = list(meant)
        prefixes = PrefixFilter.sized(sizes_of(keys))
        prefixes.add(keys)
        for key, entities in meant.items():
            if list(entities) != [key]:
                keys += with_meanings(key, ((0, i, entity) for i, entity in enumerate(entities)))
        return cls([("", marisa_trie.Trie(keys))], max(map(len, meant), default=0), prefixes)

    def keys_at(self, text: str, starts: Sequence[int]) -> list[list[str]]:
        """Return the keys that start at each place of a loosened text, the shortest first."""
        firsts, longest = self._firsts, self._longest
        prefixes = [trie.prefixes for trie in self._tries]
        try:
            return [
                prefixes[bisect_right(firsts, here := text[start : start + longest]) - 1](here)
                for start in starts
            ]
        except UnicodeEncodeError:  # half a character, which no key holds
            return self.keys_at(_HALF.sub("\0", text), starts)

    def meant_by(self, key: str) -> tuple[str, ...]:
        """Return the entities that a key may mean, in graph order; it may return a few too many."""
        trie = self._tries[bisect_right(self._firsts, key) - 1]
        found = trie.keys(key + _MEANS)
        if not found:
            return (key,) if key in trie else ()
        ranked = (item[len(key) + 1 :].split(_MEANS, 2) for item in found)
        by_rank = sorted((int(rank, 16), int(then, 16), entity) for rank, then, entity in ranked)
        return tuple(dict.fromkeys(entity for *_, entity in by_rank))

    def may_start(self, codes: CodePoints) -> NDArray[np.bool_]:
        """Say where in a loosened text of code points a key may start.

        Returns:
            (M,) bool, True at every start of a key, and at a few other places.
        """
        return self.prefixes.may_start(codes)


class JoinedNames(Names):
    """The names of several graphs, or of one and of edits to it.

    Args:
        parts: the names to join; meanings of the first part come first.
        changed: all triples of changed entities; a name can't mean one that has none left.
    """

    def __init__(self, parts: Sequence[Names], changed: Mapping[str, tuple[Any, ...]] = {}) -> None:
        self._parts, self._changed = parts, changed
        self.large = any(part.large for part in parts)

    def keys_at(self, text: str, starts: Sequence[int]) -> list[list[str]]:
        """See ``Names.keys_at``."""
        first, *others = [part.keys_at(text, starts) for part in self._parts]
        if not others:
            return first
        every = zip(first, *others, strict=True)
        return [sorted({*chain.from_iterable(keys)}, key=len) for keys in every]

    def meant_by(self, key: str) -> tuple[str, ...]:
        """See ``Names.meant_by``."""
        meant = dict.fromkeys(entity for part in self._parts for entity in part.meant_by(key))
        return tuple(entity for entity in meant if self._changed.get(entity, True))

    def may_start(self, codes: CodePoints) -> NDArray[np.bool_]:
        """See ``Names.may_start``."""
        return reduce(np.logical_or, (part.may_start(codes) for part in self._parts))


def _hashes(codes: CodePoints, depth: int) -> Iterator[CodePoints]:
    """Hash every run of 1, 2, ... characters: (M,), (M - 1,), ... for M characters."""
    mixed = np.zeros(len(codes) + 1, np.uint32)
    for size in range(1, depth + 1):
        mixed = (mixed[:-1] + codes[size - 1 :]) * _MULTIPLIER
        mixed ^= mixed >> np.uint32(15)
        yield mixed
