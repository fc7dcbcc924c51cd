"""What a data set and a graph can show together, counted without any model.

A practitioner's first questions: does the graph know what the texts name, does
the split leave knowledge anything to add, was the graph made from the answers?
:func:`audit` counts, :mod:`kbert_core.experiments.verdict` says what it means.
"""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from kbert_core.data.labelled import SPLITS, Example
from kbert_core.experiments.audit_values import (
    Answers,
    Audit,
    Conflicts,
    Coverage,
    GoldMentions,
    Group,
    Heads,
    Homonyms,
    Injection,
    Leak,
    Share,
    SplitAudit,
)
from kbert_core.experiments.dictionary import dictionary_spans, learn_tail_labels, matches
from kbert_core.kbert.bulk import inject
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import Mention
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.selection import InjectionOptions, TripleScorer
from kbert_core.knowledge.surface_forms import NameRules
from kbert_core.knowledge.triple import Triple
from kbert_core.text import Tokenizer
from kbert_core.training.scores import span_scores, unseen_recall

MAX_LENGTH = 256  # tokens; what the released K-BERT is run with
HEADS_OF_A_TYPE = 10  # a relation says types if a tail of it is shared by so many heads on average
SHOWN_GROUPS = 20
SHOWN_EXAMPLES = 10
log = logging.getLogger(__name__)

Splits = Mapping[str, Sequence[Example]]


def audit(
    splits: Splits,
    graph: KnowledgeGraph,
    *,
    task: str,
    tokenizer: Tokenizer,
    options: InjectionOptions = InjectionOptions(),
    max_length: int = MAX_LENGTH,
    data: str = "",
    scorer: TripleScorer | None = None,
) -> Audit:
    """Count what a data set and a graph can show together.

    Args:
        splits: "train", and "dev" and "test" where there are.
        graph: K; with ``options.relations`` only those of its triples count.
        task: "ner", "classify" or "pair".
        tokenizer: to count tokens with.
        options: what is injected.
        max_length: the length limit, in tokens.
        data: what to call the data set.
        scorer: for options that score triples with a model.
    """
    splits = {name: splits[name] for name in SPLITS if name in splits}
    used = _Graph.of(graph, options, splits["train"] if task == "ner" else ())
    reader = _Reader(tokenizer, options, max_length, scorer)
    train_names = _names(splits["train"])
    made = Audit(
        data=data,
        task=task,
        graph=graph.name,
        triples=len(used.graph),
        heads=len(used.entities),
        options=options,
        splits={
            name: _split(name, examples, used, reader, task, train_names)
            for name, examples in splits.items()
        },
        missing=tuple(name for name in SPLITS if name not in splits),
        leaks=_leaks(splits),
        conflicts=_conflicts(splits),
        ambiguity=used.ambiguity(task),
        answers=_answers(splits, used) if task == "ner" else None,
        tail_labels=used.most_used_tails(),
    )
    if task != "ner":
        made = replace(made, splits=_with_majority(made.splits))
    held_out = made.splits[made.held_out]
    if not held_out.matches:
        log.warning(
            "The graph '%s' names nothing in the %s set: %s of its rows hold one of its heads.",
            graph.name,
            made.held_out,
            held_out.with_match,
        )
    return made


# The graph


