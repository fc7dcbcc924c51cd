"""Training and inference throughput, in sentences and real tokens a second.

Four questions, each answered by a ratio of runs that take turns:

1. What do length buckets gain over padding to 256, the release's way,
   and over padding to the longest of a random batch?
2. What does knowledge cost, beside the tokens it adds?
3. What does the visible matrix cost SDPA, at equal length?
4. What share of the device's matrix rate is reached?

Every run makes its batches anew (mentions, trees, codes), as training does.
With one thread on the CPU, times are CPU seconds, so that other work on the
machine weighs on all runs alike; else they are seconds on the clock.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn

from benchmarks.common import data_folder, machine, print_table, spread, write
from kbert_core import (
    NO_KNOWLEDGE,
    Batch,
    FlatTree,
    InjectionOptions,
    KBertError,
    KnowledgeGraph,
    Pipeline,
    collate,
    flatten,
    grow_trees,
    load_graph,
)
from kbert_lab.data.labelled import Example, read_examples
from kbert_lab.training.batches import bucketed

ROOT = Path(__file__).parents[1]
OPTIONS = InjectionOptions(max_triples=2, tail_only=True)
RELEASE_ROWS, RELEASE_LENGTH = 32, 256  # the release's batch size and sequence length
LENGTHS = (32, 64, 128, 256, 512)
TOKENS = 4096  # in a batch of question 3
Batches = Iterator[Batch]
CLOCK = [time.process_time]


def clock() -> float:
    """Seconds, see above."""
    return CLOCK[0]()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default=str(ROOT / "models" / "medical-ner-kbert"))
    parser.add_argument("--sentences", type=int, default=384, help="a round; default: 384")
    parser.add_argument("--rounds", type=int, default=5, help="at least 2; default: 5")
    parser.add_argument("--batch-tokens", type=int, default=1024)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.device != "cpu" or args.threads > 1:
        CLOCK[0] = time.perf_counter
    data = data_folder()
    try:
        pipeline = Pipeline.from_pretrained(args.model, device=args.device)
        graph = load_graph(data / "kbert" / "Medical.spo")
        examples = read_examples(data / "kbert" / "medical_ner" / "train.tsv", "ner")
    except KBertError as error:
        raise SystemExit(str(error)) from error
    chosen = np.random.default_rng(0).permutation(len(examples))[: args.sentences]
    runner = Runner(pipeline, [examples[i] for i in chosen], graph, args.batch_tokens)

    result = {
        "what": "sentences and real tokens a second; ratios are of runs in the same round",
        "machine": {**machine("torch", "transformers"), "device": args.device},
        "model": Path(args.model).name,
        "parameters": sum(p.numel() for p in pipeline.encoder.model.parameters()),
        "sentences": len(runner.examples),
        "rounds": args.rounds,
        "batch_tokens": args.batch_tokens,
        "matrix_gflops": round(matrix_rate(args.device) / 1e9, 1),
        "batching": batching(runner, args.rounds),
        "mask": masks(pipeline, args.rounds),
    }
    result["share_of_matrix_rate"] = {
        row["run"]: round(row["gflops"] / result["matrix_gflops"], 3) for row in result["batching"]
    }
    show(result)
    name = "throughput.json" if args.device == "cpu" else f"throughput_{args.device}.json"
    write(name, result)


class Runner:
    """Trains on, or predicts for, the same sentences in several ways."""

    def __init__(
        self,
        pipeline: Pipeline,
        examples: Sequence[Example],
        graph: KnowledgeGraph,
        batch_tokens: int,
    ) -> None:
        self.pipeline, self.examples, self.graph = pipeline, examples, graph
        self.batch_tokens = batch_tokens
        self.pad = pipeline.tokenizer.pad_id

    def rows(self, graph: KnowledgeGraph) -> list[FlatTree]:
        """Every sentence's flat tree, grown anew."""
        return [
            flatten(
                grow_trees([e.sentences], graph, OPTIONS),
                self.pipeline.tokenizer,
                max_length=RELEASE_LENGTH,
            )[0]
            for e in self.examples
        ]

    def padded(self, graph: KnowledgeGraph) -> Batches:
        """As the release: 32 rows, each padded to 256."""
        rows = self.rows(graph)
        for start in range(0, len(rows), RELEASE_ROWS):
            batch = collate(rows[start : start + RELEASE_ROWS], pad_id=self.pad)
            more = RELEASE_LENGTH - batch.input_ids.shape[1]
            fill = {"input_ids": self.pad, "branch_ids": -1}
            yield Batch(
                **{
                    name: nn.functional.pad(values, (0, more), value=fill.get(name, 0))
                    for name, values in vars(batch).items()
                }
            )

    def longest(self, graph: KnowledgeGraph) -> Batches:
        """32 rows in random order, padded to the longest of them."""
        rows = self.rows(graph)
        for start in range(0, len(rows), RELEASE_ROWS):
            yield collate(rows[start : start + RELEASE_ROWS], pad_id=self.pad)

    def bucketed(self, graph: KnowledgeGraph) -> Batches:
        """Rows of similar length, as our training does."""
        rows = self.rows(graph)
        random = np.random.default_rng(0)
        for numbers in bucketed([len(row) for row in rows], self.batch_tokens, random):
            yield collate([rows[i] for i in numbers], pad_id=self.pad)

    def train(self, batches: Batches) -> int:
        """One pass of forward, backward and AdamW; returns real tokens.

        The labels are made up and the rate is 0, so every round meets the
        same weights.
        """
        encoder = self.pipeline.encoder
        model = encoder.model.train()
        optimiser = torch.optim.AdamW(model.parameters(), lr=0.0, fused=True)
        tokens = 0
        for batch in batches:
            labels = torch.where(batch.branch_ids == 0, batch.input_ids % 3, -100)
            with torch.autocast(encoder.device.type, torch.bfloat16, enabled=self._bf16):
                output = model(**encoder.inputs(batch), labels=labels.to(encoder.device))
            output.loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            optimiser.zero_grad()
            tokens += int(batch.real.sum())
        return tokens

    @torch.inference_mode()
    def infer(self, batches: Batches) -> int:
        """One pass forward; returns real tokens."""
        encoder = self.pipeline.encoder
        encoder.model.eval()
        tokens = 0
        for batch in batches:
            with torch.autocast(encoder.device.type, torch.bfloat16, enabled=self._bf16):
                encoder.model(**encoder.inputs(batch)).logits.argmax(-1).cpu()
            tokens += int(batch.real.sum())
        return tokens

    @property
    def _bf16(self) -> bool:
        return self.pipeline.encoder.device.type == "cuda"


