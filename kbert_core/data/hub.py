"""Labelled data from Hugging Face's `datasets`: by name, by folder, or a single table.

The library takes seconds to import, so it is imported where it is needed.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from kbert_core.data.columns import LABELS, NEEDED, TEXTS, Look, columns_by_task, columns_of
from kbert_core.data.labelled import Example, Source, place, plain_examples, tagged_examples
from kbert_core.errors import DataError, SplitError

HUB = "hf:"
SPLIT_NAMES = {
    "train": ("train",),
    "dev": ("dev", "validation", "valid", "val"),
    "test": ("test",),
}
TABLES = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json"}
SAVED = ("dataset_dict.json", "state.json")  # what save_to_disk writes


class HiddenLabels(SplitError):
    """A split is there, but not its labels."""


def is_hub_name(name: str) -> bool:
    """Say whether a name means a data set of the hub: hf:NAME or hf:NAME/CONFIG."""
    return name.startswith(HUB)


def is_table(path: Path) -> bool:
    """Say whether a file is a table that `datasets` reads."""
    return path.suffix in TABLES


def is_folder_of_tables(path: Path) -> bool:
    """Say whether a folder was saved by `datasets`, or holds tables that it reads."""
    return path.is_dir() and (
        any((path / name).is_file() for name in SAVED)
        or any(is_table(file) for place in (path, path / "data") for file in place.glob("*.*"))
    )


def read_hub_split(
    name: str, split: str, task: str, columns: Mapping[str, str] | None = None
) -> list[Example]:
    """Read a split of a data set.

    Args:
        name: "hf:NAME", "hf:NAME/CONFIG", a folder, or a single table, which
            is whatever split is asked for.
        split: "train", "dev" (validation, valid and val too) or "test".
        task: as for ``read_examples``.
        columns: our names → the data set's, where they can't be guessed.

    Raises:
        SplitError: there is no such split, or its labels are hidden.
        DataError: the data can't be had, or a row doesn't fit.
    """
    table, source = _table(name, split)
    return _examples(table, source, task, columns)


def look_at_table(
    name: str, split: str, tasks: Iterable[str], columns: Mapping[str, str] | None, *, rows: int
) -> Look:
    """Look at the first rows of a split, as the tasks would take its columns.

    Args:
        name, split, columns: as for :func:`read_hub_split`.
        rows: how many.

    Raises:
        SplitError: there is no such split; DataError: the data can't be had,
            or a column that was given isn't there.
    """
    table, source = _table(name, split)
    features = table.features
    given = {task: _guessed(features, task, columns) for task in tasks}
    names = {column: _class_names(feature) for column, feature in features.items()}
    return Look(
        source.name,
        tuple(features),
        columns_by_task(list(features), given, source.name),
        tuple(
            {column: _named(value, names[column]) for column, value in row.items()}
            for row in table.select(range(min(rows, len(table))))
        ),
    )


def _table(name: str, split: str) -> tuple[Any, Source]:
    """A split's table, and what to call it."""
    found = _opened(name)
    if Path(name).is_file():
        return next(iter(found.values())), Source(name, "row")
    for known in (*SPLIT_NAMES.get(split, ()), split):
        if known in found:
            return found[known], Source(f"{name} ({known})", "row")
    raise SplitError(
        f"{name}: no {split} split; there are {', '.join(found) or 'none'}. "
        f"Name a file in its place (`kbert train` takes --{split} FILE too)."
    )


def _opened(name: str) -> Mapping[str, Any]:
    """Load all splits of a data set: name → table."""
    try:
        import datasets
    except ImportError as error:
        raise DataError(
            f"{name}: the package `datasets` is needed to read this. Install it: "
            "pip install datasets"
        ) from error
    datasets.disable_progress_bars()
    path = Path(name)
    try:
        if is_hub_name(name):
            return _from_hub(name)
        if path.is_file():
            return dict(datasets.load_dataset(TABLES[path.suffix], data_files={"train": name}))
        if any((path / saved).is_file() for saved in SAVED):
            loaded = datasets.load_from_disk(str(path))
            return loaded if isinstance(loaded, dict) else {"train": loaded}
        kind, files = _tables_of(path)
        return dict(datasets.load_dataset(kind, data_files=files))
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        raise DataError(
            f"{name}: can't be read ({_broken_line(path) or _first_line(_cause(error))}). Mend "
            "the file. Expected what save_to_disk writes, or tables as .parquet, .csv, .json or "
            ".jsonl."
        ) from error


