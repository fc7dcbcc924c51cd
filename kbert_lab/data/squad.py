"""Reading comprehension: CMRC 2018, DRCD and other sets in SQuAD's form.

Also data for answer selection made from them (which sentence of the paragraph contains the
answer?), written as qid, label, text_a, text_b.
"""

import json
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kbert_core.errors import DataError
from kbert_core.labels import RIGHT, WRONG
from kbert_lab.data.labelled import Example
from kbert_lab.data.splits import write_rows
from kbert_lab.data.tables import Source, read_lines

# A sentence ends with these and the quotes and brackets closed after them, but
# not inside a title (《轻音！》), nor where the mark goes on (……).
END = re.compile(r"(?:[。！？；…]++[”’」』）)]*+(?!》)|\n)")
WORD = re.compile(r"\w")
log = logging.getLogger(__name__)


@dataclass
class Counts:
    """How many questions of a file were used, corrected, or left out."""

    questions: int = 0  # written
    candidates: int = 0  # their sentences
    offset_mended: int = 0  # answers found not where the file says, but at one place alone
    over_several_sentences: int = 0  # answers; the sentence they begin in is the one labelled
    several_right: int = 0  # questions whose answers are in several sentences
    left_out_without_answer: int = 0  # without a text, or an answer that is found at one place
    left_out_one_sentence: int = 0  # with nothing to choose from


def write_ranking_set(source: str | Path, target: str | Path) -> Counts:
    """Make a file for answer selection from one for reading comprehension.

    DataError where the source isn't in SQuAD's form, holds no question that can be used, or the
    target can't be written.
    """
    counts = Counts()
    rows = list(ranking_rows(source, counts))
    if not rows:
        raise DataError(
            f"{source}: no question whose answer is a part of its paragraph. Give a file of "
            "reading comprehension with answers, such as cmrc2018_dev.json."
        )
    write_rows(target, rows)
    return counts


def ranking_rows(source: str | Path, counts: Counts) -> Iterator[Example]:
    """Yield every question of a file with each sentence of its paragraph, once, and count them."""
    for context, questions in _paragraphs(source, answers=True):
        spans = sentence_spans(context)
        texts = [_one_line(context[start:end]) for start, end in spans]
        unique = dict.fromkeys(texts)
        for name, text, answers in questions:
            right: set[str] = set()
            for answer, given in answers or ():
                start = _place(context, answer, given)
                if start is None:
                    continue
                counts.offset_mended += start != given
                first = next(i for i, (_, end) in enumerate(spans) if start < end)
                counts.over_several_sentences += start + len(answer) > spans[first][1]
                right.add(texts[first])
            if not right or not text:
                counts.left_out_without_answer += 1
            elif len(unique) < 2:
                counts.left_out_one_sentence += 1
            else:
                counts.questions += 1
                counts.candidates += len(unique)
                counts.several_right += len(right) > 1
                for sentence in unique:
                    label = RIGHT if sentence in right else WRONG
                    yield Example((text, sentence), label, group=name)


def read_comprehension(source: str | Path) -> list[Example]:
    """Read every question of a file with its paragraph and answers.

    An answer that isn't where the file says is taken from the only place where it is. One that is
    at none counts in scores, and isn't trained on. A blank question is left out, with a warning,
    and so are unanswerable ones (SQuAD 2.0).

    Raises:
        DataError: with file and question, where a paragraph is blank or holds no answer.
    """
    examples: list[Example] = []
    of, nowhere, unanswerable = Source(Path(source).name, "question"), 0, 0
    for context, questions in _paragraphs(source, answers=True):
        for name, text, given in questions:
            number, where = len(examples) + 1, f"{Path(source).name}, question '{name}'"
            if not context.strip():
                raise DataError(f"{where}: the paragraph is blank. Write it, or delete it.")
            if not text:  # as one of CMRC 2018's is
                log.warning(
                    "%s: the question is blank, so it is left out. Write the question.", where
                )
                continue
            if given is None:
                unanswerable += 1
                continue
            places = [_place(context, answer, start) for answer, start in given]
            found = [-1 if place is None else place for place in places]
            if max(found, default=-1) < 0:
                said = f"the answer '{given[0][0][:40]}' isn't in" if given else "no answer is in"
                raise DataError(
                    f"{where}: {said} its paragraph, or is in several places but not at "
                    "answer_start. Correct the answer, or delete the question."
                )
            nowhere += found.count(-1)
            answers = tuple((at, answer) for at, (answer, _) in zip(found, given, strict=True))
            pair = (text, context)
            examples.append(Example(pair, group=name, answers=answers, source=of, line=number))
    if unanswerable:
        log.warning(
            "%s: unanswerable questions (SQuAD 2.0) are left out: %d of %d.",
            *(source, unanswerable, unanswerable + len(examples)),
        )
    if not examples:
        raise DataError(f"{source}: no question, so nothing to learn or to score. Add one.")
    if nowhere:
        log.warning(
            "%s: %d answers aren't in their paragraphs, but another answer to the same question "
            "is. Scores use these answers; training doesn't.",
            *(source, nowhere),
        )
    return examples


