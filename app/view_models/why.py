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
        reason = t("it is the same token", **names)
    elif found in (Visibility.MENTION_AND_BRANCH, Visibility.OFF_MENTION):
        on_branch = row if flat.branch_ids[row] else column
        reason = t(
            "the branch “{branch}” hangs from the mention “{mention}”, and a mention and its "
            "branches see each other"
            if found.visible
            else "“{on_branch}” is on the branch “{branch}”, which hangs from “{mention}”; "
            "“{on_trunk}” is not part of that mention, and can learn about the branch only "
            "through it, one layer later",
            branch=branch_of(flat, on_branch),
            mention=mention_of(flat, on_branch),
            on_branch=flat.tokens[on_branch],
            on_trunk=flat.tokens[column if on_branch == row else row],
        )
    elif found is Visibility.SIBLINGS:
        reason = t(
            "the branches “{of_a}” and “{of_b}” both hang from “{mention}”, and branches of one "
            "mention don't see each other",
            mention=mention_of(flat, row),
            **names,
        )
    elif found is Visibility.OTHER_MENTION:
        reason = t(
            "the branch “{of_a}” hangs from “{mention_a}” and “{of_b}” from “{mention_b}”, and "
            "branches of different mentions don't see each other",
            mention_a=mention_of(flat, row),
            mention_b=mention_of(flat, column),
            **names,
        )
    else:
        reason = t(
            "both are on the trunk, and the trunk sees the trunk"
            if found is Visibility.TRUNK
            else "both are on the branch “{of_a}”, and a branch sees itself",
            **names,
        )
    if ablation.visible == "all" and not found.visible:
        return t(
            "“{a}” may attend to “{b}” only because everything is visible in this ablation. By "
            "the tree: {reason}.",
            a=a,
            b=b,
            reason=reason,
        )
    return t(
        "“{a}” may attend to “{b}”: {reason}."
        if found.visible
        else "“{a}” may not attend to “{b}”: {reason}.",
        a=a,
        b=b,
        reason=reason,
    )


def mention_of(flat: FlatTree, index: int) -> str:
    """Return the text of the mention that a token belongs to or hangs from."""
    mention = flat.tree.nodes[flat.anchor_ids[index] - 1].mention
    return flat.tree.sentences[mention.sentence][mention.start : mention.end]


def branch_of(flat: FlatTree, index: int) -> str:
    """Return what the branch of a token reads; empty for one on the trunk."""
    number = flat.branch_ids[index]
    return " ".join(flat.branches[number - 1].branch.texts) if number > 0 else ""
