"""How the names of a text were read, in words."""

from collections.abc import Sequence

from app.texts import listed, t
from app.words import NAME_RULE
from kbert_core.kbert.sentence_tree import Node, SentenceTree
from kbert_core.knowledge.mentions import Mention, PassedOver
from kbert_core.knowledge.names import normalise_name

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
            rules = listed(t(NAME_RULE[rule.name]) for rule in mention.rules)
            said.append(
                t(
                    "“{text}” is read as “{entity}” ({rules})",
                    text=text(mention),
                    entity=_as_in_graph(node),
                    rules=rules,
                )
            )
        if mention.others:
            entities = listed(mention.entities)
            said.append(t("“{text}” may mean {entities}", text=text(mention), entities=entities))
    passed = [
        t(
            "“{text}” is not a mention: it is part of “{longer}”"
            if one.inside
            else "“{text}” is not a mention: it overlaps “{longer}”",
            text=text(one.mention),
            longer=text(one.taken),
        )
        for one in over
    ]
    return (*_first(said), *_first(passed))


def _as_in_graph(node: Node) -> str:
    """The entity's name as one of its triples writes it."""
    triples = [branch.triple for branch in node.branches] + [out.triple for out in node.left_out]
    heads = (triple.head for triple in triples)
    return next(
        (head for head in heads if normalise_name(head) == node.mention.entity), node.mention.entity
    )


def _first(lines: list[str]) -> list[str]:
    """The first lines, each once, and how many more there are."""
    lines = list(dict.fromkeys(lines))
    more = len(lines) - SHOWN
    return [*lines[:SHOWN], t("and {count} more", count=more)] if more > 0 else lines
