"""What runs in the background for the page Data: generators, without streamlit.

See :mod:`app.background` for how they are run step by step.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from app.background import Progress
from kbert_core import Ablation, InjectionOptions, KnowledgeGraph, Pipeline
from kbert_core.data.labelled import Example
from kbert_core.experiments.audit_values import Data
from kbert_core.experiments.file_rows import FileRow, each_row

MOST_TEXTS = 5000  # of a file; longer ones belong on the command line


@dataclass(frozen=True, eq=False)
class FileSetup:
    """What is read, by what, with which knowledge.

    Attributes:
        data: a data set.
        split: which of its splits is read.
        model: its path; empty: none, the data are only audited.
        graph_name: what the graph is called in this session.
        graph: with the edits made.
        options, ablation: how it is read.
        key: equal where all of this is.
        uploaded: whether the texts are a file of the visitor's.
    """

    data: Data
    split: str
    model: str
    graph_name: str
    graph: KnowledgeGraph
    options: InjectionOptions
    ablation: Ablation
    key: tuple[object, ...]
    uploaded: bool = False

    @property
    def examples(self) -> Sequence[Example]:
        """The texts to read, at most ``MOST_TEXTS``."""
        return self.data.splits[self.split][:MOST_TEXTS]

    def reading(self, pipeline: Pipeline) -> dict[str, Any]:
        """How the model reads, as far as its system has such options."""
        given = {"options": self.options, "ablation": self.ablation}
        return {name: value for name, value in given.items() if pipeline.reader.has(name)}


def rows(pipeline: Pipeline, setup: FileSetup) -> Iterator[FileRow | Progress]:
    """Read every text with the graph and without."""
    read = each_row(pipeline, setup.examples, setup.graph, **setup.reading(pipeline))
    for number, row in enumerate(read, start=1):
        yield row
        yield Progress(number, len(setup.examples))
