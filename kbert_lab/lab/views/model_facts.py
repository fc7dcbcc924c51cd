"""What a model's card says of it, in the words of the page; plain text."""

from collections.abc import Mapping
from typing import Any

from kbert_lab.lab.models import ModelInfo
from kbert_lab.lab.texts import N_, listed, t
from kbert_lab.lab.words import AUDIT_SPLIT
from kbert_lab.training.cards import edits_followed, invented_followed

SCORES = {  # as cards name them, and what they are called; of a model's the first two are said
    "accuracy": N_("accuracy {value}"),
    "mrr": N_("MRR {value}"),
    "p_at_1": N_("P@1 {value}"),
    "f1": N_("F1 {value}"),
    "macro_f1": N_("macro F1 {value}"),
    "exact": N_("exact match {value}"),
    "subset_accuracy": N_("all labels right {value}"),
    "first": N_("always the first candidate {value}"),
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
    data, knowledge, parts = info.note("data"), listed(info.card.knowledge), []
    if info.language:
        parts.append(t("Reads {language}", language=t(info.language)))
    how = t("without knowledge")
    if knowledge:
        how = t("with knowledge ({knowledge})", knowledge=knowledge)
    if data:
        parts.append(t("trained on {data} {how}", data=_short(data), how=how))
    elif knowledge:
        parts.append(how)
    if info.follows:
        parts.append(t("trusts the graph, wrong triples too"))
    shares = {
        N_("follows {value} % of rewritten types (dev)"): edits_followed(info.notes),
        N_("follows {value} % of types of invented names (dev)"): invented_followed(info.notes),
    }
    parts += [t(text, value=_percent(s)) for text, s in shares.items() if s is not None]
    return " · ".join([*parts, *scores(info)])


def scores(info: ModelInfo) -> list[str]:
    """The scores its card reports, test before dev; of a pretrained encoder on text held out."""
    for split in SPLITS:
        values = _at(info.notes, "scores", split)
        said = [
            t(name, value=_percent(_at(values, key)))
            for key, name in SCORES.items()
            if _is_number(_at(values, key))
        ][:2]
        unseen = _at(values, "unseen", "recall")
        if _is_number(unseen) and _at(values, "unseen", "gold"):
            said.append(t("recall on unseen entities {value}", value=_percent(unseen)))
        if said:
            named = t(AUDIT_SPLIT[split])
            return [t("{split}: {scores}", split=named, scores=listed(said))]
    perplexity, right = (_at(info.notes, name) for name in ("perplexity", "accuracy"))
    if not (_is_number(perplexity) and _is_number(right)):
        return []
    text = N_("held out: perplexity {perplexity}, {right} % of masked tokens right")
    return [t(text, perplexity=f"{perplexity:.1f}", right=_percent(right))]


def scores_of_twins(now: ModelInfo, twin: ModelInfo) -> str | None:
    """The leading score with the graph, with it off, and the twin's; None where one is missing.

    One sentence shows what a graph does; the test set shows how often.
    """
    with_graph, plain = (now, twin) if now.card.knowledge else (twin, now)
    if plain.note("data") != with_graph.note("data"):
        return None
    for split in SPLITS:
        for key, name in SCORES.items():
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


def _at(value: Any, *keys: str) -> Any:
    """What stands in notes at the end of keys, if anything."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _short(data: str) -> str:
    """The name of a data set, without what a card explains in brackets."""
    return data.split(" (", 1)[0]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"
