"""Compare: two to four readings of one text side by side, matched token by token.

If two of them are equal, the result says why. Their states are always computed
and compared first: that they should be equal is not enough.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations
from typing import ClassVar

from torch import Tensor

from kbert_core.errors import OptionError, TextError
from kbert_core.explain.case import NOTHING, Case, Outcome, Target
from kbert_core.explain.result import Plain
from kbert_core.kbert.flat_tree import FlatTree, collate
from kbert_core.pipeline import Pipeline
from kbert_core.reader import Reading
from kbert_lab.explain.drawing import Figure, nats_bars
from kbert_lab.explain.influence import inputs_of, states_of
from kbert_lab.explain.noise import ABLATIONS, variation

ROUNDING = 1e-4  # between the same numbers computed in batches of other shapes
MOST = 4
BERT = "BERT"
K_BERT, HARD, ALL = ABLATIONS


class Why(StrEnum):
    """Why two readings are the same."""

    NO_BRANCH = "no triple stands in the text, so there is nothing to place or to hide"
    SAME_TRIPLES = "the same triples hang at the same mentions"
    SAME_MATRIX = "positions and visible matrix come out the same for this tree"


@dataclass(frozen=True, eq=False)
class Side(Plain):
    """One of the readings compared."""

    name: str
    reading: Reading
    outcome: Outcome | None  # None without a task head or such a label
    labels: Mapping[int, str]
    likely: Tensor | None  # (T, K) log-probabilities where the target stands; None as ``outcome``
    states: tuple[Tensor, ...]  # per row (N, H), the last layer's; empty where no longer kept

    keys: ClassVar = (
        "name tokens triples positions=reading.config.ablation.positions "
        "visible=reading.config.ablation.visible score=outcome.score answer=outcome.answer"
    )

    @property
    def tokens(self) -> int:
        """The number of tokens in all rows."""
        return sum(map(len, self.reading.rows))

    @property
    def triples(self) -> int:
        """The number of triples in the text, counted for each mention."""
        return len(self.reading.facts)


@dataclass(frozen=True, slots=True)
class Difference(Plain):
    """Two readings, the second against the first; None where one has no score or other labels."""

    one: str  # their names
    other: str
    score: float | None  # change of the target's score, in nats
    variation: float | None  # between their distributions where the target stands, 0 to 1
    flips: bool | None  # whether their answers differ
    only_one: int  # tokens that stand in one only
    only_other: int
    cells: int  # of the visible matrix, that differ among shared tokens in any layer
    moved: int  # shared tokens at another position
    largest: float | None  # difference in the last states of shared tokens; None of two models
    same_input: bool  # whether the model is given the same by both
    why: Why | None  # why they are equal; None where they, or their states, aren't


@dataclass(frozen=True, eq=False)
class Comparison(Plain):
    """Two to four readings of one text."""

    sentences: tuple[str, ...]
    target: Target | None  # what of the predictions is followed; None: there are none
    sides: tuple[Side, ...]
    pairs: tuple[Difference, ...]

    rows: ClassVar = "differences"
    keys: ClassVar = "text=sentences target differences=pairs readings=sides"

    @property
    def equal(self) -> tuple[Difference, ...]:
        """The pairs that are equal, each with its reason."""
        return tuple(pair for pair in self.pairs if pair.why is not None)

    def figure(self) -> Figure:
        """Draw a bar for each reading: the score of the target."""
        scored = [(side.name, side.outcome) for side in self.sides if side.outcome]
        return nats_bars(
            [f"{name}  → {outcome.answer}" for name, outcome in scored],
            [outcome.score for _, outcome in scored],
            axis=f"score of {self.target}, nats",
            title=" ".join(self.sentences),
        )


def ablations_of(case: Case) -> dict[str, Reading]:
    """The four readings that show K-BERT's parts: BERT, K-BERT, hard positions, all visible.

    They don't have the ablation and interventions of the case itself. For a system
    without ablations there are two readings: BERT, and the case as it is.
    """
    reader, reading, bert = case.pipeline.reader, case.reading, case.without_knowledge()
    if not reader.has("ablation"):
        return {BERT: bert, reader.system: reading}
    ways = {
        name: reader.configured(case.config, ablation=way, interventions=())
        for name, way in ABLATIONS.items()
    }
    readings = {name: replace(reading, config=config) for name, config in ways.items()}
    return {BERT: replace(bert, config=ways[K_BERT]), **readings}


def compare(
    readings: Mapping[str, Case | Reading], *, of: Case | None = None, target: Target | None = None
) -> Comparison:
    """Put readings of one text side by side.

    Args:
        readings: two to four, by name: cases, each with its own model, or
            variants of one case, see :func:`ablations_of`.
        of: the case that variants are of.
        target: what of the predictions to follow; None: the first case's.

    Raises:
        OptionError: not two to four, variants of no case, or other texts.
    """
    if not 2 <= len(readings) <= MOST:
        raise OptionError(f"Got {len(readings)} readings, expected two to {MOST}.")
    cases: dict[str, tuple[Case, Reading]] = {}
    for name, reading in readings.items():
        if isinstance(reading, Case):
            cases[name] = (reading, reading.reading)
        elif of is not None:
            cases[name] = (of, reading)
        else:
            raise OptionError(
                f"The reading '{name}' is a variant. Name the case that it belongs to."
            )
    for case, _ in cases.values():
        _ = case.pipeline.kbert
    texts = {case.sentences for case, _ in cases.values()}
    if len(texts) > 1:
        raise OptionError(
            f"The readings are of {len(texts)} different texts. Compare readings of the same text."
        )
    first = of or next(iter(cases.values()))[0]
    target = target or first.target
    sides = {name: _side(name, *pair, target) for name, pair in cases.items()}
    pairs = tuple(
        _difference(sides[a], sides[b], (cases[a][0].pipeline, cases[b][0].pipeline))
        for a, b in combinations(cases, 2)
    )
    none = all(side.outcome is None for side in sides.values())
    return Comparison(first.sentences, None if none else target, tuple(sides.values()), pairs)


def _side(name: str, case: Case, reading: Reading, target: Target) -> Side:
    """Run one reading; a model without the target's label has no score."""
    pipeline, outcome, likely = case.pipeline, None, None
    if target != NOTHING and pipeline.task is not None:
        try:
            scored = next(replace(case, target=target).run([reading]))
            outcome, likely = scored.outcome, scored.likely
        except TextError:  # this model has no such label
            pass
    labels = pipeline.labels if pipeline.task else {}
    states = tuple(of_row[-1] for of_row in states_of(pipeline, reading.rows, reading.config))
    return Side(name, reading, outcome, labels, likely, states)


