"""A graph as a plain dictionary: without a model, written over one, or weighed against one.

The heads of the graph are looked up in the text, the longest first; a head's
triples say its label. The tails (and, where they are rare, the relations)
that name a label are learnt from the training set.

Written over a model, the dictionary overrules it everywhere. In constrained
decoding each of its spans adds a boost to the log-probability of the tags that
hold it; how great a boost is chosen on dev. A boost of 0 is the model alone, a
very great one the dictionary written over it.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from kbert_core.errors import DataError
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import Mention, find_mentions
from kbert_core.knowledge.surface_forms import AS_WRITTEN, NameRules
from kbert_core.labels import bio_spans
from kbert_lab.data.labelled import Example
from kbert_lab.training.scores import SpanKey, span_scores

if TYPE_CHECKING:  # not imported to run: it needs PyTorch
    from kbert_core.tasks.ner import NerPrediction

MIN_MATCHES = 3  # in the training set, for a tail or relation to be judged by
MIN_SHARE = 0.1  # of these that must be gold mentions with a label, for it to mean that label
NO_LABEL = ""
BOOSTED = "boosted "  # before the label of its tags
BOOSTS = (0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 48.0, 1e4)  # boosts, in nats

Spans = list[SpanKey]


def learn_tail_labels(
    examples: Sequence[Example], graph: KnowledgeGraph, rules: NameRules = AS_WRITTEN
) -> dict[str, str]:
    """Learn from the training set which label each tail of a graph stands for.

    Every match of a head counts for each of its tails and relations: for a
    label where it is a gold mention, else for none. A tail means the label it
    was counted for most, unless that is under ``MIN_SHARE`` of its matches; with
    fewer than ``MIN_MATCHES`` what its relations do ("symptom" is said of
    diseases, whatever the tail). Several tails may mean one label.

    Args:
        rules: how names are compared.

    Returns:
        tail → label, for the tails that mean one, in graph order.
    """
    by_tail: defaultdict[str, Counter[str]] = defaultdict(Counter)
    by_relation: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for example, mentions in zip(examples, _heads(examples, graph, rules), strict=True):
        gold = {(start, end): label for start, end, label in example.spans}
        for mention in mentions:
            label = gold.get((mention.start, mention.end), NO_LABEL)
            triples = [t for t in graph.triples_of(mention.entity) if graph.is_on(t)]
            for tail in {t.tail for t in triples}:
                by_tail[tail][label] += 1
            for relation in {t.relation for t in triples}:
                by_relation[relation][label] += 1
    relations: defaultdict[str, dict[str, None]] = defaultdict(dict)  # of each tail
    for triple in graph.active_triples():
        relations[triple.tail][triple.relation] = None
    learnt: dict[str, str] = {}
    for tail, its_relations in relations.items():
        counts = by_tail[tail]
        if counts.total() < MIN_MATCHES:
            counts = sum((by_relation[relation] for relation in its_relations), Counter())
        labels = sorted(label for label in counts if label != NO_LABEL)
        most = max(labels, key=counts.__getitem__, default=NO_LABEL)
        if labels and counts.total() >= MIN_MATCHES and counts[most] >= MIN_SHARE * counts.total():
            learnt[tail] = most
    return learnt


def dictionary_spans(
    examples: Sequence[Example],
    graph: KnowledgeGraph,
    type_labels: Mapping[str, str],
    rules: NameRules = AS_WRITTEN,
) -> list[Spans]:
    """Tag texts by the graph alone.

    Args:
        examples: their labels aren't looked at. Where words are known, a
            match that cuts one is left out.
        graph: whose heads are looked for, the longest first.
        type_labels: tail → label; the first tail of a head that is in it decides.
        rules: how names are compared.

    Returns:
        Per text its (start, end, label) spans in characters, in reading order.
    """
    tagged: list[Spans] = []
    for example, mentions in zip(examples, _heads(examples, graph, rules), strict=True):
        starts, ends = {start for start, _ in example.words}, {end for _, end in example.words}
        tagged.append([])
        for mention in mentions:
            tails = (t.tail for t in graph.triples_of(mention.entity) if graph.is_on(t))
            label = next((type_labels[tail] for tail in tails if tail in type_labels), None)
            whole = not example.words or (mention.start in starts and mention.end in ends)
            if label is not None and whole:
                tagged[-1].append((mention.start, mention.end, label))
    return tagged


def written_over(
    predicted: Sequence[Iterable[SpanKey]], dictionary: Sequence[Iterable[SpanKey]]
) -> list[Spans]:
    """Return for each text the dictionary's spans, and predicted spans that overlap none."""
    written: list[Spans] = []
    for of_model, of_dictionary in zip(predicted, dictionary, strict=True):
        over = list(of_dictionary)
        kept = [s for s in of_model if not any(s[0] < o[1] and o[0] < s[1] for o in over)]
        written.append(sorted([*over, *kept]))
    return written


def _heads(
    examples: Sequence[Example], graph: KnowledgeGraph, rules: NameRules
) -> Iterable[tuple[Mention, ...]]:
    """Return the heads found in texts, leftmost-longest."""
    return find_mentions([e.sentences[0] for e in examples], graph, rules=rules)


