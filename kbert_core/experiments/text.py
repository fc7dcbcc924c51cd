"""Numbers and tables as Markdown."""

from collections.abc import Sequence

from kbert_core.experiments.statistics import Difference, Score
from kbert_core.experiments.tables import Spread

MISSING = "missing"
NONE = "–"


def score_text(score: Score | None) -> str:
    """A score in per cent, with its deviation over the seeds."""
    return NONE if score is None else spread_text(score.mean, score.deviation)


def difference_text(difference: Difference) -> list[str]:
    """A difference in points with its deviation over the seeds and its interval, and its p."""
    d = difference
    low, high = 100 * d.low, 100 * d.high
    mean = signed(100 * d.mean)
    mean += "" if d.deviation is None else f" ± {100 * d.deviation:.1f}"
    said = f"{mean} [{signed(low)}, {signed(high)}]"
    p = d.p if d.adjusted is None else d.adjusted
    how = "< 0.001" if p < 0.001 else f"{p:.3f}"
    return [said, f"{how}, *exploratory*" if d.exploratory else how]


def share_text(share: Spread | None) -> str:
    """A share in whole per cent, with its deviation over the seeds."""
    if share is None:
        return NONE
    mean, deviation = share
    return f"{100 * mean:.0f}" + ("" if deviation is None else f" ± {100 * deviation:.0f}") + " %"


def counts_text(counts: Sequence[int]) -> str:
    """The least and the greatest of some counts."""
    few, many = min(counts), max(counts)
    return f"{few:,}" + (f"–{many:,}" if many != few else "")


def signed(value: float) -> str:
    """A difference with its sign, one decimal."""
    return f"{value:+.1f}".replace("-", "−")


def spread_text(mean: float, deviation: float | None) -> str:
    """A mean in per cent, with its deviation."""
    said = f"{100 * mean:.1f}"
    return said if deviation is None else f"{said} ± {100 * deviation:.1f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the first column is text, the others are numbers."""
    lines = [
        "| " + " | ".join(map(_cell, head)) + " |",
        "|---|" + "---:|" * (len(head) - 1),
        *("| " + " | ".join(map(_cell, row)) + " |" for row in rows),
    ]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
