"""Data for results/suites/reading.yaml: questions made of plain text, and real ones in three parts.

In `cloze`, a sentence of a paragraph, with a word or a number replaced by 什么, 谁 or 多少, is the
question; what was replaced is the answer. Words and clauses are left out of the question at random,
so that it isn't the sentence itself. From these a small encoder learns to look up an answer.
In `cmrc` and `drcd` are the real questions, DRCD's in simplified characters. Their paragraphs are
cut into parts of whole sentences, of at most 220 characters; a question goes with the first part
that holds an answer to it. Of their dev files a tenth of the paragraphs is dev, the rest train;
CMRC's trial file and DRCD's test file are test. `both` has the questions of the two that train,
and CMRC's test.

All are in SQuAD's form. The data are not part of this repository, and neither is what is written.
"""

import argparse
import json
import lzma
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import data_folder
from kbert_core import KBertError, load_graph
from kbert_core.knowledge.names import simplified
from kbert_lab.data.squad import sentence_spans

NEWS = "text/lctt_translations.txt.xz"
REAL = {  # folder → the file that trains, and the one that tests
    "cmrc": ("qa/cmrc2018_dev.json", "qa/cmrc2018_trial.json"),
    "drcd": ("qa/DRCD_dev.json", "qa/DRCD_test.json"),
}
DEV_SHARE = 0.1  # of the paragraphs
WORDS = "kbert/HowNet.spo"  # its heads are the words that may be asked for
LONGEST_WORD = 8  # characters
PARAGRAPH = range(60, 360)  # characters
LONGEST_PART = 220  # characters of a real paragraph
ASKED = range(12, 80)  # characters of a sentence that is asked about
NUMBER = re.compile(r"\d[\d.,]*\s?(?:年|月|日|%|万|亿|元|米|个|人|次|岁)*")
NAMED = re.compile(r"(?<=[《“「])[^《》“”「」]{2,15}(?=[》”」])|[A-Za-z][\w.+-]{2,}")
FOR_NUMBER, FOR_WORD = ("多少", "几", "哪一个"), ("什么", "谁", "哪个", "哪里", "何")
CLAUSE = re.compile(r"[^，；：、,;:]+[，；：、,;:]?")
LEFT_OUT = {"word": 0.2, "clause": 0.5}
EACH = 3  # questions of a paragraph


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("runs/reading"), metavar="DIR")
    parser.add_argument("--questions", type=int, default=20_000, help="of cloze; default: 20,000")
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn; default: 0")
    args = parser.parse_args()
    data, random = data_folder(), np.random.default_rng(args.seed)
    known: list[str] = []  # CMRC's paragraphs that train
    both: dict[str, list[Any]] = {}
    for name, (training, test) in REAL.items():
        train, dev = divided(simplified_paragraphs(data / training), random)
        known += [paragraph["context"] for paragraph in train if name == "cmrc"]
        splits = {"train": train, "dev": dev, "test": simplified_paragraphs(data / test)}
        parts = {split: [p for own in of for p in parts_of(own)] for split, of in splits.items()}
        written(args.output / name, parts)
        for split in ("train", "dev"):
            both.setdefault(split, []).extend(parts[split])
        both.setdefault("test", parts["test"])
    written(args.output / "both", both)
    try:
        words = {h for h, _ in load_graph(data / WORDS).items() if 2 <= len(h) <= LONGEST_WORD}
    except KBertError as error:
        raise SystemExit(str(error)) from error
    with lzma.open(data / NEWS, "rt", encoding="utf-8") as lines:
        texts = [*known, *(line.strip() for line in lines)]
    wanted, paragraphs = args.questions, list[Any]()
    for paragraph in paragraphs_of([texts[i] for i in random.permutation(len(texts))]):
        questions = [*questions_of(paragraph, words, random, str(len(paragraphs)))]
        if questions:
            paragraphs.append({"context": paragraph, "qas": questions})
            wanted -= len(questions)
        if wanted <= 0:
            break
    train, dev = divided(paragraphs, random, 0.05)
    written(args.output / "cloze", {"train": train, "dev": dev})


def simplified_paragraphs(path: Path) -> list[Any]:
    """The paragraphs of a file with their questions; no character more or less than before."""
    text = "".join(map(simplified, path.read_text(encoding="utf-8-sig")))
    return [p for article in json.loads(text)["data"] for p in article["paragraphs"]]


