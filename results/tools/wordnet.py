"""WordNet as a graph, and texts with its senses as data for entity linking.

    python -m results.tools.wordnet --help

A synset is an entity: its gloss, its words (other names), and how often each word meant it in
SemCor are triples. Irregular forms that SemCor shows ("went") are other names too. Labelled texts
are written as JSON Lines in the format of entity-linking benchmarks: ``text``, and ``labels`` with
``span`` (start, end in characters) and ``entity_id``.
"""

import argparse
import gzip
import json
import lzma
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from kbert_core.errors import DataError
from kbert_core.files import replaced
from kbert_core.knowbert.morphology import RULES, WORD
from kbert_core.knowledge.triple import COUNT
from kbert_lab.data.labelled import GoldLink

PARTS = {"NOUN": "n", "VERB": "v", "ADJ": "as", "ADV": "r"}
GENERIC = ("person", "location", "group", "other")  # names that SemCor has no synset for
SEEN_AT_LEAST = 2  # times that SemCor shows an irregular form
QUOTES = {"``": '"', "''": '"'}


class WordNet:
    """WordNet 3.0, read from JSON Lines: one synset a line.

    Args:
        path: ``.jsonl`` or ``.jsonl.gz``; per line ``id``, ``gloss``, ``examples`` and
            ``senses``: sense key, number of the sense, count in SemCor.

    Raises:
        DataError: a line is no synset.
    """

    def __init__(self, path: str | Path) -> None:
        self.synsets: list[dict[str, Any]] = []
        self.of_key: dict[str, str] = {}
        for number, synset in _json_lines(path):
            try:
                for key, *_ in synset["senses"]:
                    self.of_key[str(key)] = str(synset["id"])
                str(synset["gloss"])
            except (KeyError, TypeError, ValueError) as error:
                raise DataError(
                    f"{path}, line {number}: found no synset ({error!r}), expected id, gloss and "
                    "senses. Take the file as it was published."
                ) from error
            self.synsets.append(synset)

    @cached_property
    def senses(self) -> Mapping[tuple[str, str], list[str]]:
        """The synsets of a word and a letter of its part of speech, the most frequent first."""
        found: dict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
        for synset in self.synsets:
            for key, number, _ in synset["senses"]:
                part = "as" if synset["pos"] in "as" else synset["pos"]
                found[word_of(key), part].append((number, synset["id"]))
        return {word: [synset for _, synset in sorted(own)] for word, own in found.items()}

    def triples(self, irregular: Iterable[tuple[str, str, str]] = ()) -> Iterator[str]:
        """Yield lines of a graph file: glosses, words, counts.

        Args:
            irregular: form, word and part of speech.
        """
        forms = defaultdict(list)
        for form, word, part in irregular:
            forms[word, part].append(form)
        for synset in self.synsets:
            name, part = synset["id"], "as" if synset["pos"] in "as" else synset["pos"]
            yield f"{name}\tgloss\t{synset['gloss']}"
            counts: dict[str, int] = {}
            for key, _, count in synset["senses"]:
                word = word_of(key)
                for form in (word, *forms[word, part]):
                    counts[form] = max(count, counts.get(form, 0))
            yield from (f"{name}\tsynonym\t{form}" for form in counts)
            yield from (f"{name}\t{COUNT}\t{form} {n}" for form, n in counts.items() if n)


def word_of(key: str) -> str:
    """The word of a sense key: "take_place%2:30:00::" → "take place"."""
    return key.split("%")[0].replace("_", " ")


def semcor(path: str | Path, wordnet: WordNet) -> Iterator[tuple[str, list[GoldLink]]]:
    """Read SemCor: texts with the senses of their words."""
    for number, sentence in _json_lines(path):
        try:
            text, places = _joined(sentence["tokens"])
            labels = []
            for sense in sentence["senses"]:
                start, end = places[sense["start"]][0], places[sense["end"]][1]
                own = tuple(wordnet.of_key[k] for k in sense["keys"] if k in wordnet.of_key)
                generic = (
                    sense["lemma"] in GENERIC and sense["lemma"] not in text[start:end].lower()
                )
                if own and not generic:
                    labels.append(GoldLink(start, end, own, sense["lemma"].replace("_", " ")))
        except (KeyError, TypeError, IndexError) as error:
            raise DataError(
                f"{path}, line {number}: found no sentence of SemCor ({error!r}). Take the file as "
                "it was published."
            ) from error
        yield text, labels


def examples(
    wordnet: WordNet, irregular: Iterable[tuple[str, str, str]] = ()
) -> Iterator[tuple[str, list[GoldLink]]]:
    """The examples of glosses, where one has a word of its synset, maybe inflected."""
    words_of_form: dict[tuple[str, str], set[str]] = defaultdict(set)
    for form, word, part in irregular:
        words_of_form[form, part].add(word)
    for synset in wordnet.synsets:
        part = "as" if synset["pos"] in "as" else synset["pos"]
        words = [word_of(key).lower().split() for key, *_ in synset["senses"]]
        for text in synset["examples"]:
            places = [match.span() for match in WORD.finditer(text)]
            forms = [
                (*_bases(form, part), *words_of_form[form, part])
                for form in (text[start:end].lower() for start, end in places)
            ]
            spans = (
                (places[first][0], places[first + len(word) - 1][1])
                for word in words
                for first in range(len(places) - len(word) + 1)
                if all(own in forms[first + i] for i, own in enumerate(word))
            )
            if (span := next(spans, None)) is not None:
                yield text, [GoldLink(*span, (synset["id"],))]


