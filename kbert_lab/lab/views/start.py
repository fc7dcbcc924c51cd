"""Small pictures of the scenes of Start, and the guided play of the first one. Pure."""

from base64 import b64encode
from collections.abc import Sequence
from itertools import islice

import torch

from kbert_core.kbert.flat_tree import FlatTree, flatten
from kbert_core.kbert.sentence_tree import grow_trees
from kbert_core.kbert.visible import FULL, visible_matrix
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.words import Characters, Words
from kbert_lab.lab.examples import Example, Said, StartScene
from kbert_lab.lab.models import type_name
from kbert_lab.lab.texts import t
from kbert_lab.lab.views.html import BRANCH, TRUNK, rendered
from kbert_lab.lab.views.tree import Laid, tree_html, tree_view
from kbert_lab.lab.words import ENGLISH

SQUARE = 7  # pixels of a token in a small matrix
SYSTEMS = {"K-BERT": "below", "KnowBert": "inside", "Roof-BERT": "above", "": "before"}


def picture_html(scene: StartScene, example: Example, graph: KnowledgeGraph) -> str:
    """A scene's small picture, drawn from its example; escaped.

    Args:
        graph: the example's.
    """
    drawn: object = ""
    if scene.key == "mask":
        flat = _laid(example, graph)
        drawn = [_squares(flat), _squares(flat, everything=True)]
    elif scene.key == "figure":
        drawn = tree_html(tree_view(Laid((_laid(example, graph),), FULL)), legend=False)
    elif scene.key not in ("own", "systems"):
        drawn = flip_html(example, scene.edit)
    return rendered("start", scene=scene, drawn=drawn, triples=islice(graph, 4), systems=SYSTEMS)


def flip_html(example: Example, edit: str) -> str:
    """An example's sentence, its triple with the switch, and what is predicted before and after."""
    if example.turn is None:
        return ""
    triple = example.turn[0]
    parts = example.sentences[0].partition(triple.head)
    said = {when: _said(found) for when, found in example.shows.items() if when != "tail"}
    return rendered("flip", triple=triple, parts=parts, edit=edit, shows=example.shows, said=said)


def play_steps(example: Example) -> Sequence[str]:
    """What the guided play says, step by step; plain text."""
    assert example.turn is not None
    triple, now = example.turn[0], example.shows["now"]
    off = example.shows["off"]
    says = f"{triple.relation.replace('_', ' ')} {triple.tail}"
    return (
        t("A model reads this sentence."),
        t("A knowledge graph hangs a fact on {name}: {says}.", name=triple.head, says=says),
        t("With it, the model is sure: {label}.", label=_said(now)),
        t("Switch the fact off …"),
        t("… and the model says something else: {label}.", label=_said(off)),
        t("Your turn: the switch is on the branch."),
    )


def _said(found: Said | None) -> str:
    return f"{type_name(found[0])} {round(100 * found[1])} %" if found else t("no entity")


def _laid(example: Example, graph: KnowledgeGraph) -> FlatTree:
    """An example's tree in one row, with words or characters as tokens."""
    tokens = Words(special=True) if example.language == ENGLISH else Characters(special=True)
    trees = grow_trees([example.sentences], graph, InjectionOptions())
    return flatten(trees, tokens)[0]


def _squares(flat: FlatTree, *, everything: bool = False) -> str:
    """The address of a picture of the visible matrix, what branches see in their colour."""
    branches, anchors = torch.tensor([flat.branch_ids]), torch.tensor([flat.anchor_ids])
    visible = visible_matrix(branches, anchors)[0]
    size = SQUARE * len(flat)
    cells = "".join(
        f'<rect x="{SQUARE * column}" y="{SQUARE * row}" width="{SQUARE - 1}" '
        f'height="{SQUARE - 1}" fill="{BRANCH if flat.branch_ids[row] or branch else TRUNK}"/>'
        for row in range(len(flat))
        for column, branch in enumerate(flat.branch_ids)
        if everything or visible[row, column]
    )
    drawn = f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{size}">{cells}</svg>'
    return f"data:image/svg+xml;base64,{b64encode(drawn.encode()).decode()}"