def _tables_of(folder: Path) -> tuple[str, dict[str, list[str]]]:
    """Which tables of a folder are which split, by how their names begin.

    `datasets` looks at the names of the folders above too, so that any below
    one named test_… would be a test set; here only the file's own name counts.

    Raises:
        DataError: no name says so, or they are of several kinds.
    """
    tables = [f for f in sorted([*folder.glob("*.*"), *folder.glob("data/*.*")]) if is_table(f)]
    kinds = {TABLES[file.suffix] for file in tables}
    names = list(chain.from_iterable(SPLIT_NAMES.values()))
    found: dict[str, list[str]] = {}
    for file in tables:
        begins = re.match(rf"({'|'.join(names)})(?![a-z])", file.name.lower())
        if begins:
            found.setdefault(begins[1], []).append(str(file))
    if not found or len(kinds) > 1:
        raise DataError(
            f"{folder}: holds {', '.join(file.name for file in tables[:8])}. Expected tables of "
            f"one kind whose names begin with {', '.join(names)}; or name a single one in "
            "place of the folder (`kbert train` takes --train, --dev and --test FILE too)."
        )
    return kinds.pop(), found


def _from_hub(name: str) -> Mapping[str, Any]:
    """Load from the hub; of NAME/CONFIG both OWNER/NAME and NAME with a config are tried."""
    import datasets

    parts = name.removeprefix(HUB).split("/")
    by_count: dict[int, list[tuple[str, ...]]] = {
        1: [(parts[0],)],
        2: [("/".join(parts),), tuple(parts)],
        3: [("/".join(parts[:2]), "/".join(parts[2:]))],
    }
    if len(parts) not in by_count or not all(part.strip(".") for part in parts):  # "" and ".." too
        raise DataError(f"'{name}' is no data set's name. Write hf:NAME or hf:OWNER/NAME/CONFIG.")
    for way in by_count[len(parts)]:
        try:
            return dict(datasets.load_dataset(*way))
        except datasets.exceptions.DatasetNotFoundError as error:
            problem = f"the hub has no such data set ({_first_line(error)}). Check the name"
        except ConnectionError as error:
            raise DataError(
                f"{name}: the Hugging Face hub can't be reached ({_first_line(error)}). Connect to "
                "the network, or give a folder instead: download it elsewhere, save it with "
                "`datasets.load_dataset(NAME).save_to_disk(FOLDER)`, and name FOLDER."
            ) from error
        except (ValueError, RuntimeError) as error:
            problem = f"{_first_line(error)}. Write a config after the name: {HUB}NAME/CONFIG"
    raise DataError(f"{name}: {problem}.")


def _broken_line(path: Path) -> str:
    """The first line of .jsonl files that is no JSON; `datasets` counts from a place within."""
    files = [path] if path.is_file() else [*path.glob("*.jsonl"), *path.glob("data/*.jsonl")]
    for file in sorted(f for f in files if f.suffix == ".jsonl" and os.access(f, os.R_OK)):
        for number, line in enumerate(file.read_bytes().splitlines(), start=1):
            try:
                json.loads(line or b"null")
            except ValueError as error:
                return f"{file.name}, line {number}: {_first_line(error)}"
    return ""


