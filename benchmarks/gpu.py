"""The mask-transformer on a GPU: is it right, how fast is it, and what does knowledge cost there.

Sections run one after the other, and the JSON is written after each. One that fails leaves its
error there, and the next begins; after ``--seconds`` no further row begins.

1. *right*: attention by SDPA, eagerly and by FlexAttention, in float32 and bfloat16, beside float64
   on the CPU; and whether a graph without triples gives BERT's own states.
2. *lengths*: ``torch.compile`` on eight lengths, and how often it compiles.
3. *forward* and *training* of a BERT-base with random weights, rows of 256 tokens.
4. *short*: sentences of some 30 tokens in padded batches, in buckets, and packed.
5. *mini*: *forward* and *training* of the shipped encoder's shape.

Layers are compiled, not the model: all of them share one compiled graph. Every timed step makes its
mask from the branch codes. Times are seconds on the clock, and ways that are compared take turns.
"""

import argparse
import copy
import gc
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn
from torch._dynamo.utils import counters
from torch.nn.attention.flex_attention import and_masks, create_block_mask, flex_attention
from transformers import BertConfig, BertForTokenClassification

from benchmarks.common import RESULTS, machine, print_table, spread, write
from kbert_core import (
    Batch,
    FlatTree,
    InjectionOptions,
    KnowledgeGraph,
    MaskTransformer,
    WordPieces,
    collate,
    flatten,
    grow_trees,
    load_graph,
    probe,
    visible_matrix,
)
from kbert_core.checkpoints.checkpoint import load_tokenizer
from kbert_core.kbert.flat_tree import CODES
from kbert_core.kbert.visible import mask_mod
from kbert_core.layers import layers_of, twin_of
from kbert_lab.training.batches import bucketed

ROOT = Path(__file__).parents[1]
MINI, TASK_MODEL = ROOT / "models" / "zh-mini", ROOT / "models" / "medical-ner-kbert"
GRAPH = ROOT / "demo_kgs" / "medical_zh.spo"
OPTIONS = InjectionOptions(max_triples=2, tail_only=True)
PEAKS = {"H100": 989e12, "H200": 989e12}  # dense bfloat16 by their data sheet, operations a second
LENGTH, LABELS = 256, 9
LENGTHS = (32, 61, 96, 125, 160, 200, 256, 500)
PACKED_ROWS = (256, 512, 2048)
FLOPS = (
    "a sequence of N tokens forward: layers * (8 N H^2 + 4 N H I + 4 N^2 H), two for each multiply-"
    "add; training three times as many; embeddings, norms, softmax and the head are not counted"
)
NAME = "gpu.json"
TOO_LATE = "not run: the time was up"


@dataclass(frozen=True)
class Sizes:
    """What is run."""

    batches: tuple[int, ...] = (64, 128, 256, 512)
    training: tuple[int, ...] = (64, 128, 256)
    rounds: int = 5
    tokens: int = 32_768  # of a batch of *lengths* and *short*
    sentences: int = 4_096
    rows: int = 64  # of *right*
    config: tuple[tuple[str, int], ...] = (("vocab_size", 21_128),)  # the rest is BERT-base's


SMALL_CONFIG = {"vocab_size": 4200, "hidden_size": 24, "num_hidden_layers": 2}
SMALL_CONFIG |= {"num_attention_heads": 3, "intermediate_size": 48}
SMALL = Sizes((2, 3), (2,), 2, 1024, 60, 6, tuple(SMALL_CONFIG.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=100.0, help="then no further row begins")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, help="the others' figures stay")
    parser.add_argument("--small", action="store_true", help="tiny sizes, to try it; keeps no JSON")
    args = parser.parse_args()
    if args.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit(
            "There is no CUDA device. Nothing was measured; --device cpu --small tries it."
        )
    torch._dynamo.config.recompile_limit = 64  # all that run here share the layers' code
    with ExitStack() as stack:
        if args.device == "cpu":  # FlexAttention's own compilation takes minutes there
            wrapped = "transformers.integrations.flex_attention.WrappedFlexAttention.__call__"
            stack.enter_context(patch(wrapped, lambda _: flex_attention))
            debug = "torch.nn.attention.flex_attention._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG"
            stack.enter_context(patch(debug, True))
        bench = Bench(args.device, SMALL if args.small else Sizes(), args.seconds)
        path = RESULTS / NAME
        kept = json.loads(path.read_text("utf-8")) if args.only and path.exists() else {}
        result = bench.run(args.only or list(SECTIONS), kept, keep=not args.small)
    show(result)


