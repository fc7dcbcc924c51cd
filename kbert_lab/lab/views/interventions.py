"""Interventions in words, and what can be done about a chosen cell."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from kbert_core.kbert.flat_tree import FlatTree
from kbert_core.kbert.interventions import (
    BRANCHES,
    TRUNK,
    Action,
    Intervened,
    Intervention,
    Tokens,
    intervene,
)
from kbert_core.kbert.kbert import KBertTrace
from kbert_lab.lab.session import Standing
from kbert_lab.lab.texts import N_, clauses, listed, t
from kbert_lab.lab.views.why import visible_in
from kbert_lab.lab.words import IV_TEXTS
from kbert_lab.lab.written import Identity

After = Callable[[Standing], Intervened]  # what interventions make of the visible matrix


def with_one_more(standing: Standing, new: Intervention, after: After) -> Standing:
    """Add an intervention; what it takes back goes instead of standing beside it.

    Args:
        standing: so far.
        new: to be added, unless it changes no cell.
        after: what interventions make of the visible matrix.
    """
    same = (new.seer, new.seen, new.both, new.layers)
    kept = tuple(one for one in standing if (one.seer, one.seen, one.both, one.layers) != same)
    return (*kept, new) if after((*kept, new)).changed[-1] else kept


def turned(trace: KBertTrace, window: int, cell: tuple[Identity, Identity]) -> Standing:
    """What stands once a cell is blocked in both directions, or opened if it is hidden.

    Args:
        window: its row.
        cell: who looks, at whom; one that can't be changed leaves all as it is.
    """
    row, standing = trace.rows[window], trace.interventions
    if not (found := scopes(row, cell)):
        return standing
    at = [row.identities.index(name) for name in cell]
    action: Action = "block" if visible_in(trace, window)[at[0], at[1]] else "open"
    new = found[0].intervention(action, both=True, layer=None)
    layers = len(trace.visible_layers or (trace.visible,))
    return with_one_more(standing, new, partial(of_trace, trace, layer_count=layers))


IV_TOKENS = {
    "all": N_("all tokens"),
    "trunk": N_("the trunk"),
    "branches": N_("the branches"),
    "specials": N_("the special tokens"),
    "branch": N_("the branch {triple}"),
    "hung": N_("the branches of {mention}"),
    "mention": N_("{mention}"),
}

SHOWN_LAYERS = 4  # of an intervention in many, by number


@dataclass(frozen=True, slots=True)
class Scope:
    """Something that can be blocked or opened about a chosen cell."""

    kind: str  # "cell", "branch 1" and 2, "mention 1" and 2, or "link"
    name: str  # what it is called; plain text
    seer: Tokens  # its tokens, so that the chosen cell is of these rows and columns
    seen: Tokens

    def intervention(self, action: Action, *, both: bool, layer: int | None) -> Intervention:
        """Block or open it.

        Args:
            both: in both directions, or in that of the cell.
            layer: from 1; None: all.
        """
        return Intervention(action, self.seer, self.seen, both, (layer,) if layer else ())


def scopes(row: FlatTree, cell: tuple[Identity, Identity]) -> tuple[Scope, ...]:
    """Say what a cell is part of: itself, branches, a mention's link to them, the whole link.

    Args:
        cell: who looks, at whom.

    Returns:
        From the smallest; empty where the tree lacks a token of the cell, or
        where it is a token's with itself, which stays open.
    """
    if cell[0] not in row.identities or cell[1] not in row.identities or cell[0] == cell[1]:
        return ()
    places = [row.identities.index(name) for name in cell]
    names = [f"“{token_name(row, place)}”" for place in places]
    found = [
        Scope(
            "cell",
            t("this cell: {a} sees {b}", a=names[0], b=names[1]),
            Tokens("token", identity=cell[0]),
            Tokens("token", identity=cell[1]),
        )
    ]
    from_branch = row.branch_ids[places[0]] > 0  # the cell's row is a branch's
    links = []
    branches = dict.fromkeys(row.branch_ids[place] for place in places)
    for n, number in enumerate((b for b in branches if b > 0), start=1):
        placed = row.branches[number - 1]
        mention = row.tree.nodes[placed.node].mention
        branch = Tokens("branch", mention.sentence, mention.start, placed.branch.triple)
        name = t("the branch “{branch}” and the trunk", branch=" ".join(placed.branch.texts))
        links.append((f"branch {n}", name, TRUNK, branch))
    with_branches = {placed.node + 1 for placed in row.branches}
    anchors = dict.fromkeys(row.anchor_ids[place] for place in places)
    for n, anchor in enumerate((a for a in anchors if a in with_branches), start=1):
        mention = row.tree.nodes[anchor - 1].mention
        own = Tokens("mention", mention.sentence, mention.start)
        name = t(
            "“{mention}” and its branches", mention=_text(row, mention.sentence, mention.start)
        )
        links.append((f"mention {n}", name, own, replace(own, kind="hung")))
    if row.branches:
        links.append(("link", t("the whole link between trunk and branches"), TRUNK, BRANCHES))
    for kind, name, trunk, branch in links:
        found.append(Scope(kind, name, *((branch, trunk) if from_branch else (trunk, branch))))
    return tuple(found)


def token_name(row: FlatTree, place: int) -> str:
    """What a token reads, with its number where others read the same."""
    text = row.tokens[place]
    if row.tokens.count(text) == 1:
        return text
    return t("{text} ({number})", text=text, number=1 + row.tokens[:place].count(text))


def describe(one: Intervention, row: FlatTree | None) -> str:
    """Say in a sentence what an intervention does; plain text.

    Args:
        row: where its tokens are looked up; None: there is no tree.
    """
    seer, seen = tokens_name(one.seer, row), tokens_name(one.seen, row)
    which = "all" if one.seer == one.seen else "both" if one.both else "one"
    said = t(IV_TEXTS[f"{one.action}_{which}"], seer=seer, seen=seen)
    return f"{said[:1].upper()}{said[1:]}{layers_name(one)}"


def layers_name(one: Intervention) -> str:
    """In which layers; nothing where in all."""
    if not one.layers:
        return ""
    if len(one.layers) == 1:
        return t(", in layer {layer} only", layer=one.layers[0])
    more = ["…"] if len(one.layers) > SHOWN_LAYERS else []
    return t(", in layers {layers} only", layers=listed([*one.layers[:SHOWN_LAYERS], *more]))


def tokens_name(tokens: Tokens, row: FlatTree | None) -> str:
    """What tokens are called; plain text."""
    if tokens.kind == "token":
        names = row.identities if row else []
        if row and tokens.identity in names:
            return f"“{token_name(row, names.index(tokens.identity))}”"
        return t("a token that isn't here ({what})", what=_gone(tokens.identity))
    text = _text(row, tokens.sentence, tokens.start) if row else None
    place = (
        f"“{text}”" if text else t("what is named at character {number}", number=tokens.start + 1)
    )
    return t(IV_TOKENS[tokens.kind], mention=place, triple=tokens.triple)


def _gone(identity: Identity) -> str:
    """Name a token that isn't in the tree, as far as its identity says."""
    if identity[0] == "branch" and len(identity) > 3:
        return str(identity[3])
    return t("number {number}", number=identity[-1])


