"""The graph around a sentence or a triple, as vis-network draws it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import networkx as nx
from pyvis.network import Network

from kbert_core.kbert.flat_tree import FlatTree
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.triple import TYPE_RELATIONS, Triple
from kbert_lab.lab.selection import FIELDS, code_of
from kbert_lab.lab.views.html import BRANCH, ENTITY_TINTS, TRUNK, shorten
from kbert_lab.lab.views.knowledge import TripleRow
from kbert_lab.lab.views.names import gloss, with_glosses

LONGEST = 22  # characters of a label
MOST = 80  # triples drawn; the table has them all
Places = Mapping[str, tuple[float, float]]
NOWHERE: Places = {}


@dataclass(frozen=True, slots=True)
class Drawn:
    """A triple of a graph, outside any sentence; its line is full where it is on."""

    triple: Triple
    on: bool
    state: str

    @property
    def used(self) -> int:
        """Whether its line is full."""
        return int(self.on)


def neighbourhood(
    rows: Sequence[Drawn | TripleRow],
    *,
    dark: bool,
    chosen: Triple | None = None,
    before: Places = NOWHERE,
    flat: FlatTree | None = None,
    more: Iterable[Triple] = (),
) -> dict[str, Any]:
    """Lay entities and their triples out, an entity once, coloured by its type if one is drawn.

    vis-network draws labels on a canvas and what is under the mouse as text, so nothing in
    them is read as HTML.

    Args:
        rows: the triples; the first ``MOST`` are drawn.
        dark: which theme.
        chosen: a triple to set off.
        before: where names stood, and stay.
        flat: the tokens of the text that the triples are of, if they are of one.
        more: triples that aren't drawn, and may say types.
    """
    text, faint, page = (
        ("#E4E9ED", "#7C8A95", "#12171C") if dark else ("#0E161C", "#93A0AA", "#FFFFFF")
    )
    shown = rows[:MOST]
    places = laid_out(shown, before)
    heads = {row.triple.head for row in shown}
    names = names_of(flat) if flat is not None else {}
    ends = {name: x.triple for x in reversed(shown) for name in (x.triple.head, x.triple.tail)}
    told = (*more, *(row.triple for row in shown))
    types = {x.head: x.tail for x in told if x.relation in TYPE_RELATIONS}
    tints = dict(zip(dict.fromkeys(types.values()), cycle(ENTITY_TINTS), strict=False))
    net = Network(directed=True)
    for name, (x, y) in places.items():
        said = _flat(name)
        net.add_node(
            name,
            label=shorten(said, LONGEST),
            title=" · ".join(filter(None, (said, gloss(said), types.get(name)))),
            x=x,
            y=y,
            shape="box",
            head=name in heads,
            tint=tints.get(types.get(name, name)),
            names=(own := names.get(normalise_name(name), ())),
            token=next((code for code in own if code.startswith('["trunk"')), None),
            triple=FIELDS(ends[name]),
        )
    for row in {row.triple: row for row in shown}.values():
        net.add_edge(
            row.triple.head,
            row.triple.tail,
            id=str(row.triple),
            triple=FIELDS(row.triple),
            names=names.get(row.triple, ()),
            on=row.on,
            chosen=row.triple == chosen,
            label=shorten(_flat(row.triple.relation), LONGEST),
            title=with_glosses(_flat(f"{row.triple}: {row.state}"), row.triple),
            color="branch" if row.used else "faint",
            dashes=not row.used,
            width=6 if row.triple == chosen else 2.5 if row.used else 1,
        )
    colours = {"text": text, "page": page, "faint": faint, "branch": BRANCH, "head": TRUNK}
    return {"nodes": net.nodes, "edges": net.edges, "colours": colours}


def laid_out(
    rows: Sequence[Drawn | TripleRow], before: Places = NOWHERE
) -> dict[str, tuple[float, float]]:
    """Say where every name stands; one that stood somewhere stays there."""
    graph = nx.Graph((row.triple.head, row.triple.tail) for row in rows)
    spread = 62 * max(2.0, len(graph) ** 0.5)
    wide, high = spread * 1.7, spread
    known = {name: (x / wide, y / high) for name, (x, y) in before.items() if name in graph}
    if len(known) == len(graph):
        return {name: before[name] for name in graph}
    found = nx.spring_layout(
        graph,
        seed=7,
        k=2.2 / max(1, len(graph)) ** 0.5,
        iterations=120,
        pos=known or None,
        fixed=known or None,
    )
    return {
        name: before[name] if name in known else (float(x) * wide, float(y) * high)
        for name, (x, y) in found.items()
    }


def places_of(data: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Where the names of a drawing stand."""
    return {node["id"]: (node["x"], node["y"]) for node in data["nodes"]}


def names_of(flat: FlatTree) -> dict[Triple | str, list[str]]:
    """The names of the tokens of every triple in a tree, and of every entity that it mentions.

    An entity at the end of a branch is one too.
    """
    found: dict[Triple | str, list[str]] = {}
    codes = [code_of(identity) for identity in flat.identities]
    for placed in flat.branches:
        triple, own = placed.branch.triple, codes[placed.start : placed.end]
        for key in (triple, normalise_name(triple.tail)):
            found.setdefault(key, []).extend(own)
    for anchor, branch, code in zip(flat.anchor_ids, flat.branch_ids, codes, strict=True):
        if anchor and not branch:
            found.setdefault(flat.tree.nodes[anchor - 1].mention.entity, []).append(code)
    return found


def _flat(name: str) -> str:
    return re.sub(r"\s+", " ", name)