class Bench:
    """All sections on one device."""

    def __init__(self, device: str, sizes: Sizes, seconds: float) -> None:
        self.device, self.sizes = torch.device(device), sizes
        self.end = time.perf_counter() + seconds
        self.graph = load_graph(GRAPH)
        self.tokenizer = WordPieces(load_tokenizer(MINI))
        self.base = BertConfig(
            **{"max_position_embeddings": 512, **dict(sizes.config)},
            num_labels=LABELS,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )

    def run(self, sections: Sequence[str], kept: dict[str, Any], *, keep: bool) -> dict[str, Any]:
        """Run sections in turn; write the JSON after each, with what was kept of others."""
        result: dict[str, Any] = kept | {
            "what": "the mask-transformer on a GPU",
            "machine": machine("torch", "transformers", "numpy")
            | {"device": str(self.device), "cuda": torch.version.cuda},
            "peak_tflops": (self.peak or 0) / 1e12 or None,
            "matrix_tflops": round(matrix_rate(self.device, self.sizes is SMALL) / 1e12, 1),
            "flops": FLOPS,
            "base": {"parameters": parameters(self.base), "tokens": LENGTH},
            "seconds": kept.get("seconds", {}),
            "errors": {k: v for k, v in kept.get("errors", {}).items() if k not in sections},
        }
        for name in sections:
            begun = time.perf_counter()
            try:
                result[name] = {}
                SECTIONS[name](self, result[name])
            except Exception as error:  # the other sections count, too
                result["errors"][name] = told(error)
                print(f"{name}: {result['errors'][name]}", flush=True)
            result["seconds"][name] = round(time.perf_counter() - begun, 1)
            free(self.device)
            if keep:
                write(NAME, result)
            print(name, result["seconds"][name], "s", flush=True)
        return result

    @property
    def late(self) -> bool:
        """Whether no further row is to begin."""
        return time.perf_counter() > self.end

    @cached_property
    def peak(self) -> float | None:
        """Of the card's data sheet."""
        if self.device.type != "cuda":
            return None
        name = torch.cuda.get_device_name()
        return next((peak for card, peak in PEAKS.items() if card in name), None)

    def trees(self, count: int, characters: tuple[int, int], seed: int = 0) -> list[FlatTree]:
        """Flat trees of random texts, which name an entity every 25 characters or so."""
        random = np.random.default_rng(seed)
        vocabulary = load_tokenizer(MINI).get_vocab()
        letters = np.array(sorted(t for t in vocabulary if len(t) == 1 and "一" <= t <= "鿿"))
        names = [name for name in self.graph.entities() if len(name) < 8]
        texts = []
        for length in random.integers(*characters, size=count, endpoint=True):
            text = ""
            while len(text) < length:
                text += "".join(random.choice(letters, random.integers(5, 40)))
                text += names[random.integers(len(names))]
            texts.append(text[:length])
        return list(flatten(grow_trees(texts, self.graph, OPTIONS), self.tokenizer))

    @cached_property
    def long(self) -> list[FlatTree]:
        """Trees of a little under 256 tokens."""
        count = max(*self.sizes.batches, *self.sizes.training)
        return [tree for tree in self.trees(3 * count, (190, 215)) if len(tree) <= LENGTH][:count]

    def batch(self, rows: int) -> Batch:
        """Trees padded to 256 tokens, on the device."""
        return padded(collate(self.long[:rows]), LENGTH).to(self.device)

    def model(self, config: BertConfig, dtype: torch.dtype = torch.float32) -> MaskTransformer:
        """Random weights, the same each time."""
        torch.manual_seed(0)
        model = BertForTokenClassification(copy.deepcopy(config))
        return MaskTransformer(model.to(self.device, dtype))

    @cached_property
    def bf16(self) -> dict[str, MaskTransformer]:
        """BERT-base in bfloat16, as :meth:`ways` gives it."""
        return self.ways(self.model(self.base, torch.bfloat16))

    def ways(self, encoder: MaskTransformer, *, flex: bool = True) -> dict[str, MaskTransformer]:
        """An encoder that runs in several ways, which share its parameters."""
        own = {"no mask": encoder, "SDPA": encoder}
        own["compiled, no mask"] = own["compiled, SDPA"] = self.compiled(encoder, "sdpa")
        if flex:
            own["compiled, FlexAttention"] = self.compiled(encoder, "flex_attention")
        return own

    def compiled(self, encoder: MaskTransformer, attention: str) -> MaskTransformer:
        """A twin with compiled layers; any length and number of rows."""
        twin = by(encoder, attention)
        backend = "inductor" if self.device.type == "cuda" else "aot_eager"
        for layer in layers_of(twin.model.base_model):
            for module in layer.modules():  # transformers' recorders of states would cut the graph
                module._forward_hooks.clear()
            layer.compile(dynamic=True, backend=backend)
        return twin

    def autocast(self) -> AbstractContextManager[Any]:
        """As training and ``kbert predict --bf16`` compute."""
        return torch.autocast(self.device.type, torch.bfloat16)

    def seconds(self, step: Callable[[], object]) -> float:
        """Of one step, until the device is done."""
        self.wait()
        begun = time.perf_counter()
        step()
        self.wait()
        return time.perf_counter() - begun

    def wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def timed(self, steps: Mapping[str, Callable[[], object]]) -> dict[str, Any]:
        """Seconds of steps that take turns; of one that fails its error, and nothing of late ones.

        Returns:
            By name the list of seconds, or the error's text.
        """
        times: dict[str, Any] = {}
        # compiled and warm; what may fail comes first, since then all is compiled anew
        for name in sorted(steps, key=lambda name: "FlexAttention" not in name):
            step = steps[name]
            if self.late:
                times[name] = TOO_LATE
                continue
            try:
                step(), step()
                times[name] = []
            except Exception as error:
                times[name] = told(error)
            if times[name]:  # not before: the error holds what was computed
                free(self.device)
                torch._dynamo.reset()  # layers that couldn't be compiled once aren't tried again
        running = [name for name in steps if isinstance(times[name], list)]
        for turn in range(self.sizes.rounds):
            for name in running if turn % 2 else running[::-1]:
                times[name].append(self.seconds(steps[name]))
        return {name: times[name] for name in steps}


