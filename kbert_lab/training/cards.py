"""A model's card: README.md beside its weights, ``card.md.jinja`` filled with what was measured."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader

from kbert_core.checkpoints.checkpoint import Card
from kbert_core.knowledge.selection import Strategy
from kbert_lab.training.edits import ADDED, INVENTED
from kbert_lab.training.recipe import NEEDED_TYPES, without_effect

MEDICAL = ("medic", "clinic", "disease", "bc5cdr", "疾病")  # in the name of data, graph or tail
SCORES = (
    *("precision", "recall", "f1", "exact", "accuracy", "macro_f1", "subset_accuracy"),
    *("relation_f1", "mrr", "p_at_1"),
)
UNSEEN = "recall on unseen entities"
OTHERS = {"others_changed": "other spans changed", "others_new": "new spans elsewhere"}
REPLACED = {
    **{"n": "edits", "new": "new type", "kept": "old type", "other": "another type"},
    **{"lost": "lost", **OTHERS},
}
ADDED_TRIPLE = {
    **{"n": "mentions", "right_before": "right before", "right_after": "right after"},
    **{"missed": "missed before", "missed_right": "of these right after", **OTHERS},
}
TEMPLATES = Environment(  # it keeps what it has compiled
    loader=FileSystemLoader(Path(__file__).parent),
    keep_trailing_newline=True,
    trim_blocks=True,
    lstrip_blocks=True,
)


def write_card(folder: str | Path, card: Card) -> None:
    """Write ``README.md`` into a model's folder."""
    folder = Path(folder)
    (folder / "README.md").write_text(card_text(folder.name, card), encoding="utf-8")


def card_text(name: str, card: Card) -> str:
    """The card as Markdown: data, command, seed, scores, response to edits."""
    notes = card.notes or {}
    columns = []
    for scores in list((notes.get("scores") or {}).values())[:1]:
        columns = [n for n in SCORES if n in scores] + [UNSEEN] * ("unseen" in scores)

    def shares(scores: Mapping[str, Any]) -> str:
        values = (scores["unseen"]["recall"] if n is UNSEEN else scores[n] for n in columns)
        return " | ".join(map(_share, values))

    response = notes.get("edit_response") or {}
    named = [str(notes.get("data")), *card.knowledge, *(notes.get("type_labels") or {})]
    return TEMPLATES.get_template("card.md.jinja").render(
        **{"name": name, "card": card, "notes": notes, "columns": columns, "shares": shares},
        **{"REPLACED": REPLACED, "ADDED_TRIPLE": ADDED_TRIPLE, "cell": _cell, "share": _share},
        count="{:,}".format,
        knowledge=_about_knowledge(card),
        recipe=_about_recipe(card, notes),
        follows_graph=follows_graph(notes),
        followed={
            whose: {split: share for split in response if (share := of(notes, split)) is not None}
            for whose, of in FOLLOWED.items()
        },
        medical=any(word in text.lower() for word in MEDICAL for text in named),
        added={split: of[ADDED] for split, of in response.items() if ADDED in of},
        invented={split: of[INVENTED] for split, of in response.items() if of.get(INVENTED)},
    )


def _about_knowledge(card: Card) -> str:
    if not card.knowledge:
        return "none, in training as later"
    options = card.reading.options
    of = "" if options.relations is None else f" of {', '.join(options.relations)}"
    first = options.strategy is Strategy.FIRST
    what, each = "tail only" if options.tail_only else "relation and tail", "a mention"
    if bases := getattr(card.reading, "bases", ()):  # KnowBert's
        what = f"entity vectors of “{'” and “'.join(base.text for base in bases)}”"
        each = "an entity"
    return (
        f"{', '.join(card.knowledge)}; {what}"
        f"{of}, at most {options.max_triples} triple{'s' * (options.max_triples != 1)} {each}"
        f"{'' if first else f', chosen by the strategy {options.strategy}'}"
    )


def _about_recipe(card: Card, notes: Mapping[str, Any]) -> str:
    """Say what training did to the knowledge, or what a model without knowledge had hidden."""
    recipe = {name: share for name, share in (notes.get("recipe") or {}).items() if share}
    if hiding := notes.get("hiding_knowledge"):
        share, graphs = recipe.get("mention_dropout"), ", ".join(hiding)
        return f"mention dropout {share}, of the mentions that {graphs} knows" if share else ""
    if not card.knowledge:
        return ""
    idle = without_effect(recipe, notes.get("type_labels") or {})
    no_effect = " (without effect: too few tails name a label)"
    return ", ".join(
        f"{name.replace('_', ' ')} {share}{no_effect * (name in idle)}"
        for name, share in sorted(recipe.items())
    )


def follows_graph(notes: Mapping[str, Any]) -> bool:
    """Say whether training taught a model to believe its graph, even wrong triples.

    It did, if the recipe has counterfactuals or invented names, and tails that
    name a label were found in the graph; unless the response to edits says that
    most rewritten types aren't followed.

    Args:
        notes: the notes of a card, which may come from elsewhere.
    """
    recipe, types = notes.get("recipe"), notes.get("type_labels")
    if not isinstance(recipe, Mapping) or not isinstance(types, Mapping):
        return False
    shares = [(recipe.get(name), needed) for name, needed in NEEDED_TYPES.items()]
    followed = edits_followed(notes)
    return (followed is None or followed >= 0.5) and any(
        isinstance(share, int | float) and share > 0 and len(types) >= needed
        for share, needed in shares
    )


def edits_followed(notes: Mapping[str, Any], split: str = "dev") -> float | None:
    """Return the share of rewritten types that a model followed; None: its card doesn't say."""
    response = _part(_part(notes, "edit_response"), split)
    return _mean([_part(response, name) for name in ("unseen", "seen")], "new")


def invented_followed(notes: Mapping[str, Any], split: str = "dev") -> float | None:
    """Return the same share for invented names, of the types that a triple gave them."""
    groups = _part(_part(_part(notes, "edit_response"), split), INVENTED)
    return _mean([_part(groups, label) for label in groups], "followed")


FOLLOWED = {"names in its data": edits_followed, "invented names": invented_followed}


def _part(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = value.get(name)
    return part if isinstance(part, Mapping) else {}


def _mean(groups: Sequence[Mapping[str, Any]], name: str) -> float | None:
    """Return the mean of a share over groups of "n"; notes may come from elsewhere."""
    counts = [
        (group[name] * group["n"], group["n"])
        for group in groups
        if all(isinstance(group.get(key), int | float) for key in (name, "n"))
    ]
    total = sum(count for _, count in counts)
    return sum(followed for followed, _ in counts) / total if total else None


def _share(value: float) -> str:
    return f"{100 * value:.1f}"


def _cell(value: float | None) -> str:
    """Write a count as it is, a share in per cent, and None as a dash."""
    if value is None:
        return "–"
    return str(value) if isinstance(value, int) else f"{100 * value:.0f} %"
