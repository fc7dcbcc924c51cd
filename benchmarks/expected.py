"""What an audit expects of a graph, fitted on the map, and beside what trainings measured.

    python -m benchmarks.expected          # count, fit, write
    python -m benchmarks.expected --fit    # fit again from the counts that are kept
    python -m benchmarks.expected --only ner-en    # count anew in this suite alone

A point is one data set and graph, the mean over its seeds. Counting reads the data and makes the
graphs again (KBERT_DATA) and keeps what it found beside the gains in results/expected/points.json.
The fits go to kbert_lab/study/expected.json, with how far BERT is ahead of a linear tagger
in finding new names. results/expected/section.md shows every point as it is predicted without it,
once with the share of new names that BERT finds, once with that judged by the linear tagger: the
map by a fit to the splits alone, a split by one to the map and the other splits, another data set
by one to all of these.
"""

import argparse
import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from itertools import product
from math import log
from pathlib import Path
from statistics import stdev
from typing import Any, NamedTuple

import numpy as np

from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.knowledge.surface_forms import AS_WRITTEN
from kbert_lab.data.sources import read_present
from kbert_lab.explain.drawing import BLUE, EDGE, GREY, drawing, tidy
from kbert_lab.study import expected
from kbert_lab.study.audit import audit
from kbert_lab.study.audit_values import Data, Gain, Share, plain_tokenizer
from kbert_lab.study.expected import WAYS, Fit, Point, found_by_bert, linear_recall
from kbert_lab.study.statistics import SURE_SEEDS
from kbert_lab.study.verdict import HARM, WORTH, costs, pays, verdict_of
from kbert_lab.suites.grid import Experiment
from kbert_lab.suites.suite import read_suite
from results.tools.tables import on_few

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "results" / "expected"
PICTURE = ROOT / "docs" / "expected" / "measured.png"
MEDICAL = "K-BERT (paper), MedicalKG", "BERT with the dictionary written over it"
GATE = "BERT, dictionary through a gate"
KINDS = "expected", "expected with BERT at hand"
NO = " **no**"  # the interval doesn't hold what was measured
UNTRAINED = "map, from scratch"
NAMES = {
    UNTRAINED: "map, BERT without pretraining",
    **{"ner-en": "English", "weibo-ner": "Weibo", "resume-ner": "Résumés", "msra-ner": "MSRA"},
}
FITTED = {  # suite → its rows, in the order of WAYS
    "map": ("K-BERT (paper)", "Dictionary over BERT", "Dictionary through a gate, over BERT"),
    "medical-ner-official": (*MEDICAL, GATE),
    "medical-ner-dedup": (*MEDICAL, GATE),
    "medical-ner-substitution": (*MEDICAL, GATE),
    "medical-ner-random": (*MEDICAL, GATE),
    "medical-ner-disjoint": (*MEDICAL, GATE),
}
OTHERS = "other data sets"
KINDS_OF_POINTS = {
    **dict.fromkeys(FITTED, "five splits"),
    "map": "map",
    "map, from scratch": "map, BERT without pretraining",
}
TRIED = {  # never fitted: another encoder, other texts, other graphs, another language
    "map, from scratch": (
        "K-BERT (paper), from scratch",
        "Dictionary over BERT from scratch",
        "Dictionary through a gate, over BERT from scratch",
    ),
    "ner-en": ("K-BERT (paper), English medical graph", MEDICAL[1], GATE),
    "weibo-ner": ("K-BERT (paper), HowNet", MEDICAL[1], GATE),
    "resume-ner": ("K-BERT (paper), HowNet", MEDICAL[1], GATE),
    "msra-ner": ("K-BERT (paper), HowNet", MEDICAL[1], GATE),
}


