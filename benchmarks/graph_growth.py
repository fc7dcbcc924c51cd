"""How a graph file grows: the same made-up triples, more and more of them, beside a bare trie.

Every step of a size has a process of its own, so that its memory can be measured. A size that is
in the JSON already is left out: what was cut off goes on. Seconds are CPU seconds of one thread.
"""

import argparse
import json
import random
import resource
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import marisa_trie

from benchmarks.common import RESULTS, machine, print_table, spread, write
from benchmarks.graph_store import LOOKUPS, SENTENCES, cpu_of, sentence, write_synthetic
from kbert_core import find_mentions
from kbert_core.knowledge.io import open_rows
from kbert_core.knowledge.surface_forms import AS_WRITTEN
from kbert_lab.explain.drawing import drawing, tidy
from kbert_lab.graphs.store.importing import Source, import_triples
from kbert_lab.graphs.store.store import GraphStore
from results.tools.pictures import LINES, MARKERS

MILLIONS = (1, 5, 20, 100)
NAME = "graph_growth.json"
PICTURE = Path(__file__).parents[1] / "docs" / "scale" / "growth.png"
TOGETHER = 64  # sentences, as `kbert predict` reads a file
AT_ONCE = 100_000  # heads


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="for graphs; 100 million triples take 20 GB")
    parser.add_argument("--millions", type=int, nargs="+", default=MILLIONS)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    kept = RESULTS / NAME
    sizes = json.loads(kept.read_text("utf-8"))["sizes"] if kept.exists() else []
    for count in (1_000_000 * millions for millions in args.millions):
        if all(size["triples_asked"] != count for size in sizes):
            text = args.folder / f"{count}.spo"
            graph = text.with_suffix(".kg")
            if not graph.exists():
                in_a_process(write_synthetic, text, count)
                notes = in_a_process(imported, text, graph)
                graph.with_suffix(".json").write_text(json.dumps(notes))
            notes = json.loads(graph.with_suffix(".json").read_text())
            trie = text.with_suffix(".trie")
            bare = in_a_process(bare_trie, text, trie)
            measured = in_a_process(matched, text, graph, trie, args.repeats)
            sizes.append({"triples_asked": count, **notes, **bare, **measured})
            sizes.sort(key=lambda size: size["triples"])
            what = "a graph file of more and more synthetic triples beside a bare trie"
            write(NAME, {"what": what, "machine": machine("marisa-trie"), "sizes": sizes})
    draw(sizes)
    shown = ["triples", *(name for name in sizes[0] if name not in ("triples_asked", "triples"))]
    figures = [[size[n]["median"] if "micro" in n else size[n] for n in shown] for size in sizes]
    rows = zip(shown, *figures, strict=True)
    print_table([[str(cell) for cell in row] for row in rows])


def in_a_process(work: Callable[..., Any], *given: Any) -> Any:
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(work, *given).result()


