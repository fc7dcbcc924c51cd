"""Data sets, their audits, kept by content, and how a model reads them: services of Data."""

import hashlib
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from threading import Lock
from typing import Any

import streamlit as st

from app import services
from app.background import Progress
from app.kept import Kept
from app.texts import N_, t
from kbert_core import Ablation, InjectionOptions, KnowledgeGraph, Pipeline
from kbert_core.errors import DataError, KBertError
from kbert_core.knowledge.io.text_lines import lines
from kbert_lab.data.hub import is_folder_of_tables
from kbert_lab.data.labelled import SPLITS, Example
from kbert_lab.data.sources import ENDINGS
from kbert_lab.data.tables import Source
from kbert_lab.study.audit import audit
from kbert_lab.study.audit_values import Audit, Data, Share, plain_tokenizer, read_data
from kbert_lab.study.file_rows import FileRow, each_row
from kbert_lab.study.linear import linear_recall
from kbert_lab.study.verdict import Verdict, verdict_of

EXAMPLE = services.ROOT / "demo_kgs" / "example_data" / "medical_ner"
UPLOADS = [*dict.fromkeys(ending.split(".")[1] for ending in ENDINGS)]  # as a browser names them
counting = Lock()  # one audit at a time, beside the models' work
MOST_BYTES = 64 * 1024 * 1024  # of the files of a folder together
MEMORY = 16  # bytes that a byte of a data file takes when it is read, about


@dataclass(frozen=True)
class Report:
    """What the page shows."""

    audit: Audit  # the counts
    verdict: Verdict  # what they mean


def folder(path: str, task: str | None) -> Data:
    """Read a data folder of this machine.

    Raises:
        DataError: it isn't there, is too big, or can't be read.
    """
    place = Path(path.strip()).expanduser()
    if not os.path.isdir(place):  # False for what can't be a path at all
        raise DataError(t("{path}: no such folder. Name the one that holds train.tsv.", path=place))
    files = [place / f"{split}{ending}" for split in SPLITS for ending in ENDINGS]
    if is_folder_of_tables(place):
        files += [*place.glob("*.*"), *place.glob("*/*.*")]
    sizes = {file: file.stat() for file in files if file.is_file()}
    total = sum(stat.st_size for stat in sizes.values())
    if total > MOST_BYTES:
        size, most = total >> 20, MOST_BYTES >> 20
        text = N_(
            "{path}: {size} MB, at most {most} MB can be audited in the app. Use `kbert audit` on "
            "the command line."
        )
        raise DataError(t(text, path=place, size=size, most=most))
    stamp = "|".join(f"{file.name}:{s.st_mtime_ns}:{s.st_size}" for file, s in sizes.items())
    key = (str(place), stamp, task)
    return _folders.get(key, lambda: (MEMORY * total, read_data(str(place), task)))[1]


def uploaded(
    files: Mapping[str, tuple[str, bytes]], name: str, task: str | None, encoding: str = ""
) -> Data:
    """Read uploaded files.

    Args:
        files: split → its file's name, for messages, and bytes; train among them.
        name: what to call the data set.
        encoding: of the files, if they don't say it.

    Raises:
        KBertError: a file can't be read.
    """
    with tempfile.TemporaryDirectory() as made:
        for split, (called, data) in files.items():
            if encoding:
                decoded = lines(BytesIO(data), called, encoding=encoding, longest=sys.maxsize)
                data = "\n".join(str(line) for _, line in decoded).encode()
            (Path(made) / f"{split}.tsv").write_bytes(data)
        try:
            read = read_data(made, task)
        except KBertError as error:
            said = str(error)
            for split, (called, _) in files.items():
                said = said.replace(f"{made}/{split}.tsv", called)
            raise type(error)(said.replace(f"{made}/", "")) from error
    splits = {}
    for split, examples in read.splits.items():
        source = Source(files[split][0])  # later messages name it too, not our folder
        splits[split] = [replace(example, source=source) for example in examples]
    return Data(name, read.task, splits)


def _content(data: Data) -> str:
    digest = hashlib.sha256(repr((data.name, data.task)).encode())
    for split, examples in data.splits.items():
        digest.update(split.encode())
        for example in examples:
            digest.update(repr((example.sentences, example.labels)).encode())
    return digest.hexdigest()


@st.cache_resource(max_entries=16, show_spinner=False, hash_funcs={Data: _content})
def _by_linear(data: Data) -> Share | None:
    """What a linear tagger finds in the data, whatever the graph."""
    held_out = next(split for split in reversed(SPLITS) if split in data.splits)
    if data.task != "ner" or held_out == "train":
        return None
    return linear_recall(data.splits["train"], data.splits[held_out])


@st.cache_resource(
    max_entries=16,
    show_spinner=False,
    hash_funcs={**services.CONTENT, Data: _content},
)
def audited(
    data: Data,
    graph: KnowledgeGraph,
    options: InjectionOptions,
    max_length: int,
    *,
    as_tokens: bool = True,
) -> Report:
    """Audit a data set and a graph, or find the report where it was made before."""
    made = audit(
        data.splits,
        graph,
        task=data.task,
        tokenizer=plain_tokenizer(data),
        options=options,
        max_length=max_length,
        data=data.name,
        as_tokens=as_tokens,
        linear=_by_linear(data),
    )
    return Report(made, verdict_of(made))


_folders: Kept[tuple[int, Data]] = Kept(512 << 20, lambda sized: sized[0])


MOST_TEXTS = 5000  # of a file; longer ones belong on the command line


@dataclass(frozen=True, eq=False)
class FileSetup:
    """What is read, by what, with which knowledge."""

    data: Data  # a data set
    split: str  # which of its splits is read
    model: str  # its path; empty: none, the data are only audited
    graph_name: str  # what the graph is called in this session
    graph: KnowledgeGraph  # with the edits made
    options: InjectionOptions  # how it is read
    ablation: Ablation
    key: tuple[object, ...]  # equal where all of this is
    uploaded: bool = False  # whether the texts are a file of the visitor's

    @property
    def examples(self) -> Sequence[Example]:
        """The texts to read, at most ``MOST_TEXTS``."""
        return self.data.splits[self.split][:MOST_TEXTS]


def rows(pipeline: Pipeline, setup: FileSetup) -> Iterator[FileRow | Progress]:
    """Read every text with the graph and without."""
    how = {"options": setup.options, "ablation": setup.ablation}
    had: Any = {name: value for name, value in how.items() if pipeline.reader.has(name)}
    read = each_row(pipeline, setup.examples, setup.graph, **had)
    for number, row in enumerate(read, start=1):
        yield row
        yield Progress(number, len(setup.examples))
