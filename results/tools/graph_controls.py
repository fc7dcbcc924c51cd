"""Graphs that know a given share of the new names, or with a given share of right matches.

To see when a graph helps, one thing is varied at a time: the texts stay, and heads
are taken out of the graph or added. This looks at the labels of the texts, also
those of test. So such a graph is for an experiment, and for nothing else.
"""

import argparse
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import mutual_info_score

from kbert_core.errors import DataError, OptionError
from kbert_core.knowledge import load_graph
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.io.write import write_triples
from kbert_core.knowledge.mentions import Mention, find_mentions
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.surface_forms import AS_WRITTEN
from kbert_core.knowledge.triple import Triple
from kbert_lab.data.labelled import SPLITS, Example
from kbert_lab.data.sources import read_present
from kbert_lab.data.splits import drawn_within
from kbert_lab.study.gate import TRUST

TOLERANCE = 0.02  # how far a share may be from the one wished
PASSES = 12  # over the texts: names put in hide others
LONGEST = 4  # words, in Chinese characters, of a head that is no mention
NO_LABEL = ""
FITTING = "Use a graph that names what these data label; `kbert audit` counts it."
Splits = Mapping[str, Sequence[Example]]


@dataclass(frozen=True)
class Controlled:
    """A graph whose heads were chosen, and the shares that it has now."""

    graph: KnowledgeGraph
    known: Mapping[str, float] = field(default_factory=dict)  # of new mentions, by split
    right: Mapping[str, float] = field(default_factory=dict)  # of matches, by split
    added: int = 0  # heads
    removed: int = 0  # heads

    @property
    def about(self) -> dict[str, Any]:
        """All but the graph."""
        return {name: value for name, value in vars(self).items() if name != "graph"}


def controlled(
    graph: KnowledgeGraph,
    splits: Splits,
    *,
    known: float | None = None,
    right: float | None = None,
    seed: int = 0,
) -> Controlled:
    """Take heads out of a graph and add others, until it has the given shares.

    Args:
        graph: of a data set for named entities; names of train are left as they are. What is
            switched off in it goes.
        splits: train, and dev, test or both.
        known: of the mentions of dev and of test whose name train doesn't label, how many have a
            name that is a head. Heads that are too many go; where they are too few, names are
            added with the triple that train's mentions of their type most often have. None: as
            it is.
        right: of the matches in each split, how many are gold mentions. Where they are too often
            right, words that are nowhere in a mention become heads, with the relation and tail
            of any triple; where too seldom, heads go that are more often wrong than right, but
            for new names. None: as it is.
        seed: of what is drawn.

    Raises:
        OptionError: a share isn't one.
        DataError: a split has no mention or match, or a share can't be had.
    """
    for name, share in (("known", known), ("right", right)):
        if share is not None and not (0 <= share <= 1 and (share or name == "known")):
            above = "above 0" if name == "right" else "from 0"
            raise OptionError(f"{name} is {share}, expected a share {above} to 1.")
    splits = {split: splits[split] for split in SPLITS if split in splits}
    if graph.off:
        graph = _changed(graph, set(), [])
    before, random = {*graph.entities()}, np.random.default_rng(seed)
    if known is not None:
        graph = _with_known(graph, splits, known, random)
    if right is not None:
        graph = _with_right(graph, splits, right, random)
    of_new, (true, false) = _new_mentions(splits), _matches(graph, splits).counts
    after = {*graph.entities()}
    return Controlled(
        graph,
        {
            split: sum(count for name, count in of.items() if name in after) / of.total()
            for split, of in of_new.items()
            if of
        },
        dict(zip(splits, (true / np.maximum(1, true + false)).tolist(), strict=True)),
        added=len(after - before),
        removed=len(before - after),
    )