def peak() -> float:
    """Megabytes of memory that this process has taken at most, of mapped files too."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6, 1)


def imported(text: Path, graph: Path) -> dict[str, Any]:
    wall, before, begun = time.perf_counter(), peak(), time.process_time()
    done = import_triples(graph, [Source(text.name, open_rows(text))])
    seconds = time.process_time() - begun
    names = next(graph.parent.glob(f"{graph.name}.names-*"))
    return {
        "triples": done.triples,
        "import_triples_per_second": round(done.triples / seconds),
        "import_wall_seconds": round(time.perf_counter() - wall, 1),
        "import_peak_megabytes": peak(),
        "peak_megabytes_before": before,
        "graph_megabytes": round(graph.stat().st_size / 1e6, 1),
        "names_megabytes": round(names.stat().st_size / 1e6, 1),
    }


def bare_trie(text: Path, trie: Path) -> dict[str, Any]:
    """Make a trie of the heads alone, all at once, without all that a graph needs."""
    made = marisa_trie.Trie(head for _, head, _, _ in open_rows(text))
    made.save(str(trie))
    return {"heads": len(made), "bare_trie_peak_megabytes": peak()}


def matched(text: Path, path: Path, trie_file: Path, repeats: int) -> dict[str, Any]:
    begun = time.perf_counter()
    store = GraphStore(path)
    opened = time.perf_counter() - begun
    graph, trie = store.graph(), marisa_trie.Trie()
    trie.mmap(str(trie_file))
    dice = random.Random(2)
    some = islice(open_rows(text), 0, None, max(1, len(trie) // AT_ONCE))
    heads = [head for _, head, _, _ in some]
    sentences = [sentence(dice, heads) for _ in range(SENTENCES)]
    for line in sentences[:200]:
        ours = [mention.entity for mention in find_mentions([line], graph, rules=AS_WRITTEN)[0]]
        if ours != (theirs := list(leftmost_longest(line, trie))):
            raise SystemExit(f"The two find different names in {line}: {ours} and {theirs}")

    def one_by_one() -> None:
        for line in sentences:
            find_mentions([line], graph)[0]

    def together() -> None:
        for first in range(0, SENTENCES, TOGETHER):
            list(find_mentions(sentences[first : first + TOGETHER], graph))

    def bare() -> None:
        for line in sentences:
            for place in range(len(line)):
                trie.prefixes(line[place:])

    ways = {"match": one_by_one, "match_together": together, "bare_trie": bare}
    times: dict[str, list[float]] = {way: [] for way in ways}
    fetch = []
    for _ in range(repeats):
        for way, work in ways.items():
            times[way].append(1e6 / SENTENCES * cpu_of(work))
        wanted = dice.sample(heads, LOOKUPS)
        fetch.append(1e6 / LOOKUPS * cpu_of(lambda w=wanted: [*map(graph.triples_of, w)]))
    return {
        "open_first_milliseconds": round(1000 * opened, 1),
        **{f"{way}_microseconds_a_sentence": spread(each) for way, each in times.items()},
        "fetch_microseconds_a_hit": spread(fetch),
    }


def leftmost_longest(text: str, trie: marisa_trie.Trie) -> Iterator[str]:
    place = 0
    while place < len(text):
        names = trie.prefixes(text[place:])
        if names:
            yield names[-1]
        place += len(names[-1]) if names else 1


def draw(sizes: list[dict[str, Any]]) -> None:
    """Draw what an import takes and what matching takes, by the number of triples."""
    millions = [size["triples"] / 1e6 for size in sizes]
    panels = {
        "import, thousand triples per CPU second": {
            "graph file": [size["import_triples_per_second"] / 1e3 for size in sizes],
            "aim": [100] * len(sizes),
        },
        "peak memory of the import, MB": {
            "graph file": [size["import_peak_megabytes"] for size in sizes],
            "aim": [2048 * 1.048576] * len(sizes),
        },
        "names of a sentence of 26 characters, µs": {
            label: [size[f"{way}_microseconds_a_sentence"]["median"] for size in sizes]
            for way, label in (
                ("match", "one by one"),
                ("match_together", f"{TOGETHER} together"),
                ("bare_trie", "bare trie"),
            )
        },
    }
    PICTURE.parent.mkdir(exist_ok=True)
    with drawing(11, 3.2) as figure:
        for panel, (title, lines) in zip(figure.subplots(1, 3), panels.items(), strict=True):
            for color, marker, (label, values) in zip(LINES, MARKERS, lines.items(), strict=False):
                panel.plot(millions, values, color=color, marker=marker, markersize=4, label=label)
            panel.set(xscale="log", xlabel="million triples", ylim=(0, None))
            panel.set_title(title, fontsize=10)
            panel.set_xticks(millions, [f"{value:g}" for value in millions], minor=False)
            panel.minorticks_off()
            panel.legend(frameon=False, fontsize=8)
            tidy(panel, "y")
        figure.savefig(PICTURE, dpi=160)


if __name__ == "__main__":
    main()
