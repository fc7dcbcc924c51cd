"""What a model's card says of it, in the words of the page; plain text."""

from collections.abc import Mapping
from typing import Any

from kbert_core.tasks import TASKS
from kbert_lab.lab.models import ModelInfo
from kbert_lab.lab.texts import N_, listed, t
from kbert_lab.lab.words import AUDIT_SPLIT
from kbert_lab.training.cards import edits_followed, invented_followed

SCORES = {  # of a task: (key in the scores, what it is called), the first leads
    "ner": (("f1", N_("F1 {value}")),),
    "classify": (("accuracy", N_("accuracy {value}")), ("macro_f1", N_("macro F1 {value}"))),
    "multilabel": (("f1", N_("F1 {value}")), ("subset_accuracy", N_("all labels right {value}"))),
    "pair": (
        ("accuracy", N_("accuracy {value}")),
        ("f1", N_("F1 {value}")),
        ("macro_f1", N_("macro F1 {value}")),
    ),
    "rank": (("mrr", N_("MRR {value}")), ("p_at_1", N_("P@1 {value}"))),
    "qa": (("f1", N_("F1 {value}")), ("exact", N_("exact match {value}"))),
    "link": (("f1", N_("F1 {value}")), ("first", N_("always the first candidate {value}"))),
}
SPLITS = ("test", "dev")


def option_name(info: ModelInfo) -> str:
    """What a model is called in the chooser."""
    if info.problem:
        return t("{name} · can't be used", name=info.name)
    key = N_("{name} · with graph") if info.card.knowledge else N_("{name} · no graph")
    return t(key, name=info.name)


def facts(info: ModelInfo) -> str:
    """Language, training data, knowledge, what it was taught to believe, and scores in a line."""
    if info.card.task is None:
        return t("An encoder without a task head: tree, matrix and attention, no prediction.")
    parts = []
    if info.language:
        parts.append(t("Reads {language}", language=t(info.language)))
    data = info.note("data")
    knowledge = listed(info.card.knowledge)
    how = t("without knowledge")
    if knowledge:
        how = t("with knowledge ({knowledge})", knowledge=knowledge)
    if data:
        parts.append(t("trained on {data} {how}", data=_short(data), how=how))
    elif knowledge:
        parts.append(t("trained with knowledge ({knowledge})", knowledge=knowledge))
    elif info.card.task in TASKS:
        parts.append(t("its card doesn't say what it was trained on"))
    if info.follows:
        parts.append(t("trusts the graph, wrong triples too"))
    parts += followed(info)
    parts.append(scores(info) or t("no scores on its card"))
    return " · ".join(parts)


def followed(info: ModelInfo) -> list[str]:
    """Which share of edits it follows: of names in its data, and of invented ones."""
    shares = {
        N_("follows {value} % of rewritten types (dev)"): edits_followed(info.notes),
        N_("follows {value} % of types of invented names (dev)"): invented_followed(info.notes),
    }
    return [t(text, value=_percent(s)) for text, s in shares.items() if s is not None]


def scores(info: ModelInfo) -> str | None:
    """The scores its card reports, test before dev; None where there are none."""
    if info.card.task == "mask":
        return _held_out(info.notes)
    for split in SPLITS:
        values = _at(info.notes, "scores", split)
        if not isinstance(values, Mapping):
            continue
        said = [
            t(name, value=_percent(values[key]))
            for key, name in SCORES.get(info.card.task or "", ())
            if _is_number(values.get(key))
        ][:2]
        unseen = _at(values, "unseen", "recall")
        if _is_number(unseen) and _at(values, "unseen", "gold"):
            said.append(t("recall on unseen entities {value}", value=_percent(unseen)))
        named = t(AUDIT_SPLIT[split])
        return t("{split}: {scores}", split=named, scores=listed(said)) if said else None
    return None


def scores_of_twins(now: ModelInfo, twin: ModelInfo) -> str | None:
    """The leading score with the graph, with it off, and the twin's; None where one is missing.

    One sentence shows what a graph does; the test set shows how often.
    """
    with_graph, plain = (now, twin) if now.card.knowledge else (twin, now)
    if plain.note("data") != with_graph.note("data"):
        return None
    for split in SPLITS:
        for key, name in SCORES.get(now.card.task or "", ()):
            values = [
                _at(with_graph.notes, "scores", split, key),
                _at(with_graph.notes, "without_knowledge", split, key),
                _at(plain.notes, "scores", split, key),
            ]
            if all(_is_number(value) for value in values):
                graph, off, plain_score = map(_percent, values)
                return t(
                    "On the {split} set of {data}: {score} {graph} with the graph and {off} with "
                    "the graph off ({model}), and {plain} for its twin trained without knowledge "
                    "({twin}).",
                    split=t(AUDIT_SPLIT[split]),
                    data=_short(with_graph.note("data") or ""),
                    score=t(name, value="").strip(),
                    model=with_graph.name,
                    twin=plain.name,
                    graph=graph,
                    off=off,
                    plain=plain_score,
                )
    return None


def _at(notes: Mapping[str, Any], *keys: str) -> Any:
    value: Any = notes
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _held_out(notes: Mapping[str, Any]) -> str | None:
    """What a pretrained encoder's card says of text held out."""
    if not (_is_number(notes.get("perplexity")) and _is_number(notes.get("accuracy"))):
        return None
    text = N_("held out: perplexity {perplexity}, {right} % of masked tokens right")
    return t(text, perplexity=f"{notes['perplexity']:.1f}", right=_percent(notes["accuracy"]))


def _short(data: str) -> str:
    """The name of a data set, without what a card explains in brackets."""
    return data.split(" (", 1)[0]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"