def batching(runner: Runner, rounds: int) -> list[dict[str, object]]:
    """Time every way of batching, in turns."""
    ways: list[tuple[str, Callable[[Batches], int], Callable, KnowledgeGraph]] = []
    for phase, run in (("training", runner.train), ("inference", runner.infer)):
        for name in ("padded", "longest", "bucketed"):
            ways.append((f"{phase}, {name}", run, getattr(runner, name), runner.graph))
        ways.append((f"{phase}, bucketed, no graph", run, runner.bucketed, NO_KNOWLEDGE))
    seconds: dict[str, list[float]] = {name: [] for name, *_ in ways}
    tokens: dict[str, int] = {}
    for turn in range(rounds):
        for name, run, batches, graph in ways if turn % 2 else ways[::-1]:
            start = clock()
            tokens[name] = run(batches(graph))
            seconds[name].append(clock() - start)
    parameters = sum(
        p.numel()
        for n, p in runner.pipeline.encoder.model.named_parameters()
        if p.dim() > 1 and "embeddings" not in n
    )
    rows = []
    for name, run, _, _ in ways:
        phase = name.split(",")[0]
        own, base = seconds[name], seconds[f"{phase}, padded"]
        plain = seconds[f"{phase}, bucketed, no graph"]
        more = tokens[name] / tokens[f"{phase}, bucketed, no graph"]
        middle = spread(own)["median"]
        rows.append(
            {
                "run": name,
                "sentences_per_s": round(len(runner.examples) / middle, 1),
                "tokens_per_s": round(tokens[name] / middle),
                "gflops": round(
                    (6 if run == runner.train else 2) * parameters * tokens[name] / middle / 1e9, 2
                ),
                "faster_than_padded": spread([b / o for b, o in zip(base, own, strict=True)]),
                "tokens_against_no_graph": round(more, 4),
                "time_a_token_against_no_graph": spread(
                    [o / p / more for o, p in zip(own, plain, strict=True)]
                ),
            }
        )
    return rows


@torch.inference_mode()
def masks(pipeline: Pipeline, rounds: int) -> list[dict[str, object]]:
    """SDPA with the visible matrix of a random tree against none, at equal length."""
    encoder = pipeline.encoder
    encoder.model.eval()
    random = np.random.default_rng(0)
    rows = []
    for length in LENGTHS:
        size = TOKENS // length
        ids = torch.from_numpy(random.integers(5, 1000, (size, length)))
        branch = torch.from_numpy(np.where(random.random((size, length)) < 0.1, 1, 0))
        positions = torch.arange(length).expand(size, length).contiguous()
        zero = torch.zeros_like(ids)
        with_mask = encoder.inputs(Batch(ids, positions, branch, zero, zero))
        without = {**with_mask, "attention_mask": None}
        ratios = []
        for turn in range(3 * rounds + 1):
            order = [with_mask, without] if turn % 2 else [without, with_mask]
            times = []
            for arguments in order:
                start = clock()
                encoder.model(**arguments).logits.argmax(-1).cpu()
                times.append(clock() - start)
            masked, plain = times if turn % 2 else times[::-1]
            ratios.append(masked / plain)
        rows.append({"tokens": length, "rows": size, "masked_against_none": spread(ratios[1:])})
    return rows


def matrix_rate(device: str) -> float:
    """Floating-point operations a second of a large product, in the precision of the runs."""
    size, kind = (2048, torch.float32) if device == "cpu" else (8192, torch.bfloat16)
    a = torch.randn(size, size, device=device, dtype=kind)
    best = float("inf")
    for _ in range(6):
        start = clock()
        (a @ a)[0, 0].item()
        best = min(best, clock() - start)
    return 2 * size**3 / best


def show(result: dict) -> None:
    """Print both tables."""
    table = [["run", "sentences/s", "tokens/s", "times padded", "a token against no graph"]]
    for row in result["batching"]:
        table.append(
            [
                row["run"],
                f"{row['sentences_per_s']:.0f}",
                f"{row['tokens_per_s']:.0f}",
                f"{row['faster_than_padded']['median']:.2f}",
                f"{row['time_a_token_against_no_graph']['median']:.3f}",
            ]
        )
    print_table(table)
    print()
    table = [["tokens", "rows", "with the matrix against none"]]
    for row in result["mask"]:
        ratio = row["masked_against_none"]["median"]
        table.append([str(row["tokens"]), str(row["rows"]), f"{ratio:.3f}"])
    print_table(table)


if __name__ == "__main__":
    main()
