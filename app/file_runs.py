"""What runs in the background for the page A whole file: generators, without streamlit.

See :mod:`app.background` for how they are run step by step.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.background import Progress
from kbert_core import Ablation, InjectionOptions, KnowledgeGraph, Pipeline
from kbert_core.data.labelled import Example
from kbert_core.experiments.audit_values import Data
from kbert_core.experiments.whole_file import (
    Answer,
    FileRow,
    each_attention,
    each_left_out,
    each_of_three,
    each_row,
)
from kbert_core.experiments.whole_file_groups import WholeFile
from kbert_core.experiments.whole_file_ways import Pruned, Rule, What, prune
from kbert_core.explain.attention import AttentionEffect

MOST_TEXTS = 5000  # of a file; longer ones belong on the command line
Three = tuple[Answer, Answer, Answer]


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

    @property
    def test(self) -> Sequence[Example]:
        """The texts to read a pruned graph on; none where they are those it is chosen on."""
        return () if self.split == "test" else self.data.splits.get("test", ())[:MOST_TEXTS]


@dataclass(frozen=True, slots=True)
class HowToPrune:
    """By which rule a graph is pruned; see :func:`kbert_core.experiments.whole_file_ways.prune`."""

    rule: Rule
    what: What
    least: int


def rows(pipeline: Pipeline, setup: FileSetup) -> Iterator[FileRow | Progress]:
    """Read every text with the graph and without."""
    read = each_row(
        pipeline, setup.examples, setup.graph, options=setup.options, ablation=setup.ablation
    )
    for number, row in enumerate(read, start=1):
        yield row
        yield Progress(number, len(setup.examples))


def pruning(
    pipeline: Pipeline, setup: FileSetup, found: WholeFile, how: HowToPrune
) -> Iterator[Pruned | Three | Progress]:
    """Choose what goes, then read the test set without a graph, with the full and the pruned one.

    Yields:
        The pruned graph, then what was said of each text of the test set.
    """
    left_out = []
    pieces = sum(len(row.triples) for row in found.with_knowledge)
    total = len(setup.test)
    if how.rule == "leave one out":
        total += pieces
        read = each_left_out(
            pipeline, found.rows, setup.graph, options=setup.options, ablation=setup.ablation
        )
        for one in read:
            left_out.append(one)
            yield Progress(len(left_out), total)
    pruned = prune(setup.graph, found.rows, left_out, rule=how.rule, what=how.what, least=how.least)
    yield pruned
    answers = each_of_three(
        pipeline,
        setup.test,
        setup.graph,
        pruned.graph,
        options=setup.options,
        ablation=setup.ablation,
    )
    for done, three in enumerate(answers, start=len(left_out) + 1):
        yield three
        yield Progress(done, total)


def attentions(
    pipeline: Pipeline, setup: FileSetup, found: WholeFile
) -> Iterator[AttentionEffect | Progress]:
    """Put attention beside effect in every text with knowledge."""
    total = len(found.with_knowledge)
    yield Progress(0, total)
    read = each_attention(
        pipeline,
        found.rows,
        setup.graph,
        options=setup.options,
        ablation=setup.ablation,
    )
    for done, one in enumerate(read, start=1):
        yield one
        yield Progress(done, total)