class TextScores(NamedTuple):
    """A model's scores for every tag of the T tokens of a text."""

    names: Sequence[str]  # the K tags
    starts: list[int]  # of the tokens, in characters
    ends: list[int]
    scores: np.ndarray  # (T, K) log-probabilities

    def tokens_of(self, span: SpanKey) -> tuple[int, int] | None:
        """First token and last + 1; None: its borders aren't tokens', or no tag has its label."""
        start, end, label = span
        if f"I-{label}" not in self.names or start not in self.starts or end not in self.ends:
            return None
        first, last = bisect_left(self.starts, start), bisect_right(self.ends, end)
        return (first, last) if first < last else None


@dataclass(frozen=True)
class TagScores:
    """A model's scores for every tag of every token, of S texts with T tokens in all."""

    names: tuple[str, ...]  # the K tags
    sizes: np.ndarray  # (S,) tokens of each text
    starts: np.ndarray  # (T,) in characters of their text
    ends: np.ndarray
    scores: np.ndarray  # (T, K) log-probabilities, half precision

    @classmethod
    def of(cls, predictions: "Sequence[NerPrediction]") -> Self:
        """Collect them from predictions of one model."""
        tokens = [token for prediction in predictions for token in prediction.tokens]
        names = tuple(tokens[0].probabilities) if tokens else ()
        chances = np.array([[t.probabilities[name] for name in names] for t in tokens])
        return cls(
            names,
            np.array([len(p.tokens) for p in predictions]),
            np.array([t.start for t in tokens]),
            np.array([t.end for t in tokens]),
            np.log(np.maximum(chances, 1e-7)).astype(np.float16),
        )

    def by_text(self) -> Iterator[TextScores]:
        """Return those of each text, in full precision."""
        columns = (self.starts, self.ends, self.scores.astype(float))
        parts = [np.split(column, self.sizes.cumsum()[:-1]) for column in columns]
        for starts, ends, scores in zip(*parts, strict=True):
            yield TextScores(self.names, starts.tolist(), ends.tolist(), scores)


def save_scores(file: IO[bytes], splits: Mapping[str, TagScores]) -> None:
    """Write scores of several splits as one ``.npz`` archive."""
    arrays: dict[str, Any] = {
        f"{split}.{name}": np.asarray(values)
        for split, scores in splits.items()
        for name, values in vars(scores).items()
    }
    np.savez_compressed(file, **arrays)


def load_scores(path: Path) -> dict[str, TagScores]:
    """Read what :func:`save_scores` wrote; DataError if it can't be read."""
    splits: dict[str, dict[str, Any]] = {}
    try:
        with np.load(path, allow_pickle=False) as arrays:
            for key in arrays.files:
                split, _, name = key.partition(".")
                splits.setdefault(split, {})[name] = arrays[key]
        return {
            s: TagScores(**of | {"names": tuple(of["names"].tolist())}) for s, of in splits.items()
        }
    except Exception as error:  # a damaged archive raises whatever its parts do
        raise DataError(
            f"{path}: can't be read ({error}). Delete it and run the same command again: it names "
            "the run that makes the file."
        ) from error


def guided_spans(
    scores: TagScores, dictionary: Sequence[Sequence[SpanKey]], boost: float
) -> list[Spans]:
    """Decode anew, each of the dictionary's spans boosted.

    A boosted span gets tags of its own, possible in its place alone. They score as those of its
    label, and the last one by the boost more: so it is an entity of just these borders.

    Args:
        dictionary: (start, end, label) spans of each text; none overlaps another. One whose borders
            aren't tokens', or whose label the model doesn't know, is left out.
        boost: in nats, at least 0.

    Returns:
        Per text its (start, end, label) spans in characters, in reading order.
    """
    from kbert_core.tasks.ner import best_tags  # it needs PyTorch

    names = scores.names
    both = [*names, *(tag[:2] + BOOSTED + tag[2:] for tag in names)]
    decoded: list[Spans] = []
    for text, spans in zip(scores.by_text(), dictionary, strict=True):
        boosted = np.full(text.scores.shape, -np.inf)
        for span in spans:
            if (tokens := text.tokens_of(span)) is not None:
                first, last = tokens
                begun, inside = names.index(f"B-{span[2]}"), names.index(f"I-{span[2]}")
                boosted[first, begun] = text.scores[first, begun]
                boosted[first + 1 : last, inside] = text.scores[first + 1 : last, inside]
                boosted[last - 1] += boost
        tags = best_tags(np.hstack([text.scores, boosted]), both)
        found = bio_spans([both[tag].replace(BOOSTED, "") for tag in tags.tolist()])
        decoded.append([(text.starts[a], text.ends[b - 1], label) for a, b, label in found])
    return decoded


def choose_weight(
    scores: TagScores,
    dictionary: Sequence[Sequence[SpanKey]],
    gold: Sequence[Sequence[SpanKey]],
) -> tuple[float, dict[str, float]]:
    """Try ``BOOSTS`` on dev; return the smallest with the best F1, and the F1 of all."""
    tried = {w: span_scores(gold, guided_spans(scores, dictionary, w))["f1"] for w in BOOSTS}
    best = max(BOOSTS, key=lambda weight: tried[weight])
    return best, {f"{weight:g}": round(f1, 4) for weight, f1 in tried.items()}