@dataclass(frozen=True)
class _Graph:
    """A graph, and what its heads are.

    Attributes:
        graph: only of triples that can be injected.
        triples: of each of its heads, as names are compared.
        relation: that looks like a type; see ``Heads``.
        tails: per head its tails under that relation.
        tail_labels: tail → label, learnt from the training set.
    """

    graph: KnowledgeGraph
    triples: Mapping[str, Sequence[Triple]]
    relation: str | None
    tails: Mapping[str, tuple[str, ...]]
    tail_labels: Mapping[str, str]

    @classmethod
    def of(
        cls, graph: KnowledgeGraph, options: InjectionOptions, train: Sequence[Example]
    ) -> "_Graph":
        kept = _usable(graph, options)
        triples = {entity: kept.triples_of(entity) for entity in kept.entities()}
        relation = _type_relation(triples)
        tails: dict[str, tuple[str, ...]] = {}
        for entity, its_triples in triples.items():
            own = [t.tail for t in its_triples if t.relation == relation]
            if own:
                tails[entity] = tuple(dict.fromkeys(own) if len(own) > 1 else own)
        return cls(kept, triples, relation, tails, learn_tail_labels(train, kept))

    @property
    def entities(self) -> Collection[str]:
        """Its heads, as names are compared."""
        return self.triples.keys()

    def is_ambiguous(self, entity: str) -> bool:
        """Whether a head has several types, or without types tails of several labels."""
        if self.relation is None:
            return len(self._labels(t.tail for t in self.triples[entity])) > 1
        return len(self.tails.get(entity, ())) > 1

    def ambiguity(self, task: str) -> Heads:
        """How clearly the graph says what its heads are."""
        several = [entity for entity, tails in self.tails.items() if len(tails) > 1]
        labels = None
        if task == "ner":
            counts = [len(self._labels(tails)) for tails in self._telling()]
            labels = Share(sum(n > 1 for n in counts), sum(n > 0 for n in counts))
        return Heads(
            self.relation,
            Share(len(several), len(self.tails)),
            tuple((entity, self.tails[entity]) for entity in several[:SHOWN_EXAMPLES]),
            labels,
        )

    def groups(self, gold: set[str]) -> list[tuple[Group, set[str]]]:
        """What heads have in common, with those heads that are gold; the largest group first."""
        sizes: Counter[str] = Counter()
        in_gold: dict[str, set[str]] = {}
        for entity, its_triples in self.triples.items():
            if self.relation is not None:
                names: Iterable[str] = self.tails.get(entity, ())
            else:
                names = {triple.relation for triple in its_triples}
            for name in names:
                sizes[name] += 1
                if entity in gold:
                    in_gold.setdefault(name, set()).add(entity)
        made = []
        for name, size in sizes.items():
            heads = in_gold.get(name, set())
            made.append((Group(name, Share(len(heads), size)), heads))
        return sorted(made, key=lambda item: (-item[0].gold.total, item[0].name))

    def most_used_tails(self) -> dict[str, str]:
        """What the most frequent tails stand for: of types, if there are types."""
        counts = Counter(
            t.tail
            for its_triples in self.triples.values()
            for t in its_triples
            if t.tail in self.tail_labels and self.relation in (None, t.relation)
        )
        return {tail: self.tail_labels[tail] for tail, _ in counts.most_common(SHOWN_GROUPS)}

    def _telling(self) -> Iterable[Iterable[str]]:
        """The tails that say what a head is: its types, or all of them without types."""
        if self.relation is not None:
            return self.tails.values()
        return ([t.tail for t in its_triples] for its_triples in self.triples.values())

    def _labels(self, tails: Iterable[str]) -> set[str]:
        """The labels that tails stand for."""
        return {self.tail_labels[tail] for tail in tails if tail in self.tail_labels}


def _usable(graph: KnowledgeGraph, options: InjectionOptions) -> KnowledgeGraph:
    """The graph of the triples that can be injected."""
    if graph.all_on and options.relations is None and not options.not_relations:
        return graph
    usable = [t for t in graph if graph.is_on(t) and options.allows(t.relation)]
    return KnowledgeGraph(usable, name=graph.name, aliases=graph.aliases)


def _type_relation(by_entity: Mapping[str, Sequence[Triple]]) -> str | None:
    heads: Counter[str] = Counter()
    tails: dict[str, set[str]] = {}
    for its_triples in by_entity.values():
        for relation in {triple.relation for triple in its_triples}:
            heads[relation] += 1
        for triple in its_triples:
            tails.setdefault(triple.relation, set()).add(triple.tail)
    types = [r for r in heads if heads[r] >= HEADS_OF_A_TYPE * len(tails[r])]
    return max(types, key=lambda relation: heads[relation], default=None)


# One split


@dataclass(frozen=True)
class _Reader:
    """How inputs are read: what lengths depend on."""

    tokenizer: Tokenizer
    options: InjectionOptions
    max_length: int
    scorer: TripleScorer | None = None

    def injection(self, examples: Sequence[Example], graph: KnowledgeGraph) -> Injection:
        """Count the tokens of inputs with and without their branches."""
        empty = KnowledgeGraph()
        sentences = len(examples[0].sentences)
        # Each sentence is laid out alone; together they share special tokens.
        one, all_ = self.tokenizer.layout(1).count, self.tokenizer.layout(sentences).count
        texts, trees = [all_ - sentences * one] * len(examples), [0] * len(examples)
        for number in range(sentences):
            column = [example.sentences[number] for example in examples]
            given: dict[str, Any] = {"options": self.options, "scorer": self.scorer}
            plain = inject(column, empty, self.tokenizer, **given).lengths.tolist()
            full = inject(column, graph, self.tokenizer, **given).lengths.tolist()
            texts = [a + b for a, b in zip(texts, plain, strict=True)]
            trees = [a + b - c for a, b, c in zip(trees, full, plain, strict=True)]
        limit = self.max_length
        whole = [a + b for a, b in zip(texts, trees, strict=True)]
        over = sum(
            min(added, max(0, size - limit)) for added, size in zip(trees, whole, strict=True)
        )
        return Injection(
            tokens=sum(texts),
            added=Share(sum(trees), sum(texts)),
            longest=max(whole),
            limit=limit,
            long_texts=_share(size > limit for size in texts),
            long_trees=_share(size > limit for size in whole),
            text_over=sum(max(0, size - limit) for size in texts),
            added_over=Share(over, sum(trees)),
        )


