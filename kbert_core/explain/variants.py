"""Case: a text as it was read, and variants of it run in one or few batches.

A variant is another reading of the text: with knowledge left out (the rest of
the selection held fixed), or read again with another graph or configuration;
its score is the target's.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from torch import Tensor

from kbert_core.errors import OptionError
from kbert_core.explain.target import NOTHING, Target, target_of
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import Mention
from kbert_core.pipeline import NO_KNOWLEDGE, Pipeline
from kbert_core.reader import Piece, Reading

AT_ONCE = 32  # rows a batch
TOKENS_A_STEP = 4096  # of the readings between two results: whoever waits or stops waits for them


@dataclass(frozen=True)
class Scored:
    """What a variant gives.

    Attributes:
        score: the target's, in nats.
        prediction: the task's, of the same run.
        likely: (T, K) log-probabilities where the target stands.
    """

    score: float
    prediction: Any
    likely: Tensor


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is kept of a variant's run.

    Attributes:
        score: the target's, in nats.
        answer: what is predicted at its place, see :meth:`Target.answer`.
    """

    score: float
    answer: str


@dataclass(frozen=True, eq=False)
class Case:
    """A text as it was read, and what of its prediction is explained.

    Attributes:
        pipeline: the model.
        graph: K.
        trace: of the reading as it is.
        target: what is explained.
    """

    pipeline: Pipeline
    graph: KnowledgeGraph
    trace: Any
    target: Target

    @classmethod
    def of(
        cls,
        pipeline: Pipeline,
        *sentences: str,
        graph: KnowledgeGraph,
        target: Target | None = None,
        **reading: Any,
    ) -> "Case":
        """Read a text, and choose what to explain.

        Args:
            target: None: what is predicted, see :func:`target_of`; NOTHING: no
                prediction is made, so a text without [MASK] will do.
            reading: ``config`` and its fields, as for a call of the pipeline.

        Raises:
            KBertError: a text, option or target that can't be used.
        """
        trace = pipeline(*sentences, graph=graph, decode=target != NOTHING, **reading)
        target = target or target_of(trace.prediction, trace.reading)
        return cls(pipeline, graph, trace, target)

    @property
    def reading(self) -> Reading:
        """The text as it was read."""
        reading: Reading = self.trace.reading
        return reading

    @property
    def config(self) -> Any:
        """How the text was read."""
        return self.reading.config

    @property
    def sentences(self) -> tuple[str, ...]:
        """The text."""
        return self.reading.sentences

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """The triples that are in, in reading order, each once."""
        return tuple(dict.fromkeys(Piece(piece.triple) for piece in self.pieces_by_mention))

    @property
    def pieces_by_mention(self) -> tuple[Piece, ...]:
        """The triples that are in, in reading order, once for each mention."""
        return self.reading.pieces

    def mentions_of(self, piece: Piece) -> tuple[Mention, ...]:
        """Where a piece hangs."""
        nodes = [p.node for p in self.pieces_by_mention if piece.triple == p.triple]
        return tuple(
            self.reading.mentions[node]
            for node in nodes
            if node is not None and piece.node in (None, node)
        )

    # Variants: other readings of the text

    def without(self, pieces: Iterable[Piece]) -> Reading:
        """The same reading with knowledge left out, and nothing in its place."""
        return self.pipeline.reader.without(self.reading, tuple(pieces))

    def with_only(self, pieces: Iterable[Piece]) -> Reading:
        """The same reading with these pieces and no others."""
        kept = tuple(pieces)
        return self.without(
            own
            for own in self.pieces_by_mention
            if own.node is not None and not any(p.covers(own.node, own.triple) for p in kept)
        )

    def without_knowledge(self) -> Reading:
        """No knowledge at all: for K-BERT plain BERT."""
        return self.with_only(())

    def read_with(self, graph: KnowledgeGraph | None = None, **changes: Any) -> Reading:
        """The text read again, with another graph or configuration.

        Args:
            changes: ``config``, or fields of it.

        Raises:
            KBertError: see :meth:`Pipeline.readings`.
        """
        graph = self.graph if graph is None else graph
        reading = {"config": self.config, **changes}
        return self.pipeline.readings([self.sentences], graph=graph, **reading)[0]

    def key(self, variant: Reading) -> Hashable:
        """Two variants with one key give the encoder the same, so that one run is enough."""
        return self.pipeline.reader.key(variant)

    # Running them

    def at_once(self, most: int = AT_ONCE) -> int:
        """How many readings to run between two results: fewer of a long text.

        Args:
            most: of a short one.
        """
        tokens = sum(map(len, self.trace.rows))
        return max(1, min(most, TOKENS_A_STEP // max(1, tokens)))

    def outcomes(self, variants: Iterable[Reading], *, at_once: int = AT_ONCE) -> Iterator[Outcome]:
        """Run variants as :meth:`run` does, and keep what they say of the target."""
        for scored in self.run(variants, at_once=at_once):
            yield Outcome(scored.score, self.target.answer(scored.prediction))

    @cached_property
    def base(self) -> Scored:
        """The reading itself."""
        return next(self.run([self.reading]))

    @cached_property
    def plain(self) -> Scored:
        """The reading without knowledge."""
        return next(self.run([self.without_knowledge()]))

    def run(self, variants: Iterable[Reading], *, at_once: int = AT_ONCE) -> Iterator[Scored]:
        """Run variants in order, several to a batch; yields as batches are done.

        Args:
            variants: read as they are needed, so a search may stop early.
            at_once: rows a batch.

        Raises:
            TextError: the target isn't in a variant.
        """
        unread = iter(variants)
        labels, task = self.pipeline.labels, self.pipeline.task
        while some := list(islice(unread, at_once)):
            logits = self.pipeline.reader.logits(some, batch_size=at_once)
            for variant, own in zip(some, logits, strict=True):
                likely = self.target.log_probabilities(variant, own, labels)
                prediction = task.decode(variant, own, labels) if task else None
                yield Scored(self.target.score_in(likely, labels), prediction, likely)


def case_of(case: Case | Pipeline, sentences: Sequence[str], **reading: Any) -> Case:
    """Return a case as it is, or read one.

    Args:
        case: a case, or the model to read the sentences with.
        sentences: the text; none with a case.
        reading: as for :meth:`Case.of`; those that are None are left out.

    Raises:
        OptionError: a case and something to read it anew with.
    """
    given = {name: value for name, value in reading.items() if value is not None}
    if isinstance(case, Pipeline):
        return Case.of(case, *sentences, **{"graph": NO_KNOWLEDGE, **given})
    if sentences or given:
        named = ", ".join([*(["a text"] if sentences else []), *given])
        raise OptionError(
            f"The case has been read, and {named} is given too. Give the model instead of the "
            "case, or leave the rest out."
        )
    return case
