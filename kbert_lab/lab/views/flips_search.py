"""What a search for counterfactuals found, in words."""

from collections.abc import Callable

from kbert_core.explain.case import MOST_READ
from kbert_lab.explain.counterfactuals import Counterfactual, Counterfactuals
from kbert_lab.lab.models import ModelInfo
from kbert_lab.lab.texts import N_, sentences, t, tn
from kbert_lab.lab.views.html import escape
from kbert_lab.lab.views.prediction import percent
from kbert_lab.lab.views.targets import SPANS, answer_name

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


def line_html(
    one: Counterfactual,
    found: Counterfactuals,
    info: ModelInfo,
    chance: Callable[[float], float],
) -> str:
    """What a set of edits does and what becomes of the prediction; escaped."""
    edits = (t(SEARCH_DO[own.action], triple=own.triple, new=own.new or "") for own in one.edits)
    what = "".join(f"<div>{escape(edit)}</div>" for edit in edits)
    answer = answer_name(one.after.answer, info, found.sentences[0])
    changed = one.after.answer != one.before.answer  # if not to what was wished for
    said = escape(t("becomes {answer}" if changed else "stays {answer}", answer=answer))
    badge = f'<span class="kb-badge">{said}</span>' if found.found else f"<span>{said}</span>"
    before, after = (percent(chance(own.score)) for own in (one.before, one.after))
    score = f"{answer_name(found.target.label, info, '')} {before} → {after}"
    return (
        f'<div class="kb-flip"><div>{what}</div><div>{badge} '
        f'<span class="kb-delta">{escape(score)}</span></div></div>'
    )


def say_now(found: Counterfactuals, info: ModelInfo) -> str:
    """Say what is predicted, and how many sets of edits change it; plain text."""
    text, target = found.sentences[0], found.target
    answer = answer_name(found.base.answer, info, text)
    if info.card.task == "ner" and not SPANS.search(found.base.answer):
        answer = t("“{text}” {label}", text=text[target.start : target.end], label=answer)
    now = t("Now: {answer}.", answer=answer)
    count = len(found.found)
    said = ""
    if count:
        said = tn(
            "1 set of changes flips it.", "{n} sets of changes flip it, the smallest first.", count
        )
    elif found.ended and found.nearest:
        said = t("Nothing found flips it. The closest:")
    elif found.ended == "all" and found.runs == 1:
        said = t("There is nothing to change: this text contains no triple of the graph.")
    elif found.ended:
        said = t("Nothing found flips it.")
    return sentences(filter(None, [now, said]))


def say_end(found: Counterfactuals) -> str:
    """Say why the search ended, and what it left out; plain text."""
    if not found.ended:
        return ""
    said = [t(SEARCH_ENDED[found.ended], runs=found.runs)]
    if found.unread:
        text = N_("{count} more do not change what the model reads, and need no run.")
        said.append(t(text, count=found.unread))
    if not found.complete:
        words = N_("The graph is large: candidates come from its first {most} triples.")
        said.append(t(words, most=f"{MOST_READ:,}"))
    return sentences(said)
