"""A plain dictionary tagger: what a graph gives without any model.

The heads of the graph are looked up in the text, the longest first; a head's
triples say its label. The tails (and, where they are rare, the relations)
that name a label are learnt from the training set.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from kbert_core.data.labelled import Example
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import Mention
from kbert_core.knowledge.scan import scan
from kbert_core.knowledge.surface_forms import AS_WRITTEN, NameRules
from kbert_core.training.scores import SpanKey

MIN_MATCHES = 3  # in the training set, for a tail or relation to be judged by
MIN_SHARE = 0.1  # of these that must be gold mentions with a label, for it to mean that label
NO_LABEL = ""

Spans = list[SpanKey]


def matches(
    texts: Sequence[str], graph: KnowledgeGraph, rules: NameRules = AS_WRITTEN
) -> list[list[Mention]]:
    """Find the graph's heads in many texts: leftmost-longest, as they are injected.

    Returns:
        Per text its mentions, in reading order.
    """
    found: list[list[Mention]] = [[] for _ in texts]
    scanned = scan(texts, graph, rules)
    for row, start, end, (entity, *others) in zip(
        scanned.rows.tolist(),
        (scanned.starts - scanned.offsets[scanned.rows]).tolist(),
        (scanned.ends - scanned.offsets[scanned.rows]).tolist(),
        scanned.entities,
        strict=True,
    ):
        found[row].append(Mention(start, end, entity, others=tuple(others)))
    return found


def learn_tail_labels(examples: Sequence[Example], graph: KnowledgeGraph) -> dict[str, str]:
    """Learn from the training set which label each tail of a graph stands for.

    Every match of a head counts for each of its tails and each of its
    relations: for a label where it is a gold mention, else for none. A tail
    means the label it was counted for most, unless that is under
    ``MIN_SHARE`` of its matches. A tail with fewer than ``MIN_MATCHES``
    means what its relations do ("symptom" is said of diseases, whatever the
    tail). Of labels with equal counts the first in the alphabet is taken.

    Unlike with ``learn_type_labels``, several tails may mean one label.

    Returns:
        tail → label, for the tails that mean one, in graph order.
    """
    by_tail: dict[str, Counter[str]] = {}
    by_relation: dict[str, Counter[str]] = {}
    for example, mentions in zip(examples, _matches_in(examples, graph), strict=True):
        gold = {(start, end): label for start, end, label in example.spans}
        for mention in mentions:
            label = gold.get((mention.start, mention.end), NO_LABEL)
            triples = [t for t in graph.triples_of(mention.entity) if graph.is_on(t)]
            for tail in {t.tail for t in triples}:
                by_tail.setdefault(tail, Counter())[label] += 1
            for relation in {t.relation for t in triples}:
                by_relation.setdefault(relation, Counter())[label] += 1
    relations: dict[str, dict[str, None]] = {}  # of each tail
    for triple in graph:
        relations.setdefault(triple.tail, {})[triple.relation] = None
    learnt: dict[str, str] = {}
    for tail, its_relations in relations.items():
        counts = by_tail.get(tail, Counter())
        if counts.total() < MIN_MATCHES:
            counts = sum((by_relation.get(r, Counter()) for r in its_relations), Counter())
        label = _meaning(counts)
        if label != NO_LABEL:
            learnt[tail] = label
    return learnt


def dictionary_spans(
    examples: Sequence[Example], graph: KnowledgeGraph, type_labels: Mapping[str, str]
) -> list[Spans]:
    """Tag texts by the graph alone.

    Args:
        examples: their labels aren't looked at. Where words are known, a
            match that cuts one is left out.
        graph: whose heads are looked for, the longest first.
        type_labels: tail → label; see :func:`learn_tail_labels`. The first
            triple of a head whose tail is in it decides.

    Returns:
        Per text its (start, end, label) spans in characters, in reading order.
    """
    tagged: list[Spans] = []
    for example, mentions in zip(examples, _matches_in(examples, graph), strict=True):
        starts, ends = {start for start, _ in example.words}, {end for _, end in example.words}
        spans: Spans = []
        for mention in mentions:
            label = _label(mention.entity, graph, type_labels)
            whole = not example.words or (mention.start in starts and mention.end in ends)
            if label is not None and whole:
                spans.append((mention.start, mention.end, label))
        tagged.append(spans)
    return tagged


def written_over(
    predicted: Sequence[Iterable[SpanKey]], dictionary: Sequence[Iterable[SpanKey]]
) -> list[Spans]:
    """Write the dictionary's spans over a model's.

    Args:
        predicted, dictionary: per text its (start, end, label) spans.

    Returns:
        Per text the dictionary's spans and the predicted ones that overlap
        none of them, in reading order.
    """
    written: list[Spans] = []
    for of_model, of_dictionary in zip(predicted, dictionary, strict=True):
        over = list(of_dictionary)
        kept = [s for s in of_model if not any(s[0] < o[1] and o[0] < s[1] for o in over)]
        written.append(sorted([*over, *kept]))
    return written


def _matches_in(examples: Sequence[Example], graph: KnowledgeGraph) -> list[list[Mention]]:
    return matches([example.sentences[0] for example in examples], graph)


def _meaning(counts: Counter[str]) -> str:
    labels = sorted(label for label in counts if label != NO_LABEL)
    most = max(labels, key=lambda label: counts[label], default=NO_LABEL)
    enough = counts.total() >= MIN_MATCHES and counts[most] >= MIN_SHARE * counts.total()
    return most if enough else NO_LABEL


def _label(entity: str, graph: KnowledgeGraph, type_labels: Mapping[str, str]) -> str | None:
    triples = (t for t in graph.triples_of(entity) if graph.is_on(t))
    return next((type_labels[t.tail] for t in triples if t.tail in type_labels), None)
