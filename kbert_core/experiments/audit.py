"""What a data set and a graph can show together, counted without any model.

A practitioner's first questions: does the graph know what the texts name, does
the split leave knowledge anything to add, was the graph made from the answers?
:func:`audit` counts, :mod:`kbert_core.experiments.verdict` says what it means.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from kbert_core.data.labelled import SPLITS, Example
from kbert_core.experiments.audit_values import (
    SHOWN_EXAMPLES,
    SHOWN_GROUPS,
    Answers,
    Audit,
    AuditedGraph,
    Conflicts,
    Coverage,
    GoldMentions,
    Homonyms,
    Injection,
    Leak,
    Share,
    SplitAudit,
)
from kbert_core.experiments.dictionary import dictionary_spans
from kbert_core.kbert.flattening import flatten
from kbert_core.kbert.sentence_tree import grow_trees
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import Mention, find_mentions
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.knowledge.strategies import TripleScorer
from kbert_core.text import Tokenizer
from kbert_core.tokens import Ints
from kbert_core.training.scores import span_scores, unseen_recall

MAX_LENGTH = 256  # tokens; what the released K-BERT is run with
AT_ONCE = 4096  # texts whose trees are in memory together
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
    of_entities = task == "ner"
    used = AuditedGraph(graph, options, splits["train"] if of_entities else ())

    def lengths(examples: Sequence[Example], graph: KnowledgeGraph) -> Ints:
        """Count the tokens of inputs, without a limit."""
        parts = (examples[start : start + AT_ONCE] for start in range(0, len(examples), AT_ONCE))
        trees = (grow_trees([e.sentences for e in p], graph, options, scorer=scorer) for p in parts)
        return np.concatenate([flatten(some, tokenizer).lengths for some in trees])

    def split(examples: Sequence[Example]) -> SplitAudit:
        texts, whole = lengths(examples, KnowledgeGraph()), lengths(examples, used.graph)
        injection = _injection(texts, whole, max_length)
        return _split(examples, used, injection, of_entities, splits["train"])

    made = Audit(
        data=data,
        task=task,
        graph=graph.name,
        triples=len(used.graph),
        heads=len(used.entities),
        options=options,
        splits={name: split(examples) for name, examples in splits.items()},
        missing=tuple(name for name in SPLITS if name not in splits),
        leaks=_leaks(splits),
        conflicts=_conflicts(splits),
        ambiguity=used.ambiguity(of_entities),
        answers=_answers(splits, used) if of_entities else None,
        tail_labels=used.most_used_tails(),
    )
    held_out = made.splits[made.held_out]
    if not held_out.matches:
        log.warning(
            "The graph '%s' names nothing in the %s set: %s of its rows hold one of its heads.",
            graph.name,
            made.held_out,
            held_out.with_match,
        )
    return made


# One split


def _injection(texts: Ints, whole: Ints, limit: int) -> Injection:
    """What branches add to the length of inputs, in tokens without and with them."""
    added = whole - texts
    without_room = np.minimum(added, np.maximum(0, whole - limit))
    return Injection(
        tokens=int(texts.sum()),
        added=Share(int(added.sum()), int(texts.sum())),
        longest=int(whole.max()),
        limit=limit,
        long_texts=Share.of(texts > limit),
        long_trees=Share.of(whole > limit),
        text_over=int(np.maximum(0, texts - limit).sum()),
        added_over=Share(int(without_room.sum()), int(added.sum())),
    )


def _split(
    examples: Sequence[Example],
    used: AuditedGraph,
    injection: Injection,
    of_entities: bool,
    train: Sequence[Example],
) -> SplitAudit:
    mentions = _mentions(examples, used)
    entities = [mention.entity for of_text in mentions for mention in of_text]
    repeated = len(examples) - len({_text(example) for example in examples})
    labels = _label_counts(examples)
    made = SplitAudit(
        examples=len(examples),
        labels=labels,
        repeated=Share(repeated, len(examples)),
        with_match=Share.of(mentions),
        matches=len(entities),
        gold_matches=None,
        ambiguous_matches=Share.of(map(used.is_ambiguous, entities)),
        homonyms=_homonyms(examples, mentions),
        mentions=None,
        injection=injection,
    )
    if not of_entities:
        of_train = _label_counts(train)
        most = max(of_train, key=lambda label: of_train[label])
        return replace(made, majority=Share(labels.get(most, 0), len(examples)))
    seen = _names(train) if examples is not train else None
    dictionary = None
    if seen is not None:
        spans, texts = [e.spans for e in examples], [e.sentences[0] for e in examples]
        tagged = dictionary_spans(examples, used.graph, used.tail_labels)
        dictionary = span_scores(spans, tagged)
        dictionary["unseen"] = unseen_recall(texts, spans, tagged, seen)
    return replace(
        made,
        gold_matches=Share.of(
            (mention.start, mention.end) in {(start, end) for start, end, _ in example.spans}
            for example, of_text in zip(examples, mentions, strict=True)
            for mention in of_text
        ),
        mentions=_gold_mentions(examples, mentions, used, seen),
        dictionary=dictionary,
    )


def _mentions(examples: Sequence[Example], used: AuditedGraph) -> list[list[Mention]]:
    """The heads that each example names, in all its sentences."""
    texts = [text for example in examples for text in example.sentences]
    found = iter(find_mentions(texts, used.graph, rules=used.rules))
    return [
        [replace(m, sentence=n) for n, _ in enumerate(example.sentences) for m in next(found)]
        for example in examples
    ]


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


@dataclass(frozen=True, slots=True)
class _Gold:
    """One gold mention, and what the graph knows of it; see ``Coverage``."""

    name: str
    label: str
    known: bool
    reached: bool


def _gold_mentions(
    examples: Sequence[Example],
    mentions: Sequence[Sequence[Mention]],
    used: AuditedGraph,
    train_names: set[str] | None,
) -> GoldMentions:
    gold = []
    for example, of_text in zip(examples, mentions, strict=True):
        places = {(mention.start, mention.end) for mention in of_text}
        for start, end, label in example.spans:
            name = example.sentences[0][start:end]
            known = normalise_name(name) in used.entities
            gold.append(_Gold(name, label, known, (start, end) in places))
    labels = sorted({mention.label for mention in gold})

    def by_label(some: Sequence[_Gold]) -> dict[str, Coverage]:
        return {label: _coverage([m for m in some if m.label == label]) for label in labels}

    if train_names is None:
        return GoldMentions(_coverage(gold), by_label(gold), None, None, {}, None)
    unseen = [mention for mention in gold if mention.name not in train_names]
    names = {mention.name for mention in gold}
    return GoldMentions(
        all=_coverage(gold),
        by_label=by_label(gold),
        seen=_coverage([mention for mention in gold if mention.name in train_names]),
        unseen=_coverage(unseen),
        unseen_by_label=by_label(unseen),
        unseen_names=Share(len(names - train_names), len(names)),
    )


def _coverage(gold: Sequence[_Gold]) -> Coverage:
    return Coverage(Share.of(m.known for m in gold), Share.of(m.reached for m in gold))


# Between splits


def _leaks(splits: Splits) -> tuple[Leak, ...]:
    leaks = []
    for into, of in combinations(splits, 2):
        there: dict[tuple[str, ...], set[object]] = {}
        for example in splits[into]:
            there.setdefault(_text(example), set()).add(_labels(example))
        shared = [example for example in splits[of] if _text(example) in there]
        same = Share.of(_labels(example) in there[_text(example)] for example in shared)
        leaks.append(Leak(of, into, Share(len(shared), len(splits[of])), same))
    return tuple(leaks)


def _conflicts(splits: Splits) -> Conflicts:
    labels: dict[tuple[str, ...], Counter[object]] = {}
    for example in (example for examples in splits.values() for example in examples):
        labels.setdefault(_text(example), Counter())[_labels(example)] += 1
    mixed = {text: counts for text, counts in labels.items() if len(counts) > 1}
    return Conflicts(
        Share(len(mixed), len(labels)),
        sum(counts.total() for counts in mixed.values()),
        tuple(" ‖ ".join(text) for text in list(mixed)[:SHOWN_EXAMPLES]),
    )


def _answers(splits: Splits, used: AuditedGraph) -> Answers:
    where: dict[str, set[str]] = {}  # gold names, as compared → splits
    for split, examples in splits.items():
        for name in _names(examples):
            where.setdefault(normalise_name(name), set()).add(split)
    in_graph = {name for name in where if name in used.entities}
    orders = [there for n in range(len(splits)) for there in combinations(splits, n + 1)]
    by_splits = {there: [n in in_graph for n in where if where[n] == {*there}] for there in orders}
    groups = used.groups(in_graph)
    suspects = set().union(*(heads for group, heads in groups if group.from_gold))
    known = [
        entity
        for example in splits[list(splits)[-1]]
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
            _listed(there): Share.of(names) for there, names in by_splits.items() if names
        },
        groups=tuple(group for group, _ in groups[:SHOWN_GROUPS]),
        from_gold=Share.of(entity in suspects for entity in known),
    )


# Small things


def _listed(splits: Sequence[str]) -> str:
    """Such as "test only" or "train, dev and test"."""
    *others, last = splits
    return f"{', '.join(others)} and {last}" if others else f"{last} only"


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