def counted(names: Collection[str]) -> list[dict[str, Any]]:
    """What suites measured and what their data and graphs hold, a point a condition.

    A point is of the seeds that all its ways have, as each seed has another graph.
    """
    points = []
    for name, rows in {**FITTED, **TRIED}.items():
        if name not in names:
            continue
        suite = name.partition(",")[0]
        experiment = Experiment(read_suite(ROOT / "results" / "suites" / f"{suite}.yaml"))
        tables = experiment.tables(resamples=1)
        gains: dict[str, dict[str, dict[int, float]]] = defaultdict(dict)
        read: dict[str, Any] = {}  # the row that reads the graph
        for row in experiment.suite.rows:
            way = dict(zip(rows, WAYS, strict=True)).get(row.called)
            if way is None or row.compare_with is None:
                continue
            condition = row.in_words
            scores = tables.resampled.score(row.name, tables.metrics[0])
            bert = tables.resampled.score(row.compare_with, tables.metrics[0])
            seeds = sorted({*scores.seeds} & {*bert.seeds}) if scores and bert else []
            gains[condition][way] = {s: scores.seeds[s] - bert.seeds[s] for s in seeds}
            if way == "K-BERT":  # the counts are of data and graph, whatever is done with them
                read[condition] = row
        for condition, of in gains.items():
            row = read[condition]
            seeds = sorted(set.intersection(*({*by} for by in of.values() if by)))
            made = tables.results[row.compare_with], tables.results[row.name]
            kept = [
                {**_counts(experiment, row, s), **_found(*(of_row[s] for of_row in made))}
                for s in seeds
            ]
            means = {n: _mean(c[n] for c in kept) for n in kept[0]}
            said = {way: {str(s): round(by[s], 6) for s in seeds if by} for way, by in of.items()}
            named = f"{name}: {condition}" if condition else name
            points.append({"name": named, "fitted": name in FITTED, **means, "gains": said})
    return points


def _counts(experiment: Experiment, row: Any, seed: int) -> dict[str, float]:
    """What an audit counts."""
    task, folder = experiment.suite.task, str(experiment.split(seed, row.unseen)[0])
    splits = read_present(folder, task)
    splits = {name: splits[name] for name in ("train", "dev")}  # test's labels play no part
    graph, _ = experiment.graph(row, seed)
    tokenizer = plain_tokenizer(Data("", task, splits))
    linear = by_linear(folder)
    made = audit(
        splits,
        graph,
        task=task,
        tokenizer=tokenizer,
        options=InjectionOptions(names=AS_WRITTEN),  # as the suites' dictionaries
        as_tokens=False,
        linear=linear,
    )
    point = expected.point_of(made.splits["dev"])
    assert point is not None
    warned = any(finding.kind == "unknown_new" for finding in verdict_of(made).findings)
    counts = {**point._asdict(), "linear": linear.count, "asked": linear.total, "warned": warned}
    return {name: round(float(value), 6) for name, value in counts.items()}


def _found(of_bert: Any, of_kbert: Any) -> dict[str, float]:
    """The shares of the new names that BERT finds in what is counted, and either in test."""
    made = {
        "found": (of_bert, "dev"),
        "found in test": (of_bert, "test"),
        "found by K-BERT": (of_kbert, "test"),
    }
    recalls = {name: of["scores"][split]["unseen"]["recall"] for name, (of, split) in made.items()}
    return {name: round(recall, 6) for name, recall in recalls.items()}


@cache
def by_linear(folder: str) -> Share:
    """What a linear tagger finds in a split, whatever the graph."""
    splits = read_present(folder, "ner")
    return linear_recall(splits["train"], splits["dev"])


def _mean(values: Iterable[float]) -> float:
    return float(np.mean([*values]))


class Guess(NamedTuple):
    """A gain that was measured, beside those expected of it without and with BERT at hand."""

    point: dict[str, Any]
    way: str
    gain: float
    expected: tuple[Gain, Gain]

    @property
    def by_seed(self) -> list[float]:
        """What was measured."""
        return [*self.point["gains"][self.way].values()]

    @property
    def measured(self) -> str:
        """The mean with its deviation over the seeds; a raised number where these are few."""
        few = on_few(len(self.by_seed), SURE_SEEDS)
        return f"{points_of(self.gain)} ± {100 * stdev(self.by_seed):.1f}{few}"

    @property
    def inside(self) -> tuple[bool, ...]:
        """Whether each interval holds the gain."""
        return tuple(own.low <= self.gain <= own.high for own in self.expected)


def guesses(points: list[dict[str, Any]]) -> Iterator[Guess]:
    """Predict every point by a fit to the other groups: the map is one, and so is every split."""
    for point in points:
        new, wrong, found = (point[name] for name in ("new", "wrong", "found"))
        for way, by_seed in ((way, by) for way, by in point["gains"].items() if by):
            others = [p for p in points if group_of(p) != group_of(point)]
            fit = fit_of([p for p in others if p["fitted"]], way)
            judged = found_by_bert(linear_of(point), ahead(points, but=point))
            expected = fit.among(new, wrong, judged), fit.among(new, wrong, (found,) * 3)
            yield Guess(point, way, _mean(by_seed.values()), expected)


