"""A model's card: README.md beside its weights, made from what was measured."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kbert_core.checkpoints.checkpoint import Card
from kbert_core.knowledge.selection import Strategy
from kbert_core.systems import K_BERT
from kbert_core.training.evaluate import ADDED, GROUPS
from kbert_core.training.recipe import NEEDED_TYPES, without_effect

NO_TYPES = (
    "Not measured: no tail of its graph names a label, so that no edit of a triple says what an "
    "entity should become."
)
TRUSTS = "Trained to follow the graph: it also follows a wrong triple."
MEDICAL = ("medic", "clinic", "disease", "bc5cdr", "疾病")  # in the name of data, graph or tail
NAMES = ("precision", "recall", "f1", "accuracy", "macro_f1", "mrr", "p_at_1")  # of scores
OTHERS = {"others_changed": "other spans changed", "others_new": "new spans elsewhere"}
REPLACED = {
    **{"n": "edits", "new": "new type", "kept": "old type", "other": "another type"},
    **{"lost": "lost", **OTHERS},
}
ADDED_TRIPLE = {
    **{"n": "mentions", "right_before": "right before", "right_after": "right after"},
    **{"missed": "missed before", "missed_right": "of these right after", **OTHERS},
}


def write_card(folder: str | Path, card: Card) -> None:
    """Write ``README.md`` into a model's folder."""
    folder = Path(folder)
    (folder / "README.md").write_text(card_text(folder.name, card), encoding="utf-8")


def card_text(name: str, card: Card) -> str:
    """The card as Markdown: data, command, seed, scores, response to edits."""
    notes = card.notes or {}
    about = _about_encoder(notes) if "tokens_seen" in notes else _about_model(card, notes)
    lines = [
        f"# {name}",
        "",
        f"- Data: {notes.get('data', '')}; not part of this repository",
        *(f"- {line}" for line in about if line),
        *([f"- {notes['remark']}"] if notes.get("remark") else []),
        *("", "## Command", "", "```", str(notes.get("command", "")), "```"),
    ]
    if notes.get("scores"):
        lines += ["", "## Scores", "", *_scores(card, notes)]
    if card.task == "ner" and card.knowledge and notes.get("type_labels") == {}:
        lines += ["", "## Response to edits", "", NO_TYPES]
    if notes.get("edit_response"):
        lines += ["", "## Response to edits", "", *_edits(notes["edit_response"])]
    return "\n".join(lines) + "\n"


def _about_encoder(notes: Mapping[str, Any]) -> list[str]:
    options = notes["options"]
    pieces = ", word pieces for Latin words and digits" if options.get("word_pieces") else ""
    step = notes.get("tokens_a_step", options["batch_tokens"])
    return [
        "Task: masked language model, without knowledge; the encoder of the other models",
        f"Size: {options['num_hidden_layers']} layers × {options['hidden_size']}, "
        f"{notes['parameters']:,} parameters, characters as tokens{pieces}",
        f"Training: {options['steps']:,} steps of {step:,} tokens, "
        f"{notes['tokens_seen']:,} tokens seen, seed {notes['seed']}",
        f"Held out ({notes['held_out_rows']} rows): loss {notes['loss']:.3f} nats, perplexity "
        f"{notes['perplexity']:.1f}, {100 * notes['accuracy']:.1f} % of masked characters right",
    ]


def _about_model(card: Card, notes: Mapping[str, Any]) -> list[str]:
    """What stands on the card, line by line; "" for what it needn't say."""
    negatives, adapter, adapted = notes.get("negatives"), notes.get("adapter"), ""
    if adapter:
        share = 100 * adapter["trained"] / notes["parameters"]
        adapted = (
            f"Adapter: rank {adapter['rank']}, alpha {adapter['alpha']:g}; {adapter['trained']:,} "
            f"parameters trained, {share:.1f} % of the model's, the task head among them. The "
            "encoder isn't in this folder; loading merges the two."
        )
    further = notes.get("trained_further")
    named = [str(notes.get("data")), *card.knowledge, *(notes.get("type_labels") or {})]
    medical = any(word in text.lower() for word in MEDICAL for text in named)
    return [
        f"Task: {card.task}",
        f"System: {card.system}" if card.system != K_BERT else "",
        f"Knowledge: {_about_knowledge(card)}",
        f"Encoder: {notes.get('encoder', '')}, {notes.get('parameters', 0):,} parameters",
        adapted,
        f"The adapter {further}, trained further" if further else "",
        f"Seed: {notes.get('seed')}, epochs: {notes.get('epochs')}, one run, no spread",
        ""
        if negatives is None
        else f"Wrong answers of a question read in an epoch, drawn anew: {negatives}",
        _about_recipe(card, notes),
        TRUSTS if follows_graph(notes) else "",
        "Not for medical decisions." if medical else "",
    ]


