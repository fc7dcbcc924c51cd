"""Text → codes: sentences per second beside the released K-BERT's algorithm.

Both read every sentence of medical_ner with MedicalKG; the comparison is made
only after both have given the same tokens, soft positions and visible
matrices. One thread, repeats in turn, CPU seconds.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from kbert_core.kbert.bulk import inject

from benchmarks.common import data_folder, machine, print_table, spread, write
from benchmarks.release import ReleasedKnowledge
from kbert_core import Characters, KnowledgeGraph, flatten, grow_trees, load_graph, visible_matrix

LENGTH = 256
TOKENIZER = Characters(special=True)
LIMIT = "over 256 tokens: the release cuts branches, the core leaves them out whole"
BORDER = "a name inside a longer Latin word or number: the core wants a word boundary"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=11)
    repeats = max(2, parser.parse_args().repeats)
    torch.set_num_threads(1)
    data = data_folder() / "kbert"
    graph = load_graph(data / "Medical.spo")
    released = ReleasedKnowledge(graph)
    texts = medical_ner(data / "medical_ner")
    same, differ = compared(texts, graph, released)
    print(f"{len(texts)} sentences, {len(same)} with the same tokens, positions and matrix;")
    for reason, found in differ.items():
        print(f"{len(found)} left out, {reason}")

    def by_release() -> None:
        for text in same:  # nothing is kept: thousands of dense matrices would slow it down
            released.inject(text, max_length=LENGTH)

    def one_by_one() -> None:
        for text in same:
            flatten(grow_trees([text], graph), TOKENIZER, max_length=LENGTH)[0]

    def together() -> None:
        inject(same, graph, TOKENIZER, max_length=LENGTH)

    ways: dict[str, Callable[[], None]] = {
        "release": by_release,
        "one_by_one": one_by_one,
        "together": together,
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for repeat in range(repeats + 1):
        for name, way in ways.items():
            start = time.process_time()
            way()
            if repeat:  # the first is for warming up
                seconds[name].append(time.process_time() - start)

    result = {
        "what": "text to codes, medical_ner with MedicalKG, characters as tokens",
        "machine": machine("numpy", "marisa-trie", "torch"),
        "sentences": len(same),
        "mean_characters": round(sum(map(len, same)) / len(same), 2),
        "left_out": {reason: len(found) for reason, found in differ.items()},
        "repeats": repeats,
        "sentences_per_second": {
            name: spread([len(same) / one for one in found]) for name, found in seconds.items()
        },
        "times_the_release": {
            name: spread([a / b for a, b in zip(seconds["release"], found, strict=True)])
            for name, found in seconds.items()
            if name != "release"
        },
    }
    titles = {
        "release": "the release's algorithm",
        "one_by_one": "grow_trees + flatten, each text",
        "together": "bulk.inject, all texts",
    }
    rows = [["", "sentences/s", "µs each", "times the release", "least to most"]]
    for name, title in titles.items():
        speed = result["sentences_per_second"][name]["median"]
        ratio = result["times_the_release"].get(name)
        rows.append(
            [
                title,
                f"{speed:,.0f}",
                f"{1e6 / speed:.1f}",
                f"{ratio['median']:.1f}" if ratio else "1",
                f"{ratio['least']:.1f} to {ratio['most']:.1f}" if ratio else "",
            ]
        )
    print()
    print_table(rows)
    write("injection.json", result)


def medical_ner(folder: Path) -> list[str]:
    texts = []
    for split in ("train", "dev", "test"):
        lines = (folder / f"{split}.tsv").read_text(encoding="utf-8").split("\n")[1:]
        texts += [line.split("\t")[0].replace(" ", "") for line in lines if line]
    return texts


def compared(
    texts: list[str], graph: KnowledgeGraph, released: ReleasedKnowledge
) -> tuple[list[str], dict[str, list[str]]]:
    """Part the sentences into those both read alike and, by reason, the others.

    Raises:
        SystemExit: they differ on a sentence for no known reason.
    """
    same: list[str] = []
    differ: dict[str, list[str]] = {LIMIT: [], BORDER: []}
    codes = inject(texts, graph, TOKENIZER, max_length=LENGTH)
    for text, own in zip(texts, codes, strict=True):
        flat = flatten(grow_trees([text], graph), TOKENIZER, max_length=LENGTH)[0]
        tokens, positions, _, visible = released.inject(text, max_length=LENGTH)
        size = len(flat)
        branch_ids, anchor_ids = torch.from_numpy(own[2:4]).unsqueeze(1)
        padding = LENGTH - size
        alike = (
            flat.tokens + ["[PAD]"] * padding == tokens
            and own[1].tolist() == flat.soft_positions
            and flat.soft_positions + [LENGTH - 1] * padding == positions
            and np.array_equal(
                np.pad(visible_matrix(branch_ids, anchor_ids)[0].numpy(), (0, padding)), visible
            )
        )
        if alike:
            same.append(text)
        elif flat.left_out and tokens[-1] != "[PAD]":
            differ[LIMIT].append(text)
        elif any(map(str.isascii, text)) and _only_bounded(text, graph, released):
            differ[BORDER].append(text)
        else:
            raise SystemExit(f"The two differ on this sentence for no known reason: {text}")
    return same, differ


def _only_bounded(text: str, graph: KnowledgeGraph, released: ReleasedKnowledge) -> bool:
    """Say whether all the core's mentions are the release's too, which has some more."""
    own = {node.mention.entity for node in grow_trees([text], graph)[0].nodes}
    theirs = {word.casefold() for word in released.words(text) if word in released.entities}
    return own < theirs


if __name__ == "__main__":
    main()
