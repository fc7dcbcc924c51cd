"""What `kbert tree` and `predict` print of trees, triples and predictions."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from kbert_core.cli.output import report_text
from kbert_core.errors import OptionError
from kbert_core.kbert.flat_tree import FlatTree, PlacedBranch, collate
from kbert_core.kbert.visible import Ablation
from kbert_core.knowledge.mentions import Mention, PassedOver
from kbert_core.knowledge.selection import LeftOut, Reason
from kbert_core.tasks import NerPrediction

MOST_TOKENS = 5_000  # whose matrix is printed
CUT = "the text is over the length limit"


@dataclass(frozen=True)
class Rows:
    """The rows that a text is read in (windows, if several), and names that are no mentions."""

    rows: Sequence[FlatTree]
    ablation: Ablation
    passed_over: Sequence[PassedOver] = ()

    def __post_init__(self) -> None:
        if self.ablation.positions == "hard":
            rows = [row.with_hard_positions() for row in self.rows]
            object.__setattr__(self, "rows", rows)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON; of several rows each by itself, in a list of windows."""
        rows = [self._row(row) for row in self.rows]
        return rows[0] if len(rows) == 1 else {"windows": rows}

    def text(self) -> str:
        """The trunk, and under each mention its branches; every token with its soft position."""
        lines: list[str] = []
        for number, row in enumerate(self.rows, start=1):
            if len(self.rows) > 1:
                lines.append(f"window {number} of {len(self.rows)}:")
            lines += _drawn(row, len(self._mentions_in(row)))
        for name in self.passed_over:
            lines.append(f"no mention: {_text(self.rows[0], name.mention)}, {name.why}")
        for cut in self.rows[0].trunk_cuts:
            lines.append(
                f"cut: sentence {cut.sentence + 1} keeps {cut.kept} of its {cut.total} tokens"
            )
        return "\n".join(lines)

    def _row(self, row: FlatTree) -> dict[str, Any]:
        if len(row) > MOST_TOKENS:
            raise OptionError(
                f"The visible matrix of {len(row):,} tokens is too large to print; up to "
                f"{MOST_TOKENS:,} are shown. Give a --max-length, or go without --json."
            )
        visible = self.ablation.visible_in(collate([row]))[0].int().tolist()
        over = [{**_place(row, name.mention), "why": name.why} for name in self.passed_over]
        return {
            "tokens": row.tokens,
            "soft_positions": row.soft_positions,
            "branch_ids": row.branch_ids,
            "anchor_ids": row.anchor_ids,
            "segment_ids": row.token_type_ids,
            "mentions": [*_mentions(row, self._mentions_in(row))],
            "passed_over": over,
            "dropped": dropped(row, row.left_out),
            "visible": ["".join(map(str, line)) for line in visible],
        }

    def _mentions_in(self, row: FlatTree) -> Sequence[int]:
        """Numbers of the mentions: all, or of a window those that stand in it."""
        if len(self.rows) == 1:
            return range(len(row.tree.nodes))
        return sorted({anchor - 1 for anchor in row.anchor_ids if anchor})


def dropped(row: FlatTree, left_out: Iterable[tuple[int, LeftOut]]) -> list[dict[str, Any]]:
    """The triples that were left out, each with its mention, and what was cut of the text."""
    nodes = row.tree.nodes
    items = [
        {"mention": _text(row, nodes[number].mention), **_left_out(left)}
        for number, left in left_out
    ]
    for cut in row.trunk_cuts:
        start = row.trunk_tokens[cut.sentence].starts[cut.kept]
        text = row.tree.sentences[cut.sentence][start:]
        items.append({"sentence": cut.sentence, "start": start, "text": text, "rule": CUT})
    return items


def _mentions(row: FlatTree, numbers: Iterable[int]) -> Iterator[dict[str, Any]]:
    """Mentions, each with its triples that were used and those left out."""
    branches, left_out = _by_mention(row)
    for number in numbers:
        mention = row.tree.nodes[number].mention
        rules = [rule.name.lower() for rule in mention.rules]
        used = [branch.branch for branch in branches[number]]
        yield {
            **_place(row, mention),
            **({"rules": rules} if rules else {}),
            **({"others": list(mention.others)} if mention.others else {}),
            "used": [{**asdict(branch.triple), **_why(branch.reason)} for branch in used],
            "left_out": [*map(_left_out, left_out[number])],
        }


