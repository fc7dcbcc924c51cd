"""Relation classification: SemEval-2010 Task 8 → sentences with a label.

    python -m results.tools.relations TRAIN_FILE.TXT train.tsv

The two entities are marked in the text, ``@ baker @`` and ``# loaf #``: punctuation that hardly a
sentence has, that any vocabulary holds and that no tokenizer joins to a word. So a model needs no
new token, and a graph's names are found as they would be without the marks.
"""

import re
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from kbert_core.errors import DataError
from kbert_lab.data.labelled import Example
from kbert_lab.data.splits import write_rows
from kbert_lab.data.tables import Source, read_lines

MARKS = {"<e1>": "@ ", "</e1>": " @", "<e2>": "# ", "</e2>": " #"}
OTHER = "Other"  # the label of all else
RELATIONS = (
    *("Cause-Effect", "Component-Whole", "Content-Container", "Entity-Destination"),
    *("Entity-Origin", "Instrument-Agency", "Member-Collection", "Message-Topic"),
    "Product-Producer",
)
LABELS = (*(f"{name}({way})" for name in RELATIONS for way in ("e1,e2", "e2,e1")), OTHER)
TAG = re.compile(r"</?e[12]>")
SENTENCE = re.compile(r'\d+\t"(.*)"\s*')
COMMENT = "Comment:"


def write_relations(source: str | Path, target: str | Path) -> int:
    """Write the sentences of a file of the task as rows of label and text; how many there are.

    DataError where the source isn't as it was published, or the target can't be written.
    """
    examples = list(relation_examples(source))
    if not examples:
        raise DataError(f"{source}: no sentence in it. Take the file as it was published.")
    write_rows(target, examples)
    return len(examples)


def relation_examples(source: str | Path) -> Iterator[Example]:
    """Read every sentence of a file, its entities marked, with its relation and direction.

    Raises:
        DataError: with file and line, where a sentence, tag, relation or comment isn't as expected.
    """
    lines = read_lines(Path(source))
    of_file = Source(str(source))
    for is_blank, group in groupby(enumerate(lines, 1), key=lambda line: not line[1].strip()):
        if is_blank:
            continue
        (number, sentence), *rest = group
        text = _marked(sentence, of_file.place(number))
        after, label = rest[0] if rest else (number, "")
        if (label := label.strip()) not in LABELS:
            raise DataError(
                f"{of_file.place(after)}: found '{label or 'nothing'}' after the sentence, "
                f"expected its relation, such as {LABELS[0]}, or {OTHER}. Correct it. If the "
                "file has no relations, use the file that has them, TEST_FILE_FULL.TXT."
            )
        if odd := next((line for line in rest[1:] if not line[1].startswith(COMMENT)), None):
            raise DataError(
                f"{of_file.place(odd[0])}: found '{odd[1].strip()[:60]}' after a relation, "
                f"expected '{COMMENT}' or an empty line. Put one before the next sentence."
            )
        yield Example((text,), label, source=of_file, line=number)


def _marked(line: str, where: str) -> str:
    """The sentence of a line, marks in place of its tags."""
    match = SENTENCE.fullmatch(line)
    if match is None:
        raise DataError(
            f"{where}: found '{line.strip()[:60]}', expected a number, a tab and a sentence in "
            "double quotes. Correct the line."
        )
    text = match[1].strip()
    if (tags := TAG.findall(text)) != [*MARKS]:
        raise DataError(
            f"{where}: the tags are {' '.join(tags) or 'none'}, expected {' '.join(MARKS)}, each "
            "once. Mark both entities."
        )
    pieces = TAG.split(text)
    if empty := next((n for n in (1, 2) if not pieces[2 * n - 1].strip()), None):
        raise DataError(f"{where}: <e{empty}> has no text. Mark the words of the entity.")
    return TAG.sub(lambda tag: MARKS[tag[0]], text)


if __name__ == "__main__":
    print(write_relations(*sys.argv[1:]), "sentences")
