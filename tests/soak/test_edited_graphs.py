"""The long version of tests/lab/graphs/store/test_store.py's random edits and undos."""

import pytest
from edited_graphs import STEPS, run
from hypothesis import HealthCheck, given, settings


@pytest.mark.soak
@settings(max_examples=3000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_a_store_does_what_values_do_thousands_of_times(tmp_path_factory, steps):
    run(tmp_path_factory.mktemp("g") / "g.kg", steps)
