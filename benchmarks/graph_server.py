"""A graph on a PostgreSQL server beside the same graph in a file: match, inject, edit.

Both hold the same synthetic triples and read the same sentences, in turn, in one process; the
server is a private one on this machine, and both keep an edit on disk before they confirm it. Wall
clock, because the server's work is another process's. Needs PostgreSQL and `kbert-lab[server]`.
"""

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.common import machine, print_table, spread, write
from benchmarks.graph_store import sentence, write_synthetic
from kbert_core import InjectionOptions, KnowledgeGraph, Triple, find_mentions
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.io import open_rows
from kbert_core.knowledge.selection import Selection
from kbert_core.knowledge.strategies import select_triples
from kbert_lab.graphs.store.anywhere import copy_graph, open_store
from kbert_lab.graphs.store.importing import Source, import_triples
from kbert_lab.graphs.store.server import ServerStore
from kbert_lab.graphs.store.store import GraphStore

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from postgres import running_cluster

DEFAULT = 100_000  # triples; more have a file of results of their own


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--triples", type=int, default=DEFAULT)
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--edits", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, running_cluster(fsync="on") as cluster:
        measure(args, Path(folder), cluster.address())


def measure(args: argparse.Namespace, folder: Path, address: str) -> None:
    text, path = folder / "triples.spo", folder / "graph.kg"
    write_synthetic(text, args.triples)
    done = import_triples(path, [Source(text.name, open_rows(text))])
    copying = wall_of(lambda: copy_graph(path, address))
    first = wall_of(lambda: open_store(address).close())  # makes the mirror
    result = {
        "what": "a graph on a server beside a graph file",
        "machine": machine("psycopg"),
        "triples": done.triples,
        "sentences": args.sentences,
        "edits": args.edits,
        "copy_triples_per_second": round(done.triples / copying),
        "first_opening_seconds": round(first, 2),
    }
    opening = [
        [1000 * wall_of(lambda w=where: open_store(w).close()) for where in (path, address)]
        for _ in range(args.repeats)
    ]
    with GraphStore(path, write=True) as file, ServerStore(address) as server:
        times = {"open_milliseconds": opening, **compared(args, file, server)}
        result["visible_elsewhere_milliseconds"] = spread(visible(args, server, address, folder))
    for name, pairs in times.items():
        result[name] = {
            "file": spread([pair[0] for pair in pairs]),
            "server": spread([pair[1] for pair in pairs]),
            "ratio": spread([pair[1] / pair[0] for pair in pairs]),
        }
    many = "" if args.triples == DEFAULT else f"_{args.triples}"
    write(f"graph_server{many}.json", result)
    rows = [["", "file", "server", "ratio"]]
    for name in times:
        rows.append([name, *(f"{result[name][k]['median']:.4g}" for k in rows[0][1:])])
    print_table(rows)
    for name in ("copy_triples_per_second", "first_opening_seconds"):
        print(name, result[name])
    print("visible_elsewhere_milliseconds", result["visible_elsewhere_milliseconds"])


def compared(
    args: argparse.Namespace, file: GraphStore, server: GraphStore
) -> dict[str, list[list[float]]]:
    """Both, in turn; milliseconds and microseconds of each pair of turns."""
    dice = random.Random(2)
    heads = [*file.graph().entities()]
    sentences = [sentence(dice, heads) for _ in range(args.sentences)]
    names = "match_microseconds_a_sentence", "inject_microseconds_a_sentence", "edit_milliseconds"
    times: dict[str, list[list[float]]] = {name: [] for name in names}
    each = 1e6 / args.sentences
    for text in sentences[:100]:
        one, other = (find_mentions([text], store.graph())[0] for store in (file, server))
        if one != other:
            sys.exit(f"The two find different names in {text}: {one} and {other}")
    for _ in range(args.repeats):
        pair = []
        for store in (file, server):
            graph = store.graph()
            pair.append(each * wall_of(lambda g=graph: [find_mentions([t], g) for t in sentences]))
        times[names[0]].append(pair)
        new = [sentence(dice, heads) for _ in range(args.sentences)]  # names not met before
        works = [
            lambda g=store.graph(), n=new: [injected(text, g) for text in n]
            for store in (file, server)
        ]
        times[names[1]].append([each * wall_of(work) for work in works])
    for number in range(args.edits):
        edit = Edit("add", Triple(f"新名{number}", "类别", "新"))
        times[names[2]].append(
            [1000 * wall_of(lambda s=s, e=edit: s.apply(e)) for s in (file, server)]
        )
    return times


def injected(text: str, graph: KnowledgeGraph) -> list[Selection]:
    """Find the names of a text, and choose their triples."""
    mentions = find_mentions([text], graph)[0]
    return select_triples([(text,)] * len(mentions), mentions, graph, InjectionOptions())


def visible(
    args: argparse.Namespace, server: GraphStore, address: str, folder: Path
) -> list[float]:
    """Milliseconds from a confirmed edit until the graph of another machine has it."""
    found = []
    os.environ["KBERT_CACHE"] = str(folder / "another machine")
    with open_store(address) as other:
        for number in range(args.edits):
            triple = Triple(f"别名{number}", "类别", "新")
            server.apply(Edit("add", triple))
            begun = time.perf_counter()
            while triple not in other.graph():
                pass
            found.append(1000 * (time.perf_counter() - begun))
    return found


def wall_of(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
