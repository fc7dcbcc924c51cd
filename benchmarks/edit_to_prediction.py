"""Edit a triple → new prediction: milliseconds, as the app waits for them.

Sentences of several lengths, with and without attention maps, beside the run
without knowledge. Each time a triple's tail is rewritten in the graph and the
whole pipeline runs again: mentions, tree, codes, matrix, encoder, tags.
"""

import argparse
import math
import time
from itertools import cycle, islice
from pathlib import Path

import torch

from benchmarks.common import machine, print_table, write
from kbert_core import NO_KNOWLEDGE, KBertError, KnowledgeGraph, Pipeline, Triple, load_graph

ROOT = Path(__file__).parents[1]
SENTENCES = (
    "给予布洛芬口服后好转",
    "患者有糖尿病史，入院后行心电图检查未见异常",
    "患者三天前受凉后出现咳嗽、发热，自服阿司匹林无好转，门诊查胸片后以肺炎收入院，既往有高血压病史",
)
LENGTHS = (10, 20, 45, 120, 250)  # characters; the longest are several sentences
EDITED = Triple("糖尿病", "类别", "疾病")
TAILS = ("症状", "检查", "治疗", "部位")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=str(ROOT / "models" / "medical-ner-kbert"))
    parser.add_argument("--kg", default=str(ROOT / "demo_kgs" / "medical_zh.spo"))
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    try:
        pipeline = Pipeline.from_pretrained(args.model, device=args.device)
        graph = load_graph(args.kg)
    except KBertError as error:
        raise SystemExit(str(error)) from error

    result = {
        "what": "a triple edited to a new prediction, in milliseconds",
        "machine": {**machine("torch", "transformers"), "device": args.device},
        "model": Path(args.model).name,
        "graph": Path(args.kg).name,
        "repeats": args.repeats,
        "rows": [],
    }
    table = [["characters", "tokens", "run", "median ms", "95 % ms"]]
    for length in LENGTHS:
        text = text_of(length)
        for name, knowledge, attentions in (
            ("edited graph", True, False),
            ("edited graph, attention maps", True, True),
            ("no knowledge", False, False),
        ):
            tokens, times = measured(
                pipeline, graph, text, args.repeats, knowledge=knowledge, attentions=attentions
            )
            row = {
                "characters": length,
                "tokens": tokens,
                "run": name,
                "median_ms": round(at_share(times, 0.5), 2),
                "p95_ms": round(at_share(times, 0.95), 2),
            }
            result["rows"].append(row)
            table.append([str(value) for value in row.values()])
    print_table(table)
    write("edit_to_prediction.json", result)


def text_of(length: int) -> str:
    """Our own sentences, one after the other, cut to a length."""
    if length <= len(SENTENCES[0]):
        return SENTENCES[0][:length]
    return "".join(islice(cycle("。".join(SENTENCES[1:]) + "。"), length))


def measured(
    pipeline: Pipeline,
    graph: KnowledgeGraph,
    text: str,
    repeats: int,
    *,
    knowledge: bool,
    attentions: bool,
) -> tuple[int, list[float]]:
    """Tokens of the longest row, and milliseconds of every repeat but the first three."""
    times = []
    for repeat in range(repeats + 3):
        start = time.perf_counter()
        chosen = NO_KNOWLEDGE
        if knowledge:
            tail = TAILS[repeat % len(TAILS)]
            chosen = graph.replace(EDITED, Triple(EDITED.head, EDITED.relation, tail))
        trace = pipeline(text, graph=chosen, attentions=attentions)
        times.append(1000 * (time.perf_counter() - start))
    return max(map(len, trace.rows)), times[3:]


def at_share(times: list[float], share: float) -> float:
    """The time that this share of the runs kept within."""
    return sorted(times)[max(0, math.ceil(share * len(times)) - 1)]


if __name__ == "__main__":
    main()
