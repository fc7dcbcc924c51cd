"""The long versions of tests/lab/graphs/store/test_store.py's random edits, undos and kills."""

import pytest
from edited_graphs import LONGEST, STEPS, kill_often, run
from hypothesis import HealthCheck, given, settings

pytestmark = pytest.mark.soak
ROUNDS, KILLS = 15, 20  # a new graph each round


@settings(max_examples=3000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_a_store_does_what_values_do_thousands_of_times(tmp_path_factory, steps):
    run(tmp_path_factory.mktemp("g") / "g.kg", steps)


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