def right(bench: Bench, result: dict[str, Any]) -> None:
    """Fill in errors of the logits beside float64 on the CPU, on the tokens of the text."""
    trees = bench.trees(bench.sizes.rows, (8, 100))
    models: dict[str, Callable[[], nn.Module]] = {}
    if TASK_MODEL.is_dir():
        models[TASK_MODEL.name] = lambda: BertForTokenClassification.from_pretrained(TASK_MODEL)
    small = copy.deepcopy(bench.base)
    small.num_hidden_layers, small.initializer_range = 2, 0.05
    models["random"] = lambda: bench.model(small).model
    batch = collate(trees)
    bare = [
        flatten(grow_trees(tree.tree.sentences, KnowledgeGraph()), bench.tokenizer)[0]
        for tree in trees
    ]
    text = batch.branch_ids == 0
    for name, load in models.items():
        torch.manual_seed(0)
        model = load().float()
        exact = MaskTransformer(copy.deepcopy(model).cpu().double())
        reference = exact(batch).logits[text]
        own: dict[str, Any] = {"tokens": int(text.sum()), "rows": len(trees)}
        for dtype in (torch.float32, torch.bfloat16):
            encoder = MaskTransformer(copy.deepcopy(model).to(bench.device, dtype))
            kind = str(dtype).removeprefix("torch.")
            for attention in ("sdpa", "eager", *["flex_attention"] * (name == next(iter(models)))):
                way = f"{kind}, {attention}"
                try:
                    twin = by(encoder, attention)
                    own[way] = errors(twin(batch).logits.cpu()[text], reference)
                    if attention != "flex_attention":  # the trial gives it dense masks
                        probe(twin.model)
                        own[way]["hidden_has_no_influence"] = True
                except Exception as error:
                    own[way] = {"error": told(error)}
            plain = collate(bare)
            given = {"input_ids": plain.input_ids, "attention_mask": plain.real.long()}
            with torch.inference_mode():
                bert = encoder.model(**{k: v.to(bench.device) for k, v in given.items()}).logits
            ours = encoder(plain).logits.cpu()[plain.real]
            own[f"{kind}, no triples, beside BERT"] = errors(ours, bert.cpu()[plain.real])
        if bench.device.type == "cuda":
            with bench.autocast():
                logits = MaskTransformer(model.to(bench.device))(batch).logits
            own["autocast, sdpa"] = errors(logits.cpu()[text], reference)
        result[name] = own


