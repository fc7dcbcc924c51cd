from killed_graphs import kill_often


def test_a_kill_at_any_moment_loses_nothing_that_was_acknowledged(tmp_path):
    assert kill_often(tmp_path, times=20, seed=1) > 20  # it did get to edit
