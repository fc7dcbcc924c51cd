"""What runs in the background for the page A whole file: generators, without streamlit.

See :mod:`app.background` for how they are run step by step.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from app.background import Progress
from kbert_core import Ablation, InjectionOptions, KnowledgeGraph, Pipeline
from kbert_core.data.labelled import Example
from kbert_core.experiments.audit_values import Data
from kbert_core.experiments.file_rows import FileRow, each_left_out, each_row
from kbert_core.experiments.whole_file import Pruned, Rule, What, WholeFile, prune

MOST_TEXTS = 5000  # of a file; longer ones belong on the command line


@dataclass(frozen=True, eq=False)
class FileSetup:
    """What is read, by what, with which knowledge.

    Attributes:
        data: a data set.
        split: which of its splits is read.
        model: its path.
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


@dataclass(frozen=True, slots=True)
class HowToPrune:
    """By which rule a graph is pruned; see :func:`kbert_core.experiments.whole_file.prune`."""

    rule: Rule
    what: What
    least: int


def rows(pipeline: Pipeline, setup: FileSetup) -> Iterator[FileRow | Progress]:
    """Read every text with the graph and without."""
    read = each_row(pipeline, setup.examples, setup.graph, **setup.reading(pipeline))
    for number, row in enumerate(read, start=1):
        yield row
        yield Progress(number, len(setup.examples))


def pruning(
    pipeline: Pipeline, setup: FileSetup, found: WholeFile, how: HowToPrune
) -> Iterator[Pruned | Progress]:
    """Choose what goes out of the graph; the result comes last."""
    left_out = []
    total = sum(len(row.triples) for row in found.with_knowledge)
    if how.rule == "leave one out":
        for one in each_left_out(pipeline, found.rows, setup.graph, **setup.reading(pipeline)):
            left_out.append(one)
            yield Progress(len(left_out), total)
    yield prune(setup.graph, found.rows, left_out, rule=how.rule, what=how.what, least=how.least)
