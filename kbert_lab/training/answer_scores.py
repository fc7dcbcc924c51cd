"""Scores of reading comprehension: how far the best answer is one of the gold answers."""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.names import is_word_character
from kbert_core.pipeline import Pipeline
from kbert_core.tasks.qa import answer_tokens
from kbert_lab.data.labelled import Example

WORD = re.compile(r"[^\W_]")
COLUMNS = ("exact", "f1", "read", "count")


def answer_columns(
    pipeline: Pipeline,
    examples: Sequence[Example],
    graph: KnowledgeGraph,
    train: Sequence[Example] = (),
    **reading: Any,
) -> dict[str, list[float]]:
    """Score the best answer to each question against the gold answer that is most similar to it.

    Returns:
        ``exact``: whether they are equal; ``f1`` of their words; ``read``: whether a gold answer
        stands whole in what the model reads of the paragraph, so that it can be found; ``count``.
    """
    del train
    columns: dict[str, list[float]] = {name: [] for name in COLUMNS}
    texts = (example.sentences for example in examples)
    readings = pipeline.read(texts, graph=graph, **reading)
    for example, own in zip(examples, readings, strict=True):
        best, gold = own.prediction.answers[0].text, [text for _, text in example.answers]
        tokens = own.tokens[1]
        values = (
            max((float(words_of(best) == words_of(text)) for text in gold), default=0.0),
            max((word_f1(best, text) for text in gold), default=0.0),
            float(any(answer_tokens(tokens, *answer) for answer in example.answers)),
            1.0,
        )
        for name, value in zip(COLUMNS, values, strict=True):
            columns[name].append(value)
    return columns


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
