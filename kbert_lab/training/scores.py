"""Scores of predictions against gold labels.

Those of linking, fill-mask and reading comprehension are ratios of sums: a column for each count
has a number for each text, so that statistics can draw texts anew.
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from operator import eq
from typing import Any

from kbert_core.knowbert.morphology import part_of_speech
from kbert_core.knowledge.names import is_word_character
from kbert_core.labels import order
from kbert_lab.data.labelled import Example, GoldLink

PARTS = {"n": "noun", "v": "verb", "a": "adjective", "s": "adjective", "r": "adverb"}
SLICES = ("not_first", "new", *dict.fromkeys(PARTS.values()))
LINK_COUNTS = ("right", "predicted", "gold", "first_right", "prior_right")
MASK_COUNTS = ("loss", "reciprocal", "right", "count")
ANSWER_COUNTS = ("exact", "f1", "read", "count")
WORD = re.compile(r"[^\W_]")
SpanKey = tuple[int, int, str]
Found = Mapping[tuple[int, int], str | None]  # span → entity
Columns = dict[str, list[float]]  # name → a number for each text


def precision_recall(right: int, predicted: int, gold: int) -> dict[str, float]:
    """Return counts of right, predicted and gold spans, and precision, recall and F1, or 0."""
    return {
        **{"right": right, "predicted": predicted, "gold": gold},
        "precision": right / predicted if predicted else 0.0,
        "recall": right / gold if gold else 0.0,
        "f1": 2 * right / (predicted + gold) if predicted + gold else 0.0,
    }


def span_scores(
    gold: Sequence[Iterable[SpanKey]], predicted: Sequence[Iterable[SpanKey]]
) -> dict[str, Any]:
    """Typed exact-span scores (``precision_recall``) over all spans (micro), and ``by_label``.

    Args:
        gold, predicted: per text its (start, end, label) spans.
    """
    right, found, wanted = (Counter[str]() for _ in range(3))
    for gold_spans, predicted_spans in zip(map(set, gold), map(set, predicted), strict=True):
        wanted.update(label for _, _, label in gold_spans)
        found.update(label for _, _, label in predicted_spans)
        right.update(label for _, _, label in gold_spans & predicted_spans)
    labels = sorted(wanted | found)
    return {
        **precision_recall(right.total(), found.total(), wanted.total()),
        "by_label": {la: precision_recall(right[la], found[la], wanted[la]) for la in labels},
    }


def class_scores(gold: Sequence[str], predicted: Sequence[str]) -> dict[str, Any]:
    """Accuracy, macro F1, and precision, recall and F1 by label.

    Of relations with a direction, such as "Cause-Effect(e2,e1)", also ``relation_f1``.
    """
    scores = span_scores(*([[(0, 0, label)] for label in side] for side in (gold, predicted)))
    by_label = scores["by_label"]
    return {
        "accuracy": scores["right"] / len(gold) if gold else 0.0,
        "macro_f1": _mean_f1(by_label),
        **relation_f1(by_label),
        "count": len(gold),
        "by_label": by_label,
    }


def multilabel_scores(
    gold: Sequence[Iterable[str]], predicted: Sequence[Iterable[str]]
) -> dict[str, Any]:
    """Micro precision, recall and F1, macro F1, and how many texts have just their labels.

    Also precision, recall and F1 by label.
    """
    sides = [[{(0, 0, label) for label in own} for own in side] for side in (gold, predicted)]
    scores = span_scores(*sides)
    return scores | {
        "macro_f1": _mean_f1(scores["by_label"]),
        "subset_accuracy": sum(map(eq, *sides)) / len(gold),
        "count": len(gold),
    }


def relation_f1(by_label: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """SemEval-2010 Task 8's official score, as ``relation_f1``; nothing without directed labels.

    The macro F1 of relations whose two directions count as one, though a wrong direction is an
    error; a label without a direction (Other) is left out.
    """
    counts: dict[str, Counter[str]] = {}
    for label, own in by_label.items():
        name, direction, _ = label.partition("(e")
        if direction:
            of_label = {count: int(own[count]) for count in ("right", "predicted", "gold")}
            counts.setdefault(name, Counter()).update(of_label)
    of_relations = {name: precision_recall(**count) for name, count in counts.items()}
    return {"relation_f1": _mean_f1(of_relations)} if of_relations else {}


def _mean_f1(by_label: Mapping[str, Mapping[str, float]]) -> float:
    return sum(c["f1"] for c in by_label.values()) / len(by_label) if by_label else 0.0


def pair_scores(
    gold: Sequence[str], predicted: Sequence[str], labels: Sequence[str]
) -> dict[str, Any]:
    """Scores of sentence pairs: :func:`class_scores`, and ``f1``.

    With two labels ``f1`` is that of the positive one ("1", else the last in
    order), with more the macro F1.
    """
    scores = class_scores(gold, predicted)
    if len(labels) != 2:
        return {**scores, "f1": scores["macro_f1"]}
    positive = "1" if "1" in labels else max(labels)
    f1 = scores["by_label"].get(positive, {"f1": 0.0})["f1"]
    return {**scores, "f1": f1, "positive": positive}


def ranking_scores(
    questions: Sequence[str], right: Sequence[bool], scores: Sequence[float]
) -> dict[str, Any]:
    """Mean reciprocal rank and precision at 1 of ranked answers.

    Candidates of a question are ranked by score, equal ones in their order.
    A question's reciprocal rank is that of its first right answer. Questions
    without a right answer can't be scored and are left out, as is usual.

    Args:
        questions, right, scores: per candidate, which question it belongs to,
            whether it answers, and its score; the highest is ranked first.

    Returns:
        ``mrr``, ``p_at_1``; ``chance_mrr`` of a random order and ``order_mrr``
        of the order given; how many ``questions`` and ``candidates`` were
        scored, and questions ``without_answer`` left out.
    """
    groups: dict[str, list[tuple[bool, float]]] = {}
    for question, answers, score in zip(questions, right, scores, strict=True):
        groups.setdefault(question, []).append((answers, score))
    scored = [group for group in groups.values() if any(answers for answers, _ in group)]
    ranks, given, chances = [], [], []
    for group in scored:
        are_right = [answers for answers, _ in group]
        ranked = [are_right[number] for number in order([score for _, score in group])]
        ranks.append(1 + ranked.index(True))
        given.append(1 + are_right.index(True))
        chances.append(_chance(len(group), sum(are_right)))
    count = max(1, len(scored))
    return {
        "mrr": sum(1 / rank for rank in ranks) / count,
        "p_at_1": sum(rank == 1 for rank in ranks) / count,
        "chance_mrr": sum(chances) / count,
        "order_mrr": sum(1 / rank for rank in given) / count,
        "questions": len(scored),
        "without_answer": len(groups) - len(scored),
        "candidates": sum(map(len, scored)),
    }


def shared_characters(question: str, answer: str) -> float:
    """Return the share of a question's pairs of neighbouring characters that an answer contains.

    A model has to be better than this score. White space and case don't count.
    """
    asked, held = (set(pairwise("".join(text.split()).casefold())) for text in (question, answer))
    return len(asked & held) / max(1, len(asked))


def _chance(candidates: int, right: int) -> float:
    """Return the expected reciprocal rank of the first right answer in a random order."""
    ways = math.comb(candidates, right)
    return sum(
        math.comb(candidates - rank, right - 1) / ways / rank
        for rank in range(1, candidates - right + 2)
    )


def unseen_recall(
    texts: Sequence[str],
    gold: Sequence[Iterable[SpanKey]],
    predicted: Sequence[Iterable[SpanKey]],
    seen: set[str],
) -> dict[str, float]:
    """Return the recall on gold spans whose surface form no training label has."""
    unseen = [
        [span for span in spans if text[span[0] : span[1]] not in seen]
        for text, spans in zip(texts, gold, strict=True)
    ]
    scores = span_scores(unseen, predicted)
    return {name: scores[name] for name in ("recall", "gold", "right")}


def columns(names: Sequence[str], counts: Iterable[Mapping[str, float]]) -> Columns:
    """Counts per text as columns."""
    rows = list(counts)
    return {name: [row.get(name, 0) for row in rows] for name in names}


# Entity linking


def count_links(
    examples: Sequence[Example],
    found: Sequence[Found],
    likeliest: Sequence[Found],
    train: Sequence[Example] = (),
) -> Columns:
    """Count links that are there already; see :func:`link_columns`.

    Args:
        found: per text what spans were taken to mean; None: nothing.
        likeliest: per text their candidates with the highest prior.
    """
    among = any(link.candidates for example in examples for link in example.links)
    seen = {_word(link, example) for example in train for link in example.links}
    counts = []
    for example, means, prior in zip(examples, found, likeliest, strict=True):
        wanted = {(link.start, link.end) for link in example.links if link.candidates}
        named = [place for place, entity in means.items() if entity is not None]
        count = Counter(predicted=sum(not among or place in wanted for place in named))
        for link in example.links:
            place = link.start, link.end
            right = means.get(place) in link.entities
            first = bool(link.candidates) and link.candidates[0] in link.entities
            of_slices = {
                "new": bool(train) and _word(link, example) not in seen,
                "not_first": bool(link.candidates) and not first,
            }
            if part := PARTS.get(part_of_speech(link.entities[0])):
                of_slices[part] = True
            count.update(right=right, gold=1, first_right=first)
            count.update(prior_right=prior.get(place) in link.entities, **of_slices)
            count.update({f"{name}_right": on and right for name, on in of_slices.items()})
        counts.append(count)
    return columns((*LINK_COUNTS, *SLICES, *(f"{name}_right" for name in SLICES)), counts)


def scores_of_links(columns: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    """Shares of sums: precision, recall and F1, and recall on each slice that there is."""
    sums = {name: sum(column) for name, column in columns.items()}
    slices, gold = [name for name in SLICES if sums[name]], sums["gold"]
    return {
        **precision_recall(sums["right"], sums["predicted"], gold),
        "first": sums["first_right"] / max(1, gold),
        "prior": sums["prior_right"] / max(1, gold),
        "slices": {name: sums[f"{name}_right"] / sums[name] for name in slices},
    }


def _word(link: GoldLink, example: Example) -> str:
    return (link.word or example.sentences[0][link.start : link.end]).lower()


# Fill-mask


def scores_of_masks(columns: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Means over the hidden tokens: loss in nats, mean reciprocal rank, and the share right."""
    sums = {name: sum(column) for name, column in columns.items()}
    count = max(1, sums["count"])
    loss = sums["loss"] / count
    scores = {"loss": loss, "perplexity": math.exp(loss), "accuracy": sums["right"] / count}
    scores |= {"mrr": sums["reciprocal"] / count, "count": int(sums["count"])}
    if sums["new"]:
        scores["new_mrr"] = sums["new_reciprocal"] / sums["new"]
    return scores


# Reading comprehension


def scores_of_answers(columns: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Means over the questions: F1, exact match, and the share whose answer is read."""
    sums = {name: sum(column) for name, column in columns.items()}
    count = max(1.0, sums["count"])
    means = {name: sums[name] / count for name in ("f1", "exact", "read")}
    return {**means, "count": int(sums["count"])}


def words_of(text: str) -> list[str]:
    """Split an answer into units to compare: words in scripts with spaces, else characters.

    NFKC and case folding come first. White space and punctuation are dropped, unless the answer
    has nothing else. The scripts of CMRC 2018 and DRCD do the same.
    """
    words: list[str] = []
    inside = False  # a word that the next character may go on
    text = unicodedata.normalize("NFKC", text).casefold()
    for character in text:
        spaced = is_word_character(character) and character != "_"
        if spaced and inside:
            words[-1] += character
        elif spaced or WORD.match(character):
            words.append(character)
        inside = spaced
    return words or text.split()


def word_f1(predicted: str, gold: str) -> float:
    """Return the harmonic mean of precision and recall of the words, counting repetitions."""
    found, wanted = words_of(predicted), words_of(gold)
    shared = (Counter(found) & Counter(wanted)).total()
    return 2 * shared / max(1, len(found) + len(wanted))