def _cause(error: BaseException) -> BaseException:
    """What was wrong with the data, under what `datasets` says of every such error."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200].rstrip(".")


def _examples(
    table: Any, source: Source, task: str, columns: Mapping[str, str] | None
) -> list[Example]:
    chosen = columns_of(
        task, list(table.features), _guessed(table.features, task, columns), source.name
    )
    features = {ours: table.features[theirs] for ours, theirs in chosen.items()}
    names = {ours: _class_names(feature) for ours, feature in features.items()}
    if task == "ner":
        _check_tags_are_named(features["label"], names["label"], chosen["label"], source)
    else:
        _check_single_values(features, chosen, source)
        if "label" in chosen and set(table.unique(chosen["label"])) == {-1}:
            raise HiddenLabels(
                f"{source.name}: the labels are hidden (all are -1), so it can't be scored. Take "
                "another split."
            )
    rows = _rows(table, chosen, names, source)
    if task == "ner":
        return tagged_examples(
            ((n, _tokens(row["text_a"]), _tokens(row["label"])) for n, row in rows), source
        )
    return plain_examples(task, rows, source)


def _guessed(
    features: Mapping[str, Any], task: str, columns: Mapping[str, str] | None
) -> dict[str, str]:
    """Take the only column of labels, and the only one of texts, whatever its name."""
    found = dict(columns or {})
    classes = [name for name, feature in features.items() if _class_names(feature) is not None]
    if "label" not in found and len(classes) == 1 and not set(LABELS) & set(features):
        found["label"] = classes[0]
    texts = [
        n for n, f in features.items() if getattr(f, "dtype", "") in ("string", "large_string")
    ]
    texts = [name for name in texts if name != found.get("label") and name not in LABELS]
    alone = "text_b" not in NEEDED[task] and task != "ner" and len(texts) == 1
    if alone and "text_a" not in found and not set(TEXTS) & set(features):
        found["text_a"] = texts[0]
    return found


def _class_names(feature: Any) -> list[str] | None:
    """The names of a ClassLabel, or of a list of them; None for another feature."""
    inner = getattr(feature, "feature", feature)
    names: list[str] | None = getattr(inner, "names", None)
    return names


def _check_tags_are_named(feature: Any, names: Any, column: str, source: Source) -> None:
    inner = getattr(feature, "feature", feature)
    if names is None and "string" not in str(getattr(inner, "dtype", "")):
        raise DataError(
            f"{source.name}: the tags in '{column}' are numbers without names. Make the column a "
            "list of ClassLabel or of strings (O, B-TYPE, I-TYPE), or choose another with "
            "--columns label=NAME."
        )


def _check_single_values(
    features: Mapping[str, Any], chosen: Mapping[str, str], source: Source
) -> None:
    for ours, feature in features.items():
        if hasattr(feature, "feature") or isinstance(feature, dict):
            raise DataError(
                f"{source.name}: the column '{chosen[ours]}' for {ours} holds several values a "
                f"row, expected one. Choose another with --columns {ours}=NAME, or --task ner for "
                "tokens with their tags."
            )


def _rows(
    table: Any, chosen: Mapping[str, str], names: Mapping[str, list[str] | None], source: Source
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Every row with our names and plain values, counted from 1."""
    for number, row in enumerate(table.select_columns(list(set(chosen.values()))), start=1):
        yield (
            number,
            {
                ours: _plain(row[theirs], names[ours], ours, place(source, number))
                for ours, theirs in chosen.items()
            },
        )


def _plain(value: Any, names: list[str] | None, ours: str, where: str) -> Any:
    """A value as text, or a list of texts; a class by its name."""
    if isinstance(value, list):
        return [_plain(item, names, ours, where) for item in value]
    if value is None:
        return ""
    if names is not None and isinstance(value, int):
        if not 0 <= value < len(names):
            raise DataError(f"{where}: {ours} is {value}, which stands for no label. Mend the row.")
        return names[value]
    if isinstance(value, float):
        if not value.is_integer():
            raise DataError(
                f"{where}: {ours} is {value}; labels are classes here. Take a data set with "
                "classes, or name another column with --columns."
            )
        value = int(value)
    return str(int(value)) if isinstance(value, bool) else str(value)


def _named(value: Any, names: Sequence[str] | None) -> Any:
    """A value with its classes by name, as far as they have one."""
    if isinstance(value, list):
        return [_named(item, names) for item in value]
    if names is not None and isinstance(value, int) and 0 <= value < len(names):
        return names[value]
    return value


def _tokens(value: Any) -> list[str]:
    """A list of tokens or tags; a text is split at single spaces, as in the release's files."""
    return value if isinstance(value, list) else str(value).split(" ")
