"""Data for results/suites/recall.yaml: facts of two graphs as sentences whose tail is masked.

``糖尿病的类别是[MASK][MASK]。`` with the filling 疾病, and the graph of these facts. A fact is
taken if its head has no other tail for the relation, so that one answer is right. Heads are divided
into train, dev and test: a head of one is none of another.

The files are made of data that are not part of this repository, and so is what is written.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.common import data_folder
from kbert_core import KBertError, KnowledgeGraph, Triple, load_graph
from kbert_core.checkpoints.checkpoint import load_tokenizer
from kbert_core.knowledge.io.write import write_triples
from kbert_core.text import WordPieces
from kbert_lab.data.labelled import SPLITS

ZH_MINI = Path(__file__).parents[1] / "models" / "zh-mini"
MEDICAL, DISEASES = "kbert/Medical.spo", "kg/zh_medical_39net.spo.xz"
FACTS = {  # relation → its graph, and how many of its facts are taken
    "类别": (MEDICAL, 1000),
    **dict.fromkeys(("发病部位", "科室", "并发症", "检查", "药物"), (DISEASES, 500)),
}
NO_FACT = "暂无相关资料"  # what the crawl has where it has nothing
LONGEST = {"head": range(2, 13), "tail": range(1, 9)}  # characters
SHARES = (0.7, 0.1, 0.2)  # of the heads


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("runs/recall"), metavar="DIR")
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn; default: 0")
    args = parser.parse_args()
    data = data_folder()
    try:
        graphs = {name: load_graph(data / name) for name in (MEDICAL, DISEASES)}
        tokenizer = WordPieces(load_tokenizer(ZH_MINI))
    except KBertError as error:
        raise SystemExit(str(error)) from error
    random = np.random.default_rng(args.seed)
    facts: list[Triple] = []
    for relation, (name, most) in FACTS.items():
        own = list(single_facts(graphs[name], relation, tokenizer))
        facts += [own[i] for i in random.permutation(len(own))[:most]]
    args.output.mkdir(parents=True, exist_ok=True)
    write_triples(KnowledgeGraph(facts), args.output / "facts.spo")
    for split, heads in divided(facts, random).items():
        own = [triple for triple in facts if triple.head in heads]
        rows = ["text_a\tfilling", *(f"{asked(triple)}\t{triple.tail}" for triple in own)]
        (args.output / f"{split}.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
        print(f"{split}: {len(own):,} facts of {len(heads):,} heads")


def single_facts(graph: KnowledgeGraph, relation: str, tokenizer: WordPieces) -> Iterator[Triple]:
    """The facts of a relation whose head has no other, in characters that the model knows."""
    unknown = tokenizer.hugging_face.unk_token_id
    for _, triples in graph.items():
        own = [triple for triple in triples if triple.relation == relation]
        if len(own) != 1 or own[0].tail == NO_FACT or own[0].tail in own[0].head:
            continue
        sizes = all(len(getattr(own[0], name)) in of for name, of in LONGEST.items())
        (ids,) = (tokens.ids for tokens in tokenizer.tokenize([own[0].tail]))
        if sizes and len(ids) == len(own[0].tail) and unknown not in ids:
            yield own[0]


def divided(facts: Sequence[Triple], random: np.random.Generator) -> dict[str, set[str]]:
    """Draw the heads of train, dev and test."""
    heads = list(dict.fromkeys(triple.head for triple in facts))
    borders = np.cumsum(SHARES[:-1]) * len(heads)
    parts = np.split(random.permutation(len(heads)), borders.astype(int))
    return {split: {heads[i] for i in part} for split, part in zip(SPLITS, parts, strict=True)}


def asked(triple: Triple) -> str:
    """A fact as a sentence with its tail masked, a mask a character."""
    return f"{triple.head}的{triple.relation}是{'[MASK]' * len(triple.tail)}。"


if __name__ == "__main__":
    main()
