"""What a data set and a graph can show together, counted without any model.

A practitioner's first questions: does the graph know what the texts name, does
the split leave knowledge anything to add, was the graph made from the answers?
:func:`audit` counts, :mod:`kbert_lab.study.verdict` says what it means.
"""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from itertools import combinations
from typing import Any

import numpy as np

from kbert_core.kbert.flat_tree import flatten
from kbert_core.kbert.sentence_tree import grow_trees
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import Mention, find_mentions
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.selection import InjectionOptions, TripleScorer
from kbert_core.text import Tokenizer
from kbert_core.tokens import Ints
from kbert_lab.data.labelled import SPLITS, Example, surface_forms
from kbert_lab.data.splits import known_names, text_key
from kbert_lab.study.audit_values import (
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
    Matches,
    Share,
    SplitAudit,
    counted,
)
from kbert_lab.study.dictionary import dictionary_spans, learn_tail_labels
from kbert_lab.study.expected import expected_gains, found_by_bert, linear_recall, point_of
from kbert_lab.training.scores import SpanKey, span_scores, unseen_recall

MAX_LENGTH = 256  # tokens; what the released K-BERT is run with
AT_ONCE = 4096  # texts whose trees are in memory together
HEADS_OF_A_TYPE = 10  # a relation says types if a tail of it is shared by so many heads on average
SHOWN_GROUPS = 20
SHOWN_EXAMPLES = 10
log = logging.getLogger(__name__)

Splits = Mapping[str, Sequence[Example]]
Gold = tuple[str, str, bool, bool]  # a mention's name and label, whether known and reached


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
    as_tokens: bool = True,
    linear: Share | None = None,
) -> Audit:
    """Count what a data set and a graph can show together.

    Args:
        splits: "train", and "dev" and "test" where there are.
        graph: K; with ``options.relations`` only those of its triples count.
        task: "ner", "classify", "multilabel", "pair", "rank" or "qa".
        tokenizer: to count tokens with.
        options: what is injected.
        max_length: the length limit, in tokens.
        data: what to call the data set.
        scorer: for options that score triples with a model.
        as_tokens: whether triples are written into the text; a KnowBert's enter as vectors.
        linear: from :func:`linear_recall`, where these data have been audited before.
    """
    splits = {name: splits[name] for name in SPLITS if name in splits}
    train, of_entities = splits["train"], task == "ner"
    used = _Used(graph, options, train if of_entities else ())

    def lengths(examples: Sequence[Example], graph: KnowledgeGraph) -> Ints:
        """Count the tokens of inputs, without a limit."""
        parts = (examples[start : start + AT_ONCE] for start in range(0, len(examples), AT_ONCE))
        trees = (grow_trees([e.sentences for e in p], graph, options, scorer=scorer) for p in parts)
        return np.array([len(row) for some in trees for row in flatten(some, tokenizer)])

    def split(examples: Sequence[Example]) -> SplitAudit:
        texts = lengths(examples, KnowledgeGraph())
        whole = lengths(examples, used.graph) if as_tokens else texts
        mentions, labels = used.mentions(examples), _label_counts(examples)
        entities = [mention.entity for of_text in mentions for mention in of_text]
        more: dict[str, Any] = {}
        if of_entities:
            more = _of_entities(examples, mentions, used, None if examples is train else train)
        elif task == "qa":
            tails = {normalise_name(triple.tail) for triple in used.graph}
            answers = [{normalise_name(answer) for _, answer in e.answers} for e in examples]
            more = {"answers_known": Share.of(tails & of_example for of_example in answers)}
        elif task != "multilabel":
            (most, _), *_ = _label_counts(train).most_common(1)
            more = {"majority": Share(labels[most], len(examples))}
        return SplitAudit(
            examples=len(examples),
            labels=dict(labels),
            repeated=Share(len(examples) - len(set(map(_text, examples))), len(examples)),
            with_match=Share.of(mentions),
            matches=len(entities),
            ambiguous_matches=Share.of(map(used.is_ambiguous, entities)),
            homonyms=_homonyms(examples, mentions),
            injection=_injection(texts, whole, max_length, _unknown(examples, tokenizer)),
            **more,
        )

    made = Audit(
        data=data,
        task=task,
        graph=graph.name,
        triples=len(used.graph),
        heads=len(used.heads),
        options=options,
        splits={name: split(examples) for name, examples in splits.items()},
        missing=tuple(name for name in SPLITS if name not in splits),
        leaks=tuple(leak_of(splits, of, into) for into, of in combinations(splits, 2)),
        conflicts=_conflicts(splits),
        ambiguity=used.ambiguity(),
        answers=_answers(splits, used) if of_entities else None,
        tail_labels=used.most_used_tails(),
    )
    held_out = made.splits[made.held_out]
    if (point := point_of(held_out)) is not None:
        linear = linear or linear_recall(train, splits[made.held_out])
        found = found_by_bert(linear)
        made = replace(made, linear=linear, found=found, expected=expected_gains(point, found))
    if not held_out.matches:
        log.warning(
            "The graph '%s' finds no mention in the %s set: %s of the set's rows contain a head "
            "of the graph.",
            *(graph.name, made.held_out, held_out.with_match),
        )
    return made


