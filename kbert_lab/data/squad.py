"""Reading comprehension: CMRC 2018, DRCD and other sets in SQuAD's form.

Also data for answer selection made from them (which sentence of the paragraph contains the
answer?), written as qid, label, text_a, text_b.
"""

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic.dataclasses import dataclass
from pydantic_core import from_json

from kbert_core.errors import DataError
from kbert_core.labels import RIGHT, WRONG
from kbert_lab.data.labelled import Example
from kbert_lab.data.splits import write_rows
from kbert_lab.data.tables import Source, problem_of, read_lines

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
    for context, asked in _questions(source):
        right: set[str] = set()
        spans = sentence_spans(context)
        texts = [_one_line(context[start:end]) for start, end in spans]
        for answer, given in () if asked.impossible else asked.answers:
            start = _place(context, answer, given)
            if start is None:
                continue
            counts.offset_mended += start != given
            first = next(i for i, (_, end) in enumerate(spans) if start < end)
            counts.over_several_sentences += start + len(answer) > spans[first][1]
            right.add(texts[first])
        unique = dict.fromkeys(texts)
        if not right or not asked.text:
            counts.left_out_without_answer += 1
        elif len(unique) < 2:
            counts.left_out_one_sentence += 1
        else:
            counts.questions += 1
            counts.candidates += len(unique)
            counts.several_right += len(right) > 1
            for sentence in unique:
                label = RIGHT if sentence in right else WRONG
                yield Example((asked.text, sentence), label, group=asked.name)


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
    for context, asked in _questions(source):
        number, where = len(examples) + 1, f"{Path(source).name}, question '{asked.name}'"
        if not context.strip():
            raise DataError(f"{where}: the paragraph is blank. Write it, or delete it.")
        if not asked.text:  # as one of CMRC 2018's is
            log.warning("%s: the question is blank, so it is left out. Write the question.", where)
            continue
        if asked.impossible:
            unanswerable += 1
            continue
        places = [_place(context, answer, start) for answer, start in asked.answers]
        if not any(place is not None for place in places):
            first = next((f"the answer '{text[:40]}' isn't in" for text, _ in asked.answers), "")
            raise DataError(
                f"{where}: {first or 'no answer is in'} its paragraph, or is in several places but "
                "not at answer_start. Correct the answer, or delete the question."
            )
        nowhere += places.count(None)
        answers = tuple(
            (-1 if place is None else place, text)
            for place, (text, _) in zip(places, asked.answers, strict=True)
        )
        pair = (asked.text, context)
        examples.append(Example(pair, group=asked.name, answers=answers, source=of, line=number))
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
    return ((asked.text, context) for context, asked in _questions(source))


def comprehension_texts(source: str | Path) -> Iterator[str]:
    """Every question of a file, and every sentence of its paragraphs; answers aren't needed."""
    for paragraph in _paragraphs(source):
        context = paragraph.context
        yield from (asked.text for asked in paragraph.questions)
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


@dataclass(frozen=True)
class _Asked:
    """A question about a paragraph; its answers, each once, and where they begin."""

    name: str
    text: str
    answers: list[tuple[str, int]]
    impossible: bool


@dataclass(frozen=True)
class _Paragraph:
    context: str
    questions: list[_Asked]


def _paragraphs(source: str | Path) -> list[_Paragraph]:
    """The paragraphs of a file, in order."""

    def asked(data: Any) -> _Asked:
        answers = dict.fromkeys((a["text"], a["answer_start"]) for a in data.get("answers", ()))
        name, text = _one_line(str(data.get("id", ""))), _one_line(data["question"])
        return _Asked(name, text, [*answers], data.get("is_impossible") is True)

    try:
        return [
            _Paragraph(paragraph["context"], [*map(asked, paragraph["qas"])])
            for article in from_json("\n".join(read_lines(Path(source))))["data"]
            for paragraph in article["paragraphs"]
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{source}: can't be read, or isn't in SQuAD's form ({problem_of(error)}). Expected "
            "data → paragraphs → context and qas → question, id and answers → text and "
            "answer_start."
        ) from error


def _questions(source: str | Path) -> Iterator[tuple[str, _Asked]]:
    """The questions of a file, each after its paragraph."""
    for paragraph in _paragraphs(source):
        yield from ((paragraph.context, asked) for asked in paragraph.questions)


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
