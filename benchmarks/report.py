"""docs/performance.md, made from the JSON of the benchmarks: no figure in it is written by hand."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.common import RESULTS
from benchmarks.knowbert import PASSES
from kbert_lab.explain.drawing import drawing, tidy
from results.tools.pictures import LINES, MARKERS

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
CURVES = PAGE.parent / "performance" / "pretraining.png"
LATENCY, THROUGHPUT = "latency.json", "throughput.json"
BUDGET = "budget.json"
INJECTION, DECODING, PRETRAINING = "injection.json", "decoding.json", "pretraining.json"
PREDICT_FILE, TRAINING_DATA = "predict_file.json", "training_data.json"
IN_BROWSER = "page.json"
BEFORE, KNOWBERT, SYSTEMS = "before.json", "knowbert.json", "systems.json"
GPU = "gpu.json"  # only where one was lent
SHORT = 128  # tokens up to which the mask has an aim
GRAPHS = ("graph_store.json", "graph_store_zh_domain_words.json")
ROWS = (  # what is measured, in words; its aim; what stands beside it
    ("import_triples_per_second", "import, triples per second", "≥ 100,000", None),
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
        "`python -m benchmarks.report` makes this page from `benchmarks/results/*.json`; don't "
        "edit it by hand. [Benchmarks](../benchmarks/README.md) says how each figure is "
        "measured.\n",
        _throughput(_read(THROUGHPUT)),
        *([_gpu(_read(GPU))] if (RESULTS / GPU).exists() else []),
        _pretraining(_read(PRETRAINING)),
        _injection(_read(INJECTION)),
        _decoding(_read(DECODING)),
        _predict_file(_read(PREDICT_FILE)),
        _training_data(_read(TRAINING_DATA)),
        _knowbert(_read(KNOWBERT)),
        _systems(_read(SYSTEMS)),
        _before(_read(BEFORE)),
        "## Graph files\n",
        "One graph of millions of triples, on one core. Figures are medians, with quartiles in "
        "brackets. The column *dict* is for comparison: the same triples in a dict of lists, in "
        "the same run; every substring of a sentence is looked up. The times hold for this "
        "machine's processor and say little about another. The row of the bare trie compares this "
        "machine on that day with the machine where the aims were set: it only asks the same "
        "library at every place of the same sentences.\n",
    ]
    parts += [_graph(_read(name)) for name in GRAPHS]
    parts += [_budget(_read(BUDGET)), _latency(_read(LATENCY)), _page(_read(IN_BROWSER))]
    return "\n".join(parts)


def _read(name: str) -> Any:
    return json.loads((RESULTS / name).read_text("utf-8"))


def _throughput(result: Mapping[str, Any]) -> str:
    machine = result["machine"]
    lines = [
        "## Training and inference\n",
        f"{result['model']} ({result['parameters']:,} parameters) on {result['sentences']} "
        f"sentences of medical_ner, {result['rounds']} rounds; {machine['gpu'] or machine['cpu']}"
        f"{'' if machine['gpu'] else ', one thread'}. *padded*: 32 rows of 256 tokens, as the "
        "release pads. *longest*: 32 rows padded to the longest. *bucketed*: what `kbert train` "
        "does. *packed*: several trees in a row, which don't see each other; it was as fast as "
        "buckets and [was removed](../benchmarks/README.md#how-to-read-throughput). Ratios are "
        "medians of runs in the same round, with quartiles in brackets. Aims: in training, "
        "bucketed or packed is at least 5 times as fast as padded; a token takes at most 1.05 "
        "times the time of a token without a graph.\n",
        "| | sentences per second | tokens per second | times padded | time per token, of one "
        "without a graph | share of the matrix rate |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for row in result["batching"]:
        alone = "no graph" in row["run"]
        beside = "1" if alone else _shown(row["time_a_token_against_no_graph"])
        first = row["run"].endswith("padded")
        times = "1" if first else _shown(row["faster_than_padded"])
        share = result["share_of_matrix_rate"][row["run"]]
        lines.append(
            f"| {row['run']} | {_number(row['sentences_per_s'])} | {row['tokens_per_s']:,} | "
            f"{times} | {beside} | {share:.0%} |"
        )
    lines += [
        "",
        "Scaled dot-product attention: its time with the visible matrix, divided by its time "
        f"without a mask (aim: at most 1.05 up to {SHORT} tokens):\n",
        "| tokens of a row | times as long |",
        "|---:|---:|",
        *(f"| {row['tokens']} | {_shown(row['masked_against_none'])} |" for row in result["mask"]),
    ]
    return "\n".join([*lines, ""])


def _gpu(result: Mapping[str, Any]) -> str:
    machine, peak = result["machine"], result["peak_tflops"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    known = f"; it is {peak:.0f} TFLOP/s by the data sheet" if peak else ""
    lines = [
        "## On a GPU\n",
        f"{machine['gpu']}, CUDA {machine['cuda']}, {versions}. A BERT-base with random weights "
        f"({result['base']['parameters'] / 1e6:.0f} M parameters) reads rows of "
        f"{result['base']['tokens']} tokens. *SDPA* attends by the visible matrix, *FlexAttention* "
        "by the branch codes; every step makes its mask anew. *compiled*: one layer by "
        "`torch.compile`, for any length, and used twelve times. Forward runs in bfloat16, "
        "*autocast* and training with weights in float32. Each row has its best batch. The share "
        f"of the peak counts the operations of the multiplications{known}; a large product reached "
        f"{result['matrix_tflops']:.0f} TFLOP/s. The "
        "last column compares with the same way without a mask (aim: at most 1.05). Aims: 7,000 "
        "sequences per second forward, 35 % of the peak in training.\n",
        "| | batch | sequences per second | TFLOP/s | share of the peak | time per token, of one "
        "without knowledge |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for part in ("forward", "training"):
        best: dict[str, tuple[str, Any]] = {}
        for rows, ways in result.get(part, {}).items():
            for way, own in ways.items() if rows.isdigit() else ():
                if isinstance(own, Mapping) and "error" not in own:
                    best[way] = max(best.get(way, (rows, own)), (rows, own), key=_speed)
        lines += [
            f"| {part}, {way} | {rows} | {_shown(own['sequences_per_s'])} | {own['tflops']:.0f} | "
            f"{own.get('share_of_peak', 0):.1%} | {_maybe(own.get('knowledge_costs'))} |"
            for way, (rows, own) in best.items()
        ]
    if short := result.get("short", {}).get("ways"):
        own = result["short"]
        lines += [
            "",
            f"Forward on {own['sentences']:,} short sentences ({own['mean_tokens']} tokens with "
            "their knowledge). A packed row holds many sentences, which don't see each other.\n",
            "| | real tokens per second | positions that are real | times buckets |",
            "|---|---:|---:|---:|",
        ]
        lines += [
            f"| {way} | {_shown(row['real_tokens_per_s'])} | {row['filled']:.0%} | "
            f"{_maybe(row['times_buckets'])} |"
            for way, row in short.items()
            if "error" not in row
        ]
    for way, own in result.get("lengths", {}).items():
        if rows := [row for row in own["rows"] if "first_s" in row]:
            lines += [
                "",
                f"{way}, compiled: batches of {len(rows)} lengths from {rows[0]['tokens']} to "
                f"{rows[-1]['tokens']} tokens took {own['graphs']} compilations in "
                f"{sum(row['first_s'] for row in rows if row['graphs']):.0f} s.",
            ]
    if right := result.get("right"):
        lines += [
            "",
            "Logits beside float64 on the CPU. Equal: the same label for a token of the text.\n",
            "| | relative error | largest | equal |",
            "|---|---:|---:|---:|",
        ]
        lines += [
            f"| {model}, {way} | {row['relative_error']:.1e} | {row['max_error']:.1e} | "
            f"{row['equal_predictions']:.2%} |"
            for model, ways in right.items()
            for way, row in ways.items()
            if isinstance(row, Mapping) and "error" not in row
        ]
    return "\n".join([*lines, ""])


def _speed(batch: tuple[str, Mapping[str, Any]]) -> float:
    return batch[1]["sequences_per_s"]["median"]


def _maybe(value: Any) -> str:
    return _shown(value) if value else ""


def _pretraining(result: Mapping[str, Any]) -> str:
    machine = result["machine"]
    minutes = next(iter(result["trials"].values()))["seconds"] / 60
    lines = [
        "## Ways to pretrain\n",
        "Masked language models with the size and the text of the shipped encoder. Each trial "
        "begins with random weights and takes the same time: that of "
        f"{result['steps_of_the_first']:,} steps of the first trial, about {minutes:.0f} minutes "
        f"on {machine['gpu'] or machine['cpu']}{'' if machine['gpu'] else ', one thread'}. The "
        "loss is in nats per masked token of held-out text. It is flat for half the time, then it "
        f"drops; the best runs leave the plateau first. {_chance(result['trials'])} Two trials "
        "hold out other rows of the same text: words masked whole, and the other seed.\n",
        f"![Held-out loss by time]({CURVES.relative_to(PAGE.parent).as_posix()})\n",
        "| | steps | time of a step | tokens seen | held-out loss | right |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {name} | {trial['steps']:,} | {trial['cost_of_a_step']:.2f} | "
        f"{trial['tokens'] / 1e6:.1f} M | {trial['loss']:.2f} | {trial['accuracy']:.1%} |"
        for name, trial in sorted(result["trials"].items(), key=lambda item: item[1]["loss"])
    ]
    return "\n".join([*lines, ""])


def _chance(trials: Mapping[str, Any]) -> str:
    first = next(iter(trials))
    again = [name for name in trials if "seed" in name]
    if not again:
        return "Each trial was made once, so small differences say nothing."
    apart = abs(trials[again[0]]["loss"] - trials[first]["loss"])
    return (
        f"With another seed, the first trial's loss differs by {apart:.2f} nats at the end. So "
        "differences of this size say nothing. There are only two seeds, so somewhat larger ones "
        "say little."
    )


def draw_pretraining(result: Mapping[str, Any], path: Path) -> None:
    """Draw held-out loss by time, one line per trial."""
    trials = sorted(result["trials"].items(), key=lambda item: item[1]["loss"])
    order = list(result["trials"])
    with drawing(9, 4.4) as figure:
        panel = figure.subplots()
        for name, trial in trials:
            place = order.index(name)
            steps, losses = zip(*trial["curve"], strict=True)
            panel.plot(
                [step * trial["cost_of_a_step"] for step in steps],
                losses,
                color=LINES[place % len(LINES)],
                marker=MARKERS[place % len(MARKERS)],
                markersize=4,
                linewidth=1.6,
                label=f"{trial['loss']:.2f}  {name}",
            )
        panel.set_xlabel("time, in steps of the first trial")
        panel.set_ylabel("held-out loss, nats a masked token")
        panel.set_xlim(0, None)
        tidy(panel, "y")
        figure.legend(
            loc="outside right center", frameon=False, fontsize=9, title="loss at the end"
        )
        path.parent.mkdir(exist_ok=True)
        figure.savefig(path, dpi=160, metadata={"Software": None})


def _injection(result: Mapping[str, Any]) -> str:
    lines = [
        "## From text to batch\n",
        "The way from texts to the tensors for the encoder, with the ids of a shipped tokenizer; "
        f"{result['machine']['cpu']}, one thread. We compare with the release, which makes arrays "
        "and one dense matrix per sentence. The release segments words with pkuseg, a statistical "
        "model. We also time its algorithm with the longest match instead of pkuseg, which gives "
        "the same words in a fraction of the time. "
        f"Aim: at least {result['aim']} times as fast as the release, and "
        f"{result['aim_by_algorithm']} times as fast as its algorithm.\n",
        "| data, graph | sentences | characters each | sentences a second | times the release | "
        "times its algorithm, without pkuseg | this, with the matrix of every batch | "
        "one text at a time, by the release | by its algorithm |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for case in result["cases"]:
        whole, times = case.get("times_the_release_with_pkuseg", {}), case["times_the_release"]
        ways = [whole.get("together"), times["together"], times["with_matrix"]]
        ways += [whole.get("one_by_one"), times["one_by_one"]]
        lines.append(
            f"| {case['data']}, {case['graph']} | {case['sentences']:,} | "
            f"{case['mean_characters']:.0f} | "
            f"{_shown(case['sentences_per_second']['together'])} | "
            f"{' | '.join(_shown(way) if way else 'not timed' for way in ways)} |"
        )
    return "\n".join([*lines, ""])


def _decoding(result: Mapping[str, Any]) -> str:
    speed = result["texts_per_second"]
    return (
        "## From logits to named entities\n\n"
        f"The unit is {result['what'].replace(' a CPU', ' per CPU')}. We read {result['texts']} "
        f"texts; {result['machine']['cpu']}, one thread. Token by token it was "
        f"{_shown(speed['before'])}; now it is {_shown(speed['now'])}. This is "
        f"{_shown(result['faster'])} times as fast (aim: {result['aim']}).\n"
    )


def _predict_file(result: Mapping[str, Any]) -> str:
    lines = [
        "## Many texts at once\n",
        f"Texts of at most {result['longest']} characters (reviews are cut into sentences), in "
        f"texts per second on {result['machine']['cpu']}, one thread. *Times* compares with "
        f"reading one text at a time (aim: {result['aim']}). Two costs become smaller: that of a "
        "call without its multiplications, and in the last two layers the multiplications for "
        "tokens that the task doesn't read.\n",
        "| model | texts | one by one | together | `kbert predict --file` | the same, `--bf16` | "
        "`kbert evaluate` |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, own in result["models"].items():
        ways = [
            f"{own['ways'][way]:,.0f}, {_shown(own['faster'][way])} times" for way in own["faster"]
        ]
        lines.append(
            f"| {name} | {own['texts']} | {own['ways']['one by one']:,.0f} | {' | '.join(ways)} |"
        )
    return "\n".join([*lines, ""])


def _training_data(result: Mapping[str, Any]) -> str:
    lines = [
        "## What training spends on data\n",
        f"One step of {result['model']}, {result['machine']['cpu']}, one thread. *kept*: no "
        "recipe, so rows are made once. *recipe*: some rows are made again in every epoch. We "
        f"calculated, not measured, that an H200 reads {result['tokens_per_s_an_h200_reads']:,} "
        "tokens per second when it trains BERT base. The last column says how many processes of "
        "this machine would make so many tokens.\n",
        "| | data, ms | model, ms | share of data | tokens per second of data | processes |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {row['run']} | {row['data_ms']:.1f} | {row['model_ms']:.0f} | "
        f"{row['share_of_data']:.1%} | {row['tokens_per_s_of_data']:,} | "
        f"{row['processes_for_an_h200']} |"
        for row in result["rows"]
    ]
    return "\n".join([*lines, ""])


def _knowbert(result: Mapping[str, Any]) -> str:
    low, high = result["aim"]
    lines = [
        "## What a KnowBert costs\n",
        "The first two rows compare a KnowBert with its plain encoder, which reads the same "
        f"batches in turn (paper: {low} to {high} times); {result['sentences']} sentences, "
        f"{result['rounds']} rounds, {result['machine']['cpu']}, one thread. The other rows are "
        "milliseconds per sentence. For the stages of entity linking, candidates and vectors are "
        "already cached. Scoring is a part of the forward pass.\n",
        f"| | {' | '.join(_described(case) for case in result['cases'])} |",
        f"|---|{'---:|' * len(result['cases'])}",
    ]
    rows = {f"{name}, times": [c[name] for c in result["cases"]] for name in PASSES}
    for stage in result["cases"][0]["linking_ms"]:
        rows[f"{stage}, ms"] = [case["linking_ms"][stage] for case in result["cases"]]
    rows["a vector that is made anew, ms"] = [case["vector_made_ms"] for case in result["cases"]]
    lines += [f"| {name} | {' | '.join(map(_shown, values))} |" for name, values in rows.items()]
    return "\n".join([*lines, ""])


def _systems(result: Mapping[str, Any]) -> str:
    lines = [
        "## What each system costs\n",
        f"The same {result['sentences']} clinical sentences with MedicalKG on `zh-mini`, and in "
        "the last two rows on multilingual-e5-small, in the same batches. The time of a pass is "
        f"divided by that of BERT on `zh-mini` in the same round; {result['rounds']} rounds, "
        f"{result['machine']['cpu']}, one thread. *Beside*: tokens in a separate row. Memory: what "
        "the forward pass of a batch keeps for the backward pass.\n",
        f"| | parameters | tokens | beside | {' | '.join(PASSES)} | memory, MB |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, own in result["systems"].items():
        times = " | ".join(_shown(own[which]) for which in PASSES)
        counts = f"{own['parameters'] / 1e6:.1f} M | {own['tokens']:,} | {own['tokens_beside']:,}"
        lines.append(f"| {name} | {counts} | {times} | {own['kept_mb']:.0f} |")
    return "\n".join([*lines, ""])


def _described(case: Mapping[str, Any]) -> str:
    return (
        f"{case['case']}: {case['tokens_a_sentence']:.0f} tokens, {case['spans_a_sentence']:.1f} "
        f"spans of {case['candidates_a_span']:.1f} candidates"
    )


def _before(result: Mapping[str, Any]) -> str:
    speeds = _read(INJECTION)["cases"][0]["sentences_per_second"]
    recipe = next(row for row in _read(TRAINING_DATA)["rows"] if row["run"] == "recipe")
    now = {
        "training_rows": ("medical_ner with MedicalKG, texts to batches", speeds["together"]),
        "one_by_one": ("the same, one text at a time", speeds["one_by_one"]),
        "decoding": (
            "logits of 160 characters to named entities",
            _read(DECODING)["texts_per_second"]["now"],
        ),
        "recipe_tokens": (
            "data of training with a recipe, in tokens",
            {"median": recipe["tokens_per_s_of_data"]},
        ),
    }
    lines = [
        f"## Before and after\n\nFigures are per second. *before* means {result['what']}.\n",
        "| | before | now |",
        "|---|---:|---:|",
    ]
    for name, (what, speed) in now.items():
        then = " to ".join(f"{value:,}" for value in result["rows"][name])
        lines.append(f"| {what} | {then} | {speed['median']:,.0f} |")
    return "\n".join([*lines, ""])


def _latency(result: Mapping[str, Any]) -> str:
    machine, besides = result["machine"], result["other visitors"]
    lines = [
        "## What a person waits for\n",
        f"The app with its default model ({result['model']}) in headless Chromium. The time is in "
        "milliseconds, from a key, a click or a movement to the first frame that shows its result. "
        "*Processor*: processor time of server and browser, from the action until the page is "
        f"idle. {machine['cpu']}, {machine['cores']} cores, which the browser shares. The load "
        f"from other work was {result['load before, 1 minute']:.1f} before the start; {besides} "
        "other visitors.\n",
        "| | median | 95 % | aim | processor |",
        "|---|---:|---:|---:|---:|",
    ]
    for row in result["rows"]:
        names = ("median_ms", "p95_ms", "aim_median_ms", "processor_ms")
        numbers = (f"{row[name]:,.0f}" if row.get(name) else "" for name in names)
        lines.append(f"| {row['action']} | {' | '.join(numbers)} |")
    if remark := result.get("remark"):  # by hand
        lines += ["", remark]
    return "\n".join([*lines, ""])


def _page(result: Mapping[str, Any]) -> str:
    slower, line = result["slower"], result["line"]
    lines = [
        "## The pages without a server\n",
        "[Two pages](try.md) read a sentence in the browser. *First sight*: all that a page needs "
        "before the model, with the answers to the switches of its first sentence. *Layers*: of "
        "the model, packed; it reads a sentence with them and with the parts of the vocabulary "
        "that the sentence needs, of 20 to 50 KB each. *Vocabulary*: all parts. In brackets: the "
        f"seconds that a line of {line} megabits per second takes. *Stored*, *by the model*: from "
        "the click on a switch to the new prediction, in milliseconds; and on a processor "
        f"{slower} times as slow. {result['machine']['cpu']}, headless Chromium, one thread, files "
        "from the same machine.\n",
        "| | first sight, MB | layers, MB | vocabulary, MB | stored | by the model | tokens of the "
        f"row | stored, {slower} times as slow | by the model, {slower} times as slow |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for language, row in result["pages"].items():
        sizes = (row[name] / 1e6 for name in ("first sight", "layers", "words"))
        loaded = (f"{size:.1f} ({8 * size / line:.0f})" for size in sizes)
        fast, slow = row["1"], row[str(slower)]
        times = (fast["stored"], fast["flip"], fast["tokens"], slow["stored"], slow["flip"])
        numbers = (f"{time:,.0f}" for time in times)
        lines.append(f"| {language} | {' | '.join([*loaded, *numbers])} |")
    return "\n".join([*lines, ""])


def _budget(result: Mapping[str, Any]) -> str:
    lines = [
        "## What knowledge costs the text\n",
        f"{result['questions']} questions of CMRC 2018 about paragraphs of at most 220 characters, "
        f"rows of {result['length']} tokens, triples of {result['kg'].split('/')[-1]}. All columns "
        "after the first number are in percent. *text lost*: the text's tokens that don't fit "
        "because of triples in the row. *triples lost*: the triples that don't fit. *answer read*: "
        "the questions whose answer is in the part of the text that is read. *cut as released*: "
        "the row is cut at its end, as by the released K-BERT. *k-bert*: the text comes first, and "
        "triples that don't fit are left out. *roof-bert* reads triples in a separate row. Each "
        "system has one model, trained with HowNet, with one seed.\n",
        "| | triples per name | text lost | triples lost | answer read | F1 | exact |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    names = ("text_lost", "triples_lost", "read", "f1", "exact")
    lines += [
        f"| {row['system']} | {row['triples']} | "
        f"{' | '.join(f'{100 * row[name]:.1f}' for name in names)} |"
        for row in result["rows"]
    ]
    return "\n".join([*lines, ""])


def _graph(result: Mapping[str, Any]) -> str:
    lines = [
        f"### {result['triples']:,} triples, {result['heads']:,} heads ({result['source']})\n",
        f"{result['machine']['cpu']}. The file has {result['graph_megabytes']:,.0f} MB, its index "
        f"of names {result['names_megabytes']:,.0f} MB. It took "
        f"{result['dict_loading_seconds']:,.0f} s to fill a dict with the triples.\n",
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
    draw_pretraining(_read(PRETRAINING), CURVES)
    print(f"Written to {PAGE.relative_to(PAGE.parents[1])}")


if __name__ == "__main__":
    main()
