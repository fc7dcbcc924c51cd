"""What injected knowledge does to one prediction, measured by running variants of it.

A :class:`Case` is a text as it was read and the :class:`Target` of its
prediction that is explained; every explanation runs variants of the case and
returns a typed result with ``to_frame()``, ``as_dict()`` and ``figure()``.
What takes long has a ``stream_…`` that yields results as they grow. See
docs/explain.md for what each number means.
"""

from kbert_core.explain.attention_effect import (
    AttentionEffect,
    FileCorrelation,
    attention_effect,
    each_attention,
    rank_correlation,
)
from kbert_core.explain.compare import Comparison, Difference, Side, Why, ablations_of, compare
from kbert_core.explain.counterfactuals import (
    Counterfactual,
    Counterfactuals,
    Search,
    counterfactuals,
    stream_counterfactuals,
)
from kbert_core.explain.effects import Effect, Effects, effects, stream_effects
from kbert_core.explain.file_rows import Answer, FileRow, Verdict, each_row
from kbert_core.explain.file_scores import FileScores, score_ways
from kbert_core.explain.influence import Arrival, Influence, influence, stream_influence
from kbert_core.explain.interactions import (
    Interaction,
    Interactions,
    interactions,
    stream_interactions,
)
from kbert_core.explain.noise import NoiseCurve, noise_curve, stream_noise
from kbert_core.explain.over_file import Group, OverFile, collected, over_file
from kbert_core.explain.prune import (
    LeftOut,
    Pruned,
    each_left_out,
    each_of_three,
    prune,
    score_three,
)
from kbert_core.explain.reach import Reach, reach
from kbert_core.explain.shapley import Shapley, ShapleyValue, shapley, stream_shapley
from kbert_core.explain.target import Target, target_of
from kbert_core.explain.variants import Case, Outcome, Piece, Scored, Variant

__all__ = [
    "Answer",
    "Arrival",
    "AttentionEffect",
    "Case",
    "Comparison",
    "Counterfactual",
    "Counterfactuals",
    "Difference",
    "Effect",
    "Effects",
    "FileCorrelation",
    "FileRow",
    "FileScores",
    "Group",
    "Influence",
    "Interaction",
    "Interactions",
    "LeftOut",
    "NoiseCurve",
    "Outcome",
    "OverFile",
    "Piece",
    "Pruned",
    "Reach",
    "Scored",
    "Search",
    "Shapley",
    "ShapleyValue",
    "Side",
    "Target",
    "Variant",
    "Verdict",
    "Why",
    "ablations_of",
    "attention_effect",
    "collected",
    "compare",
    "counterfactuals",
    "each_attention",
    "each_left_out",
    "each_of_three",
    "each_row",
    "effects",
    "influence",
    "interactions",
    "noise_curve",
    "over_file",
    "prune",
    "rank_correlation",
    "reach",
    "score_three",
    "score_ways",
    "shapley",
    "stream_counterfactuals",
    "stream_effects",
    "stream_influence",
    "stream_interactions",
    "stream_noise",
    "stream_shapley",
    "target_of",
]
