"""The process that edits a graph file is killed hundreds of times."""

import pytest
from killed_graphs import LONGEST, kill_often

pytestmark = pytest.mark.soak
ROUNDS, KILLS = 15, 20  # a new graph each round


def test_a_graph_killed_hundreds_of_times_holds_all_that_was_acknowledged(tmp_path, figures):
    entries = 0
    for number in range(ROUNDS):
        folder = tmp_path / str(number)
        folder.mkdir()
        entries += kill_often(folder, times=KILLS, seed=100 + number)
    figures["killed_graphs"] = {
        "kills": ROUNDS * KILLS,
        "longest_seconds_before_a_kill": LONGEST,
        "entries_kept": entries,
        "acknowledged_entries_lost": 0,
    }