class _Used:
    """The triples of a graph that can be injected, and the labels of heads, learnt from train."""

    def __init__(
        self, graph: KnowledgeGraph, options: InjectionOptions, train: Sequence[Example]
    ) -> None:
        if graph.off or options.relations is not None or options.not_relations:
            usable = [t for t in graph if graph.is_on(t) and options.allows(t.relation)]
            graph = KnowledgeGraph(usable, name=graph.name, aliases=graph.aliases)
        self.graph, self.rules = graph, options.names
        self.tail_labels = learn_tail_labels(train, graph, self.rules)
        self._triples = {entity: graph.triples_of(entity) for entity in graph.entities()}
        self._relation = self._type_relation()
        # What tells a head's type: its tails, of the relation of types if there is one.
        self.heads = {
            entity: tuple(dict.fromkeys(t.tail for t in triples if self._tells(t.relation)))
            for entity, triples in self._triples.items()
        }

    def mentions(self, examples: Sequence[Example]) -> list[list[Mention]]:
        """The heads that each example names, in all its sentences."""
        texts = [text for example in examples for text in example.sentences]
        found = iter(find_mentions(texts, self.graph, rules=self.rules))
        return [
            [replace(m, sentence=n) for n, _ in enumerate(e.sentences) for m in next(found)]
            for e in examples
        ]

    def is_ambiguous(self, head: str) -> bool:
        """Say whether a head has several types or, if there are no types, several labels."""
        return len(self.labels([head]) if self._relation is None else self.heads[head]) > 1

    def labels(self, heads: Iterable[str]) -> set[str]:
        """Return the labels for which the tails of heads stand."""
        tails = {tail for head in heads for tail in self.heads[head]}
        return {self.tail_labels[tail] for tail in tails if tail in self.tail_labels}

    def ambiguity(self) -> Heads:
        """Return how clearly the graph says what its heads are."""
        typed = self._relation is not None
        told = [(head, tails) for head, tails in self.heads.items() if tails and typed]
        several = [(head, tails) for head, tails in told if len(tails) > 1]
        share = Share(len(several), len(told))
        return Heads(self._relation, share, tuple(several[:SHOWN_EXAMPLES]))

    def groups(self, gold: set[str]) -> list[tuple[Group, set[str]]]:
        """Return groups of heads with the same tail, and their gold heads; the largest first."""
        heads: dict[str, set[str]] = {}
        for head, triples in self._triples.items():
            relations = {triple.relation for triple in triples}
            for name in relations if self._relation is None else self.heads[head]:
                heads.setdefault(name, set()).add(head)
        made = [(Group(n, Share(len(of & gold), len(of))), of & gold) for n, of in heads.items()]
        return sorted(made, key=lambda item: (-item[0].gold.total, item[0].name))

    def most_used_tails(self) -> dict[str, str]:
        """Return what the most frequent tails stand for; only those of types, if there are any."""
        counts = Counter(
            t.tail
            for triples in self._triples.values()
            for t in triples
            if t.tail in self.tail_labels and self._tells(t.relation)
        )
        return {tail: self.tail_labels[tail] for tail, _ in counts.most_common(SHOWN_GROUPS)}

    def _tells(self, relation: str) -> bool:
        """Whether a relation says what a head is: that of types, or any if there is none."""
        return self._relation in (None, relation)

    def _type_relation(self) -> str | None:
        """The relation that looks like a type, see ``Heads``."""
        heads: Counter[str] = Counter()
        tails: dict[str, set[str]] = {}
        for triples in self._triples.values():
            heads.update({triple.relation for triple in triples})
            for triple in triples:
                tails.setdefault(triple.relation, set()).add(triple.tail)
        types = [r for r in heads if heads[r] >= HEADS_OF_A_TYPE * len(tails[r])]
        return max(types, key=lambda relation: heads[relation], default=None)


