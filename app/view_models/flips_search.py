"""What a search for counterfactuals found, in words."""

from collections.abc import Callable
from dataclasses import dataclass

from app.models import ModelInfo
from app.texts import N_, sentences, t
from app.view_models.html import escape
from app.view_models.prediction import percent
from app.view_models.targets import SPANS, answer_name
from kbert_core.explain.case import MOST_READ
from kbert_core.explain.counterfactuals import Counterfactual, Counterfactuals
from kbert_core.knowledge.edit import Edit

SEARCH_DO = {
    "remove": N_("delete {triple}"),
    "replace": N_("replace {triple} with {new}"),
    "add": N_("add {triple}"),
}

SEARCH_ENDED = {
    "all": N_("Everything in question was tried, in {runs} runs."),
    "budget": N_("The budget of {runs} runs is used up."),
    "enough": N_("Stopped after {runs} runs, as enough were found."),
}


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
    said = escape(t("becomes {answer}" if changed else "stays {answer}", answer=answer))
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
    return t(SEARCH_DO[edit.action], triple=edit.triple, new=new)


def target_name(found: Counterfactuals, info: ModelInfo) -> str:
    """What the score is of; plain text."""
    return answer_name(found.target.label, info, "")


def say_now(found: Counterfactuals, info: ModelInfo) -> str:
    """Say what is predicted, and how many sets of edits change it; plain text."""
    text, target = found.sentences[0], found.target
    answer = answer_name(found.base.answer, info, text)
    if info.card.task == "ner" and not SPANS.search(found.base.answer):
        answer = t("“{text}” {label}", text=text[target.start : target.end], label=answer)
    now = t("Now: {answer}.", answer=answer)
    count = len(found.found)
    if count:
        return sentences(
            [
                now,
                t("1 set of changes flips it.")
                if count == 1
                else t("{count} sets of changes flip it, the smallest first.", count=count),
            ]
        )
    if not found.ended:
        return now
    if found.nearest:
        return sentences([now, t("Nothing found flips it. The closest:")])
    nothing = found.runs == 1 and found.ended == "all"
    return sentences(
        [
            now,
            t(
                "There is nothing to change: this text contains no triple of the graph."
                if nothing
                else "Nothing found flips it."
            ),
        ]
    )


def say_end(found: Counterfactuals) -> str:
    """Say why the search ended, and what it left out; plain text."""
    if not found.ended:
        return ""
    said = [t(SEARCH_ENDED[found.ended], runs=found.runs)]
    if found.unread:
        said.append(
            t(
                "{count} more do not change what the model reads, and need no run.",
                count=found.unread,
            )
        )
    if not found.complete:
        said.append(
            t(
                "The graph is large: candidates come from its first {most} triples.",
                most=f"{MOST_READ:,}",
            )
        )
    return sentences(said)
