"""Labelled data sets, and the steps in which they are counted and read: services of Data."""

import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from io import BytesIO
from itertools import chain
from pathlib import Path, PurePath
from threading import Lock

from app import services
from app.background import Progress
from kbert_core import KnowledgeGraph, Pipeline
from kbert_core.errors import DataError, KBertError
from kbert_core.knowledge.io.compression import ENDINGS as PACKED
from kbert_core.knowledge.io.compression import PROBLEMS, Bounded, packing_error, unpacking
from kbert_core.knowledge.io.text_lines import lines
from kbert_core.knowledge.selection import InjectionOptions
from kbert_lab.data.sources import ENDINGS
from kbert_lab.data.tables import Source
from kbert_lab.lab.texts import t
from kbert_lab.study.audit import MAX_LENGTH, audit
from kbert_lab.study.audit_values import Data, plain_tokenizer, read_data
from kbert_lab.study.verdict import Report, verdict_of
from kbert_lab.study.whole_file import FileRow, each_row

EXAMPLE = services.ROOT / "demo_kgs" / "example_data" / "medical_ner"
UPLOADS = [*dict.fromkeys(ending.split(".")[1] for ending in ENDINGS)]  # as a browser names them
MOST_TEXTS = 5000  # of a file; the rest is for the command line
_counting = Lock()  # one audit at a time, beside the models' work


example = cache(partial(read_data, EXAMPLE))  # the data set that comes with the app


def uploaded(files: Sequence[tuple[str, bytes]], task: str | None, encoding: str = "") -> Data:
    """Read one file, or several that are named train, dev and test.

    Args:
        files: their names, and their bytes.
        task: what is labelled; None: as the files look.
        encoding: of the files, if they don't say it.

    Raises:
        KBertError: a file can't be read, or is none of the three.
    """
    files = [(PurePath(name).name, data) for name, data in files]  # whatever a browser calls them
    with tempfile.TemporaryDirectory() as folder:
        for name, data in files:
            (Path(folder) / plain_name(name)).write_bytes(_unpacked(name, data, encoding))
        place = Path(folder) / plain_name(files[0][0]) if len(files) == 1 else folder
        try:
            read = read_data(place, task)
        except KBertError as error:
            raise type(error)(str(error).replace(f"{folder}/", "").replace(folder, "")) from error
    if len(read.splits) < len(files):
        raise DataError(t("Of several files, name one train, one dev and one test."))
    named = {  # later messages name no folder of ours either
        split: [
            replace(own, source=Source(Path(str(own.source.name)).name))
            for own in examples
            if own.source
        ]
        for split, examples in read.splits.items()
    }
    return Data(files[0][0], read.task, named)


def plain_name(name: str) -> str:
    """A file's name without what says how it is packed."""
    return PurePath(name).stem if PurePath(name).suffix in PACKED else name


def _unpacked(name: str, data: bytes, encoding: str) -> bytes:
    """A file's bytes, in UTF-8 where its encoding is said; no more than a visit may hold."""
    stream = BytesIO(data)
    try:
        data = Bounded(unpacking(stream, name), name, services.MOST_BYTES).readall()
    except PROBLEMS as error:
        raise packing_error(name, error) from error
    if not encoding:
        return data
    decoded = lines(BytesIO(data), name, encoding=encoding, longest=sys.maxsize)
    return "\n".join(str(line) for _, line in decoded).encode()


@dataclass(frozen=True, eq=False)
class FileSetup:
    """What is read, by what, with which knowledge."""

    data: Data
    split: str  # which of its splits is read
    model: str  # its path; empty: none, the data are only audited
    graph_name: str  # what the graph is called in this session
    graph: KnowledgeGraph  # with the edits made

    @property
    def key(self) -> tuple[object, ...]:
        """What tells one choice from another."""
        return id(self.data), self.split, self.model, self.graph.fingerprint


def steps(setup: FileSetup, pipeline: Pipeline | None) -> Iterable[Report | FileRow | Progress]:
    """Audit the data, then read every text with the graph and without; as the commands do."""
    data, options, trees, length = setup.data, InjectionOptions(), True, None
    if pipeline is not None:
        options, length = pipeline.card.reading.options, pipeline.card.reading.max_length
        trees = services.model_info(setup.model).has_trees
    with _counting:
        counts = audit(
            data.splits,
            setup.graph,
            task=data.task,
            tokenizer=plain_tokenizer(data),
            options=options,
            max_length=length or MAX_LENGTH,
            data=data.name,
            as_tokens=trees,
        )
    rows = _rows(setup, pipeline) if pipeline is not None else ()
    return chain([Report(counts, verdict_of(counts))], rows)


def _rows(setup: FileSetup, pipeline: Pipeline) -> Iterator[FileRow | Progress]:
    examples = setup.data.splits[setup.split][:MOST_TEXTS]
    for number, row in enumerate(each_row(pipeline, examples, setup.graph), start=1):
        yield row
        yield Progress(number, len(examples))