# One split


def _unknown(examples: Sequence[Example], tokenizer: Tokenizer) -> Share | None:
    if tokenizer.unknown_id is None:
        return None
    texts = tokenizer.tokenize([text for example in examples for text in example.sentences])
    return Share.of(token == tokenizer.unknown_id for tokens in texts for token in tokens.ids)


def _injection(texts: Ints, whole: Ints, limit: int, unknown: Share | None) -> Injection:
    """Return how long inputs are without branches and with them, in tokens."""
    added = whole - texts
    without_room = np.minimum(added, np.maximum(0, whole - limit))
    return Injection(
        tokens=int(texts.sum()),
        added=Share(int(added.sum()), int(texts.sum())),
        longest=int(whole.max()),
        limit=limit,
        long_trees=Share.of(whole > limit),
        unknown=unknown,
        added_over=Share(int(without_room.sum()), int(added.sum())),
    )


def _homonyms(examples: Sequence[Example], mentions: Sequence[Sequence[Mention]]) -> Homonyms:
    several = [[mention for mention in of_text if mention.others] for of_text in mentions]
    names = Counter(
        (example.sentences[mention.sentence][mention.start : mention.end], mention.entities)
        for example, of_text in zip(examples, several, strict=True)
        for mention in of_text
    )
    return Homonyms(
        Share(names.total(), sum(map(len, mentions))),
        Share(sum(map(bool, several)), sum(map(bool, mentions))),
        tuple(name for name, _ in names.most_common(SHOWN_EXAMPLES)),
    )


def _of_entities(
    examples: Sequence[Example],
    mentions: Sequence[Sequence[Mention]],
    used: _Used,
    train: Sequence[Example] | None,
) -> dict[str, Any]:
    """Count a split's gold mentions; if ``train`` isn't given, it is the training set."""
    texts, spans = [e.sentences[0] for e in examples], [e.spans for e in examples]
    known = known_names(surface_forms(examples), used.graph, used.rules)
    gold: list[Gold] = []
    kinds: Counter[str] = Counter()  # of matches, see ``Matches``
    for text, of_gold, of_text in zip(texts, spans, mentions, strict=True):
        places = {(mention.start, mention.end) for mention in of_text}
        kinds.update(_kind(mention, of_gold, used.labels(mention.entities)) for mention in of_text)
        for start, end, label in of_gold:
            name = text[start:end]
            gold.append((name, label, name in known, (start, end) in places))
    seen = None if train is None else surface_forms(train)
    counted = Matches(*(Share(kinds[kind.name], kinds.total()) for kind in fields(Matches)))
    made = {"kinds": counted, "mentions": _gold_mentions(gold, seen)}
    if seen is None:
        return made
    tagged = dictionary_spans(examples, used.graph, used.tail_labels, used.rules)
    unseen = {"unseen": unseen_recall(texts, spans, tagged, seen)}
    return {**made, "dictionary": span_scores(spans, tagged) | unseen | _wrong(spans, tagged)}


