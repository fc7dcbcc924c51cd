"""Text → batch, as training and prediction make it, beside the released K-BERT's algorithm.

Both read the same sentences of medical_ner and chnsenticorp with MedicalKG and HowNet. Ours are
the tensors that the encoder gets, with the ids of a shipped model's tokenizer, at the batch's own
length; the visible matrix, which the model's device makes of them, is timed besides. The release's
are arrays of ids, positions and a matrix a sentence, padded to 256, without the step to tensors.
Before anything is timed, ids, soft positions and matrix must be equal on every sentence. One
thread, ways in turn, CPU seconds. Where pkuseg is installed, the release is timed with it, too, as
it comes: it segments words with a statistical model.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.common import data_folder, machine, print_table, spread, write
from benchmarks.release import ReleasedKnowledge
from kbert_core import (
    Batch,
    FlatTree,
    InjectionOptions,
    KnowledgeGraph,
    Pipeline,
    ReadConfig,
    load_graph,
)
from kbert_core.knowledge.surface_forms import AS_WRITTEN
from kbert_lab.data.labelled import read_examples

ROOT = Path(__file__).parents[1]
DATA = {"medical_ner": "ner", "chnsenticorp": "classify"}
GRAPHS = {"MedicalKG": "Medical.spo", "HowNet": "HowNet.spo"}
LENGTH, ROWS = 256, 32  # the release's
AIM, AIM_BY_ALGORITHM = 10, 3
LIMIT = "over 256 tokens: the release cuts branches, the core leaves them out whole"
BORDER = "a name inside a longer Latin word or number: the core wants a word boundary"
FORM = "a name that the graph writes otherwise (script, case, width): the core finds it"
PIECES = "characters that aren't one token each"
SPECIAL, PAD = ("[CLS]", "[SEP]"), "[PAD]"
NOT_ONE = -1  # in place of an id
AS_RELEASED = ReadConfig(InjectionOptions(max_triples=2), max_length=LENGTH)
STRICT = replace(AS_RELEASED, options=InjectionOptions(max_triples=2, names=AS_WRITTEN))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--texts", type=int, default=1500, help="of each data set; default: 1500")
    parser.add_argument("--repeats", type=int, default=7, help="at least 2; default: 7")
    parser.add_argument("--model", default=str(ROOT / "models" / "medical-ner-kbert"))
    args = parser.parse_args()
    torch.set_num_threads(1)
    pipeline = Pipeline.from_pretrained(args.model, device="cpu")
    data = data_folder() / "kbert"
    rows = []
    for folder, task in DATA.items():
        texts = sentences(data / folder / "train.tsv", task)[: args.texts]
        for name, file in GRAPHS.items():
            case = Case(pipeline, load_graph(data / file), texts)
            rows.append({"data": folder, "graph": name, **case.measured(max(2, args.repeats))})
    result = {
        "what": "text to batch, beside the release's text to arrays; CPU seconds",
        "aim": AIM,
        "aim_by_algorithm": AIM_BY_ALGORITHM,
        "machine": machine("numpy", "marisa-trie", "tokenizers", "torch"),
        "model": Path(args.model).name,
        "repeats": args.repeats,
        "cases": rows,
    }
    show(result)
    write("injection.json", result)


def sentences(path: Path, task: str) -> list[str]:
    """Read the texts of a labelled file."""
    return [example.sentences[0] for example in read_examples(path, task)]


class Case:
    """One data set with one graph, read by both.

    Args:
        pipeline: reads for us.
        graph: K.
        texts: those that the two read differently for a known reason are left out.

    Raises:
        SystemExit: they differ on a text for no known reason.
    """

    def __init__(self, pipeline: Pipeline, graph: KnowledgeGraph, texts: Sequence[str]) -> None:
        self.pipeline, self.graph, self.released = pipeline, graph, ReleasedKnowledge(graph)
        self.same: list[str] = []
        self.differ: dict[str, int] = dict.fromkeys((LIMIT, BORDER, FORM, PIECES), 0)
        layout = pipeline.tokenizer.layout(1)
        self.ids = dict(zip(SPECIAL, (layout.before[0][0].id, layout.after[0].id), strict=True))
        for text, reading in zip(texts, self.readings(texts), strict=True):
            if reason := self._difference(text, reading.rows[0]):
                self.differ[reason] += 1
            else:
                self.same.append(text)

    def readings(self, texts: Sequence[str], config: ReadConfig = AS_RELEASED) -> Sequence[Any]:
        """Read texts: one flat tree each."""
        return self.pipeline.reader.read([[text] for text in texts], self.graph, config)

    def batches(self, texts: Sequence[str]) -> Iterator[Batch]:
        """Make batches of similar length, as prediction does."""
        readings = self.readings(texts)
        for config, rows, _ in self.pipeline.reader.batches(readings, ROWS):
            yield self.pipeline.reader.collate(rows, config)

    def measured(self, repeats: int) -> dict[str, Any]:
        """Time every way in turns."""

        def by_release() -> None:
            for text in self.same:  # nothing is kept: thousands of matrices would slow it down
                tokens, *_ = self.released.inject(text, max_length=LENGTH)
                [self.ids.get(token, 0) for token in tokens]

        def by_release_with_pkuseg() -> None:
            for text in self.same:
                tokens, *_ = segmenting.inject(text, max_length=LENGTH)
                [self.ids.get(token, 0) for token in tokens]

        def one_by_one() -> None:
            for text in self.same:
                list(self.batches([text]))

        def together() -> None:
            for _ in self.batches(self.same):
                pass

        def with_matrix() -> None:
            for batch in self.batches(self.same):
                AS_RELEASED.ablation.visible_in(batch)

        ways: dict[str, Callable[[], None]] = {
            "release": by_release,
            "together": together,
            "with_matrix": with_matrix,
            "one_by_one": one_by_one,
        }
        if find_spec("pkuseg"):
            segmenting = ReleasedKnowledge(self.graph, pkuseg=True)
            ways["release_with_pkuseg"] = by_release_with_pkuseg
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for repeat in range(repeats + 1):
            for name, way in ways.items():
                start = time.process_time()
                way()
                if repeat:  # the first is for warming up
                    seconds[name].append(time.process_time() - start)
        count = len(self.same)
        return {
            "sentences": count,
            "mean_characters": round(sum(map(len, self.same)) / count, 1),
            "left_out": {reason: number for reason, number in self.differ.items() if number},
            "sentences_per_second": {
                name: spread([count / each for each in times]) for name, times in seconds.items()
            },
            **{
                f"times_the_{release}": {
                    name: spread(
                        [a / b for a, b in zip(seconds[release], seconds[name], strict=True)]
                    )
                    for name in ("together", "with_matrix", "one_by_one")
                }
                for release in ("release", "release_with_pkuseg")
                if release in ways
            },
        }

    def _difference(self, text: str, row: FlatTree) -> str | None:
        """Say why the two read a text differently; None where they read it alike."""
        tokens, positions, _, matrix = self.released.inject(text, max_length=LENGTH)
        size = len(row)
        real = tokens.index(PAD) if tokens[-1] == PAD else LENGTH
        self._learn({token for token in tokens[:real] if token not in self.ids})
        batch = self.pipeline.reader.collate([row], AS_RELEASED)
        visible = AS_RELEASED.ablation.visible_in(batch)[0].numpy()
        if (
            size == real
            and row.input_ids == [self.ids[token] for token in tokens[:real]]
            and row.soft_positions == positions[:real]
            and np.array_equal(np.pad(visible, (0, LENGTH - size)), matrix)
        ):
            return None
        if real == LENGTH:
            return LIMIT
        pieces = any(len(token) != 1 for token in row.tokens if token not in SPECIAL)
        if pieces or NOT_ONE in map(self.ids.get, tokens[:real]):
            return PIECES
        strict = self.readings([text], STRICT)[0]
        if [node.mention for node in row.tree.nodes] != list(strict.mentions):
            return FORM
        if any(map(str.isascii, text)):
            return BORDER
        raise SystemExit(f"The two differ on this sentence for no known reason: {text}")

    def _learn(self, tokens: set[str]) -> None:
        """Look up the ids of the release's tokens, which are characters."""
        new = sorted(tokens)
        for token, pieces in zip(new, self.pipeline.tokenizer.tokenize(new), strict=True):
            self.ids[token] = pieces.ids[0] if len(pieces) == 1 else NOT_ONE


def show(result: dict[str, Any]) -> None:
    """Print a line for each data set and graph."""
    table = [
        [
            "data, graph",
            "sentences",
            "sentences/s",
            "times the release",
            "with pkuseg",
            "with the matrix",
            "one by one",
        ]
    ]
    for case in result["cases"]:
        times = case["times_the_release"]
        whole = case.get("times_the_release_with_pkuseg", {}).get("together", {})
        table.append(
            [
                f"{case['data']}, {case['graph']}",
                str(case["sentences"]),
                f"{case['sentences_per_second']['together']['median']:,.0f}",
                f"{times['together']['median']:.1f}",
                f"{whole['median']:.1f}" if whole else "",
                f"{times['with_matrix']['median']:.1f}",
                f"{times['one_by_one']['median']:.1f}",
            ]
        )
    print_table(table)
    for case in result["cases"]:
        for reason, number in case["left_out"].items():
            print(f"{case['data']}, {case['graph']}: {number} left out, {reason}")


if __name__ == "__main__":
    main()
