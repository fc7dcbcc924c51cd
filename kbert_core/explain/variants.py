"""Case: a text as it was read, and variants of it run in one or few batches.

A variant leaves branches out of the flat tree as it is (the rest of the
selection held fixed), or reads the text again with another graph, other
options, or otherwise; its score is the target's.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any

from torch import Tensor

from kbert_core.errors import OptionError
from kbert_core.explain.target import NOTHING, Target, target_of
from kbert_core.kbert.ablation import Ablation
from kbert_core.kbert.flat_tree import FlatTree
from kbert_core.kbert.interventions import Intervention
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import Mention
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.knowledge.triple import Triple
from kbert_core.pipeline import NO_KNOWLEDGE, Pipeline, Trace

AT_ONCE = 32  # rows a batch
TOKENS_A_STEP = 4096  # of the readings between two results: whoever waits or stops waits for them


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of knowledge that can be left out: a triple, everywhere or at one mention.

    Attributes:
        triple: what it says.
        node: index of its mention in ``tree.nodes``; None: every mention it hangs from.
    """

    triple: Triple
    node: int | None = None

    def covers(self, node: int, triple: Triple) -> bool:
        """Whether a branch is this piece's."""
        return triple == self.triple and self.node in (None, node)


@dataclass(frozen=True)
class Variant:
    """Another reading of a case.

    Attributes:
        rows: its flat trees.
        ablation: how they are read.
        interventions: made to their visible matrices.
    """

    rows: tuple[FlatTree, ...]
    ablation: Ablation
    interventions: tuple[Intervention, ...] = ()

    @property
    def way(self) -> tuple[Ablation, tuple[Intervention, ...]]:
        """How the rows are read; those read in one way can share a batch."""
        return self.ablation, self.interventions

    @property
    def key(self) -> Hashable:
        """Two variants with one key give the encoder the same, so that one run is enough."""
        named = map(_named, self.rows) if self.interventions else ()
        return *self.way, *map(_input, self.rows), *named


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
        options: how triples were chosen.
        trace: of the reading as it is.
        target: what is explained.
        max_length: in tokens, as the text was read.
    """

    pipeline: Pipeline
    graph: KnowledgeGraph
    options: InjectionOptions
    trace: Trace
    target: Target
    max_length: int | None = None

    @classmethod
    def of(
        cls,
        pipeline: Pipeline,
        *sentences: str,
        graph: KnowledgeGraph,
        options: InjectionOptions | None = None,
        ablation: Ablation | None = None,
        max_length: int | None = None,
        interventions: Sequence[Intervention] = (),
        target: Target | None = None,
    ) -> "Case":
        """Read a text, and choose what to explain.

        Args:
            target: None: what is predicted, see :func:`target_of`; NOTHING: no
                prediction is made, so a text without [MASK] will do.
            other arguments: as for a call of the pipeline.

        Raises:
            KBertError: a text, option or target that can't be used.
        """
        options = options or pipeline.card.reading.options
        trace = pipeline(
            *sentences,
            graph=graph,
            options=options,
            ablation=ablation,
            max_length=max_length,
            interventions=interventions,
            decode=target != NOTHING,
        )
        target = target or target_of(trace.prediction, trace.rows)
        return cls(pipeline, graph, options, trace, target, max_length)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The text."""
        return self.trace.tree.sentences

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """The triples that hang in the tree, in reading order, each once."""
        return tuple(dict.fromkeys(Piece(piece.triple) for piece in self.pieces_by_mention))

    @cached_property
    def pieces_by_mention(self) -> tuple[Piece, ...]:
        """The branches that hang in the tree, in reading order, each once."""
        hung = {(h.node, h.branch.triple) for row in self.trace.rows for h in row.hung}
        return tuple(
            Piece(branch.triple, number)
            for number, node in enumerate(self.trace.tree.nodes)
            for branch in node.branches
            if (number, branch.triple) in hung
        )

    def mentions_of(self, piece: Piece) -> tuple[Mention, ...]:
        """Where a piece hangs."""
        nodes = [p.node for p in self.pieces_by_mention if piece.triple == p.triple]
        return tuple(
            self.trace.tree.nodes[node].mention
            for node in nodes
            if node is not None and piece.node in (None, node)
        )

    # Variants

    def as_it_is(self) -> Variant:
        """The reading itself."""
        return self._read_alike(self.trace.rows)

    def without(self, pieces: Iterable[Piece]) -> Variant:
        """The same reading with branches left out, and nothing in their place."""
        left_out = tuple(pieces)
        return self._read_alike(without_branches(row, left_out) for row in self.trace.rows)

    def with_only(self, pieces: Collection[Piece]) -> Variant:
        """The same reading with these branches and no others."""
        kept = tuple(pieces)
        return self._read_alike(with_only_branches(row, kept) for row in self.trace.rows)

    def without_knowledge(self) -> Variant:
        """Plain BERT: no branch at all."""
        return self.with_only(())

    def read_with(
        self,
        graph: KnowledgeGraph | None = None,
        *,
        options: InjectionOptions | None = None,
        ablation: Ablation | None = None,
    ) -> Variant:
        """The text read again: K-Query and K-Inject with another graph or options.

        Raises:
            KBertError: see :meth:`Pipeline.tree`.
        """
        graph = self.graph if graph is None else graph
        tree = self.pipeline.tree(self.sentences, graph, options or self.options)
        variant = self._read_alike(self.pipeline.flatten(tree, max_length=self.max_length))
        return replace(variant, ablation=ablation or self.trace.ablation)

    def _read_alike(self, rows: Iterable[FlatTree]) -> Variant:
        """Other rows, read as the text was."""
        return Variant(tuple(rows), self.trace.ablation, self.trace.interventions)

    # Running them

    def at_once(self, most: int = AT_ONCE) -> int:
        """How many readings to run between two results: fewer of a long text.

        Args:
            most: of a short one.
        """
        tokens = sum(map(len, self.trace.rows))
        return max(1, min(most, TOKENS_A_STEP // max(1, tokens)))

    def outcomes(self, variants: Iterable[Variant], *, at_once: int = AT_ONCE) -> Iterator[Outcome]:
        """Run variants as :meth:`run` does, and keep what they say of the target."""
        for scored in self.run(variants, at_once=at_once):
            yield Outcome(scored.score, self.target.answer(scored.prediction))

    @cached_property
    def base(self) -> Scored:
        """The reading itself."""
        return next(self.run([self.as_it_is()]))

    @cached_property
    def plain(self) -> Scored:
        """The reading without knowledge."""
        return next(self.run([self.without_knowledge()]))

    def run(self, variants: Iterable[Variant], *, at_once: int = AT_ONCE) -> Iterator[Scored]:
        """Run variants in order, several to a batch; yields as batches are done.

        Args:
            variants: read as they are needed, so a search may stop early.
            at_once: rows a batch.

        Raises:
            TextError: the target isn't in a variant.
        """
        unread = iter(variants)
        labels = self.pipeline.labels
        task = self.pipeline.task
        while some := list(islice(unread, at_once)):
            for variant, logits in zip(some, self._logits(some, at_once), strict=True):
                likely = self.target.log_probabilities(variant.rows, logits, labels)
                prediction = task.decode(variant.rows, logits, labels) if task else None
                yield Scored(self.target.score_in(likely, labels), prediction, likely)

    def _logits(self, variants: Sequence[Variant], at_once: int) -> list[list[Any]]:
        """Logits of every variant's rows, those read in one way in the same batches."""
        found: list[list[Any]] = [[] for _ in variants]
        ways = dict.fromkeys(variant.way for variant in variants)
        for way in ways:
            own = [n for n, variant in enumerate(variants) if variant.way == way]
            rows = [variants[n].rows for n in own]
            ablation, interventions = way
            made = self.pipeline.logits_of(
                rows, ablation=ablation, interventions=interventions, batch_size=at_once
            )
            for n, logits in zip(own, made, strict=True):
                found[n] = logits
        return found


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


def without_branches(flat: FlatTree, pieces: Collection[Piece]) -> FlatTree:
    """Take branches out of a flat tree; every other token keeps its soft position and its place.

    The same as flattening the tree without them where no limit cuts it; where
    one does, no other branch takes the room.
    """
    return _kept(flat, lambda node, triple: not any(p.covers(node, triple) for p in pieces))


def with_only_branches(flat: FlatTree, pieces: Collection[Piece]) -> FlatTree:
    """Take all other branches out of a flat tree; see :func:`without_branches`."""
    return _kept(flat, lambda node, triple: any(p.covers(node, triple) for p in pieces))


def _kept(flat: FlatTree, keep: Callable[[int, Triple], bool]) -> FlatTree:
    kept = [hung for hung in flat.hung if keep(hung.node, hung.branch.triple)]
    gone = [hung for hung in flat.hung if hung not in kept]
    nodes = tuple(
        replace(node, branches=tuple(b for b in node.branches if keep(number, b.triple)))
        for number, node in enumerate(flat.tree.nodes)
    )
    stay = [True] * len(flat)
    for hung in gone:
        stay[hung.start : hung.end] = [False] * (hung.end - hung.start)
    place = [0]  # of each token among those that stay
    for here in stay:
        place.append(place[-1] + here)
    number = {0: 0} | {1 + flat.hung.index(hung): n for n, hung in enumerate(kept, start=1)}

    def chosen(values: Sequence[int]) -> list[int]:
        return [value for value, here in zip(values, stay, strict=True) if here]

    return replace(
        flat,
        tree=replace(flat.tree, nodes=nodes),
        input_ids=chosen(flat.input_ids),
        soft_positions=chosen(flat.soft_positions),
        branch_ids=[number[branch] for branch in chosen(flat.branch_ids)],
        anchor_ids=chosen(flat.anchor_ids),
        token_type_ids=chosen(flat.token_type_ids),
        hung=tuple(replace(h, start=place[h.start], end=place[h.end]) for h in kept),
        branch_texts=tuple(
            texts for hung, texts in zip(flat.hung, flat.branch_texts, strict=True) if hung in kept
        ),
        trunk_parts=tuple(
            replace(part, start=place[part.start], end=place[part.end]) for part in flat.trunk_parts
        ),
        specials=tuple((place[index], special) for index, special in flat.specials),
    )


def _input(row: FlatTree) -> Hashable:
    """What the encoder gets of a row; a mention counts only where a branch hangs from it."""
    hanging = {row.anchor_ids[hung.start] for hung in row.hung}
    number = {anchor: n for n, anchor in enumerate(sorted(hanging), start=1)}
    anchors = [number.get(anchor, 0) for anchor in row.anchor_ids]
    codes = (row.input_ids, row.soft_positions, row.branch_ids, anchors, row.token_type_ids)
    return tuple(map(tuple, codes))


def _named(row: FlatTree) -> Hashable:
    """What interventions may name: mentions and branches."""
    mentions = tuple(node.mention for node in row.tree.nodes)
    return mentions, tuple((hung.node, hung.branch.triple) for hung in row.hung)