def parts_of(paragraph: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The parts of a paragraph that hold answers, each with its questions."""
    context = paragraph["context"]
    spans = sentence_spans(context)
    parts: list[tuple[int, int]] = []
    for start, end in spans:
        if parts and end - parts[-1][0] <= LONGEST_PART:
            start = parts.pop()[0]
        parts.append((start, end))
    left = [question for question in paragraph["qas"] if question["question"].strip()]
    for start, end in parts:
        questions = []
        for question in left:
            answers = [
                {"text": answer["text"], "answer_start": answer["answer_start"] - start}
                for answer in question["answers"]
                if start <= (at := answer["answer_start"])
                and at + len(answer["text"]) <= end
                and context.startswith(answer["text"], at)
            ]
            if answers:
                questions.append({**question, "answers": answers})
        taken = {question["id"] for question in questions}
        left = [question for question in left if question["id"] not in taken]
        if questions:
            yield {"context": context[start:end], "qas": questions}


def divided(
    paragraphs: Sequence[Any], random: np.random.Generator, share: float = DEV_SHARE
) -> tuple[list[Any], list[Any]]:
    """Train and dev: equal paragraphs stay together."""
    contexts = [*dict.fromkeys(paragraph["context"] for paragraph in paragraphs)]
    drawn = random.permutation(len(contexts))[: round(share * len(contexts))]
    held = {contexts[i] for i in drawn}
    parts: tuple[list[Any], list[Any]] = [], []
    for paragraph in paragraphs:
        parts[paragraph["context"] in held].append(paragraph)
    return parts


def written(folder: Path, splits: Mapping[str, Sequence[Any]]) -> None:
    """Write splits in SQuAD's form, and say how many questions they have."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, paragraphs in splits.items():
        file = {"version": "1", "data": [{"paragraphs": paragraphs}]}
        path = folder / f"{split}.json"
        path.write_text(json.dumps(file, ensure_ascii=False), encoding="utf-8")
        questions = sum(len(paragraph["qas"]) for paragraph in paragraphs)
        print(f"{path}: {questions:,} questions, {len(paragraphs):,} paragraphs")


def paragraphs_of(texts: Sequence[str]) -> Iterator[str]:
    """Whole sentences of a text together, as many as a paragraph may hold."""
    for text in texts:
        paragraph = ""
        for start, end in sentence_spans(text):
            sentence = text[start:end]
            if len(paragraph) + len(sentence) >= PARAGRAPH.stop:
                if len(paragraph) in PARAGRAPH:
                    yield paragraph
                paragraph = ""
            paragraph += sentence
        if len(paragraph) in PARAGRAPH:
            yield paragraph


def questions_of(
    paragraph: str, words: set[str], random: np.random.Generator, name: str
) -> Iterator[dict[str, object]]:
    """Questions about different sentences of a paragraph, as SQuAD has them."""
    spans = [span for span in sentence_spans(paragraph) if span[1] - span[0] in ASKED]
    for number in random.permutation(len(spans))[:EACH]:
        start, end = spans[number]
        sentence = paragraph[start:end]
        found = word_spans(sentence, words)
        named = [m.span() for kind in (NUMBER, NAMED) for m in kind.finditer(sentence)]
        places = named if named and random.random() < 0.5 else found
        if not places:
            continue
        first, last = places[random.integers(len(places))]
        if places is found and random.random() < 0.3:  # a word and what stands beside it
            last = next((b for a, b in found if a == last), last)
        yield {
            "id": f"{name}-{number}",
            "question": asked(sentence, (first, last), found, random),
            "answers": [{"text": sentence[first:last], "answer_start": start + first}],
        }


def word_spans(sentence: str, words: set[str]) -> list[tuple[int, int]]:
    """The longest words from left to right, (start, end)."""
    spans, at = [], 0
    while at < len(sentence):
        sizes = range(min(LONGEST_WORD, len(sentence) - at), 1, -1)
        size = next((size for size in sizes if sentence[at : at + size] in words), 0)
        if size:
            spans.append((at, at + size))
        at += size or 1
    return spans


def asked(
    sentence: str,
    answer: tuple[int, int],
    words: Sequence[tuple[int, int]],
    random: np.random.Generator,
) -> str:
    """A sentence as a question for a part of it, with words and clauses left out."""
    first, last = answer
    kept = np.ones(len(sentence), bool)
    for start, end in words:
        kept[start:end] = random.random() >= LEFT_OUT["word"]
    kind = FOR_NUMBER if sentence[first].isdigit() else FOR_WORD
    word = kind[random.integers(len(kind))]
    clauses = []
    for clause in CLAUSE.finditer(sentence):
        start, end = clause.span()
        holds = start < last and first < end
        if not holds and random.random() < LEFT_OUT["clause"]:
            continue
        text = "".join(
            word if i == first else sentence[i]
            for i in range(start, end)
            if i == first or (kept[i] and not first <= i < last)
        )
        clauses.append(text)
    if random.random() < 0.3:
        clauses.reverse()
    return "".join(clauses).strip("，；：、,;:。！？!?… ") + "？"


if __name__ == "__main__":
    main()
