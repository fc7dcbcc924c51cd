"""Twenty visitors for five minutes, coming and going; `make soak` writes the figures."""

from statistics import median

import pytest
from load.crowd import crowd
from served import served

pytestmark = pytest.mark.soak
MINUTES = 5


def test_twenty_visitors_for_five_minutes_leave_memory_where_it_was(tmp_path, figures):
    with served(tmp_path, OMP_NUM_THREADS="1", KBERT_LANGUAGE="en") as server:
        found = crowd(server, visitors=20, seconds=60 * MINUTES)
        written = server.written()
    assert found.problems == []
    assert "Traceback" not in written
    assert "not logged" not in written
    sizes = found.megabytes
    second, last = ([mb for at, mb in sizes if a <= at / 60 < b] for a, b in ((1, 2), (4, 5)))
    waits = sorted(found.waits)
    figures["visitors"] = {
        "visitors at once": 20,
        "visits": found.visits,
        "runs": len(waits),
        "median wait, s": round(median(waits), 2),
        "95 % wait, s": round(waits[int(0.95 * len(waits))], 2),
        "MB in the second minute": round(median(second)),
        "MB in the fifth": round(median(last)),
        "MB at most": round(max(mb for _, mb in sizes)),
        "seconds": round(sizes[-1][0], 1),
    }
    assert median(last) < median(second) + 150