def tail_bits(examples: Sequence[Example], graph: KnowledgeGraph) -> float:
    """How many bits a graph's tails carry about the gold label of what they are said of.

    The mutual information of a match's tail and its label, over the matches of heads in the texts;
    a match that is no gold mention has the label none, and one of several tails counts for each in
    part. It is measured, not corrected: with few matches for each tail it is too large.
    """
    joint: defaultdict[tuple[str, str], float] = defaultdict(float)
    found = _matches(graph, {"": examples})
    for example, mentions in zip(examples, found.mentions[""], strict=True):
        gold = {(start, end): label for start, end, label in example.spans}
        for mention in mentions:
            label = gold.get((mention.start, mention.end), NO_LABEL)
            triples = graph.triples_of(mention.entity)
            tails = list(dict.fromkeys(t.tail for t in triples if graph.is_on(t)))
            for tail in tails:
                joint[tail, label] += 1 / len(tails)
    if not joint:
        return 0.0
    rows, columns = (sorted({*values}) for values in zip(*joint, strict=True))
    table = np.array([[joint[tail, label] for label in columns] for tail in rows])
    return float(mutual_info_score(None, None, contingency=table) / np.log(2))


def with_reliability(graph: KnowledgeGraph, train: Sequence[Example]) -> KnowledgeGraph:
    """Let every relation end in how often names like its head are mentions in train, 0 to 4.

    Alike are names with the same tail and last character; where there are few, those with the
    same tail count too, and all names. A name's own matches don't count (leave-one-name-out), so
    that the digit means the same of a name in train and of a new one.

    Args:
        graph: its triples that give another name stay as they are.
        train: labelled texts.
    """
    found = _matches(graph, {"train": train}).of_heads
    shares = {head: float(c[0].sum() / c.sum()) for head, c in found.items()}  # right of matched
    facts = [t for t in graph.active_triples() if graph.aliases.aliases_in(t) is None]

    def groups(triple: Triple) -> tuple[str, tuple[tuple[str, ...], ...]]:
        name = normalise_name(triple.head)
        return name, ((), (triple.tail,), (triple.tail, name[-1:]))

    members = {(name, group) for name, of in map(groups, facts) for group in of if name in shares}
    sums: defaultdict[tuple[str, ...], np.ndarray] = defaultdict(lambda: np.zeros(2))
    for name, group in sorted(members):
        sums[group] += (shares[name], 1)

    def said(triple: Triple) -> Triple:
        if graph.aliases.aliases_in(triple) is not None:
            return triple
        name, of = groups(triple)
        rate = 0.5
        for group in of:  # from the widest; each counts for TRUST names of the next
            right, count = sums[group] - ((shares[name], 1) if name in shares else (0, 0))
            rate = (right + TRUST * rate) / (count + TRUST)
        return replace(triple, relation=f"{triple.relation}{min(4, int(5 * rate))}")

    triples = map(said, graph.active_triples())
    return KnowledgeGraph(triples, name=f"{graph.name}, reliability", aliases=graph.aliases)


# Names that train doesn't label


def _with_known(
    graph: KnowledgeGraph, splits: Splits, share: float, random: np.random.Generator
) -> KnowledgeGraph:
    """Take names out, or add them, until the graph knows this share of new mentions."""
    of_new = _new_mentions(splits)
    if not of_new:
        raise DataError(
            "The data have neither dev nor test, so no name can be new to train. Add one of them."
        )
    for split, counts in of_new.items():
        if not counts:
            raise DataError(
                f"Train has every name of {split}, so no name is new. Hold some names out, as "
                "`kbert split --by substitution` does."
            )
    names, heads = sorted(set().union(*of_new.values())), {*graph.entities()}
    weights = np.array([[counts[name] for counts in of_new.values()] for name in names])
    totals = np.array([counts.total() for counts in of_new.values()])
    # those that the graph knows come first
    order = sorted(random.permutation(len(names)).tolist(), key=lambda n: names[n] not in heads)
    drawn = drawn_within(weights, share * totals, order)
    says = _most_said(splits["train"], graph)
    lacking = sorted({names[number] for number in drawn} - heads)
    if lacking and not says:
        raise DataError(f"The graph names no mention of train. {FITTING}")
    for split, new in zip(of_new, (weights[drawn].sum(axis=0) / totals).tolist(), strict=True):
        if abs(new - share) > max(TOLERANCE, 1 / of_new[split].total()):
            raise DataError(
                f"The graph can know {new:.1%} of the new mentions of {split}, not {share:.1%}. "
                "Ask for another share."
            )
    kept = {names[number] for number in drawn}
    labels = _labels_of(splits)
    if unsaid := [name for name in lacking if labels[name] not in says]:
        raise DataError(
            f"The graph names no mention of the type {labels[unsaid[0]]} in train, so nothing says "
            f"what '{unsaid[0]}' is, which it should come to know. Ask for a smaller share of "
            "known names."
        )
    added = [Triple(name, *says[labels[name]]) for name in lacking]
    return _changed(graph, {*names} - kept, added)


