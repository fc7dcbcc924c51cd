"""Reading comprehension → answer selection: which sentence of the paragraph holds the answer.

Reads CMRC 2018, DRCD and other sets in SQuAD's form. What is written is in
the released K-BERT's form for answer selection: qid, label, text_a, text_b.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kbert_core.errors import DataError
from kbert_core.labels import RIGHT, WRONG

HEADER = "qid\tlabel\ttext_a\ttext_b"
# A sentence ends with these and the quotes and brackets closed after them, but
# not inside a title (《轻音！》), nor where the mark goes on (……).
END = re.compile(r"(?:[。！？；…]++[”’」』）)]*+(?!》)|\n)")
WORD = re.compile(r"\w")


@dataclass(frozen=True)
class Question:
    """A question with its candidates.

    Attributes:
        name: of the question in its source.
        text: of the question.
        candidates: the paragraph's sentences, each once, in their order.
        right: which of them hold an answer.
    """

    name: str
    text: str
    candidates: tuple[str, ...]
    right: frozenset[int]


@dataclass
class Counts:
    """What became of the questions of a file.

    Attributes:
        questions: written.
        candidates: their sentences.
        offset_mended: answers that don't stand where the file says, but at
            one place of the paragraph alone.
        over_several_sentences: answers that begin in one sentence and end in
            another; the first is the one labelled.
        several_right: questions whose answers are in several sentences.
        left_out_without_answer: questions without a text, or without an
            answer that is found at one place.
        left_out_one_sentence: questions with nothing to choose from.
    """

    questions: int = 0
    candidates: int = 0
    offset_mended: int = 0
    over_several_sentences: int = 0
    several_right: int = 0
    left_out_without_answer: int = 0
    left_out_one_sentence: int = 0


@dataclass(frozen=True)
class _Asked:
    name: str
    text: str
    answers: tuple[tuple[str, int], ...]  # text, where it begins in the paragraph


@dataclass(frozen=True)
class _Paragraph:
    context: str
    asked: tuple[_Asked, ...]


def write_ranking_set(source: str | Path, target: str | Path) -> Counts:
    """Make a file for answer selection from one for reading comprehension.

    Raises:
        DataError: the source isn't in SQuAD's form, holds no question that
            can be used, or the target can't be written.
    """
    counts = Counts()
    lines = [HEADER]
    for question in ranking_questions(source, counts):
        for number, sentence in enumerate(question.candidates):
            label = RIGHT if number in question.right else WRONG
            lines.append(f"{question.name}\t{label}\t{question.text}\t{sentence}")
    if not counts.questions:
        raise DataError(
            f"{source}: no question whose answer is a part of its paragraph. Give a file of "
            "reading comprehension with answers, such as cmrc2018_dev.json."
        )
    try:
        Path(target).write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise DataError(f"{target}: can't be written ({error}). Name another file.") from error
    return counts


def ranking_questions(source: str | Path, counts: Counts) -> Iterator[Question]:
    """Every question of a file with the sentences of its paragraph.

    Args:
        counts: counted up on the way.

    Raises:
        DataError: the file isn't in SQuAD's form.
    """
    for paragraph in _paragraphs(Path(source)):
        for asked in paragraph.asked:
            made = _question(asked, paragraph, counts)
            if made is not None:
                counts.questions += 1
                counts.candidates += len(made.candidates)
                counts.several_right += len(made.right) > 1
                yield made


def comprehension_texts(source: str | Path) -> Iterator[str]:
    """Every question of a file, and every sentence of its paragraphs; answers aren't needed.

    Raises:
        DataError: the file isn't in SQuAD's form.
    """
    for paragraph in _paragraphs(Path(source), _without_answers):
        yield from (asked.text for asked in paragraph.asked)
        for start, end in sentence_spans(paragraph.context):
            yield _one_line(paragraph.context[start:end])


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Split a text into sentences.

    They end with 。！？；… and the quotes closed after these, or with the line;
    marks alone belong to the sentence before, or to the next where none is
    before. A text of marks alone is one sentence.

    Returns:
        (start, end) in characters, end exclusive, without white space around.
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


def _paragraphs(path: Path, read: Callable[[Any], _Asked] | None = None) -> Iterator[_Paragraph]:
    read = read or _asked
    try:
        data = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DataError(f"{path}: can't be read ({error}). Give a JSON file in UTF-8.") from error
    try:
        yield from [
            _Paragraph(
                _field(paragraph, "context", str),
                tuple(read(question) for question in _field(paragraph, "qas", list)),
            )
            for article in _field(data, "data", list)
            for paragraph in _field(article, "paragraphs", list)
        ]
    except (KeyError, TypeError) as error:
        raise DataError(
            f"{path}: not in SQuAD's form ({error} is missing or of another kind). Expected data → "
            "paragraphs → context and qas → question, id and answers → text and answer_start."
        ) from error


def _asked(question: Any) -> _Asked:
    answers = dict.fromkeys(
        (_field(answer, "text", str), _field(answer, "answer_start", int))
        for answer in _field(question, "answers", list)
    )
    name = _one_line(str(_field(question, "id", str | int)))
    return _Asked(name, _one_line(_field(question, "question", str)), tuple(answers))


def _without_answers(question: Any) -> _Asked:
    return _Asked("", _one_line(_field(question, "question", str)), ())


def _field(data: Any, name: str, kind: Any) -> Any:
    """A field of a JSON object.

    Raises:
        KeyError, TypeError: it isn't there, or is of another kind.
    """
    value = data[name]
    if not isinstance(value, kind):
        raise TypeError(f"'{name}'")
    return value


def _question(asked: _Asked, paragraph: _Paragraph, counts: Counts) -> Question | None:
    context = paragraph.context
    spans = sentence_spans(context)
    texts = [_one_line(context[start:end]) for start, end in spans]
    unique = list(dict.fromkeys(texts))
    right = set()
    for text, given in asked.answers:
        start = _place(context, text, given)
        if start is None:
            continue
        counts.offset_mended += start != given
        first = next(i for i, (_, end) in enumerate(spans) if start < end)
        counts.over_several_sentences += start + len(text) > spans[first][1]
        right.add(unique.index(texts[first]))
    if not right or not asked.text:
        counts.left_out_without_answer += 1
        return None
    if len(unique) < 2:
        counts.left_out_one_sentence += 1
        return None
    return Question(asked.name, asked.text, tuple(unique), frozenset(right))


def _place(context: str, text: str, start: int) -> int | None:
    """Where an answer begins: as said, or at the only place it is found."""
    if not text.strip():
        return None
    if start >= 0 and context.startswith(text, start):
        return start
    found = context.find(text)
    return found if found >= 0 and context.find(text, found + 1) < 0 else None


def _one_line(text: str) -> str:
    return " ".join(text.split())
