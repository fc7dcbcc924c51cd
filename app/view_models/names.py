"""How the names of a text were read, in words."""

from collections.abc import Sequence

from app.texts import t
from kbert_core.knowledge.mentions import Mention, PassedOver
from kbert_core.sentence_tree import SentenceTree

SHOWN = 6  # lines of a kind


def name_lines(tree: SentenceTree, over: Sequence[PassedOver]) -> tuple[str, ...]:
    """Say which mentions are written otherwise than in the graph, or mean several things.

    And which names are no mentions, and why. Plain text, a line each.

    Args:
        tree: what was read.
        over: the names passed over in it.
    """

    def text(mention: Mention) -> str:
        return tree.sentences[mention.sentence][mention.start : mention.end]

    said = []
    for node in tree.nodes:
        mention = node.mention
        if mention.rules:
            rules = ", ".join(t("name_rule." + rule.name) for rule in mention.rules)
            said.append(t("names.read", text=text(mention), entity=mention.entity, rules=rules))
        if mention.others:
            entities = ", ".join(mention.entities)
            said.append(t("names.several", text=text(mention), entities=entities))
    passed = [
        t(
            "names.inside" if one.inside else "names.overlaps",
            text=text(one.mention),
            longer=text(one.taken),
        )
        for one in over
    ]
    return (*_first(said), *_first(passed))


def _first(lines: list[str]) -> list[str]:
    """The first lines, each once, and how many more there are."""
    lines = list(dict.fromkeys(lines))
    more = len(lines) - SHOWN
    return [*lines[:SHOWN], t("names.more", count=more)] if more > 0 else lines