def _text(row: FlatTree, sentence: int, start: int) -> str:
    """The text of the mention that begins somewhere; empty where none does."""
    for node in row.tree.nodes:
        if (node.mention.sentence, node.mention.start) == (sentence, start):
            return row.tree.sentences[sentence][start : node.mention.end]
    return ""


def of_trace(
    trace: KBertTrace, interventions: tuple[Intervention, ...], layer_count: int
) -> Intervened:
    """What some interventions would make of a trace's visible matrix.

    Args:
        trace: read with others or none.
        interventions: in order.
        layer_count: L.
    """
    return intervene(
        trace.ablation.visible_in(trace.batch), trace.rows, interventions, max(layer_count, 1)
    )


def why_now(trace: KBertTrace, window: int, cell: tuple[Identity, Identity], why: str) -> str:
    """Say why a cell is as it is, where interventions have the last word; plain text.

    Args:
        window: its row.
        cell: who looks, at whom.
        why: what is said of the cell without interventions.
    """
    row, layers = trace.rows[window], trace.visible_layers or ()
    if not layers or cell[0] not in row.identities or cell[1] not in row.identities:
        return why
    i, j = (row.identities.index(name) for name in cell)
    was = bool(trace.ablation.visible_in(trace.batch)[window, i, j])
    changed = [n for n, one in enumerate(layers, start=1) if bool(one[window, i, j]) != was]
    if not changed:
        return why
    by = dict.fromkeys(describe(one, row) for one in trace.interventions if _names(one, row, i, j))
    where = "" if len(changed) == len(layers) else t(" in layer {layers}", layers=listed(changed))
    text = N_("Blocked{where} by an intervention: {by}. Without it: {why}")
    text = text if was else N_("Opened{where} by an intervention: {by}. Without it: {why}")
    return t(text, where=where, by=clauses(by), why=why)


def _names(one: Intervention, row: FlatTree, i: int, j: int) -> bool:
    """Whether an intervention is about a cell."""
    seers, seen = set(one.seer.among(row)), set(one.seen.among(row))
    return (i in seers and j in seen) or (one.both and j in seers and i in seen)
