"""Labelled data from Hugging Face's `datasets`: by name, by folder, or a single table.

The library takes seconds to import, so it is imported where it is needed.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from kbert_core.errors import DataError, SplitError
from kbert_core.knowledge.io.compression import plain_ending
from kbert_lab.data.files import NEEDED
from kbert_lab.data.json_rows import JsonRows
from kbert_lab.data.tables import LABELS, SPANS, TEXTS, Row, Source, Table, csv_form

HUB = "hf:"
SPLIT_NAMES = {"train": ["train"], "dev": ["dev", "validation", "valid", "val"], "test": ["test"]}
TABLES = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json"}
SAVED = ("dataset_dict.json", "state.json")  # what save_to_disk writes


class HiddenLabels(SplitError):
    """A split is there, but not its labels."""


def is_hub_name(name: str) -> bool:
    """Say whether a name means a data set of the hub: hf:NAME or hf:NAME/CONFIG."""
    return name.startswith(HUB)


def is_folder_of_tables(path: Path) -> bool:
    """Say whether a folder was saved by `datasets`, or holds tables that it reads."""
    return path.is_dir() and bool(any((path / name).is_file() for name in SAVED) or _tables(path))


class HubTable(Table):
    """A split of a data set that `datasets` reads; a single table is whatever is asked for.

    SplitError where there is no such split, DataError where the data can't be had.
    """

    def __init__(self, name: str, split: str) -> None:
        found = _opened(name)
        known = next((s for s in (*SPLIT_NAMES.get(split, ()), split) if s in found), None)
        if Path(name).is_file():
            self.source, self._table = Source(name, "row"), next(iter(found.values()))
        elif known is not None:
            self.source, self._table = Source(f"{name} ({known})", "row"), found[known]
        else:
            raise SplitError(
                f"{name}: no {split} split; there are {', '.join(found) or 'none'}. "
                f"Name a file in its place (`kbert train` takes --{split} FILE too)."
            )
        self._features: Mapping[str, Any] = self._table.features
        self.columns, self.where = tuple(self._features), self.source.name

    def columns_of(self, task: str, given: Mapping[str, str] | None) -> dict[str, str]:
        """Find a task's columns; the only one of classes, or of texts, whatever its name."""
        features, found = self._features, dict(given or {})
        classes = [name for name, feature in features.items() if _class_names(feature) is not None]
        if "label" not in found and len(classes) == 1 and not set(LABELS) & set(features):
            found["label"] = classes[0]
        texts = [
            name
            for name, feature in features.items()
            if getattr(feature, "dtype", "") in ("string", "large_string")
            and name not in (found.get("label"), *LABELS)
        ]
        one_text = "text_b" not in NEEDED[task] and task != "ner" and len(texts) == 1
        if one_text and "text_a" not in found and not set(TEXTS) & set(features):
            found["text_a"] = texts[0]
        return super().columns_of(task, found)

    @property
    def hint(self) -> str:
        """What to do with labelled spans; lists within lists of labels are such, too."""
        deep = any(_is_deep(self._features.get(name)) for name in LABELS)
        return SPANS if deep else super().hint

    def rows(self, task: str, columns: Mapping[str, str], *, strict: bool = True) -> Iterator[Row]:
        """Read rows, classes by their names; HiddenLabels where all labels are -1."""
        if strict:
            self._check(task, columns)
        names = {ours: _class_names(self._features[theirs]) for ours, theirs in columns.items()}
        table = self._table.select_columns(list(set(columns.values())))
        for number, row in enumerate(table, start=1):
            empty = all(value is None for value in row.values())
            if empty and not isinstance(self._table, JsonRows):
                continue  # an empty row of a spreadsheet
            try:
                yield number, {o: _plain(row[t], names[o], o) for o, t in columns.items()}
            except ValueError as error:
                if strict:
                    raise DataError(f"{self.source.place(number)}: {error}") from error

    def _check(self, task: str, columns: Mapping[str, str]) -> None:
        features = {ours: self._features[theirs] for ours, theirs in columns.items()}
        if _is_deep(features.get("label")):
            raise DataError(
                f"{self.where}: the column '{columns['label']}' holds lists or objects within a "
                f"row, expected labels.{SPANS}"
            )
        if task == "multilabel":
            del features["label"]
        lists = (n for n, f in features.items() if hasattr(f, "feature") or isinstance(f, dict))
        if task == "ner":
            tags = getattr(features["label"], "feature", features["label"])
            if _class_names(tags) is None and "string" not in str(getattr(tags, "dtype", "")):
                raise DataError(
                    f"{self.where}: the tags in '{columns['label']}' are numbers without "
                    "names. Make the column a list of ClassLabel or of strings (O, B-TYPE, "
                    "I-TYPE), or choose another with --columns label=NAME."
                )
        elif (ours := next(lists, None)) is not None:
            raise DataError(
                f"{self.where}: the column '{columns[ours]}' for {ours} has several values per "
                f"row, expected one. Choose another with --columns {ours}=NAME, or --task ner "
                "for tokens with their tags, or --task multilabel for texts with several labels."
            )
        elif "label" in features and set(self._table.unique(columns["label"])) == {-1}:
            raise HiddenLabels(
                f"{self.where}: the labels are hidden (all are -1), so it can't be scored. "
                "Take another split."
            )


def _opened(name: str) -> Mapping[str, Any]:
    """Load all splits of a data set: name → table."""
    path = Path(name)
    kind, files = "", {}
    if not is_hub_name(name) and not any((path / saved).is_file() for saved in SAVED):
        files = {"train": [path]} if path.is_file() else _by_split(path)
        kind = TABLES[plain_ending(files[next(iter(files))][0])]
    if kind == "json":
        return {split: JsonRows(those) for split, those in files.items()}
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


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200].rstrip(".")


def _class_names(feature: Any) -> list[str] | None:
    """The names of a ClassLabel, or of a list of them; None for another feature."""
    return getattr(getattr(feature, "feature", feature), "names", None)


def _is_deep(feature: Any) -> bool:
    """Say whether the values of a column are objects, or lists of objects or lists."""
    inner = getattr(feature, "feature", feature)
    return isinstance(inner, dict) or hasattr(inner, "feature")


def _plain(value: Any, names: list[str] | None, ours: str) -> Any:
    """A value as text, or a list of texts; a class by its name; a ValueError if it is none."""
    if isinstance(value, list):
        return [_plain(item, names, ours) for item in value]
    if value is None:
        return ""
    if names is not None and isinstance(value, int):
        if not 0 <= value < len(names):
            raise ValueError(f"{ours} is {value}, which isn't a label. Correct the row.")
        return names[value]
    if isinstance(value, float) and not value.is_integer():
        raise ValueError(
            f"{ours} is {value}; labels are classes here. Take a data set with classes, or name "
            "another column with --columns."
        )
    return str(int(value)) if isinstance(value, bool | float) else str(value)
