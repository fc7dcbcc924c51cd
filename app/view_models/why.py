"""Why one token sees another, in a sentence."""

from app.texts import t
from kbert_core import Ablation, FlatTree, Visibility, why_visible


def clause(flat: FlatTree, row: int, column: int) -> Visibility:
    """Name the clause of Eq. 3 that decides a cell."""
    return why_visible(
        flat.branch_ids[row],
        flat.anchor_ids[row],
        flat.branch_ids[column],
        flat.anchor_ids[column],
    )


def is_visible(flat: FlatTree, row: int, column: int, ablation: Ablation) -> bool:
    """Say whether row may attend to column."""
    return ablation.visible == "all" or clause(flat, row, column).visible


def why(flat: FlatTree, row: int, column: int, ablation: Ablation) -> str:
    """Say in one or two sentences why a cell is visible or hidden; plain text."""
    found = clause(flat, row, column)
    a, b = flat.tokens[row], flat.tokens[column]
    names = {"a": a, "b": b, "of_a": branch_of(flat, row), "of_b": branch_of(flat, column)}
    if row == column:
        reason = t("why.self", **names)
    elif found in (Visibility.MENTION_AND_BRANCH, Visibility.OFF_MENTION):
        on_branch = row if flat.branch_ids[row] else column
        reason = t(
            "why.mention" if found.visible else "why.off",
            branch=branch_of(flat, on_branch),
            mention=mention_of(flat, on_branch),
            on_branch=flat.tokens[on_branch],
            on_trunk=flat.tokens[column if on_branch == row else row],
        )
    elif found is Visibility.SIBLINGS:
        reason = t("why.siblings", mention=mention_of(flat, row), **names)
    elif found is Visibility.OTHER_MENTION:
        reason = t(
            "why.other",
            mention_a=mention_of(flat, row),
            mention_b=mention_of(flat, column),
            **names,
        )
    else:
        reason = t("why.trunk" if found is Visibility.TRUNK else "why.branch", **names)
    if ablation.visible == "all" and not found.visible:
        return t("why.ablation", a=a, b=b, reason=reason)
    return t("why.visible" if found.visible else "why.hidden", a=a, b=b, reason=reason)


def mention_of(flat: FlatTree, index: int) -> str:
    """Return the text of the mention that a token belongs to or hangs from."""
    mention = flat.tree.nodes[flat.anchor_ids[index] - 1].mention
    return flat.tree.sentences[mention.sentence][mention.start : mention.end]


def branch_of(flat: FlatTree, index: int) -> str:
    """Return what the branch of a token reads; empty for one on the trunk."""
    number = flat.branch_ids[index]
    return " ".join(flat.branches[number - 1].branch.texts) if number > 0 else ""