def ahead(points: list[dict[str, Any]], but: dict[str, Any] | None = None) -> list[float]:
    """By how much BERT is ahead of a linear tagger in finding new names, in logits, by data set.

    Args:
        but: a point whose data set is left out.
    """
    data: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for point in points:
        if group_of(point) != UNTRAINED and (but is None or data_of(but) != data_of(point)):
            logit = log(point["found"] / (1 - point["found"])) - log(linear_of(point).odds)
            data[data_of(point)][group_of(point)].append(logit)
    return [round(_mean(map(_mean, groups.values())), 6) for groups in data.values()]


def main() -> None:
    """Count where asked to, fit, and predict what was left out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fit", action="store_true", help="from the counts that are kept")
    every = [*FITTED, *TRIED]
    parser.add_argument("--only", nargs="+", choices=every, help="count these, keep the others")
    args = parser.parse_args()
    KEPT.mkdir(exist_ok=True)
    file = KEPT / "points.json"
    if not args.fit:
        anew = args.only or every
        kept = json.loads(file.read_text("utf-8")) if args.only else []
        points = [*counted(anew), *(p for p in kept if group_of(p) not in anew)]
        points.sort(key=lambda point: every.index(group_of(point)))
        file.write_text(json.dumps(points, indent=1) + "\n", encoding="utf-8")
    points = json.loads(file.read_text("utf-8"))
    fits = {way: as_dict(fit_of([p for p in points if p["fitted"]], way)) for way in WAYS}
    path = Path(expected.__file__).with_name("expected.json")
    fitted = {"ways": fits, "ahead": ahead(points)}
    path.write_text(json.dumps(fitted, indent=1) + "\n", encoding="utf-8")
    guessed = [*guesses(points)]
    about = (KEPT / "section.md").read_text("utf-8").split("Per hundredth ")[0]
    about = re.sub(
        r"(?<=### What it shows\n\n).*?(?=\n- \*What it can't)",
        in_short(guessed),
        about,
        flags=re.DOTALL,
    )
    said = weights(fits), found_in_words(points), advice(guessed), in_words(guessed), "</details>"
    (KEPT / "section.md").write_text(about + "\n\n".join(said) + "\n", encoding="utf-8")
    draw(guessed, PICTURE)


def in_short(guessed: list[Guess]) -> str:
    """What came of the guesses on data sets that no fit has seen, a figure a sentence."""
    others = [g for g in guessed if KINDS_OF_POINTS.get(group_of(g.point), OTHERS) == OTHERS]
    inside = sum(guess.inside[0] for guess in others)
    count = len(others)
    lines = [
        f"- On data sets that no fit has seen {inside} of {count} gains lie within its bounds."
    ]
    for way in WAYS:
        own = [guess for guess in others if guess.way == way]
        off = _mean(100 * abs(guess.expected[0].mean - guess.gain) for guess in own)
        nothing = _mean(100 * abs(guess.gain) for guess in own)
        called = way if way == "K-BERT" else f"the {way}"
        lines.append(
            f"- What it expects of {called} is {off:.1f} points off there. To expect no change "
            f"would be {nothing:.1f} off."
        )
    return "\n".join(lines)


def weights(fits: dict[str, dict[str, Any]]) -> str:
    """What each count is worth to each way."""
    new = {way: f"{fit['weights'][0]:.2f}" for way, fit in fits.items()}
    wrong = f"{-fits['dictionary']['weights'][1]:.2f}"
    return (
        f"Per hundredth of new names that BERT misses K-BERT gains {new['K-BERT']} points, the "
        f"gate {new['gate']} and the dictionary {new['dictionary']}, which loses {wrong} per "
        "hundredth of wrong ones."
    )


def found_in_words(points: list[dict[str, Any]]) -> str:
    """How far off what BERT finds is judged: a data set, its first point, by the others."""
    firsts = {data_of(point): point for point in reversed(points)}
    off, same_off, inside = [], [], 0
    for data, point in firsts.items():
        least, judged, most = found_by_bert(linear_of(point), ahead(points, but=point))
        same = _mean(other["found"] for name, other in firsts.items() if name != data)
        off.append(100 * abs(judged - point["found"]))
        same_off.append(100 * abs(same - point["found"]))
        inside += least <= point["found"] <= most
    shares = [100 * linear_of(point).share for point in points]
    return (
        f"The linear tagger finds {min(shares):.0f} to {max(shares):.0f} % of the new names. Of "
        f"{len(firsts)} data sets, each judged by the others, BERT's share is put "
        f"{_mean(off):.0f} points off on average, {max(off):.0f} at most, and {inside} lie between "
        f"the ends. The mean of the others is {_mean(same_off):.0f} off, {max(same_off):.0f} at "
        "most."
    )


def advice(guessed: list[Guess]) -> str:
    """What an audit without a model advises at these points, and what came of it."""
    gains: dict[tuple[str, bool], list[float]] = defaultdict(list)
    for guess in guessed:
        point, mean = guess.point, guess.expected[0].mean
        if guess.way == "K-BERT":
            more = point["found by K-BERT"] - point["found in test"]
            gains[guess.way, point["warned"] >= 0.5].append(more)
        else:
            says = costs if guess.way == "dictionary" else pays
            gains[guess.way, says(mean)].append(guess.gain)
    over, kept = gains["dictionary", True], gains["dictionary", False]
    at_cost = [g for g in guessed if g.way == "dictionary" and costs(g.expected[0].mean)]
    always = sum(max(guess.by_seed) < 0 for guess in at_cost)
    many, few, warned, silent = (
        f"{points_of(min(of, default=0))} to {points_of(max(of, default=0))}"
        for of in (gains[key] for key in product(("gate", "K-BERT"), (True, False)))
    )
    return (
        "Without a BERT at hand an audit says *don't write the graph over a model* where the "
        f"dictionary is expected to cost more than {HARM} points: at {len(over)} of the points "
        f"below, and at {sum(gain < 0 for gain in over)} of them it costs something, at "
        f"{always} at every seed. Where it doesn't say so, the dictionary gains at "
        f"{sum(gain > 0 for gain in kept)} of {len(kept)} points. It says *look the graph's "
        f"names up through a gate* where that is expected to gain {WORTH} points or more: at "
        f"{len(gains['gate', True])} points, where a gate gains {many}, and {few} at the others. "
        "With or without one it warns that K-BERT *may find fewer of the new names*, where the "
        f"graph knows training's names and hardly a new one: at {len(gains['K-BERT', True])} "
        f"points, where K-BERT changes their recall by {warned} points, and {silent} at the others."
    )


def in_words(guessed: list[Guess]) -> str:
    """How far off the guesses are, beside that of no change; and all of them."""
    of_groups: dict[tuple[str, str], list[Guess]] = defaultdict(list)
    for guess in guessed:
        of_groups[KINDS_OF_POINTS.get(group_of(guess.point), OTHERS), guess.way].append(guess)
    summed = []
    for (group, way), some in of_groups.items():
        cells = [group, way, str(len(some)), f"{_mean(abs(100 * g.gain) for g in some):.1f}"]
        for number in range(len(KINDS)):
            off = _mean(100 * abs(g.expected[number].mean - g.gain) for g in some)
            cells.append(f"{off:.1f}; {sum(g.inside[number] for g in some)} of {len(some)}")
        summed.append(f"| {' | '.join(cells)} |")
    kinds = (f"{kind}: off; inside" for kind in KINDS)
    head = ("", "way", "gains", "“nothing changes”: points off", *kinds)
    told = [f"| {' | '.join(head)} |", "|---|---|---:|---:|---:|---:|", *summed]
    lines = []
    for guess in guessed:
        first = guess.way == next(iter(guess.point["gains"]))
        shares = (f"{100 * guess.point[name]:.0f} %" for name in ("new", "wrong", "found"))
        point = (name_of(guess.point), *shares) if first else ("", "", "", "")
        said = (
            f"{points_of(at.mean)} [{points_of(at.low)}, {points_of(at.high)}]{'' if ok else NO}"
            for at, ok in zip(guess.expected, guess.inside, strict=True)
        )
        lines.append(f"| {' | '.join((*point, guess.way, guess.measured, *said))} |")
    shares = "new, right in the dictionary", "wrong in it", "BERT finds"
    columns = ("", *shares, "way", "measured", *KINDS)
    table = [f"| {' | '.join(columns)} |", "|---|---:|---:|---:|---|---:|---:|---:|", *lines]
    return "\n".join([*told, "", *table])


def draw(guessed: list[Guess], path: Path) -> None:
    """Draw what was measured over what was expected, a panel a way and kind of guess."""
    markers = dict(zip(NAMES.values(), "PDs^v", strict=True))
    with drawing(10.5, 6.6) as figure:
        grid = figure.subplots(len(KINDS), len(WAYS), sharex=True, sharey=True)
        for row, (panels, kind) in enumerate(zip(grid, KINDS, strict=True)):
            for panel, way in zip(panels, WAYS, strict=True):
                panel.axline((0, 0), slope=1, color=EDGE, linewidth=1)
                for guess in (g for g in guessed if g.way == way):
                    name = NAMES.get(group_of(guess.point), "")
                    looks = {"color": BLUE if name else GREY, "alpha": 0.9 if name else 0.5}
                    at, gain = guess.expected[row], 100 * guess.gain
                    panel.hlines(gain, 100 * at.low, 100 * at.high, linewidth=1, **looks)
                    panel.plot(100 * at.mean, gain, marker=markers.get(name, "o"), **looks)
                panel.set_title(f"{way}, {kind}", fontsize=10)
                tidy(panel, "both")
        figure.supxlabel("expected, points of F1 over BERT; a line is the 95 % interval")
        figure.supylabel("measured, points of F1 over BERT")
        for name, marker in {"the map and five splits": "o", **markers}.items():
            looks = {"color": BLUE if name in markers else GREY, "linestyle": ""}
            panel.plot([], [], marker=marker, label=name, **looks)
        figure.legend(loc="outside upper center", ncols=3, frameon=False)
        figure.savefig(path, dpi=110, metadata={"Software": None})


def group_of(point: dict[str, Any]) -> str:
    """Which points share its data and trainings."""
    return str(point["name"]).partition(":")[0]


def data_of(point: dict[str, Any]) -> str:
    """Whose texts a point's are: all splits of the clinical records are one data set."""
    group = group_of(point)
    return "clinical" if group.startswith(("map", "medical-ner")) else group


