"""Scores as tables for a terminal."""

from collections.abc import Mapping
from typing import Any

from kbert_core.cli.output import per_cent, table

SHARES = ("precision", "recall", "f1")
COUNTS = ("gold", "predicted")
TITLES = (("scores", "with knowledge"), ("without_knowledge", "graph off"))
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
    for key, title in TITLES:
        scores = report.get(key) or {}
        by_split = "dev" in scores or "test" in scores or not scores
        for split, of_split in (scores if by_split else {"": scores}).items():
            lines += scores_text(f"{split}, {title}" if split else title, of_split)
    response = report.get("edit_response", {})
    for split, of_split in ({"": response} if "seen" in response else response).items():
        title = "response to edits"
        lines += edits_text(f"{title}, {split}" if split else title, of_split)
    return "\n".join(lines)


def edits_text(title: str, response: Mapping[str, Any]) -> list[str]:
    """The response to edits, see ``edit_response``: shares in per cent, "–" of nothing."""
    from kbert_core.training.edit_scores import ADDED, GROUPS  # needs PyTorch

    lines = [title]
    for response_of, columns in ((response, REPLACED), (response.get(ADDED, {}), ADDED_TRIPLE)):
        if response_of:
            (_, head), *others = columns.items()
            rows = [
                (f"  {group}", *(_number(response_of[group].get(key)) for key, _ in others))
                for group in GROUPS
                if group in response_of
            ]
            lines += table((f"  {head}", *(name for _, name in others)), rows, numbers=True)
    return [*lines, *EDITS_ARE]


def scores_text(title: str, scores: Mapping[str, Any]) -> list[str]:
    """Scores of one data set: the whole, then each label, in per cent and counts."""
    if "mrr" in scores:
        return _ranking(title, scores)
    lines = ["  ".join([title, *_whole(scores)])]
    by_label = scores.get("by_label", {})
    if by_label:
        heads = ["  label", "precision", "recall", "F1", *COUNTS]
        rows = [_row(label, of_label) for label, of_label in by_label.items()]
        if "precision" in scores:
            rows.insert(0, _row("all", scores))
        if "release_f1" in scores:
            heads += ["release's P", "R", "F1"]
            rows[0] += [per_cent(scores[f"release_{key}"]) for key in SHARES]
        lines += table(heads, rows, numbers=True)
        if scores.get("release_on_branches"):
            lines.append(
                f"  The release's count takes {scores['release_on_branches']} entities begun on "
                "injected tokens as predicted; F1 without them "
                f"{per_cent(scores['release_trunk_f1'])}"
            )
    if "unseen" in scores:
        unseen = scores["unseen"]
        lines.append(
            f"  recall {per_cent(unseen['recall'])} on {unseen['gold']} entities unseen in training"
        )
    return lines


def _whole(scores: Mapping[str, Any]) -> list[str]:
    """What has no column in the table."""
    of = f" of '{scores['positive']}'" if "positive" in scores else ""
    names = {"accuracy": "accuracy", "f1": f"F1{of}", "macro_f1": "macro F1"}
    shares = [f"{name} {per_cent(scores[key])}" for key, name in names.items() if key in scores]
    perplexity = [f"perplexity {scores['perplexity']:.2f}"] if "perplexity" in scores else []
    return [*shares, *perplexity, *([f"of {scores['count']}"] if "count" in scores else [])]


def _ranking(title: str, scores: Mapping[str, Any]) -> list[str]:
    shared = scores.get("overlap_mrr")
    by_shared = f", by shared characters {per_cent(shared)}" if shared is not None else ""
    lines = [
        f"{title}  MRR {per_cent(scores['mrr'])}  P@1 {per_cent(scores['p_at_1'])}"
        f"  of {scores['questions']} questions with {scores['candidates']} candidates",
        f"  MRR by chance {per_cent(scores['chance_mrr'])}, in the order given "
        f"{per_cent(scores['order_mrr'])}{by_shared}",
    ]
    if scores["without_answer"]:
        lines.append(f"  {scores['without_answer']} questions without a right answer left out")
    return lines


def _row(name: str, scores: Mapping[str, Any]) -> list[str]:
    shares = [per_cent(scores[key]) for key in SHARES]
    return [f"  {name}", *shares, *(str(scores[key]) for key in COUNTS)]


def _number(value: float | None) -> str:
    """A count as it is, a share in per cent."""
    if value is None:
        return "–"
    return str(value) if isinstance(value, int) else per_cent(value)
