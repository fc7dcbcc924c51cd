"""What an edit would make of a prediction, in two or three words."""

from typing import Any

from app.models import ModelInfo, type_name
from app.texts import t
from app.view_models.prediction import best_of, chances, is_score, percent, span_changes
from kbert_core import KBertError, KBertTrace, Triple
from kbert_core.tasks import ClassPrediction, NerPrediction

Place = tuple[int, int]  # in characters of the first text, end exclusive


def outcome(info: ModelInfo, now: Any, after: Any, at: Place) -> tuple[str, bool]:
    """Say what would be predicted, and whether it is another prediction than now; plain text.

    Args:
        info: of the model.
        now: its prediction.
        after: the same after an edit; an error where the edit can't be made.
        at: the mention that the edit is about; what changes there is said first.
    """
    if isinstance(after, KBertError):
        return t("not possible"), False
    said = _other(info, now, after, at)
    return (t("no change"), False) if said is None else said


def place_of(trace: KBertTrace, triple: Triple) -> Place:
    """Where the first mention stands that a triple hangs from."""
    mentions = (n.mention for n in trace.tree.nodes if triple in n.used)
    return next(((m.start, m.end) for m in mentions), (0, 0))


def _other(info: ModelInfo, now: Any, after: Any, at: Place) -> tuple[str, bool] | None:
    """The same; None: nothing changes."""
    if isinstance(after, NerPrediction):
        changes = [c for c in span_changes(now.spans, after.spans) if c.change != "same"]
        changes.sort(key=lambda c: (not _meet((c.start, c.end), at), c.after is None))
        for change in changes[:1]:
            here = _meet((change.start, change.end), at)
            said = _said(*change.after) if change.after else t("none")
            return said if here else t("“{text}” {label}", text=change.text, label=said), True
    else:
        was, own = ([*map(best_of, chances(info, one).values())] for one in (now, after))
        turns = [text for text, _ in was] != [text for text, _ in own]
        if turns or (isinstance(after, ClassPrediction) and is_score(info, after)):
            text = "".join(text for text, _ in own)
            return f"{text} {percent(min(p for _, p in own))}", turns or now.label != after.label
    return None


def _said(label: str, probability: float) -> str:
    return f"{type_name(label)} {percent(probability)}"


def _meet(one: Place, other: Place) -> bool:
    return one[0] < other[1] and other[0] < one[1]