def _new_mentions(splits: Splits) -> dict[str, Counter[str]]:
    """Return for each split how often it mentions each name that train doesn't have."""
    counts = {s: Counter(normalise_name(n) for n in _names(of)) for s, of in splits.items()}
    seen = counts.pop("train", Counter())
    return {s: Counter({n: c for n, c in of.items() if n not in seen}) for s, of in counts.items()}


def _labels_of(splits: Splits) -> dict[str, str]:
    """Return the most frequent label of every name of dev and test."""
    labels: dict[str, Counter[str]] = {}
    for e in (e for split, examples in splits.items() if split != "train" for e in examples):
        for start, end, label in e.spans:
            name = normalise_name(e.sentences[0][start:end])
            labels.setdefault(name, Counter())[label] += 1
    return {name: of.most_common(1)[0][0] for name, of in labels.items()}


def _most_said(train: Sequence[Example], graph: KnowledgeGraph) -> dict[str, tuple[str, str]]:
    """Return label → the relation and tail that most mentions with this label have."""
    said: dict[str, Counter[tuple[str, str]]] = {}
    for example in train:
        for start, end, label in example.spans:
            for triple in graph.triples_of(normalise_name(example.sentences[0][start:end])):
                if graph.is_on(triple) and graph.aliases.aliases_in(triple) is None:
                    said.setdefault(label, Counter())[triple.relation, triple.tail] += 1
    return {label: of.most_common(1)[0][0] for label, of in said.items()}


# Matches that are right


@dataclass(frozen=True)
class _Matches:
    """The heads that texts name, and the characters outside of heads and mentions."""

    splits: Splits
    mentions: Mapping[str, Sequence[Sequence[Mention]]]

    @cached_property
    def of_heads(self) -> dict[str, np.ndarray]:
        """Head → (2, K) its right and wrong matches in each split."""
        found: dict[str, np.ndarray] = {}
        for number, (split, examples) in enumerate(self.splits.items()):
            for example, mentions in zip(examples, self.mentions[split], strict=True):
                gold = {(start, end) for start, end, _ in example.spans}
                for mention in mentions:
                    counts = found.setdefault(mention.entity, np.zeros((2, len(self.splits))))
                    counts[0 if (mention.start, mention.end) in gold else 1, number] += 1
        return found

    @property
    def counts(self) -> np.ndarray:
        """(2, K) right and wrong matches in each split."""
        return sum(self.of_heads.values(), np.zeros((2, len(self.splits))))

    def free_words(self) -> dict[str, np.ndarray]:
        """Runs of words that never touch a head or mention → how often each split has them."""
        found: dict[str, np.ndarray] = {}
        touched: set[str] = set()
        for number, (split, examples) in enumerate(self.splits.items()):
            for example, mentions in zip(examples, self.mentions[split], strict=True):
                text, taken = example.sentences[0], bytearray(len(example.sentences[0]))
                spans = [(start, end) for start, end, _ in example.spans]
                for start, end in (*spans, *((m.start, m.end) for m in mentions)):
                    taken[start:end] = bytes([1]) * (end - start)
                plain = [text[a:b].isalpha() for a, b in example.words]
                for first, (start, _) in enumerate(example.words):
                    for last in range(first, min(first + LONGEST, len(plain))):
                        if not plain[last]:
                            break
                        end = example.words[last][1]
                        name = normalise_name(text[start:end])
                        if 1 in taken[start:end]:
                            touched.add(name)
                        else:
                            found.setdefault(name, np.zeros(len(self.splits)))[number] += 1
        return {name: counts for name, counts in found.items() if name not in touched}