def _difference(one: Side, other: Side, models: tuple[Pipeline, Pipeline]) -> Difference:
    """Compare two readings token by token: inputs, last states, scores, probabilities."""
    rows, same_model = (one.reading.rows, other.reading.rows), models[0] is models[1]
    same_input = same_model and len(rows[0]) == len(rows[1])
    only_one = only_other = cells = moved = 0
    largest = 0.0
    for number, (flat, beside) in enumerate(zip(*rows, strict=False)):
        here, there = _shared(flat, beside)
        visible, positions = inputs_of(models[0], flat, one.reading.config)
        visible_too, positions_too = inputs_of(models[1], beside, other.reading.config)
        layers = min(len(visible), len(visible_too))
        only_one += len(flat) - len(here)
        only_other += len(beside) - len(there)
        differ = visible[:layers, here][:, :, here] != visible_too[:layers, there][:, :, there]
        cells += int(differ.any(0).sum())
        moved += int((positions[here] != positions_too[there]).sum())
        ids = flat.input_ids == beside.input_ids
        types = [
            side.reading.config.ablation.segment_ids(collate([row]))
            for side, row in ((one, flat), (other, beside))
        ]
        same_input = same_input and ids and types[0].equal(types[1])
        if same_model and here:
            apart = (one.states[number][here] - other.states[number][there]).abs().max()
            largest = max(largest, float(apart))
    same_input = same_input and not (only_one or only_other or cells or moved)
    score = flips = apart_by = None
    if one.outcome and other.outcome:
        score = other.outcome.score - one.outcome.score
        flips = one.outcome.answer != other.outcome.answer
    likely = [side.likely for side in (one, other) if side.likely is not None]
    if one.labels == other.labels and len(likely) == 2 and likely[0].shape == likely[1].shape:
        apart_by = variation(*likely)
    return Difference(
        *(one.name, other.name, score, apart_by, flips, only_one, only_other, cells, moved),
        largest=largest if same_model else None,
        same_input=same_input,
        why=_why(one, other) if same_input and largest <= ROUNDING else None,
    )


def _why(one: Side, other: Side) -> Why:
    if not one.triples:
        return Why.NO_BRANCH
    here, there = one.reading.config, other.reading.config
    same = (here.ablation, here.interventions) == (there.ablation, there.interventions)
    return Why.SAME_TRIPLES if same else Why.SAME_MATRIX


def _shared(flat: FlatTree, beside: FlatTree) -> tuple[list[int], list[int]]:
    """Return the places of tokens that two rows share; two tokenizers share none."""
    one, other = (
        [[*zip(tokens.starts, tokens.ends, strict=True)] for tokens in row.trunk_tokens]
        for row in (flat, beside)
    )
    if one != other:
        return [], []
    place = {name: index for index, name in enumerate(beside.identities)}
    here = [index for index, name in enumerate(flat.identities) if name in place]
    return here, [place[flat.identities[index]] for index in here]
