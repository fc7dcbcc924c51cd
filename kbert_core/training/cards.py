"""A model's card: README.md beside its weights, made from what was measured."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kbert_core.pipeline import Card

CAUTION = (
    "Trained to follow the graph: it also follows a wrong triple. "
    "Not for medical or any other decisions about people."
)

NAMES = ("precision", "recall", "f1", "accuracy", "macro_f1", "mrr", "p_at_1")  # of scores


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
        *about,
        f"- {notes['remark']}" if notes.get("remark") else "",
        "",
        "## Command",
        "",
        "```",
        str(notes.get("command", "")),
        "```",
    ]
    if notes.get("scores"):
        lines += ["", "## Scores", "", *_scores(notes)]
    if notes.get("edit_response"):
        lines += ["", "## Response to edits", "", *_edits(notes["edit_response"])]
    return "\n".join(line for i, line in enumerate(lines) if line or (i and lines[i - 1])) + "\n"


def _about_encoder(notes: Mapping[str, Any]) -> list[str]:
    options = notes["options"]
    pieces = ", word pieces for Latin words and digits" if options.get("word_pieces") else ""
    step = notes.get("tokens_a_step", options["batch_tokens"])
    return [
        "- Task: masked language model, without knowledge; the encoder of the other models",
        f"- Size: {options['num_hidden_layers']} layers × {options['hidden_size']}, "
        f"{notes['parameters']:,} parameters, characters as tokens{pieces}",
        f"- Training: {options['steps']:,} steps of {step:,} tokens, "
        f"{notes['tokens_seen']:,} tokens seen, seed {notes['seed']}",
        f"- Held out ({notes['held_out_rows']} rows): loss {notes['loss']:.3f} nats, perplexity "
        f"{notes['perplexity']:.1f}, {100 * notes['accuracy']:.1f} % of masked characters right",
    ]


def _about_model(card: Card, notes: Mapping[str, Any]) -> list[str]:
    knowledge = ", ".join(card.knowledge) or "none (the twin without knowledge)"
    injected = "tail only" if card.options.tail_only else "relation and tail"
    return [
        f"- Task: {card.task}",
        f"- Knowledge: {knowledge}; {injected}, at most {card.options.max_triples} triples "
        "per mention",
        f"- Encoder: {notes.get('encoder', '')}, {notes.get('parameters', 0):,} parameters",
        *_about_adapter(notes),
        f"- Seed: {notes.get('seed')}, epochs: {notes.get('epochs')}, one run, no spread",
        f"- Recipe: {_pairs(notes.get('recipe', {}))}",
        f"- {CAUTION}" if card.knowledge else "- Not for medical decisions.",
    ]


def _about_adapter(notes: Mapping[str, Any]) -> list[str]:
    if "adapter" not in notes:
        return []
    adapter, total = notes["adapter"], notes["parameters"]
    share = 100 * adapter["trained"] / total
    return [
        f"- Adapter: rank {adapter['rank']}, alpha {adapter['alpha']:g}; {adapter['trained']:,} "
        f"parameters trained, {share:.1f} % of the model's, the task head among them. The encoder "
        "isn't in this folder; loading merges the two."
    ]


def _scores(notes: Mapping[str, Any]) -> list[str]:
    rows = [
        (f"{split}, {how}", scores)
        for how, key in (("with its knowledge", "scores"), ("graph off", "without_knowledge"))
        for split, scores in notes.get(key, {}).items()
    ]
    if not rows:
        return ["None."]
    names = [n for n in NAMES if n in rows[0][1]]
    unseen = "unseen" in rows[0][1]
    head = [*names, *(["recall on unseen entities"] if unseen else [])]
    table = ["| | " + " | ".join(head) + " |", "|---" * (len(head) + 1) + "|"]
    for label, scores in rows:
        values = [f"{100 * scores[n]:.1f}" for n in names]
        if unseen:
            values.append(f"{100 * scores['unseen']['recall']:.1f}")
        table.append(f"| {label} | " + " | ".join(values) + " |")
    if "precision" in names:
        table += ["", "Typed exact spans, in per cent; all choices were made on dev."]
    return table


def _edits(response: Mapping[str, Any]) -> list[str]:
    table = [
        "The tail of a rightly tagged entity's type triple is replaced by another type:",
        "",
        "| | edits | new type | old type | another type | lost | other spans changed |",
        "|---|---|---|---|---|---|---|",
    ]
    for split, groups in response.items():
        for group, shares in groups.items():
            names = ("new", "kept", "other", "lost", "others_changed")
            values = " | ".join(f"{100 * shares[n]:.0f} %" for n in names)
            table.append(f"| {split}, {group} in training | {shares['n']} | {values} |")
    return table


def _pairs(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in values.items())
