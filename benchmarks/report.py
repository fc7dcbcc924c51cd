"""docs/performance.md, made from the JSON of the benchmarks: no figure in it is written by hand."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.common import RESULTS

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
LATENCY = "latency.json"
GRAPHS = ("graph_store.json", "graph_store_zh_domain_words.json")
ROWS = (  # what is measured, in words; its aim; what stands beside it
    ("import_triples_per_second", "import, triples a second", "≥ 100,000", None),
    ("open_milliseconds", "open, ms", "≤ 20", None),
    (
        "private_megabytes_after_opening_and_lookups",
        "private memory after opening and 1,000 look-ups, MB",
        "≤ 50",
        None,
    ),
    (
        "match_microseconds_a_sentence",
        "find the names in a sentence of 26 characters, µs",
        "≤ 60",
        "match_dict_microseconds_a_sentence",
    ),
    (
        "bare_trie_microseconds_a_sentence",
        "a bare trie at every place of the sentence, µs",
        "for scale: 17 to 19 where the aims were set",
        None,
    ),
    (
        "fetch_microseconds_a_hit",
        "fetch the triples of a name, µs",
        "≤ 25",
        "fetch_dict_microseconds_a_hit",
    ),
    ("edit_milliseconds", "make an edit, on disk, ms", "", None),
    ("visible_milliseconds", "see it in the next look-up, ms", "≤ 1", None),
    (
        "match_with_pending_edits",
        "find names with 10,000 edits waiting, times as long",
        "≤ 1.15",
        None,
    ),
)


def page() -> str:
    """The whole page, as Markdown."""
    parts = [
        "# Performance\n",
        "Made by `python -m benchmarks.report` from `benchmarks/results/*.json`; don't edit it by "
        "hand. How each figure is measured: [benchmarks](../benchmarks/README.md).\n",
        "## Graph files\n",
        "One graph of millions of triples, on one core; medians, quartiles in brackets. The dict "
        "is the same triples in a dict of lists, in the same run, looked up by every substring of "
        "a sentence. Seconds are of this machine's processor and say little of another's: the "
        "row of the bare trie, the same library asked at every place of the same sentences and "
        "nothing else, tells how this machine on that day stands to the one that the aims come "
        "from.\n",
    ]
    parts += [_graph(json.loads((RESULTS / name).read_text("utf-8"))) for name in GRAPHS]
    parts.append(_latency(json.loads((RESULTS / LATENCY).read_text("utf-8"))))
    return "\n".join(parts)


def _latency(result: Mapping[str, Any]) -> str:
    machine, besides = result["machine"], result["other visitors"]
    lines = [
        "## What a person waits for\n",
        f"The app with its default model ({result['model']}) in headless Chromium, from a key, a "
        "click or a movement to the first frame that shows what came of it; milliseconds. Of the "
        "time for an edit, 150 ms are what the table waits before it tells of a change. "
        f"{machine['cpu']}, {machine['cores']} cores, which the browser shares, with a load of "
        f"{result['load before, 1 minute']:.1f} from other work before it began; {besides} other "
        "visitors.\n",
        "| | median | 95 % | aim | aim, 95 % |",
        "|---|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {row['action']} | {row['median_ms']:,.0f} | {row['p95_ms']:,.0f} | "
        f"{row['aim_median_ms']:,} | {row['aim_p95_ms']:,} |"
        for row in result["rows"]
    ]
    return "\n".join([*lines, ""])


def _graph(result: Mapping[str, Any]) -> str:
    lines = [
        f"### {result['triples']:,} triples, {result['heads']:,} heads ({result['source']})\n",
        f"{result['machine']['cpu']}; the file has {result['graph_megabytes']:,.0f} MB, its index "
        f"of names {result['names_megabytes']:,.0f} MB; a dict of the triples was filled in "
        f"{result['dict_loading_seconds']:,.0f} s.\n",
        "| | here | aim | dict |",
        "|---|---:|---:|---:|",
    ]
    for name, words, aim, beside in ROWS:
        other = _shown(result[beside]) if beside else ""
        lines.append(f"| {words} | {_shown(result[name])} | {aim} | {other} |")
    return "\n".join([*lines, ""])


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        first, third = value["quartiles"]
        return f"{_number(value['median'])} [{_number(first)}, {_number(third)}]"
    return _number(value)


def _number(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")
    print(f"Written to {PAGE.relative_to(PAGE.parents[1])}")


if __name__ == "__main__":
    main()
