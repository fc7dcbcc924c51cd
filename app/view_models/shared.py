"""A scene in words: its edits, and how it is read."""

from collections.abc import Sequence

from app.scene import CHARACTERS, WORDS, Scene
from app.texts import listed, t
from app.view_models.html import escape, scrolling
from app.view_models.interventions import describe as describe_intervention
from app.view_models.knowledge import describe
from kbert_core import Ablation, InjectionOptions
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.surface_forms import RULES


def edits_html(edits: Sequence[Edit]) -> str:
    """Draw edits as a table, oldest first; escaped."""
    rows = "".join(
        f'<tr><td class="kb-num">{number}</td><td>{escape(describe(edit))}</td></tr>'
        for number, edit in enumerate(edits, start=1)
    )
    head = f'<th class="kb-num">#</th><th>{escape(t("share.edit"))}</th>'
    table = f'<table class="kb-table"><tr>{head}</tr>{rows}</table>'
    return scrolling(table)


def how_it_is_read(scene: Scene) -> list[str]:
    """Say with which options, ablation and interventions a scene is read; plain text."""
    made = [describe_intervention(one, None) for one in scene.interventions]
    return [*_options(scene.options), *_ablation(scene.ablation), *made]


def model_name(model: str) -> str:
    """What a model, or a reader without one, is called."""
    readers = {WORDS: "reader.words", CHARACTERS: "reader.characters"}
    return t(readers[model]) if model in readers else model


def _options(options: InjectionOptions) -> list[str]:
    how = t("options.tail" if options.tail_only else "options.relation_and_tail")
    said = [t("options.what", n=options.max_triples, how=how)]
    said.append(t("options.strategy_" + options.strategy))
    if options.threshold is not None:
        said.append(t("share.threshold", value=f"{options.threshold:g}"))
    if options.one_sense:
        said.append(t("options.one_sense"))
    for key, names in (
        ("share.only", options.relations or ()),
        ("share.without", options.not_relations),
        ("share.first", options.first_relations),
    ):
        if names:
            said.append(t(key, relations=listed(names)))
    off = [t("name_rule." + rule.upper()) for rule in RULES if not getattr(options.names, rule)]
    if off:
        said.append(t("share.names_off", rules=listed(off)))
    return said


def _ablation(ablation: Ablation) -> list[str]:
    said = []
    if ablation.positions == "hard":
        said.append(t("tree.hard_used"))
    if ablation.visible == "all":
        said.append(t("tree.all_visible"))
    return said