def _about_knowledge(card: Card) -> str:
    if not card.knowledge:
        return "none, in training as later"
    options = card.reading.options
    of = "" if options.relations is None else f" of {', '.join(options.relations)}"
    first = options.strategy is Strategy.FIRST
    return (
        f"{', '.join(card.knowledge)}; {'tail only' if options.tail_only else 'relation and tail'}"
        f"{of}, at most {options.max_triples} triple{'s' * (options.max_triples != 1)} a mention"
        f"{'' if first else f', chosen by the strategy {options.strategy}'}"
    )


def _about_recipe(card: Card, notes: Mapping[str, Any]) -> str:
    """What happened to knowledge in training; of a model without any, what it hid."""
    recipe = {name: share for name, share in (notes.get("recipe") or {}).items() if share}
    if hiding := notes.get("hiding_knowledge"):
        share = recipe.get("mention_dropout", 0)
        told = f"mention dropout {share}, of the mentions that {', '.join(hiding)} knows"
        return f"Recipe: {told}" if share else ""
    if not card.knowledge or not recipe:
        return ""
    idle = without_effect(recipe, notes.get("type_labels") or {})
    shares = [
        f"{name.replace('_', ' ')} {share}"
        + (" (without effect: too few tails name a label)" if name in idle else "")
        for name, share in recipe.items()
    ]
    return f"Recipe: {', '.join(shares)}"


def follows_graph(notes: Mapping[str, Any]) -> bool:
    """Whether training taught a model to believe its graph, wrong triples too.

    The recipe did, if it has counterfactuals or invented names and the graph's
    tails that name a label were learnt.

    Args:
        notes: of a card, perhaps a foreign one.
    """
    recipe, types = notes.get("recipe"), notes.get("type_labels")
    if not isinstance(recipe, Mapping) or not isinstance(types, Mapping):
        return False
    shares = [(recipe.get(name), needed) for name, needed in NEEDED_TYPES.items()]
    return any(
        isinstance(share, int | float) and share > 0 and len(types) >= needed
        for share, needed in shares
    )


def _scores(card: Card, notes: Mapping[str, Any]) -> list[str]:
    how = ", with its knowledge" if card.knowledge else ""
    rows = [
        (f"{split}{how}", scores)
        for how, key in ((how, "scores"), (", graph off", "without_knowledge"))
        for split, scores in notes.get(key, {}).items()
    ]
    if not rows:
        return ["None."]
    names = [n for n in NAMES if n in rows[0][1]]
    unseen = ["recall on unseen entities"] if "unseen" in rows[0][1] else []
    table = {}
    for label, of in rows:
        values = [*(of[n] for n in names), *(of["unseen"]["recall"] for _ in unseen)]
        table[label] = [f"{100 * value:.1f}" for value in values]
    lines = _table([*names, *unseen], table)
    if "precision" in names:
        lines += ["", "Typed exact spans, in per cent; all choices were made on dev."]
    return lines


def _edits(response: Mapping[str, Any]) -> list[str]:
    replaced = {split: groups for split, groups in response.items() if groups}
    added = {split: groups[ADDED] for split, groups in response.items() if ADDED in groups}
    lines = [
        "The tail of a rightly tagged entity's type triple is replaced by another type:",
        "",
        *_edits_table(REPLACED, replaced),
    ]
    if added:
        lines += [
            "",
            "A missing triple is added: the type of a gold mention that the graph doesn't know.",
            "Right is the exact span with its type, of all these mentions and of those missed "
            "before:",
            "",
            *_edits_table(ADDED_TRIPLE, added),
        ]
    return [
        *lines,
        "",
        "Other spans: what the model finds elsewhere in the sentence. Gone or of another type, and "
        "new ones, both as a share of those there before the edit.",
    ]


def _edits_table(columns: Mapping[str, str], response: Mapping[str, Any]) -> list[str]:
    rows = {
        f"{split}, {group} in training": [_cell(groups[group].get(name)) for name in columns]
        for split, groups in response.items()
        for group in GROUPS
        if group in groups
    }
    return _table(columns.values(), rows)


def _table(columns: Iterable[str], rows: Mapping[str, Sequence[str]]) -> list[str]:
    head = ["", *columns]
    return [
        f"| {' | '.join(head)} |".replace("|  |", "| |", 1),
        "|---" * len(head) + "|",
        *(f"| {' | '.join([name, *values])} |" for name, values in rows.items()),
    ]


def _cell(value: float | None) -> str:
    """A count as it is, a share in per cent, and nothing as a dash."""
    if value is None:
        return "–"
    return str(value) if isinstance(value, int) else f"{100 * value:.0f} %"
