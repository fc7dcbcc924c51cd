"""Processes that open one graph on a PostgreSQL server at the same moment, again and again."""

import os
import subprocess
import sys

import pytest
from postgres import running_cluster

from kbert_lab.graphs.store.anywhere import import_into
from kbert_lab.graphs.store.importing import Source

pytestmark = pytest.mark.soak
ROUNDS, PROCESSES, TRIPLES = 6, 6, 20_000
PROGRAM = """
import sys
from kbert_core import find_mentions, load_graph
print("ready", flush=True)
sys.stdin.readline()
print(len(find_mentions(["name 7"], load_graph(sys.argv[1]))[0]), flush=True)
"""


def test_processes_that_open_a_graph_at_once_all_get_it(tmp_path, figures):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with running_cluster() as cluster:
        address = cluster.address()
        for number in range(ROUNDS):
            rows = [(n, f"name {n}", "round", str(number)) for n in range(TRIPLES)]
            import_into(address, [Source("rows", rows)])  # after which the index is made anew
            environment = {**os.environ, "KBERT_CACHE": str(tmp_path / str(number // 3))}
            command = [sys.executable, "-c", PROGRAM, address]
            started = [
                subprocess.Popen(command, env=environment, **pipes) for _ in range(PROCESSES)
            ]
            assert [process.stdout.readline() for process in started] == ["ready\n"] * PROCESSES
            for process in started:
                process.stdin.write("\n")
                process.stdin.flush()
            assert [process.communicate()[0] for process in started] == ["1\n"] * PROCESSES
    figures["processes that open a graph at once"] = {"cases": ROUNDS * PROCESSES, "refused": 0}