def forward(bench: Bench, result: dict[str, Any]) -> None:
    """Fill in sequences a second of BERT-base, forward."""
    run_forward(bench, bench.base, bench.bf16, bench.sizes.batches, result)


def training(bench: Bench, result: dict[str, Any]) -> None:
    """Fill in sequences a second of BERT-base, forward, backward and AdamW."""
    ways = bench.ways(bench.model(bench.base))
    run_training(bench, bench.base, ways, bench.sizes.training, result)


def mini(bench: Bench, result: dict[str, Any]) -> None:
    """Fill in both, of the shipped encoder's shape."""
    config = BertConfig.from_pretrained(MINI, num_labels=LABELS)
    result["parameters"] = parameters(config)
    sizes = bench.sizes
    encoder = bench.model(config, torch.bfloat16)
    ways = bench.ways(encoder, flex=False)
    run_forward(bench, config, ways, sizes.batches[-1:], result.setdefault("forward", {}))
    ways = bench.ways(bench.model(config), flex=False)
    run_training(bench, config, ways, sizes.training[-1:], result.setdefault("training", {}))


def run_forward(
    bench: Bench,
    config: BertConfig,
    ways: dict[str, MaskTransformer],
    sizes: Sequence[int],
    result: dict[str, Any],
) -> None:
    float32 = bench.model(config)
    more = {"eager": by(ways["SDPA"], "eager")}
    more |= {"autocast, no mask": float32, "autocast, SDPA": float32}
    if "compiled, FlexAttention" in ways:
        more["FlexAttention"] = flex = by(ways["SDPA"], "flex_attention")
    for rows in sorted(sizes, reverse=True):  # the largest first: time may run out
        batch = bench.batch(rows)
        read = ways | more if rows == max(sizes) else ways
        steps = {name: forward_step(bench, name, read[name], batch) for name in read}
        result[str(rows)] = rates(bench, config, rows, bench.timed(steps), passes=1)
        if "FlexAttention" in read:
            masks = {"visible matrix": ways["SDPA"], "block mask": flex}
            made = bench.timed({n: partial(e.inputs, batch) for n, e in masks.items()})
            result["mask_ms"] = {"rows": rows} | {name: ms(own) for name, own in made.items()}


def forward_step(
    bench: Bench, name: str, encoder: MaskTransformer, batch: Batch
) -> Callable[[], object]:
    def step() -> None:
        with torch.inference_mode(), bench.autocast() if "autocast" in name else nullcontext():
            encoder.model.eval()(**given(encoder, batch, "no mask" not in name))

    return step


def run_training(
    bench: Bench,
    config: BertConfig,
    ways: dict[str, MaskTransformer],
    sizes: Sequence[int],
    result: dict[str, Any],
) -> None:
    optimiser = torch.optim.AdamW(ways["SDPA"].model.parameters(), lr=0.0, fused=True)
    ways = ways | {"SDPA, mask in bfloat16": ways["SDPA"]}  # autocast casts it in every layer
    for rows in sorted(sizes, reverse=True):
        batch = bench.batch(rows)
        labels = torch.where(batch.branch_ids == 0, batch.input_ids % LABELS, -100)
        steps = {
            name: training_step(bench, name, ways[name], batch, labels, optimiser) for name in ways
        }
        result[str(rows)] = rates(bench, config, rows, bench.timed(steps), passes=3)
        if bench.device.type == "cuda":
            result[str(rows)]["most_gigabytes"] = round(torch.cuda.max_memory_allocated() / 1e9, 1)
            torch.cuda.reset_peak_memory_stats()


def training_step(
    bench: Bench,
    name: str,
    encoder: MaskTransformer,
    batch: Batch,
    labels: Tensor,
    optimiser: torch.optim.Optimizer,
) -> Callable[[], object]:
    def step() -> None:
        model = encoder.model.train()
        arguments = given(encoder, batch, "no mask" not in name)
        if "mask in bfloat16" in name:
            arguments["attention_mask"] = arguments["attention_mask"].bfloat16()
        with bench.autocast():
            loss = model(**arguments, labels=labels).loss
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()

    return step


