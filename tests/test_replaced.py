"""A file is replaced whole or not at all."""

import pytest

from kbert_core.replaced import replaced


def test_a_file_is_replaced_when_all_went_well(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"before")
    with replaced(path) as file:
        file.write(b"after")
        assert path.read_bytes() == b"before"
    assert path.read_bytes() == b"after"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("before", [b"before", None])
def test_what_fails_after_some_bytes_leaves_what_was_there(tmp_path, before):
    path = tmp_path / "f"
    if before is not None:
        path.write_bytes(before)
    with pytest.raises(OSError, match="full"), replaced(path) as file:
        file.write(b"half of i")
        raise OSError("full")
    assert [found.read_bytes() for found in tmp_path.iterdir()] == [before] * (before is not None)
