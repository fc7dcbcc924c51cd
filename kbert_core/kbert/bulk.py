"""Many texts at once → codes: for training, where the trees themselves aren't wanted.

The codes are those of ``flatten(grow_tree([text], graph, options), ...)``, made
for all texts together: the trunks are laid end to end and the branches inserted.
A text over the length limit, or with two mentions on one token, goes through
``flatten`` itself.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from kbert_core.kbert.flat_tree import PAD_BRANCH, Batch, flatten
from kbert_core.kbert.sentence_tree import branch_of, check_characters, grow_tree
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import Mention
from kbert_core.knowledge.scan import Scan, scan
from kbert_core.knowledge.selection import (
    Asked,
    InjectionOptions,
    TripleScorer,
    select,
    select_all,
)
from kbert_core.knowledge.triple import Triple
from kbert_core.text import Characters, Layout, Tokenizer

Ints = NDArray[np.int64]
CODES = ("input_ids", "soft_positions", "branch_ids", "anchor_ids", "token_type_ids")
IDS, POSITIONS, BRANCHES, ANCHORS, SEGMENTS = range(5)


@dataclass(frozen=True)
class Codes:
    """The flat trees of B texts, as codes only.

    Attributes:
        values: (5, M) the codes of a ``FlatTree`` in the order of ``CODES``,
            for the M tokens of all texts.
        starts, lengths: (B,) which of the M tokens are a text's.
    """

    values: NDArray[np.int32]
    starts: Ints
    lengths: Ints

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, row: int) -> NDArray[np.int32]:
        """(5, N) the codes of one text."""
        start = self.starts[row]
        return self.values[:, start : start + self.lengths[row]]

    def batch(self, rows: Sequence[int], *, pad_id: int = 0) -> Batch:
        """Pad the chosen texts to the longest of them."""
        import torch  # it takes seconds to start, and counting codes does without

        chosen = np.asarray(rows, np.int64)
        columns = np.arange(int(self.lengths[chosen].max()))
        real = columns < self.lengths[chosen][:, None]
        places = np.where(real, self.starts[chosen][:, None] + columns, 0)
        values = self.values[:, places]
        for padded, fill in zip(values, (pad_id, 0, PAD_BRANCH, 0, 0), strict=True):
            padded[~real] = fill
        return Batch(*torch.from_numpy(values).long())


def inject(
    texts: Sequence[str],
    graph: KnowledgeGraph,
    tokenizer: Tokenizer,
    options: InjectionOptions = InjectionOptions(),
    *,
    max_length: int | None = None,
    scorer: TripleScorer | None = None,
) -> Codes:
    """Find the entities of many texts, hang their triples on, flatten: all at once.

    Args:
        texts: one sentence each.
        graph: K.
        tokenizer: for trunk and branches.
        options: how many triples a mention gets, and which.
        max_length: in tokens, special tokens included; None: no limit.
        scorer: for options that score triples with a model.

    Raises:
        KBertError: as ``grow_tree`` and ``flatten``.
    """
    _check(texts)
    trunk = _Trunk.laid(texts, tokenizer)
    found = scan(texts, graph, options.names)
    last, clash = trunk.anchor(found)
    used = _used(texts, found, graph, options, scorer)
    branches = _Branches.of(found, used, tokenizer, options)

    lengths = trunk.lengths + np.bincount(branches.rows, branches.sizes, len(texts)).astype(int)
    alone = np.zeros(len(texts), bool)  # texts that go through flatten
    alone[found.rows[clash]] = True
    if max_length is not None:
        alone |= lengths > max_length
    branches = branches.kept(~alone[branches.rows])
    lengths[alone] = trunk.lengths[alone]
    values = trunk.with_inserted(branches, last[branches.mentions])

    starts = _before(lengths)
    parts = [values]
    end = values.shape[1]
    for row in np.flatnonzero(alone).tolist():
        tree = grow_tree([texts[row]], graph, options, scorer=scorer)
        flat = flatten(tree, tokenizer, max_length=max_length)
        parts.append(np.array([getattr(flat, name) for name in CODES], np.int32))
        starts[row], lengths[row] = end, len(flat)
        end += len(flat)
    return Codes(np.concatenate(parts, axis=1) if len(parts) > 1 else values, starts, lengths)


def _used(
    texts: Sequence[str],
    found: Scan,
    graph: KnowledgeGraph,
    options: InjectionOptions,
    scorer: TripleScorer | None,
) -> list[tuple[Triple, ...]]:
    """Choose the triples of every mention: once a name, or once a mention where texts count."""
    offsets = found.offsets[found.rows]
    places = zip(
        found.rows.tolist(),
        (found.starts - offsets).tolist(),
        (found.ends - offsets).tolist(),
        found.entities,
        strict=True,
    )
    if options.by_text:
        asked = [
            Asked((texts[row],), Mention(start, end, entities[0], others=entities[1:]))
            for row, start, end, entities in places
        ]
        return [made.used for made in select_all(asked, graph, options, scorer)]
    chosen: dict[tuple[str, tuple[str, ...]], tuple[Triple, ...]] = {}
    used = []
    for row, start, end, entities in places:
        name = texts[row][start:end]
        if (name, entities) not in chosen:
            made, _ = select(entities[0], graph, options, others=entities[1:], name=name)
            chosen[name, entities] = made
        used.append(chosen[name, entities])
    return used


def _check(texts: Sequence[str]) -> None:
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        for text in texts:
            check_characters(text)


@dataclass(frozen=True)
class _Trunk:
    """B texts with their special tokens, laid end to end: M tokens.

    Attributes:
        values: (5, M) as in ``Codes``.
        lengths: (B,) tokens.
        starts, ends: (T,) per token of text its characters, from its text's start.
        owner: (T,) whose token it is.
        layout: of one sentence.
    """

    values: NDArray[np.int32]
    lengths: Ints
    starts: Ints
    ends: Ints
    owner: Ints
    layout: Layout

    @classmethod
    def laid(cls, texts: Sequence[str], tokenizer: Tokenizer) -> "_Trunk":
        count = len(texts)
        if isinstance(tokenizer, Characters):
            sizes = np.fromiter(map(len, texts), np.int64, count)
            starts = _counting(sizes)
            ids, ends = None, starts + 1
        else:
            tokens = list(tokenizer.tokenize(texts))
            sizes = np.fromiter(map(len, tokens), np.int64, count)
            ids = _joined(t.ids for t in tokens)
            starts, ends = _joined(t.starts for t in tokens), _joined(t.ends for t in tokens)
        owner = np.repeat(np.arange(count), sizes)
        layout = tokenizer.layout(1)
        lengths = sizes + layout.count
        values = np.zeros((5, int(lengths.sum())), np.int32)
        values[POSITIONS] = _counting(lengths)
        values[SEGMENTS] = layout.segments[0]
        ahead, behind = layout.before[0], layout.after
        if ids is not None:  # else there is no vocabulary, and all are 0
            values[IDS, np.arange(len(ids)) + owner * layout.count + len(ahead)] = ids
        begin = _before(lengths)
        for specials, place in ((ahead, begin), (behind, begin + lengths - len(behind))):
            for shift, special in enumerate(specials):
                values[IDS, place + shift] = special.id
                values[SEGMENTS, place + shift] = special.segment
        return cls(values, lengths, starts, ends, owner, layout)

    def anchor(self, found: Scan) -> tuple[Ints, NDArray[np.bool_]]:
        """Number the mentions' tokens.

        Returns:
            Per mention its last token + 1 among the M, and whether it has
            no token or shares one with the mention before.
        """
        shift = found.offsets[self.owner]
        first = np.searchsorted(self.ends + shift, found.starts, "right")
        last = np.searchsorted(self.starts + shift, found.ends, "left")
        clash = last <= first
        clash[1:] |= (first[1:] < last[:-1]) & (found.rows[1:] == found.rows[:-1])
        ahead = found.rows * self.layout.count + len(self.layout.before[0])
        first, last = first + ahead, last + ahead
        sizes = last - first
        number = 1 + _counting(np.bincount(found.rows, minlength=len(self.lengths)))
        self.values[ANCHORS, np.repeat(first, sizes) + _counting(sizes)] = np.repeat(number, sizes)
        return last, clash

    def with_inserted(self, branches: "_Branches", places: Ints) -> NDArray[np.int32]:
        """Insert branches, each before the token at its place."""
        sizes = branches.sizes
        count = self.values.shape[1]
        moved = np.cumsum(np.bincount(places, sizes, count + 1).astype(np.int64))[:count]
        values = np.empty((5, count + int(sizes.sum())), np.int32)
        values[:, np.arange(count) + moved] = self.values
        along = _counting(sizes)
        at = np.repeat(places + _before(sizes), sizes) + along
        mention = self.values[:, places - 1]  # its last token
        values[IDS, at] = branches.pool[np.repeat(branches.sources, sizes) + along]
        values[POSITIONS, at] = np.repeat(mention[POSITIONS] + 1, sizes) + along
        number = 1 + _counting(np.bincount(branches.rows, minlength=len(self.lengths)))
        values[BRANCHES, at] = np.repeat(number, sizes)
        values[ANCHORS, at] = np.repeat(mention[ANCHORS], sizes)
        values[SEGMENTS, at] = self.layout.segments[0]
        return values


@dataclass(frozen=True)
class _Branches:
    """K branches in reading order.

    Attributes:
        pool: ids of all the branches there are, end to end.
        sources, sizes: (K,) where in the pool a branch's ids are.
        mentions, rows: (K,) from which mention it hangs, in which text.
    """

    pool: Ints
    sources: Ints
    sizes: Ints
    mentions: Ints
    rows: Ints

    @classmethod
    def of(
        cls,
        found: Scan,
        used: Sequence[tuple[Triple, ...]],
        tokenizer: Tokenizer,
        options: InjectionOptions,
    ) -> "_Branches":
        """Make the branches of every mention.

        Args:
            used: per mention the triples to inject.
        """
        pool: list[int] = []
        places: dict[tuple[str, ...], tuple[int, int]] = {}  # in the pool: start, size
        made: dict[int, list[tuple[int, int]]] = {}  # by the identity of a tuple of triples
        for triples in used:
            if id(triples) in made:
                continue
            own = made[id(triples)] = []
            for triple in triples:
                texts = branch_of(triple, options).texts
                if texts not in places:
                    start = len(pool)
                    for text in texts:
                        pool += tokenizer.tokenize_branches([text]).ids.tolist()
                    places[texts] = start, len(pool) - start
                if places[texts][1]:
                    own.append(places[texts])
        hung = [made[id(triples)] for triples in used]
        flat = list(chain.from_iterable(chain.from_iterable(hung)))
        sources, sizes = np.array(flat, np.int64).reshape(-1, 2).T
        counts = np.fromiter(map(len, hung), np.int64, len(hung))
        mentions = np.repeat(np.arange(len(hung)), counts)
        return cls(np.array(pool, np.int64), sources, sizes, mentions, found.rows[mentions])

    def kept(self, which: NDArray[np.bool_]) -> "_Branches":
        parts = (self.sources, self.sizes, self.mentions, self.rows)
        return _Branches(self.pool, *(part[which] for part in parts))


def _joined(parts: Iterable[Iterable[int]]) -> Ints:
    return np.fromiter(chain.from_iterable(parts), np.int64)


def _before(sizes: Ints) -> Ints:
    """Add up the sizes before each."""
    return np.cumsum(sizes) - sizes


def _counting(sizes: Ints) -> Ints:
    """Count 0, 1, 2, ... for each size, end to end."""
    return np.arange(int(sizes.sum())) - np.repeat(_before(sizes), sizes)
