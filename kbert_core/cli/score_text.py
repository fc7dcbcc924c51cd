"""Scores as tables for a terminal."""

from collections.abc import Mapping
from typing import Any

from kbert_core.cli.text import width
from kbert_core.training.edit_scores import ADDED, GROUPS

NAME = 20  # columns for names of rows
SHARES = (("precision", "precision"), ("recall", "recall"), ("f1", "F1"))
COUNTS = (("gold", "gold"), ("predicted", "predicted"))
OTHERS = {"others_changed": "others gone", "others_new": "others new"}
REPLACED = {
    **{"": "tail replaced", "n": "edits", "new": "new type", "kept": "old type"},
    **{"other": "another", "lost": "span lost", **OTHERS},
}
ADDED_TRIPLE = {
    **{"": "triple added", "n": "mentions", "right_before": "right before"},
    **{"right_after": "right after", "missed": "missed", "missed_right": "then right", **OTHERS},
}
EDITS_ARE = (
    "  Names unseen or seen in training. Others: of the sentence's other spans, gone or of another",
    "  type; and new ones, as a share of the same.",
)


def report_text(report: Mapping[str, Any]) -> str:
    """A report: scores beside those without knowledge, each with its table by label."""
    lines = []
    for key, title in (("scores", "with knowledge"), ("without_knowledge", "graph off")):
        found = report.get(key, {})
        splits = found if "dev" in found or "test" in found else {"": found} if found else {}
        for split, scores in splits.items():
            lines += scores_text(f"{split}, {title}" if split else title, scores)
    response = report.get("edit_response", {})
    for split, found in ({"": response} if "seen" in response else response).items():
        title = "response to edits"
        lines += edits_text(f"{title}, {split}" if split else title, found)
    return "\n".join(lines)


def edits_text(title: str, response: Mapping[str, Any]) -> list[str]:
    """The response to edits, see ``edit_response``: shares in per cent, "–" of nothing."""
    lines = [title]
    for response_of, columns in ((response, REPLACED), (response.get(ADDED, {}), ADDED_TRIPLE)):
        if response_of:
            first, *names = columns.values()
            lines.append(_named(f"  {first}") + "".join(f"{name:>13}" for name in names))
        for group in (group for group in GROUPS if group in response_of):
            shares = response_of[group]
            values = (_number(shares.get(key)) for key in list(columns)[1:])
            lines.append(_named(f"  {group}") + "".join(f"{value:>13}" for value in values))
    return [*lines, *EDITS_ARE]


def _number(value: float | None) -> str:
    """A count as it is, a share in per cent."""
    if value is None:
        return "–"
    return str(value) if isinstance(value, int) else f"{100 * value:.1f}"


def scores_text(title: str, scores: Mapping[str, Any]) -> list[str]:
    """Scores of one data set: the whole, then each label, in per cent and counts."""
    if "mrr" in scores:
        return _ranking(title, scores)
    lines = [_named(title) + "".join(_whole(scores))]
    by_label = scores.get("by_label", {})
    if by_label:
        lines.append(_header("release_f1" in scores))
        if "precision" in scores:
            lines.append(_row("all", scores) + _release(scores))
        lines += [_row(label, own) for label, own in by_label.items()]
        if scores.get("release_on_branches"):
            lines.append(
                f"  The release's count takes {scores['release_on_branches']} entities begun on "
                f"injected tokens as predicted; F1 without them "
                f"{100 * scores['release_trunk_f1']:.1f}"
            )
    if "unseen" in scores:
        unseen = scores["unseen"]
        share = 100 * unseen["recall"]
        lines.append(f"  recall {share:.1f} on {unseen['gold']} entities unseen in training")
    return lines


def _whole(scores: Mapping[str, Any]) -> list[str]:
    """What has no column in the table."""
    found = []
    if "accuracy" in scores:
        found.append(f"  accuracy {100 * scores['accuracy']:.1f}")
    if "f1" in scores and "accuracy" in scores:
        of = f" of '{scores['positive']}'" if "positive" in scores else ""
        found.append(f"  F1{of} {100 * scores['f1']:.1f}")
    if "macro_f1" in scores:
        found.append(f"  macro F1 {100 * scores['macro_f1']:.1f}")
    if "perplexity" in scores:
        found.append(f"  perplexity {scores['perplexity']:.2f}")
    if "count" in scores:
        found.append(f"  of {scores['count']}")
    if "precision" in scores:
        found.append(f"  F1 {100 * scores['f1']:.1f}")
    return found


def _header(release: bool) -> str:
    columns = "".join(f"{title:>10}" for _, title in (*SHARES, *COUNTS))
    shares = "".join(f"{title:>12}" for title in ("release's P", "R", "F1"))
    return _named("  label") + columns + (shares if release else "")


def _row(name: str, scores: Mapping[str, Any]) -> str:
    shares = "".join(f"{100 * scores[key]:10.1f}" for key, _ in SHARES)
    return _named(f"  {name}") + shares + "".join(f"{scores[key]:10}" for key, _ in COUNTS)


def _release(scores: Mapping[str, Any]) -> str:
    """The second column: the released code's own count."""
    if "release_f1" not in scores:
        return ""
    return "".join(f"{100 * scores['release_' + key]:12.1f}" for key, _ in SHARES)


def _ranking(title: str, scores: Mapping[str, Any]) -> list[str]:
    shared = scores.get("overlap_mrr")
    lines = [
        _named(title)
        + f"  MRR {100 * scores['mrr']:.1f}  P@1 {100 * scores['p_at_1']:.1f}"
        + f"  of {scores['questions']} questions with {scores['candidates']} candidates"
    ]
    lines.append(
        f"  MRR by chance {100 * scores['chance_mrr']:.1f}, in the order given "
        f"{100 * scores['order_mrr']:.1f}"
        + (f", by shared characters {100 * shared:.1f}" if shared is not None else "")
    )
    if scores["without_answer"]:
        lines.append(f"  {scores['without_answer']} questions without a right answer left out")
    return lines


def _named(text: str) -> str:
    return text + " " * max(1, NAME - width(text))