def _matches(graph: KnowledgeGraph, splits: Splits) -> _Matches:
    found = {
        split: find_mentions([e.sentences[0] for e in examples], graph, rules=AS_WRITTEN)
        for split, examples in splits.items()
    }
    return _Matches(splits, {split: list(mentions) for split, mentions in found.items()})


def _with_right(
    graph: KnowledgeGraph, splits: Splits, share: float, random: np.random.Generator
) -> KnowledgeGraph:
    """Add false heads, or take heads out, until this share of matches is right."""
    said = [t for t in graph.active_triples() if graph.aliases.aliases_in(t) is None]
    new_names = set().union(*_new_mentions(splits).values())
    for _ in range(PASSES):
        matches = _matches(graph, splits)
        right, wrong = matches.counts
        if not right.all():
            where = next(s for s, count in zip(splits, right, strict=True) if not count)
            raise DataError(f"No match of the graph is a gold mention in {where}. {FITTING}")
        for_each = (1 - share) / share  # wrong matches for a right one
        room = right * for_each - wrong
        if (np.abs(room) < 1).all():
            break
        gone = set()
        for head in random.permutation(sorted({*matches.of_heads} - new_names)).tolist():
            of_right, of_wrong = matches.of_heads[head]
            gain = of_wrong - of_right * for_each
            if of_wrong.sum() > of_right.sum() and (gain[room < -1] > 0).any():
                gone.add(head)
                room += gain
        if gone:
            graph = _changed(graph, gone, [])
            continue
        free = matches.free_words()
        names, weights = [*free], np.array([*free.values()]).reshape(-1, len(room))
        # the likelier, the more often the texts have it
        order = np.argsort(random.exponential(size=len(names)) / np.maximum(1, weights.sum(axis=1)))
        drawn = [names[n] for n in drawn_within(weights, np.maximum(0, room), order.tolist())]
        if not drawn:
            break
        tails = [said[int(n)] for n in random.integers(len(said), size=len(drawn))]
        new = [Triple(n, t.relation, t.tail) for n, t in zip(drawn, tails, strict=True)]
        graph = _changed(graph, set(), new)
    right, wrong = _matches(graph, splits).counts
    for split, reached in zip(splits, (right / (right + wrong)).tolist(), strict=True):
        if abs(reached - share) > TOLERANCE:
            raise DataError(
                f"Of the matches in {split} {reached:.1%} can be right, not {share:.1%}: there "
                "are too few "
                f"{'words outside of mentions' if reached > share else 'false heads'}. Ask for "
                "another share."
            )
    return graph


def _changed(graph: KnowledgeGraph, without: set[str], added: Sequence[Triple]) -> KnowledgeGraph:
    kept = (t for t in graph.active_triples() if normalise_name(t.head) not in without)
    return KnowledgeGraph((*kept, *added), name=graph.name, aliases=graph.aliases)


def _names(examples: Sequence[Example]) -> Iterator[str]:
    return (e.sentences[0][start:end] for e in examples for start, end, _ in e.spans)


def main(arguments: Sequence[str] | None = None) -> None:
    """Make a graph that knows, or is right in, a given share of labelled texts."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--kg", required=True, help="graph file")
    parser.add_argument("--data", required=True, help="named entities, a folder")
    parser.add_argument("--known", type=float, help="share of the new names that it knows")
    parser.add_argument("--right", type=float, help="share of its matches that are mentions")
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn")
    parser.add_argument("--output", type=Path, required=True, help="new graph")
    args = parser.parse_args(arguments)
    graph, splits = load_graph(args.kg), read_present(args.data, "ner")
    made = controlled(graph, splits, known=args.known, right=args.right, seed=args.seed)
    print(made.about)
    for split, examples in splits.items():
        before, now = (tail_bits(examples, of) for of in (graph, made.graph))
        print(f"{split}: bits of tails about labels, {before:.2f} before, {now:.2f} now")
    write_triples(made.graph, args.output)


if __name__ == "__main__":
    main()