def comprehension_pairs(source: str | Path) -> Iterator[tuple[str, str]]:
    """Every question of a file with its paragraph; answers aren't needed."""
    for context, questions in _paragraphs(source, answers=False):
        yield from ((text, context) for _, text, _ in questions)


def comprehension_texts(source: str | Path) -> Iterator[str]:
    """Every question of a file, and every sentence of its paragraphs; answers aren't needed."""
    for context, questions in _paragraphs(source, answers=False):
        yield from (text for _, text, _ in questions)
        yield from (_one_line(context[start:end]) for start, end in sentence_spans(context))


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Split a text into sentences: (start, end) in characters, without white space around.

    A sentence ends with 。！？；… and closing quotes after these, or with the line.
    Marks alone belong to the sentence before them or, if there is none, to the next.
    A text of marks alone is one sentence.
    """
    spans: list[tuple[int, int]] = []
    start = 0
    for match in [*END.finditer(text), None]:
        end = match.end() if match else len(text)
        if text[end : end + 1] == '"' and text[start:end].count('"') % 2:
            end += 1  # a straight quote closes if one is open
        sentence = text[start:end]
        if sentence.strip():
            left, right = end - len(sentence.lstrip()), start + len(sentence.rstrip())
            if WORD.search(sentence) or (match is None and not spans):
                spans.append((left, right))
            elif spans:
                spans[-1] = (spans[-1][0], right)
            else:
                continue  # it begins the next
        start = end
    return spans


# id, question, answers and where they begin; None: it can't be answered
_Asked = tuple[str, str, list[tuple[str, int]] | None]


def _paragraphs(source: str | Path, *, answers: bool) -> list[tuple[str, list[_Asked]]]:
    """The paragraphs of a file, each with its questions; without answers no ids either."""
    try:
        data = json.loads("\n".join(read_lines(Path(source))))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{source}: can't be read ({error}). Give a JSON file.") from error
    try:
        return [
            (context, [_asked(question, answers) for question in _field(paragraph, "qas", list)])
            for article in _field(data, "data", list)
            for paragraph in _field(article, "paragraphs", list)
            for context in [_field(paragraph, "context", str)]
        ]
    except (KeyError, TypeError) as error:
        raise DataError(
            f"{source}: not in SQuAD's form ({error} is missing or of another kind). Expected data "
            "→ paragraphs → context and qas → question, id and answers → text and answer_start."
        ) from error


def _asked(question: Any, answers: bool) -> _Asked:
    text = _one_line(_field(question, "question", str))
    given = _field(question, "answers", list) if answers else []
    places = dict.fromkeys((_field(a, "text", str), _field(a, "answer_start", int)) for a in given)
    name = _one_line(str(_field(question, "id", str | int))) if answers else ""
    impossible = answers and question.get("is_impossible") is True
    return name, text, None if impossible else list(places)


def _field(data: Any, name: str, kind: Any) -> Any:
    """Return a field of a JSON object; KeyError or TypeError if there is none of this type."""
    if not isinstance(data, dict) or not isinstance(value := data[name], kind):
        raise TypeError(f"'{name}'")
    return value


def _place(context: str, text: str, start: int) -> int | None:
    """Return where an answer begins: as the file says, or at the only place that has it."""
    if not text.strip():
        return None
    if start >= 0 and context.startswith(text, start):
        return start
    found = context.find(text)
    return found if found >= 0 and context.find(text, found + 1) < 0 else None


def _one_line(text: str) -> str:
    return " ".join(text.split())