def _wrong(
    gold: Sequence[Sequence[SpanKey]], tagged: Sequence[Sequence[SpanKey]]
) -> dict[str, int]:
    """Count the wrong spans that overlap a mention, and those outside of all."""
    over = [
        any(low < end and start < high for low, high, _ in of_gold)
        for of_gold, of_text in zip(gold, tagged, strict=True)
        for start, end, label in of_text
        if (start, end, label) not in of_gold
    ]
    return {"over_mentions": over.count(True), "outside": over.count(False)}


def _kind(mention: Mention, gold: Sequence[SpanKey], labels: Collection[str]) -> str:
    """Return the kind of a match, see ``Matches``."""
    start, end = mention.start, mention.end
    if any((start, end) == (low, high) for low, high, _ in gold):
        return "exact"
    met = {label for low, high, label in gold if low < end and start < high}
    return "outside" if not met else "part" if met & {*labels} else "other"


def _gold_mentions(gold: Sequence[Gold], seen: set[str] | None) -> GoldMentions:
    def coverage(some: Sequence[Gold]) -> Coverage:
        return Coverage(Share.of(known for *_, known, _ in some), Share.of(m[-1] for m in some))

    labels = sorted({label for _, label, *_ in gold})
    by_label = {label: coverage([m for m in gold if m[1] == label]) for label in labels}
    if seen is None:
        return GoldMentions(coverage(gold), by_label)
    unseen, names = [m for m in gold if m[0] not in seen], {name for name, *_ in gold}
    return GoldMentions(
        coverage(gold),
        by_label,
        coverage([m for m in gold if m[0] in seen]),
        coverage(unseen),
        Share(len(names - seen), len(names)),
    )


# Between splits


def leak_of(splits: Splits, of: str, into: str) -> Leak:
    """Count the rows of one split whose text stands in another."""
    there = set(map(_text, splits[into]))
    return Leak(of, into, Share.of(_text(example) in there for example in splits[of]))


def _conflicts(splits: Splits) -> Conflicts:
    labels: dict[tuple[str, ...], Counter[object]] = {}
    first: dict[tuple[str, ...], str] = {}  # as it stands there
    for example in (example for examples in splits.values() for example in examples):
        labels.setdefault(_text(example), Counter())[_labels(example)] += 1
        first.setdefault(_text(example), " ‖ ".join(sorted(example.sentences)))
    mixed = {text: counts for text, counts in labels.items() if len(counts) > 1}
    return Conflicts(
        Share(len(mixed), len(labels)),
        sum(counts.total() for counts in mixed.values()),
        tuple(first[text] for text in list(mixed)[:SHOWN_EXAMPLES]),
    )


def _answers(splits: Splits, used: _Used) -> Answers:
    where: dict[str, set[str]] = {}  # gold names, as compared → splits
    for split, examples in splits.items():
        for name in surface_forms(examples):
            where.setdefault(normalise_name(name), set()).add(split)
    in_graph = {name for name in where if name in used.heads}
    known_names = {}
    for there in (there for n in range(len(splits)) for there in combinations(splits, n + 1)):
        if names := [name in in_graph for name in where if where[name] == {*there}]:
            *others, last = there
            listed = f"{', '.join(others)} and {last}" if others else f"{last} only"
            known_names[listed] = Share.of(names)
    groups = used.groups(in_graph)
    suspects = set().union(*(heads for group, heads in groups if group.from_gold))
    texts = splits[counted(splits)]
    spoken = (normalise_name(e.sentences[0][a:b]) for e in texts for a, b, _ in e.spans)
    return Answers(
        gold_heads=Share(len(in_graph), len(used.heads)),
        known_names=known_names,
        groups=tuple(group for group, _ in groups[:SHOWN_GROUPS]),
        from_gold=Share.of(name in suspects for name in spoken if name in in_graph),
    )


# Small things


def _text(example: Example) -> tuple[str, ...]:
    """Return what makes two rows equal: the text, or both texts in any order."""
    return tuple(sorted(text_key(example)))


def _labels(example: Example) -> object:
    return example.label if example.label is not None else example.labels or example.answers


def _label_counts(examples: Sequence[Example]) -> Counter[str]:
    labels = [label for example in examples for _, _, label in example.spans]
    if not examples[0].tags:
        labels = [label for example in examples for label in example.labels]
    return Counter(sorted(labels))
