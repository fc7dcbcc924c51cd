"""Labelled data from Hugging Face's `datasets`: by name, by folder, or a single table; and JSON.

The library takes seconds to import, so it is imported where it is needed.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from kbert_core.errors import DataError, SplitError
from kbert_core.knowledge.io.compression import plain_ending
from kbert_lab.data.tables import Record, Source, Table, csv_form, read_objects

HUB = "hf:"
SPLIT_NAMES = {"train": ["train"], "dev": ["dev", "validation", "valid", "val"], "test": ["test"]}
TABLES = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json"}
SAVED = ("dataset_dict.json", "state.json")  # what save_to_disk writes


def is_hub_name(name: str) -> bool:
    """Say whether a name means a data set of the hub: hf:NAME or hf:NAME/CONFIG."""
    return name.startswith(HUB)


def is_folder_of_tables(path: Path) -> bool:
    """Say whether a folder was saved by `datasets`, or holds tables that it reads."""
    return path.is_dir() and bool(any((path / name).is_file() for name in SAVED) or _tables(path))


def hub_table(name: str, split: str) -> Table:
    """A split of a data set; a single table is whatever is asked for.

    SplitError where there is no such split, DataError where the data can't be had.
    """
    found = _opened(name)
    known = next((s for s in (*SPLIT_NAMES.get(split, ()), split) if s in found), None)
    if Path(name).is_file():
        source, data = Source(name, "row"), next(iter(found.values()))
    elif known is not None:
        source, data = Source(f"{name} ({known})", "row"), found[known]
    else:
        raise SplitError(
            f"{name}: no {split} split; there are {', '.join(found) or 'none'}. "
            f"Name a file in its place (`kbert train` takes --{split} FILE too)."
        )
    if isinstance(data, list):
        return _json_table(data, source)
    features: Mapping[str, Any] = data.features
    inner = {name: getattr(feature, "feature", feature) for name, feature in features.items()}
    classes = {n: kind.names for n, kind in inner.items() if getattr(kind, "names", None)}

    def records(columns: Sequence[str]) -> Iterator[tuple[int, Record]]:
        for number, row in enumerate(data.select_columns(list(columns)), start=1):
            if any(value is not None for value in row.values()):  # no empty row of a spreadsheet
                yield number, row

    texts = [name for name, kind in inner.items() if "string" in str(getattr(kind, "dtype", ""))]
    return Table(source, tuple(features), records, source.name, classes, texts)


def _json_table(files: Sequence[Path], source: Source) -> Table:
    """Objects as rows; those of a single file by its own lines."""
    read = [read_objects(file) for file in files]
    unit, rows = read[0]
    place = Source(str(files[0]), unit)
    if len(read) > 1:
        place, every = source, [row for _, of_file in read for _, row in of_file]
        rows = [*enumerate(every, start=1)]
    columns = tuple(dict.fromkeys(name for _, row in rows for name in row))

    def records(of: Sequence[str]) -> Iterator[tuple[int, Record]]:
        yield from ((number, {name: row.get(name) for name in of}) for number, row in rows)

    return Table(place, columns, records, source.name)


def _opened(name: str) -> Mapping[str, Any]:
    """Load all splits of a data set: name → table, or files of JSON."""
    path = Path(name)
    kind, files = "", {}
    if not is_hub_name(name) and not any((path / saved).is_file() for saved in SAVED):
        files = {"train": [path]} if path.is_file() else _by_split(path)
        kind = TABLES[plain_ending(files[next(iter(files))][0])]
    if kind == "json":
        return files
    import datasets

    datasets.disable_progress_bars()
    try:
        if is_hub_name(name):
            return _from_hub(name)
        if not kind:
            loaded = datasets.load_from_disk(str(path))
            return loaded if isinstance(loaded, dict) else {"train": loaded}
        how = csv_form(*chain(*files.values())) if kind == "csv" else {}
        names = {split: [*map(str, those)] for split, those in files.items()}
        return {  # one by one: their columns may differ
            split: datasets.load_dataset(kind, data_files=those, split="train", **how)
            for split, those in names.items()
        }
    except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
        cause: BaseException = error  # under what `datasets` says of every such error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        reason = _first_line(cause)
        if isinstance(cause, datasets.table.CastError):
            other, first = cause.table_column_names, cause.requested_column_names
            reason = f"one table has the headings {', '.join(first)}, another {', '.join(other)}"
        raise DataError(
            f"{name}: can't be read ({reason[:200]}). Mend the file. Expected what "
            "save_to_disk writes, or tables as .parquet, .csv, .json or .jsonl."
        ) from error


def _tables(folder: Path) -> list[Path]:
    files = [*folder.glob("*.*"), *folder.glob("data/*.*")]
    return sorted(file for file in files if plain_ending(file) in TABLES)


def _by_split(folder: Path) -> dict[str, list[Path]]:
    """Which tables of a folder are which split, by how their names begin.

    `datasets` would look at the folders above too, so that any below test_… were a test set.
    """
    tables, names = _tables(folder), [*chain.from_iterable(SPLIT_NAMES.values())]
    found: dict[str, list[Path]] = {}
    for file in tables:
        if begins := re.match(rf"({'|'.join(names)})(?![a-z])", file.name.lower()):
            found.setdefault(begins[1], []).append(file)
    if not found or len({TABLES[plain_ending(file)] for file in tables}) > 1:
        raise DataError(
            f"{folder}: holds {', '.join(file.name for file in tables[:8])}. Expected tables of "
            f"one kind whose names begin with {', '.join(names)}; or name a single one in "
            "place of the folder (`kbert train` takes --train, --dev and --test FILE too)."
        )
    return found


def _from_hub(name: str) -> Mapping[str, Any]:
    """Load from the hub; of NAME/CONFIG both OWNER/NAME and NAME with a config are tried."""
    import datasets

    parts = name.removeprefix(HUB).split("/")
    if len(parts) > 3 or not all(part.strip(".") for part in parts):  # "" and ".." too
        raise DataError(f"'{name}' is no data set's name. Write hf:NAME or hf:OWNER/NAME/CONFIG.")
    ways = [("/".join(parts[:2]), *parts[2:]), *([tuple(parts)] if len(parts) == 2 else [])]
    for way in ways:
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


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200].rstrip(".")
