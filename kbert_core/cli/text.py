"""What the `kbert` command prints for reading in a terminal."""

import json
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kbert_core.knowledge.selection import Reason

if TYPE_CHECKING:  # not imported to run: it needs PyTorch
    from kbert_core.kbert.flat_tree import FlatTree
    from kbert_core.knowledge.mentions import PassedOver


def tree_text(flat: "FlatTree", over: "Sequence[PassedOver]" = ()) -> str:
    """A sentence tree: the trunk, and under each mention its branches.

    Args:
        flat: the tree in reading order.
        over: the names in its text that are no mentions.

    Every token stands with its soft position.
    """
    nodes = flat.tree.nodes
    lines = []
    hung: dict[int, list[str]] = {}
    for item in flat.hung:
        why = _why(item.branch.reason)
        hung.setdefault(item.node, []).append(_run(flat, range(item.start, item.end)) + why)
    left_out: dict[int, list[str]] = {}
    for number, left in flat.left_out:
        left_out.setdefault(number, []).append(f"     left out: {left.triple}, {left.why}")
    for place, places in _groups(flat):
        text = _run(flat, places)
        if place is None:
            lines.append(f"  {text}")
            continue
        mention = nodes[place].mention
        how = "".join(f"; {rule}" for rule in mention.rules)
        lines.append(f"● {text}   ({mention.entity}{how})")
        branches = hung.get(place, [])
        for i, branch in enumerate(branches):
            lines.append(f"  {'└' if i == len(branches) - 1 else '├'}─ {branch}")
        lines += left_out.get(place, [])
    lines.append(
        f"{_number(len(flat), 'token')}, {_number(len(nodes), 'mention')}, "
        f"{_number(len(flat.hung), 'branch')}, {_number(len(flat.left_out), 'triple')} left out"
    )
    for one in over:
        sentence = flat.tree.sentences[one.mention.sentence]
        lines.append(f"no mention: {sentence[one.mention.start : one.mention.end]}, {one.why}")
    for cut in flat.trunk_cuts:
        lines.append(f"cut: sentence {cut.sentence + 1} keeps {cut.kept} of its {cut.total} tokens")
    return "\n".join(lines)


def _why(reason: Reason | None) -> str:
    """Why a triple is used; nothing for the first in graph order, which needs no saying."""
    if reason is None or str(reason) == str(Reason()):
        return ""
    return f"   ({reason})"


def prediction_text(data: Mapping[str, Any]) -> str:
    """A prediction, beside the one without knowledge where there is one."""
    lines = [" ‖ ".join(data["text"]) if isinstance(data["text"], list) else data["text"]]
    for key, title in (("prediction", "with knowledge"), ("without_knowledge", "without any")):
        if key in data:
            lines += [f"{title}:", *_prediction_lines(data[key])]
    triples = [f"  {t['head']} · {t['relation']} · {t['tail']}" for t in data["triples"]]
    lines += ["triples injected:", *(triples or ["  none"])]
    lines += [
        f"cut from character {item['start']} on: {item['rule']}"
        for item in data["dropped"]
        if "head" not in item
    ]
    rules = Counter(item["rule"] for item in data["dropped"] if "head" in item)
    lines += [f"left out: {_number(count, 'triple')} {rule}" for rule, count in rules.items()]
    return "\n".join(lines)


def stats_text(data: Mapping[str, Any]) -> str:
    """What a graph holds, as two small tables."""
    lines = []
    for file in data["files"]:
        lines.append(
            f"{file['file']}: {file['triples']:,} triples, {file['duplicates']} repeated, "
            f"{len(file['bad_lines'])} bad lines left out"
        )
        lines += [f"  {problem}" for problem in file["bad_lines"][:20]]
    lines.append(
        f"{data['triples']:,} triples, {data['entities']:,} entities, "
        f"{data['entities_with_several_triples']:,} of them with several triples"
    )
    lines.append("relations:")
    lines += _counted(data["relations"])
    lines.append("most triples:")
    lines += _counted(data["most_triples"])
    lines.append(f"longest name: {data['longest_name']}")
    return "\n".join(lines)


def fields_text(data: Mapping[str, Any]) -> str:
    """Any report, a line for each of its fields."""
    shown = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in data.items()
    }
    return "\n".join(f"{name}: {value}" for name, value in shown.items())


def width(text: str) -> int:
    """Columns a text takes in a terminal: two for a wide character."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _number(count: int, what: str) -> str:
    ending = "" if count == 1 else "es" if what.endswith("ch") else "s"
    return f"{count} {what}{ending}"


def _groups(flat: "FlatTree") -> list[tuple[int | None, list[int]]]:
    """Trunk tokens side by side, by the mention they belong to."""
    groups: list[tuple[int | None, list[int]]] = []
    for index, (branch, anchor) in enumerate(zip(flat.branch_ids, flat.anchor_ids, strict=True)):
        if branch:
            continue
        number = anchor - 1 if anchor else None
        if not groups or groups[-1][0] != number:
            groups.append((number, []))
        groups[-1][1].append(index)
    return groups


def _run(flat: "FlatTree", places: Sequence[int]) -> str:
    return " ".join(f"{flat.tokens[i]}/{flat.soft_positions[i]}" for i in places)


def _prediction_lines(prediction: Mapping[str, Any]) -> list[str]:
    if "spans" in prediction:
        spans = [
            f"  {s['text']}  {s['label']}  {100 * s['probability']:.1f} %  "
            f"({s['start']}–{s['end']})"
            for s in prediction["spans"]
        ]
        return spans or ["  no entity"]
    if "fillings" in prediction:
        return [
            "  " + ", ".join(f"{token} {100 * p:.1f} %" for token, p in filling["candidates"][:5])
            for filling in prediction["fillings"]
        ]
    shares = prediction["probabilities"]
    return [
        f"  {'→' if label == prediction['label'] else ' '} {label}  {100 * p:.1f} %"
        for label, p in shares.items()
    ]


def _counted(counts: Mapping[str, int], most: int = 20) -> list[str]:
    shown = list(counts.items())[:most]
    widest = max((width(name) for name, _ in shown), default=0)
    lines = [f"  {name}{' ' * (widest - width(name))}  {count:,}" for name, count in shown]
    rest = len(counts) - len(shown)
    return lines + ([f"  … and {rest} more"] if rest > 0 else [])
