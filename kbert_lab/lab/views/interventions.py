"""Interventions in words, and what can be done about a chosen cell."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from kbert_core.kbert.flat_tree import FlatTree
from kbert_core.kbert.interventions import (
    BRANCHES,
    TRUNK,
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
    seen = visible_in(trace, window)[at[0], at[1]]
    new = Intervention("block" if seen else "open", *found["cell"])
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

Scope = tuple[Tokens, Tokens]  # whose rows and columns can be blocked or opened


def scopes(row: FlatTree, cell: tuple[Identity, Identity]) -> dict[str, Scope]:
    """Say what a cell is part of: itself, branches, a mention's link to them, the whole link.

    Args:
        cell: who looks, at whom.

    Returns:
        By "cell", "branch 1" and 2, "mention 1" and 2, and "link", so that the cell is of these
        rows and columns. Empty where the tree lacks a token of the cell, or where it is a token's
        with itself, which stays open.
    """
    if cell[0] not in row.identities or cell[1] not in row.identities or cell[0] == cell[1]:
        return {}
    i, j = (row.identities.index(name) for name in cell)
    links: dict[str, Scope] = {}
    branches = dict.fromkeys(n for n in (row.branch_ids[i], row.branch_ids[j]) if n > 0)
    for n, number in enumerate(branches, start=1):
        placed = row.branches[number - 1]
        mention = row.tree.nodes[placed.node].mention
        branch = Tokens("branch", mention.sentence, mention.start, placed.branch.triple)
        links[f"branch {n}"] = TRUNK, branch
    hung = {placed.node + 1 for placed in row.branches}
    anchors = dict.fromkeys(n for n in (row.anchor_ids[i], row.anchor_ids[j]) if n in hung)
    for n, anchor in enumerate(anchors, start=1):
        mention = row.tree.nodes[anchor - 1].mention
        own = Tokens("mention", mention.sentence, mention.start)
        links[f"mention {n}"] = own, replace(own, kind="hung")
    if row.branches:
        links["link"] = TRUNK, BRANCHES
    if row.branch_ids[i] > 0:  # the cell's row is a branch's
        links = {name: (branch, trunk) for name, (trunk, branch) in links.items()}
    return {"cell": (Tokens("token", identity=cell[0]), Tokens("token", identity=cell[1])), **links}


def scope_name(scope: Scope, row: FlatTree) -> str:
    """What a scope is called; plain text."""
    seer, seen = (tokens_name(tokens, row) for tokens in scope)
    return t("{seer} and {seen}", seer=seer, seen=seen)


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
    which = "both" if one.both and one.seer != one.seen else "one"
    said = t(IV_TEXTS[f"{one.action}_{which}"], seer=seer, seen=seen)
    if one.layers:
        single = len(one.layers) == 1
        said += t(
            ", in layer {layers} only" if single else ", in layers {layers} only",
            layers=listed(one.layers),
        )
    return f"{said[:1].upper()}{said[1:]}"


def tokens_name(tokens: Tokens, row: FlatTree | None) -> str:
    """What tokens are called; plain text."""
    if tokens.kind == "token":
        names = row.identities if row else []
        if row and tokens.identity in names:
            return f"“{token_name(row, names.index(tokens.identity))}”"
        return t("a token that isn't here")
    text = _text(row, tokens.sentence, tokens.start) if row else None
    place = (
        f"“{text}”" if text else t("what is named at character {number}", number=tokens.start + 1)
    )
    return t(IV_TOKENS[tokens.kind], mention=place, triple=tokens.triple)


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
    by = dict.fromkeys(describe(one, row) for one in trace.interventions if _about(one, row, i, j))
    where = "" if len(changed) == len(layers) else t(" in layer {layers}", layers=listed(changed))
    text = N_("Blocked{where} by an intervention: {by}. Without it: {why}")
    text = text if was else N_("Opened{where} by an intervention: {by}. Without it: {why}")
    return t(text, where=where, by=clauses(by), why=why)


def _about(one: Intervention, row: FlatTree, i: int, j: int) -> bool:
    """Whether an intervention is about a cell."""
    seers, seen = one.seer.among(row), one.seen.among(row)
    return (i in seers and j in seen) or (one.both and j in seers and i in seen)