def _by_mention(row: FlatTree) -> tuple[dict[int, list[PlacedBranch]], dict[int, list[LeftOut]]]:
    """The branches that hang in a row, and the triples left out, by the number of their mention."""
    branches, left_out = defaultdict(list), defaultdict(list)
    for branch in row.branches:
        branches[branch.node].append(branch)
    for number, left in row.left_out:
        left_out[number].append(left)
    return branches, left_out


def _drawn(row: FlatTree, mentions: int) -> Iterator[str]:
    """One row: a line for each run of the trunk, the branches below it."""
    branches, left_out = _by_mention(row)
    trunk = [index for index, branch in enumerate(row.branch_ids) if not branch]
    for anchor, run in groupby(trunk, key=row.anchor_ids.__getitem__):
        if not anchor:
            yield f"  {_tokens(row, run)}"
            continue
        mention = row.tree.nodes[anchor - 1].mention
        rules = "".join(f"; {rule}" for rule in mention.rules)
        yield f"● {_tokens(row, run)}   ({mention.entity}{rules})"
        for branch in branches[anchor - 1]:
            reason = branch.branch.reason
            why = "" if reason in (None, Reason()) else f"   ({reason})"
            mark = "└" if branch is branches[anchor - 1][-1] else "├"
            yield f"  {mark}─ {_tokens(row, range(branch.start, branch.end))}{why}"
        for left in left_out[anchor - 1]:
            yield f"     left out: {left.triple}, {left.why}"
    counts = ((len(row), "token"), (mentions, "mention"), (len(row.branches), "branch"))
    yield ", ".join(
        [*(_count(*each) for each in counts), f"{_count(len(row.left_out), 'triple')} left out"]
    )


def _tokens(row: FlatTree, places: Iterable[int]) -> str:
    return " ".join(f"{row.tokens[i]}/{row.soft_positions[i]}" for i in places)


def _count(count: int, what: str) -> str:
    ending = "" if count == 1 else "es" if what.endswith("ch") else "s"
    return f"{count} {what}{ending}"


def _text(row: FlatTree, mention: Mention) -> str:
    return row.tree.sentences[mention.sentence][mention.start : mention.end]


def _place(row: FlatTree, mention: Mention) -> dict[str, Any]:
    names = ("start", "end", "sentence", "entity")
    return {"text": _text(row, mention), **{name: getattr(mention, name) for name in names}}


def _left_out(left: LeftOut) -> dict[str, Any]:
    return {**asdict(left.triple), "rule": str(left.rule), **_why(left.reason, left.why)}


def _why(reason: Reason | None, rule: str = "") -> dict[str, Any]:
    """Why a triple was used or, with its score, left out; nothing where the rule says it all."""
    if reason is None or (rule and reason.score is None):
        return {}
    why = {"why": rule or str(reason)}
    return why if reason.score is None else {**why, "score": round(reason.score, 4)}


# Predictions


def prediction_data(prediction: Any) -> dict[str, Any]:
    """A prediction as plain data, for JSON."""
    return prediction.as_dict() if isinstance(prediction, NerPrediction) else asdict(prediction)


def prediction_text(data: Mapping[str, Any]) -> str:
    """A prediction, beside the one without knowledge where there is one."""
    text, without = data["text"], data.get("without_knowledge")
    cuts = [item for item in data["dropped"] if "head" not in item]
    rules = Counter(item["rule"] for item in data["dropped"] if "head" in item)
    facts = {
        "text": text if isinstance(text, str) else " ‖ ".join(text),
        "with knowledge": _predicted(data["prediction"]),
        "without any": without and _predicted(without),
        "triples injected": data["triples"] or "none",
        "cut": [f"from character {cut['start']} on, {cut['rule']}" for cut in cuts] or None,
        "left out": [f"{_count(count, 'triple')} {rule}" for rule, count in rules.items()] or None,
    }
    return report_text(facts)


def _predicted(prediction: Mapping[str, Any]) -> Any:
    """What is shown of a prediction: spans, candidates for each [MASK], or classes."""
    if "spans" in prediction:
        return [{**s, "probability": _per_cent(s["probability"])} for s in prediction["spans"]] or (
            "no entity"
        )
    if "fillings" in prediction:
        return {
            f"[MASK] {number}": [
                f"{token} {_per_cent(p)}" for token, p in filling["candidates"][:5]
            ]
            for number, filling in enumerate(prediction["fillings"], start=1)
        }
    return [
        {"": "→" if label == prediction["label"] else "", "label": label, " ": _per_cent(p)}
        for label, p in prediction["probabilities"].items()
    ]


def _per_cent(share: float) -> str:
    return f"{100 * share:.1f} %"