def lengths(bench: Bench, result: dict[str, Any]) -> None:
    """Fill in how often layers are compiled for eight lengths, and the first and later seconds."""
    trees = bench.trees(max(600, bench.sizes.tokens // 50), (20, 460), seed=1)
    plain = bench.bf16["SDPA"]
    for name in ("SDPA", "FlexAttention"):
        twin = bench.bf16[f"compiled, {name}"]
        begin = counters["stats"]["unique_graphs"]
        rows: list[dict[str, Any]] = []
        result[name] = {"rows": rows}
        for length in LENGTHS:
            if bench.late:
                result[name]["error"] = TOO_LATE
                break
            fit = [tree for tree in trees if len(tree) <= length]
            count = max(2, bench.sizes.tokens // length)
            batch = padded(collate([fit[i % len(fit)] for i in range(count)]), length)
            batch = batch.to(bench.device)
            before = counters["stats"]["unique_graphs"]
            step = forward_step(bench, name, twin, batch)
            row: dict[str, Any] = {"tokens": length, "rows": count}
            rows.append(row)
            try:
                row["first_s"] = round(bench.seconds(step), 3)
            except Exception as error:
                row["error"] = told(error)
                torch._dynamo.reset()
                continue
            row["graphs"] = counters["stats"]["unique_graphs"] - before
            steps = {"compiled": step, "not compiled": forward_step(bench, name, plain, batch)}
            row |= {f"{k}_ms": ms(own) for k, own in bench.timed(steps).items()}
        result[name]["graphs"] = counters["stats"]["unique_graphs"] - begin


def short(bench: Bench, result: dict[str, Any]) -> None:
    """Fill in real tokens a second of short sentences, in padded batches, buckets, and packed."""
    trees = bench.trees(bench.sizes.sentences, (8, 40), seed=2)
    real = sum(map(len, trees))
    result |= {"sentences": len(trees), "tokens": real, "mean_tokens": round(real / len(trees), 1)}
    encoder, dense, flex = (
        bench.bf16[name] for name in ("SDPA", "compiled, SDPA", "compiled, FlexAttention")
    )
    result["isolated"] = isolation(bench, encoder, trees)
    budget, random = bench.sizes.tokens, np.random.default_rng(0)
    count = budget // max(map(len, trees))
    whole = [collate(trees[i : i + count]) for i in range(0, len(trees), count)]
    groups = bucketed([len(tree) for tree in trees], budget, random)
    buckets = [collate([trees[i] for i in numbers]) for numbers in groups]
    at_256 = [padded(b, LENGTH) for b in split(whole, budget // LENGTH)]
    steps: dict[str, Callable[[], object]] = {}
    filled: dict[str, float] = {}
    for name, batches in (("padded to 256", at_256), ("padded", whole), ("buckets", buckets)):
        here = [batch.to(bench.device) for batch in batches]
        filled[name] = real / sum(batch.input_ids.numel() for batch in here)
        steps[name] = lambda here=here: [forward_step(bench, "", dense, b)() for b in here]
        if name == "buckets":
            steps[f"{name}, not compiled"] = lambda here=here: [
                forward_step(bench, "", encoder, b)() for b in here
            ]
    for length in PACKED_ROWS:
        rows = pack(trees, length)
        size = max(1, budget // length)
        made = [packed(rows[i : i + size], length) for i in range(0, len(rows), size)]
        there = [(batch.to(bench.device), ids.to(bench.device)) for batch, ids in made]
        for twin, way in ((dense, "SDPA"), (flex, "FlexAttention")):
            if way == "SDPA" and length > 512:
                continue
            name = f"packed to {length}, {way}"
            filled[name] = real / (len(rows) * length)
            steps[name] = lambda twin=twin, there=there: [
                packed_step(twin, batch, ids) for batch, ids in there
            ]
    times = bench.timed(steps)
    result["ways"] = {
        name: {"error": own}
        if isinstance(own, str)
        else {
            "real_tokens_per_s": per_second(real, own),
            "filled": round(filled[name.removesuffix(", not compiled")], 3),
            "times_buckets": ratio(times["buckets"], own),
        }
        for name, own in times.items()
    }


def isolation(bench: Bench, encoder: MaskTransformer, trees: Sequence[FlatTree]) -> dict[str, Any]:
    """Of packed trees: how far states are from those alone, and whether one moves another."""
    rows = pack(trees, 512)[:4]
    batch, ids = packed(rows, 512)
    batch, ids = batch.to(bench.device), ids.to(bench.device)
    alone = torch.cat([encoder(collate([tree])).logits[0] for tree in rows[0]])
    changed = replace(batch, input_ids=torch.where(ids % 2 == 1, 7, batch.input_ids))
    found: dict[str, Any] = {}
    for attention in ("sdpa", "flex_attention"):
        twin = by(encoder, attention)
        try:
            states, moved = packed_step(twin, batch, ids), packed_step(twin, changed, ids)
        except Exception as error:
            found[attention] = {"error": told(error)}
            continue
        even = (ids % 2 == 0) & batch.real
        own = errors(states[0, : len(alone)].cpu(), alone.cpu())
        own["others_have_no_influence"] = torch.equal(states[even], moved[even])
        found[attention] = own
    return found


@torch.inference_mode()
def packed_step(encoder: MaskTransformer, batch: Batch, tree_ids: Tensor) -> Tensor:
    """Logits (B, N, C) of packed rows; the mask keeps their trees apart."""
    codes = batch.branch_ids, batch.anchor_ids
    if encoder.attention == "flex_attention":
        arguments = given(encoder, batch, visible=False)
        sees = and_masks(mask_mod(*codes), same_tree(tree_ids))
        rows, length = tree_ids.shape
        arguments["attention_mask"] = create_block_mask(
            sees, rows, None, length, length, device=encoder.device
        )
    else:
        arguments = encoder.inputs(batch, visible=visible_matrix(*codes, tree_ids))
    logits: Tensor = encoder.model(**arguments).logits
    return logits


def same_tree(tree_ids: Tensor) -> Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]:
    """Say for FlexAttention that a token sees its own tree alone."""

    def sees(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return tree_ids[batch, query] == tree_ids[batch, key]

    return sees


def pack(trees: Sequence[FlatTree], length: int) -> list[list[FlatTree]]:
    """Put trees into rows of at most so many tokens, in their order."""
    rows: list[list[FlatTree]] = [[]]
    room = length
    for tree in trees:
        if len(tree) > room:
            rows.append([])
            room = length
        rows[-1].append(tree)
        room -= len(tree)
    return rows


def packed(rows: Sequence[Sequence[FlatTree]], length: int) -> tuple[Batch, Tensor]:
    """Rows of several trees as one batch, and (B, N) which tree of its row a token is of."""
    batch = torch.zeros(5, len(rows), length, dtype=torch.int64)
    batch[2] = -1  # branch codes of padding
    tree_ids = torch.full((len(rows), length), -1)
    for row, trees in enumerate(rows):
        sizes = [len(tree) for tree in trees]
        for code, name in enumerate(CODES):
            values = [value for tree in trees for value in getattr(tree, name)]
            batch[code, row, : len(values)] = torch.tensor(values)
        numbers = np.repeat(np.arange(len(trees)), sizes)
        tree_ids[row, : len(numbers)] = torch.from_numpy(numbers)
    return Batch(*batch), tree_ids


def padded(batch: Batch, length: int) -> Batch:
    """Pad to so many tokens."""
    more = length - batch.input_ids.shape[1]
    fills = {name: -1 if name == "branch_ids" else 0 for name in vars(batch)}
    return Batch(
        **{
            name: nn.functional.pad(v, (0, more), value=fills[name])
            for name, v in vars(batch).items()
        }
    )


def split(batches: Sequence[Batch], rows: int) -> Iterator[Batch]:
    """Cut batches into smaller ones of so many rows."""
    for batch in batches:
        parts = [values.split(max(1, rows)) for values in vars(batch).values()]
        yield from (Batch(*part) for part in zip(*parts, strict=True))


def by(encoder: MaskTransformer, attention: str) -> MaskTransformer:
    """A twin with another attention, which shares the parameters."""
    twin = copy.copy(encoder)
    twin.model = twin_of(encoder.model)
    twin.model.set_attn_implementation(attention)
    twin.config = twin.model.config
    return twin


def given(encoder: MaskTransformer, batch: Batch, visible: bool) -> dict[str, Any]:
    """The encoder's arguments, with the mask or without one."""
    if visible:
        return encoder.inputs(batch)
    return {
        "input_ids": batch.input_ids,
        "attention_mask": None,
        "position_ids": batch.soft_positions + encoder.position_offset,
        "token_type_ids": batch.token_type_ids,
    }


def errors(found: Tensor, reference: Tensor) -> dict[str, float]:
    """Largest and relative (of the norms) difference of (M, C) logits; equal predictions."""
    found, reference = found.double(), reference.double()
    apart = found - reference
    return {
        "max_error": float(f"{apart.abs().max().item():.3g}"),
        "relative_error": float(f"{(apart.norm() / reference.norm()).item():.3g}"),
        "equal_predictions": round(
            (found.argmax(-1) == reference.argmax(-1)).double().mean().item(), 5
        ),
    }


def told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:800]


def flops(config: BertConfig, tokens: int) -> int:
    """Operations of one sequence forward; see ``FLOPS``."""
    hidden, wide = config.hidden_size, config.intermediate_size
    linear = 8 * tokens * hidden**2 + 4 * tokens * hidden * wide
    return config.num_hidden_layers * (linear + 4 * tokens**2 * hidden)


def rates(
    bench: Bench, config: BertConfig, rows: int, times: Mapping[str, Any], *, passes: int
) -> dict[str, Any]:
    """Sequences a second of each way, its share of the peak, and what knowledge costs a token."""
    result: dict[str, Any] = {}
    for name, own in times.items():
        if isinstance(own, str):
            result[name] = {"error": own}
            continue
        speed = per_second(rows, own)
        operations = passes * flops(config, LENGTH) * speed["median"]
        result[name] = {"sequences_per_s": speed, "tflops": round(operations / 1e12, 3)}
        if bench.peak:
            result[name]["share_of_peak"] = round(operations / bench.peak, 4)
        plain = next((p for p in ("compiled", "autocast") if p in name), "")
        without = times[f"{plain}, no mask" if plain else "no mask"]
        if "no mask" not in name and isinstance(without, list):
            result[name]["knowledge_costs"] = ratio(own, without)
    return result


def per_second(count: int, times: Sequence[float]) -> dict[str, float]:
    return spread([count / t for t in times])


def ms(times: list[float] | str) -> float | str:
    return times if isinstance(times, str) else round(1000 * spread(times)["median"], 2)


def ratio(times: list[float] | str, others: list[float]) -> dict[str, float] | None:
    """Of runs in the same round."""
    if isinstance(times, str):
        return None
    return spread([t / o for t, o in zip(times, others, strict=True)])


def parameters(config: BertConfig) -> int:
    with torch.device("meta"):
        return sum(p.numel() for p in BertForTokenClassification(config).parameters())


def matrix_rate(device: torch.device, small: bool) -> float:
    """Operations a second of a large bfloat16 product of random numbers."""
    size = 256 if small else 8192
    a = torch.randn(size, size, device=device, dtype=torch.bfloat16)
    times = []
    for _ in range(10):
        begun = time.perf_counter()
        (a @ a)[0, 0].item()
        times.append(time.perf_counter() - begun)
    return 2 * size**3 / min(times)


def free(device: torch.device) -> None:
    """Give memory back, as after one that ran out."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def show(result: Mapping[str, Any]) -> None:
    """Print the main tables."""
    for part in ("forward", "training"):
        table = [[part, "rows", "sequences/s", "TFLOP/s", "of peak", "knowledge costs"]]
        for rows, ways in result.get(part, {}).items():
            if not rows.isdigit():
                continue
            for name, own in ways.items():
                if isinstance(own, dict) and "tflops" in own:
                    cost = own.get("knowledge_costs")
                    table.append(
                        [
                            name,
                            rows,
                            f"{own['sequences_per_s']['median']:.0f}",
                            f"{own['tflops']:.1f}",
                            f"{own.get('share_of_peak', 0):.1%}",
                            f"{cost['median']:.3f}" if cost else "",
                        ]
                    )
        print_table(table)
        print()
    for name, own in result.get("short", {}).get("ways", {}).items():
        print(name, own.get("error") or f"{own['real_tokens_per_s']['median']:,.0f} tokens/s")


SECTIONS: dict[str, Callable[[Bench, dict[str, Any]], None]] = {
    "right": right,
    "lengths": lengths,
    "forward": forward,
    "training": training,
    "short": short,
    "mini": mini,
}

if __name__ == "__main__":
    main()
