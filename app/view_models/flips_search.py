"""What a search for counterfactuals found, in words."""

from collections.abc import Callable
from dataclasses import dataclass

from app.models import ModelInfo
from app.texts import sentences, t
from app.view_models.html import escape
from app.view_models.prediction import percent
from app.view_models.targets import SPANS, answer_name
from kbert_core.explain.case import MOST_READ
from kbert_core.explain.counterfactuals import Counterfactual, Counterfactuals
from kbert_core.knowledge.edit import Edit


@dataclass(frozen=True, slots=True)
class Line:
    """One set of edits, ready to be drawn.

    Attributes:
        edits: to be made in the Lab.
        html: what they do and what becomes of the prediction; escaped.
        key: of its button; the same for the same edits.
    """

    edits: tuple[Edit, ...]
    html: str
    key: str


def lines(
    found: Counterfactuals, info: ModelInfo, chance: Callable[[float], float]
) -> tuple[Line, ...]:
    """The sets of edits that flip it, or those that come nearest."""
    return tuple(
        _line(one, found, info, chance, flips=bool(found.found))
        for one in found.found or found.nearest
    )


def _line(
    one: Counterfactual,
    found: Counterfactuals,
    info: ModelInfo,
    chance: Callable[[float], float],
    *,
    flips: bool,
) -> Line:
    what = "".join(f"<div>{escape(_do(edit))}</div>" for edit in one.edits)
    answer = answer_name(one.after.answer, info, found.sentences[0])
    changed = one.after.answer != one.before.answer  # if not to what was wished for
    said = escape(t("search.becomes" if changed else "search.stays", answer=answer))
    badge = f'<span class="kb-badge">{said}</span>' if flips else f"<span>{said}</span>"
    before, after = chance(one.before.score), chance(one.after.score)
    score = f"{target_name(found, info)} {percent(before)} → {percent(after)}"
    html = (
        f'<div class="kb-flip"><div>{what}</div><div>{badge} '
        f'<span class="kb-delta">{escape(score)}</span></div></div>'
    )
    key = "|".join(map(str, one.edits))
    return Line(one.edits, html, key)


def _do(edit: Edit) -> str:
    new = edit.new if edit.new is not None else ""
    return t("search.do_" + edit.action, triple=edit.triple, new=new)


def target_name(found: Counterfactuals, info: ModelInfo) -> str:
    """What the score is of; plain text."""
    return answer_name(found.target.label, info, "")


def say_now(found: Counterfactuals, info: ModelInfo) -> str:
    """Say what is predicted, and how many sets of edits change it; plain text."""
    text, target = found.sentences[0], found.target
    answer = answer_name(found.base.answer, info, text)
    if info.card.task == "ner" and not SPANS.search(found.base.answer):
        answer = t("target.span", text=text[target.start : target.end], label=answer)
    now = t("search.now", answer=answer)
    count = len(found.found)
    if count:
        return sentences(
            [now, t("search.found_one") if count == 1 else t("search.found", count=count)]
        )
    if not found.ended:
        return now
    if found.nearest:
        return sentences([now, t("search.none")])
    nothing = found.runs == 1 and found.ended == "all"
    return sentences([now, t("search.nothing" if nothing else "search.none_at_all")])


def say_end(found: Counterfactuals) -> str:
    """Say why the search ended, and what it left out; plain text."""
    if not found.ended:
        return ""
    said = [t(f"search.ended_{found.ended}", runs=found.runs)]
    if found.unread:
        said.append(t("search.unread", count=found.unread))
    if not found.complete:
        said.append(t("search.partly", most=f"{MOST_READ:,}"))
    return sentences(said)
