"""The process that edits a graph file is killed hundreds of times."""

import pytest
from killed_graphs import kill_often

pytestmark = pytest.mark.soak
KILLS = 300


def test_a_graph_killed_hundreds_of_times_holds_all_that_was_acknowledged(
    tmp_path, record_property
):
    record_property("kills", KILLS)
    record_property("entries", kill_often(tmp_path, times=KILLS, seed=2))
