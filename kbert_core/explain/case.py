"""Case: a text as it was read, the number of its prediction that is explained, and variants of it.

A variant is another reading of the text: with knowledge left out (the rest of
the selection held fixed), or read again with another graph.
"""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from torch import Tensor

from kbert_core.explain.targets import NOTHING, Target, target_of
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import Mention
from kbert_core.pipeline import Pipeline
from kbert_core.reader import Fact, Reading

AT_ONCE = 32  # rows a batch
TOKENS_A_STEP = 4096  # of the readings between two results: whoever waits or stops waits for them


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is kept after a variant was run."""

    score: float  # the target's, in nats
    answer: str  # what is predicted at its place, see Target.answer


@dataclass(frozen=True)
class Scored:
    """What running a variant gives."""

    outcome: Outcome
    prediction: Any  # the task's
    likely: Tensor  # (T, K) log-probabilities where the target stands

    @property
    def score(self) -> float:
        """The score of the target, in nats."""
        return self.outcome.score


@dataclass(frozen=True, eq=False)
class Case:
    """A text as it was read, and the part of its prediction that is explained."""

    pipeline: Pipeline
    graph: KnowledgeGraph
    trace: Any  # of the reading as it is
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

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The triples that the model reads, in reading order, each once."""
        return tuple(dict.fromkeys(Fact(fact.triple) for fact in self.facts_by_mention))

    @property
    def facts_by_mention(self) -> tuple[Fact, ...]:
        """The triples that the model reads, in reading order, once for each mention."""
        return self.reading.facts

    def mentions_of(self, fact: Fact) -> tuple[Mention, ...]:
        """Return the mentions on which a fact hangs."""
        return tuple(
            self.reading.mentions[p.node]
            for p in self.facts_by_mention
            if p.node is not None and fact.covers(p.node, p.triple)
        )

    # Variants: other readings of the text

    def without(self, facts: Iterable[Fact]) -> Reading:
        """Return the reading without some facts; nothing takes their place."""
        return self.pipeline.reader.without(self.reading, tuple(facts))

    def with_only(self, facts: Iterable[Fact]) -> Reading:
        """Return the reading with only these facts."""
        kept = tuple(facts)
        return self.without(
            own
            for own in self.facts_by_mention
            if own.node is not None and not any(p.covers(own.node, own.triple) for p in kept)
        )

    def without_knowledge(self) -> Reading:
        """Return the reading without any knowledge; for K-BERT this is plain BERT."""
        return self.with_only(())

    def read_with(self, graph: KnowledgeGraph) -> Reading:
        """Read the text again with another graph."""
        return self.pipeline.readings([self.sentences], graph=graph, config=self.config)[0]

    def key(self, variant: Reading) -> Hashable:
        """Return a key; variants with equal keys give the encoder equal inputs and need one run."""
        return self.pipeline.reader.cache_key(variant)

    # Running them

    def at_once(self, most: int = AT_ONCE) -> int:
        """Return how many readings to run at once: ``most``, or fewer if the text is long."""
        tokens = sum(map(len, self.trace.rows))
        return max(1, min(most, TOKENS_A_STEP // max(1, tokens)))

    @cached_property
    def base(self) -> Scored:
        """The reading itself."""
        return next(self.run([self.reading]))

    @cached_property
    def plain(self) -> Scored:
        """The reading without knowledge."""
        return next(self.run([self.without_knowledge()]))

    def run(self, variants: Iterable[Reading], *, at_once: int = AT_ONCE) -> Iterator[Scored]:
        """Run variants in order, several in a batch; yield the results of each batch.

        Args:
            variants: taken only when they are needed, so a search may stop early.
            at_once: rows in a batch.

        Raises:
            TextError: the target isn't in a variant.
        """
        unread = iter(variants)
        labels, task, target = self.pipeline.labels, self.pipeline.task, self.target
        assert task is not None
        while some := list(islice(unread, at_once)):
            logits = self.pipeline.reader.logits(some, batch_size=at_once)
            for variant, own in zip(some, logits, strict=True):
                likely = target.log_probabilities(variant, own, labels)
                prediction = task.decode(variant, own, labels)
                outcome = Outcome(float(target.scored(likely, labels)), target.answer(prediction))
                yield Scored(outcome, prediction, likely)