def linear_of(point: dict[str, Any]) -> Share:
    """What a linear tagger finds of a point's new names, on average of the seeds."""
    return Share(round(point["linear"]), round(point["asked"]))


def name_of(point: dict[str, Any]) -> str:
    """What a point is called."""
    name, *condition = str(point["name"]).split(":")
    return ":".join([NAMES.get(name, name.replace("medical-ner-", "clinical, ")), *condition])


def points_of(gain: float) -> str:
    """A gain in points, with a true minus."""
    return f"{100 * gain:+.1f}".replace("-", "−")


def fit_to(
    points: Sequence[Point],
    gains: Sequence[float],
    groups: Sequence[str],
    uses: Sequence[str] = Point._fields,
) -> Fit:
    """Least squares, to the F1 gained over BERT at each point.

    Args:
        groups: which points share data and trainings, so that they aren't independent.
    """
    design = np.array([[getattr(point, name) for name in uses] for point in points])
    gained = np.array(gains)
    spread, fitted = _least_squares(design, gained)
    errors = []
    for group in sorted({*groups}):
        own = np.array([name == group for name in groups])
        of_rest, without = _least_squares(design[~own], gained[~own])
        unsure = 1 + np.einsum("pf,fg,pg->p", design[own], of_rest, design[own])
        errors.append(np.mean((gained[own] - design[own] @ without) ** 2 / unsure))
    box = np.array([design.min(0), design.max(0)])
    freedom = len(errors) - len(fitted)
    return Fit(tuple(uses), fitted, spread, float(np.mean(errors)) ** 0.5, freedom, box)


def _least_squares(design: Any, gained: Any) -> tuple[Any, Any]:
    """(XᵀX)⁻¹ and the weights."""
    spread = np.linalg.pinv(design.T @ design).astype(np.float64)
    return spread, spread @ design.T @ gained


def as_dict(fit: Fit) -> dict[str, Any]:
    """A fit as plain data, for JSON."""
    arrays = {n: np.round(getattr(fit, n), 6).tolist() for n in ("weights", "spread", "box")}
    told = {"deviation": round(fit.deviation, 6), "freedom": fit.freedom}
    return {"uses": [*fit.uses], **arrays, **told}


def fit_of(points: list[dict[str, Any]], way: str) -> Fit:
    """The fit to points for a way."""
    having = [point for point in points if point["gains"].get(way)]
    gains = [_mean(point["gains"][way].values()) for point in having]
    at = [Point(point["new"] * (1 - point["found"]), point["wrong"]) for point in having]
    return fit_to(at, gains, [*map(group_of, having)], WAYS[way])


if __name__ == "__main__":
    main()