def _split(
    name: str,
    examples: Sequence[Example],
    used: _Graph,
    reader: _Reader,
    task: str,
    train_names: set[str],
) -> SplitAudit:
    found = _matches(examples, used.graph, reader.options.names)
    entities = [mention.entity for mentions in found for mention in mentions]
    repeats = Counter(_text(example) for example in examples)
    made = SplitAudit(
        examples=len(examples),
        labels=_label_counts(examples),
        repeated=Share(len(examples) - len(repeats), len(examples)),
        with_match=_share(bool(mentions) for mentions in found),
        matches=len(entities),
        gold_matches=None,
        ambiguous_matches=_share(used.is_ambiguous(entity) for entity in entities),
        homonyms=_homonyms(examples, found),
        mentions=None,
        injection=reader.injection(examples, used.graph),
    )
    if task != "ner":
        return made
    gold = [{(start, end) for start, end, _ in example.spans} for example in examples]
    dictionary = None
    if name != "train":
        spans = [example.spans for example in examples]
        tagged = dictionary_spans(examples, used.graph, used.tail_labels)
        dictionary = span_scores(spans, tagged)
        texts = [example.sentences[0] for example in examples]
        dictionary["unseen"] = unseen_recall(texts, spans, tagged, train_names)
    return replace(
        made,
        gold_matches=_share(
            (mention.start, mention.end) in places
            for mentions, places in zip(found, gold, strict=True)
            for mention in mentions
        ),
        mentions=_gold_mentions(examples, found, used, train_names if name != "train" else None),
        dictionary=dictionary,
    )


def _homonyms(examples: Sequence[Example], found: Sequence[Sequence[Mention]]) -> Homonyms:
    several = [[mention for mention in mentions if mention.others] for mentions in found]
    names = Counter(
        (example.sentences[mention.sentence][mention.start : mention.end], mention.entities)
        for example, mentions in zip(examples, several, strict=True)
        for mention in mentions
    )
    return Homonyms(
        Share(names.total(), sum(map(len, found))),
        Share(sum(map(bool, several)), sum(map(bool, found))),
        tuple(name for name, _ in names.most_common(SHOWN_EXAMPLES)),
    )


@dataclass(frozen=True, slots=True)
class _Gold:
    """One gold mention, and what the graph knows of it."""

    name: str
    label: str
    known: bool
    reached: bool
    seen: bool


def _gold_mentions(
    examples: Sequence[Example],
    found: Sequence[Sequence[Mention]],
    used: _Graph,
    train_names: set[str] | None,
) -> GoldMentions:
    gold = []
    for example, mentions in zip(examples, found, strict=True):
        places = {(mention.start, mention.end) for mention in mentions}
        for start, end, label in example.spans:
            name = example.sentences[0][start:end]
            known = normalise_name(name) in used.entities
            seen = name in train_names if train_names is not None else True
            gold.append(_Gold(name, label, known, (start, end) in places, seen))
    labels = sorted({mention.label for mention in gold})
    made = GoldMentions(
        all=_coverage(gold),
        by_label={label: _coverage(m for m in gold if m.label == label) for label in labels},
        seen=None,
        unseen=None,
        unseen_by_label={},
        unseen_names=None,
    )
    if train_names is None:
        return made
    unseen = [mention for mention in gold if not mention.seen]
    names = {mention.name for mention in gold}
    return replace(
        made,
        seen=_coverage(mention for mention in gold if mention.seen),
        unseen=_coverage(unseen),
        unseen_by_label={
            label: _coverage(m for m in unseen if m.label == label) for label in labels
        },
        unseen_names=Share(len(names - train_names), len(names)),
    )


def _coverage(gold: Iterable[_Gold]) -> Coverage:
    mentions = list(gold)
    return Coverage(_share(m.known for m in mentions), _share(m.reached for m in mentions))


