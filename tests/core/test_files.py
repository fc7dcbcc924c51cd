"""Files and folders are written whole or not at all."""

import pytest

from kbert_core.files import new_folder, replaced


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


def test_a_folder_gets_its_name_when_all_went_well(tmp_path):
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "new" / "folder"):
        with new_folder(path) as folder:
            (folder / "f").touch()
        assert [file.name for file in path.iterdir()] == ["f"]
        assert list(path.parent.glob(f"{path.name}.*")) == []


def test_a_folder_that_is_not_finished_or_stands_in_the_way_leaves_nothing(tmp_path):
    with pytest.raises(OSError, match="full"), new_folder(tmp_path / "half") as folder:
        (folder / "f").touch()
        raise OSError("full")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "kept").touch()
    with pytest.raises(OSError, match="not empty"), new_folder(tmp_path / "there"):
        pass
    assert [file.name for file in tmp_path.rglob("*")] == ["there", "kept"]