def framework(path: str | Path, wordnet: WordNet) -> Iterator[tuple[str, list[GoldLink]]]:
    """Read a set of the WSD evaluation framework (Raganato et al. 2017).

    Args:
        path: its ``.data.xml``, with ``.gold.key.txt`` beside it.

    Raises:
        DataError: a file is missing or broken.
    """
    path = Path(path)
    gold_file = path.with_name(path.name.replace(".data.xml", ".gold.key.txt"))
    try:
        gold = dict(
            line.split(" ", 1) for line in gold_file.read_text("utf-8").splitlines() if line
        )
        sentences = list(ET.parse(path).getroot().iter("sentence"))
    except (OSError, ValueError, ET.ParseError) as error:
        raise DataError(
            f"{path}: can't be read with {gold_file.name} ({error}). Take both files as they were "
            "published."
        ) from error
    for sentence in sentences:
        parts = list(sentence)
        text, places = _joined([part.text or "" for part in parts])
        labels = []
        for part, (start, end) in zip(parts, places, strict=True):
            if part.tag != "instance":
                continue
            keys = gold.get(part.get("id", ""), "").split()
            word = (part.get("lemma") or "").replace("_", " ").lower()
            candidates = wordnet.senses.get((word, PARTS.get(part.get("pos") or "", "")), [])
            own = tuple(wordnet.of_key[key] for key in keys if key in wordnet.of_key)
            if not own or not candidates:
                raise DataError(
                    f"{path}: {part.get('id')} ('{word}') has no sense of this WordNet. Take "
                    "WordNet 3.0."
                )
            labels.append(GoldLink(start, end, own, word, tuple(candidates)))
        yield text, labels


def irregular_forms(path: str | Path, wordnet: WordNet) -> list[tuple[str, str, str]]:
    """Forms of words that no rule of morphology gives and SemCor shows: form, word, part."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for _, sentence in _json_lines(path):
        for sense in sentence["senses"]:
            part = PARTS.get(sense["pos"])
            word = sense["lemma"].replace("_", " ")
            if sense["start"] != sense["end"] or part is None or " " in word or word in GENERIC:
                continue
            form = sentence["tokens"][sense["start"]].lower()
            if form.isalpha() and (word, part) in wordnet.senses and word not in _bases(form, part):
                counts[form, word, part] += 1
    return sorted(form for form, count in counts.items() if count >= SEEN_AT_LEAST)


def write_links(path: Path, texts: Iterable[tuple[str, Sequence[GoldLink]]]) -> int:
    """Write labelled texts as JSON Lines; how many labels were written."""
    count = 0
    with replaced(path) as file:
        for number, (text, labels) in enumerate(texts):
            rows = [
                {
                    "span": [own.start, own.end],
                    "entity_id": own.entities[0],
                    **({"also": own.entities[1:]} if own.entities[1:] else {}),
                    **({"word": own.word} if own.word else {}),
                    **({"candidates": own.candidates} if own.candidates else {}),
                }
                for own in labels
            ]
            count += len(rows)
            line = {"id": number, "text": text, "labels": rows}
            file.write((json.dumps(line, ensure_ascii=False) + "\n").encode())
    return count


def write_wordnet(
    wordnet_file: Path, semcor_file: Path, output: Path, sets: Mapping[str, Path] = {}
) -> dict[str, int]:
    """Write WordNet as a graph, and labelled texts.

    Args:
        sets: "dev" and "test" → a set of the evaluation framework.

    Returns:
        How many triples and labels each file has: ``wordnet.spo.xz``, ``train.jsonl`` of SemCor,
        ``examples.jsonl`` of glosses' examples, and the sets.
    """
    wordnet = WordNet(wordnet_file)
    irregular = irregular_forms(semcor_file, wordnet)
    output.mkdir(parents=True, exist_ok=True)
    lines = list(wordnet.triples(irregular))
    with replaced(output / "wordnet.spo.xz") as file:
        file.write(lzma.compress("\n".join([*lines, ""]).encode(), preset=9))
    texts = {"train": semcor(semcor_file, wordnet), "examples": examples(wordnet, irregular)}
    texts |= {split: framework(path, wordnet) for split, path in sets.items()}
    counts = {
        f"{name}.jsonl": write_links(output / f"{name}.jsonl", own) for name, own in texts.items()
    }
    return {"wordnet.spo.xz": len(lines), **counts}


def _bases(form: str, part: str) -> tuple[str, ...]:
    """A word's form and what the rules of morphology make of it."""
    made = (form.removesuffix(e) + new for e, new in RULES.get(part, ()) if form.endswith(e))
    return (form, *made)


def _joined(tokens: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """A text of tokens, and the place of each in characters."""
    words = [QUOTES.get(token, token) for token in tokens]
    places, at = [], 0
    for word in words:
        places.append((at, at + len(word)))
        at += len(word) + 1
    return " ".join(words), places


def _json_lines(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    opened = gzip.open if str(path).endswith(".gz") else open
    try:
        with opened(path, "rt", encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                yield number, json.loads(line)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path}: can't be read as JSON Lines ({error}). Copy it again.") from error


def main(arguments: Sequence[str] | None = None) -> None:
    """Make a graph from WordNet, and data for entity linking from SemCor and test sets."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--wordnet", type=Path, required=True, help="WordNet 3.0 as JSON Lines")
    parser.add_argument("--semcor", type=Path, required=True, help="SemCor as JSON Lines")
    parser.add_argument("--dev", type=Path, help="a .data.xml of the WSD evaluation framework")
    parser.add_argument("--test", type=Path, help="another")
    parser.add_argument("--output", type=Path, required=True, help="folder for graph and data")
    args = parser.parse_args(arguments)
    sets = {name: getattr(args, name) for name in ("dev", "test") if getattr(args, name)}
    print(write_wordnet(args.wordnet, args.semcor, args.output, sets))


if __name__ == "__main__":
    main()