def _with_majority(splits: Mapping[str, SplitAudit]) -> dict[str, SplitAudit]:
    counts = splits["train"].labels
    most = max(counts, key=lambda label: counts[label])
    return {
        name: replace(split, majority=Share(split.labels.get(most, 0), split.examples))
        for name, split in splits.items()
    }


# Between splits


def _leaks(splits: Splits) -> tuple[Leak, ...]:
    leaks = []
    for into, of in combinations(splits, 2):
        there: dict[tuple[str, ...], set[object]] = {}
        for example in splits[into]:
            there.setdefault(_text(example), set()).add(_labels(example))
        shared = [example for example in splits[of] if _text(example) in there]
        same = _share(_labels(example) in there[_text(example)] for example in shared)
        leaks.append(Leak(of, into, Share(len(shared), len(splits[of])), same))
    return tuple(leaks)


def _conflicts(splits: Splits) -> Conflicts:
    labels: dict[tuple[str, ...], Counter[object]] = {}
    for examples in splits.values():
        for example in examples:
            labels.setdefault(_text(example), Counter())[_labels(example)] += 1
    mixed = {text: counts for text, counts in labels.items() if len(counts) > 1}
    return Conflicts(
        Share(len(mixed), len(labels)),
        sum(counts.total() for counts in mixed.values()),
        tuple(" ‖ ".join(text) for text in list(mixed)[:SHOWN_EXAMPLES]),
    )


def _answers(splits: Splits, used: _Graph) -> Answers:
    where: dict[str, set[str]] = {}  # gold names, as compared → splits
    for split, examples in splits.items():
        for name in _names(examples):
            where.setdefault(normalise_name(name), set()).add(split)
    in_graph = {name for name in where if name in used.entities}
    by_splits: dict[tuple[str, ...], list[bool]] = {}
    for name, its_splits in where.items():
        there = tuple(split for split in splits if split in its_splits)
        by_splits.setdefault(there, []).append(name in in_graph)
    groups = used.groups(in_graph)
    suspects = set().union(*(heads for group, heads in groups if group.from_gold))
    held_out = list(splits)[-1]
    known = [
        entity
        for example in splits[held_out]
        for start, end, _ in example.spans
        if (entity := normalise_name(example.sentences[0][start:end])) in in_graph
    ]
    heads, in_test = len(used.entities), "test" in splits
    test_only = sum(where[name] == {"test"} for name in in_graph)
    return Answers(
        gold_heads=Share(len(in_graph), heads),
        test_only=Share(test_only, heads) if in_test else None,
        test_only_of_gold=Share(test_only, len(in_graph)) if in_test else None,
        known_names={
            _said(there): _share(by_splits[there])
            for number in range(1, len(splits) + 1)
            for there in combinations(splits, number)
            if there in by_splits
        },
        groups=tuple(group for group, _ in groups[:SHOWN_GROUPS]),
        from_gold=_share(entity in suspects for entity in known),
    )


# Small things


def _said(splits: Sequence[str]) -> str:
    """Such as "test only" or "train, dev and test"."""
    *others, last = splits
    return f"{', '.join(others)} and {last}" if others else f"{last} only"


def _share(values: Iterable[bool]) -> Share:
    counted = list(values)
    return Share(sum(counted), len(counted))


def _text(example: Example) -> tuple[str, ...]:
    """What makes two rows the same: the text, of a pair in either order."""
    return tuple(sorted(example.sentences))


def _labels(example: Example) -> object:
    return example.label if example.label is not None else example.tags


def _names(examples: Iterable[Example]) -> set[str]:
    return {e.sentences[0][start:end] for e in examples for start, end, _ in e.spans}


def _label_counts(examples: Sequence[Example]) -> dict[str, int]:
    if examples[0].label is not None:
        counts = Counter(example.label or "" for example in examples)
    else:
        counts = Counter(label for example in examples for _, _, label in example.spans)
    return dict(sorted(counts.items()))


def _matches(
    examples: Sequence[Example], graph: KnowledgeGraph, rules: NameRules
) -> list[list[Mention]]:
    """Matches of every example, in all its sentences."""
    found: list[list[Mention]] = [[] for _ in examples]
    for number in range(len(examples[0].sentences)):
        column = matches([example.sentences[number] for example in examples], graph, rules)
        for own, mentions in zip(found, column, strict=True):
            own += [replace(mention, sentence=number) for mention in mentions]
    return found
