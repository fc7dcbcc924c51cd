"""The checks of the notebooks' exercises: a wrong answer is told what is wrong with it."""

import sys
from dataclasses import astuple
from functools import cached_property
from importlib import import_module
from inspect import signature
from pathlib import Path
from pkgutil import iter_modules
from statistics import stdev
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from conftest import FIGURE_2, TIM_COOK

from kbert_core import Ablation, InjectionOptions, KnowledgeGraph, Triple, grow_trees, load_graph

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "notebooks"))

import checks  # noqa: E402
from _riddles import KIND_ALONE, TrialOptions, make_riddles, new_pipeline  # noqa: E402
from _tools import Check, exercise  # noqa: E402
from checks import (  # noqa: E402
    ablations,
    explaining,
    knowledge,
    layers,
    reading_results,
    systems,
    trees,
)

GRAPH = load_graph(ROOT / "demo_kgs" / "general_en.spo")


class Untrained:
    """A small model of the riddles, made when it is first asked."""

    @cached_property
    def pipeline(self):
        torch.manual_seed(0)
        riddles = make_riddles(GRAPH, kinds=3, train=30, held_out=6)
        options = TrialOptions(hidden_size=16, num_hidden_layers=1)
        return new_pipeline(riddles, KIND_ALONE, Ablation(), options)

    def __getattr__(self, name):
        return getattr(self.pipeline, name)

    def __call__(self, text, **how):
        trace = self.pipeline(text, **how)
        object.__setattr__(trace.prediction, "label", "company")
        return trace


MODEL = Untrained()


class Injecting:
    """Injects as a model does, and predicts nothing."""

    def __call__(self, text, *, graph, options):
        tree = grow_trees([text], graph, options)[0]
        return SimpleNamespace(used=tuple(b.triple for n in tree.nodes for b in n.branches))


CLINICAL = Injecting()
MEDICAL = KnowledgeGraph([Triple("胃镜", "类别", "检查")])
POURED = KnowledgeGraph([Triple("胃镜", "义原", "山"), *MEDICAL])


def clinical_reader(text, *, graph):
    """Takes a name for what the graph says it is."""
    (node,) = grow_trees([text], graph)[0].nodes or (None,)
    used = tuple(branch.triple for branch in node.branches) if node else ()
    kinds = {"disease": "Disease", "drug": "Chemical"}
    labels = [kinds[triple.tail] for triple in used if triple.tail in kinds]
    spans = [SimpleNamespace(text=knowledge.NAME, label=label) for label in labels]
    return SimpleNamespace(used=used, prediction=SimpleNamespace(spans=spans))


MEASURED = {  # row → language → F1 in per cent, precision and recall as shares
    "K-BERT": {
        "Chinese": {"f1": 70.0, "precision": 0.6, "recall": 0.8},
        "English": {"f1": 90.0, "precision": 0.9, "recall": 0.9},
    },
    "tail only": {
        "Chinese": {"f1": 60.0, "precision": 0.57, "recall": 0.65},
        "English": {"f1": 85.0, "precision": 0.8, "recall": 0.91},
    },
    "both": {
        "Chinese": {"f1": 40.0, "precision": 0.4, "recall": 0.4},
        "English": {"f1": 30.0, "precision": 0.3, "recall": 0.3},
    },
}


def bag_of(graph):
    """The words of a mention's branches, each with its soft position counted from the mention."""
    branches = (branch.split() for branch in graph.split(", "))
    return {f"{word} at {place}" for words in branches for place, word in enumerate(words, 1)}


def test_bags_are_the_same_where_words_and_soft_positions_are():
    for pair, (same, _) in ablations.check_bags.right.items():
        one, other = (bag_of(side) for side in pair.split("  |  "))
        assert (one == other) is same


def table(value, row="tail only", language="Chinese"):
    return {(language, row): value}, MEASURED


def setting_score(language="Chinese", *, positions="soft", triples=2, graph="medical"):
    return {"f1": 70.0 + (triples == 1) - (positions == "hard")}


def doubled(p, q):
    return sum(abs(a - b) for a, b in zip(p, q, strict=True))


@pytest.fixture(autouse=True)
def in_the_root(monkeypatch):
    monkeypatch.chdir(ROOT)


def unshifted(scores, visible):
    power = np.where(visible, np.exp(scores), 0)
    return power / power.sum()


def unmasked(scores, visible):
    return np.exp(scores) / np.exp(scores).sum()


def masked_afterwards(scores, visible):
    return np.where(visible, unmasked(scores, visible), 0)


def as_in_k_bert(a, b, c, d):
    return a == c or (b == d > 0 and (a == 0 or c == 0))


def one_step(visible, layers):
    return visible if layers else np.eye(len(visible), dtype=bool)


POSITIONS, SEGMENTS = layers.POSITIONS, layers.SEGMENTS
LAYER = 789_760  # parameters


def normalised(h, axis=-1, free=0, power=0.5):
    spread = (h.var(axis=axis, keepdims=True, ddof=free) + 1e-12) ** power
    return (h - h.mean(axis=axis, keepdims=True)) / spread


def apart(n=4):
    half = np.arange(8) < n
    return half[:, None] == half


ONE, OTHER = np.arange(8), np.array([0, 1, 2, 3, 9, 8, 7, 6])


def compared(one, other, visible, rows=slice(4)):
    """A test of a leak that runs two rows, and compares some states of them."""
    return lambda run: np.abs(run(one, visible)[rows] - run(other, visible)[rows]).max()


def halved(factor):
    """An interval whose half-width is a function of the deviation and n."""

    def interval(values):
        half = factor(stdev(values), len(values))
        return np.mean(values) - half, np.mean(values) + half

    return interval


def student(n):
    return reading_results.T[n]


def rows_of(train, test):
    return {text for text, _ in train}, [text for text, _ in test]


def shares(*counts, whole=28):
    return dict(zip(systems.PRIORS, (n / whole for n in counts), strict=True))


WRONG = {  # module: what is said, the check, its answers
    knowledge: [
        ("none is empty", "triple", ("zorvex", "is_a", ""), clinical_reader, GRAPH),
        ("turned round", "triple", ("disease", "is_a", "zorvex"), clinical_reader, GRAPH),
        ("isn't found", "triple", ("Vorzex", "is_a", "x"), clinical_reader, GRAPH),
        ("a chemical", "triple", ("zorvex", "is_a", "drug"), clinical_reader, GRAPH),
        ("no name at all", "triple", ("zorvex", "is_a", "x"), clinical_reader, GRAPH),
        ("there this graph is right", "all_drugs", 0),
        ("What will it say of London", "all_drugs", 0.9),
        ("of the six kinds", "all_drugs", 0.4),
        ("are texts", "new_name", MODEL, GRAPH, (1, 2, 3)),
        ("it isn't found", "new_name", MODEL, GRAPH, ("Paris", "is_a", "city")),
        ("'is_a' alone", "new_name", MODEL, GRAPH, ("Zanzibar", "kind", "city")),
        ("now says company", "new_name", MODEL, GRAPH, ("Zanzibar", "is_a", "company")),
        ("found 1 field", "line", "violin made_of maple"),
        ("the head is 'maple'", "line", "maple\tmade_of\tviolin"),
        ("the tail is 'oak'", "line", "violin\tmade_of\toak"),
        ("that a violin is a maple", "line", "violin\tis_a\tmaple"),
        ("one line, please", "line", "violin\ta\tmaple\nviolin\tb\tmaple"),
    ],
    ablations: [
        ("sign is turned", "table", *table(10.0)),
        ("the F1 itself", "table", *table(60.0)),
        ("in per cent", "table", *table(-0.1)),
        ("difference of precision", "table", *table(-3.0)),
        ("difference of recall", "table", *table(-15.0)),
        ("the English model's", "table", *table(-5.0)),
        ("the row 'both'", "table", *table(-30.0)),
        ("measure('Chinese', …)", "table", *table(-12.0)),
        ("leave graph as it is", "setting", {"graph": "none"}, setting_score),
        ("F1 69.0, and as", "setting", {"positions": "hard"}, setting_score),
        ("give a number", "table", *table("ten")),
        ("the sign is turned", "paired", lambda a, b: (-6, 1)),
        ("it should be 6.00", "paired", lambda a, b: (1, 1)),
        ("divide by n − 1", "paired", lambda a, b: (6, 0.816496580927726)),
        ("the spread of the differences", "paired", lambda a, b: (6, abs(stdev(a) - stdev(b)))),
        ("it is 1.00", "paired", lambda a, b: (6, 3)),
        ("write 100 per cent as 1", "ceilings", {"K-BERT": 100}),
        ("nothing that it needs is hidden", "ceilings", {"K-BERT": 0.5}),
        ("are a bag", "ceilings", {"K-BERT": 1, "everything visible": 0.61}),
        ("two numbers", "paired", lambda a, b: 6),
        ("counts twice", "variation", lambda p, q: doubled(p, q)),
        ("cancel out", "variation", lambda p, q: sum(p) - sum(q)),
        ("the mean", "variation", lambda p, q: doubled(p, q) / len(p)),
        ("it should be", "variation", lambda p, q: 0.5),
        ("nothing", "options", CLINICAL, MEDICAL, POURED, InjectionOptions(0)),
        ("are poured ones", "options", CLINICAL, MEDICAL, POURED, InjectionOptions(2)),
    ],
    trees: [
        ("in the order of the text", "longest", ["York", "New York"]),
        ("the longer name wins", "longest", ["New", "York"]),
        ("a second city", "longest", ["New York"]),
        ("already taken", "longest", ["New York", "York", "York"]),
        ("'Boston' is no entity", "longest", ["Boston"]),
        ("two words may make one name", "longest", ["York"]),
        ("is missing", "line", "London and Paris"),
        (
            "right after its mention",
            "line",
            "London and Paris located_on Thames capital France is_a city",
        ),
        (
            "order of the graph",
            "line",
            "London located_on Thames and Paris is_a city capital France",
        ),
        (
            "from left to right",
            "line",
            "London Thames located_on and Paris capital France is_a city",
        ),
        ("they differ from token 3", "twin", TIM_COOK, []),
        ("Figure 2 itself", "twin", TIM_COOK, [astuple(triple) for triple in FIGURE_2]),
        ("all trunk", "twin", " ".join(trees.FIGURE_2), []),
        ("these are the hard positions", "positions", [1, 2, 3, 4, 5]),
        ("[CLS] has position 0", "positions", [0, 1, 2, 1, 2]),
        ("second word of the sentence", "positions", [1, 2, 3, 3, 4]),
        ("goes on from its mention", "positions", [1, 3, 4, 2, 3]),
        ("'rainy' follows 'is'", "positions", [1, 2, 3, 2, 5]),
        ("first token after [CLS]", "positions", [2, 3, 4, 3, 4]),
        ("are 1 apart, not 0", "distance", sum),
        ("not one", "distance", lambda lengths: 1 + len(lengths)),
        ("it should be", "distance", lambda lengths: 1),
        ("raised ZeroDivisionError", "distance", lambda lengths: 1 / 0),
        ("hard positions", "third_branch", 13, 14),
        ("hangs from Beijing too", "third_branch", 9, 6),
        ("however many branches", "third_branch", 7, 8),
        ("Asia is its second", "third_branch", 6, 6),
        ("whole numbers", "third_branch", "7", "6"),
        ("here they see each other", "sees", as_in_k_bert),
        ("it should be False", "sees", lambda a, b, c, d: a == c or b != d),
        ("it should be True", "sees", lambda a, b, c, d: a == c),
        ("[CLS] may not look at Apple", "way", ["Apple", "[CLS]"]),
        ("one with fewer", "way", ["Apple", "CEO", "Tim", "[CLS]"]),
        ("begin at Apple", "way", ["[CLS]", "Tim", "Apple"]),
        ("'Google' is no token", "way", ["Apple", "Google", "[CLS]"]),
    ],
    layers: [
        ("e^1000 is infinite", "softmax", unshifted),
        ("a hidden token gets a weight", "softmax", unmasked),
        ("after normalising", "softmax", masked_afterwards),
        ("gives the shape", "softmax", lambda s, v: s[:1]),
        ("aren't e^score", "softmax", lambda s, v: v / v.sum()),
        ("as if the mask weren't scaled", "factor", float(np.exp(-10))),
        ("divides by its root", "factor", float(np.exp(-10 / 64))),
        ("stands in the exponent", "factor", -1.25),
        ("softmax takes e^score", "factor", 0.5),
        ("multiplied 2 times", "reach", one_step),
        ("knows only of itself", "reach", lambda v, n: v),
        ("gives the shape", "reach", lambda v, n: v[:1]),
        ("can token", "reach", lambda v, n: np.eye(len(v), dtype=bool) | (n > 0)),
        ("transposed", "reach", lambda v, n: np.linalg.matrix_power(v.T.astype(int), n) > 0),
        ("the hard positions", "embedding", [*range(8)], SEGMENTS),
        ("doesn't begin again", "embedding", [0, 1, 2, 3, 4, 3, 0, 1], SEGMENTS),
        ("goes on from its mention", "embedding", [0, 1, 2, 1, 2, 3, 4, 5], SEGMENTS),
        ("trunk alone", "embedding", [0, 1, 2, 3, 4, 2, 4, 5], SEGMENTS),
        ("segment of its mention", "embedding", POSITIONS, [0, 0, 0, 1, 1, 0, 1, 1]),
        ("closes A", "embedding", POSITIONS, [0, 0, 0, 0, 0, 1, 1, 1]),
        ("A is 0 and B is 1", "embedding", POSITIONS, [0] * 8),
        ("gives the shape", "add_and_norm", lambda x, c, g, b: x[:1]),
        ("axis 0", "add_and_norm", lambda x, c, g, b: normalised(x + c, 0) * g + b),
        (
            "divided by the variance",
            "add_and_norm",
            lambda x, c, g, b: normalised(x + c, power=1) * g + b,
        ),
        ("residual is missing", "add_and_norm", lambda x, c, g, b: normalised(c) * g + b),
        ("`x` alone", "add_and_norm", lambda x, c, g, b: normalised(x) * g + b),
        ("`ddof=1`", "add_and_norm", lambda x, c, g, b: normalised(x + c, free=1) * g + b),
        ("`gain` and `bias`", "add_and_norm", lambda x, c, g, b: normalised(x + c)),
        ("normalised first", "add_and_norm", lambda x, c, g, b: x + normalised(c) * g + b),
        ("add first, then", "add_and_norm", lambda x, c, g, b: x + c),
        ("the matrices alone", "parameters", 786_432, 0),
        ("layer norms are missing", "parameters", 788_736, 0),
        ("biases are missing", "parameters", 787_456, 0),
        ("two layer norms", "parameters", 789_248, 0),
        ("four matrices", "parameters", 723_968, 0),
        ("share the 256 columns", "parameters", 1_379_584, 0),
        ("count six linears", "parameters", 1, 0),
        ("a mask has no weights", "parameters", LAYER, 512),
        ("give 8 segments", "embedding", POSITIONS, "A"),
    ],
    explaining: [
        ("turned", "effect", lambda s, every, one: s(every - {one}) - s(every)),
        ("does alone", "effect", lambda s, every, one: s({one}) - s(())),
        ("the score without it", "effect", lambda s, every, one: s(every - {one})),
        ("it should be", "effect", lambda s, every, one: 7.0),
        ("The other still says it", "twins", 1, 0.5),
        ("Who comes second adds nothing", "twins", 0, 1),
        ("there are two orders", "twins", 0, 0),
    ],
    systems: [
        ("return one number", "leak", lambda run: run(ONE, apart())),
        ("twice", "leak", lambda run: run(ONE, apart()).max()),
        ("first half see the second", "leak", compared(ONE, OTHER, apart() | True)),
        ("sees nothing", "leak", compared(ONE, OTHER, apart() & False)),
        ("of course they move", "leak", compared(ONE, OTHER[::-1], apart())),
        ("the same tokens", "leak", compared(ONE, ONE, apart())),
        ("first four states", "leak", compared(ONE, OTHER, apart(), slice(None))),
        (
            "absolute",
            "leak",
            lambda run: min(0, (run(ONE, apart()) - run(OTHER, apart()))[:4].sum()),
        ),
        ("raised ValueError", "leak", lambda run: run([1], apart())),
        ("eight whole matrices", "rank", 8 * 768 * 3072, 1),
        ("A alone", "rank", 8 * 768, 1),
        ("B alone", "rank", 8 * 3072, 1),
        ("stays frozen", "rank", 768 * 3072, 1),
        ("8 × 8", "rank", 64, 1),
        ("count the numbers", "rank", 2, 1),
        ("Multiply it by 100", "rank", 30720, 0.01302),
        ("Divide it by", "rank", 30720, 5),
        ("one more before", "priors", shares(12, 14, 2)),
        ("sum to 1", "priors", shares(12, 14, 2, whole=10)),
        ("a pronoun", "string", "[CLS] 它 [SEP]"),
        ("closed by [SEP]", "string", "[CLS] 胃镜的类别是检查"),
    ],
    reading_results: [
        ("it should be the mean", "interval", lambda d: (0, 1)),
        ("are exchanged", "interval", halved(lambda s, n: -student(n) * s / n**0.5)),
        ("many seeds", "interval", halved(lambda s, n: 1.96 * s / n**0.5)),
        ("one training lies", "interval", halved(lambda s, n: s)),
        ("divide s by √n", "interval", halved(lambda s, n: student(n) * s)),
        (
            "seeds are a sample",
            "interval",
            halved(lambda s, n: student(n) * s * (n - 1) ** 0.5 / n),
        ),
        ("took the variance", "interval", halved(lambda s, n: student(n) * s**2 / n**0.5)),
        ("not by n", "interval", halved(lambda s, n: student(n) * s / n)),
        ("the half-width is", "interval", halved(lambda s, n: 100)),
        ("from 0 to 1", "leaked", lambda train, test: "3/5"),
        (
            "another label",
            "leaked",
            lambda train, test: sum(row in train for row in test) / len(test),
        ),
        ("return a share: divide", "leaked", lambda train, test: 3),
        ("not per cent", "leaked", lambda train, test: 60),
        ("rows of train", "leaked", lambda train, test: 3 / len(train)),
        (
            "share of train rows",
            "leaked",
            lambda train, test: sum(t in rows_of(train, test)[1] for t, _ in train) / len(train),
        ),
        (
            "counts twice",
            "leaked",
            lambda train, test: len({*rows_of(train, test)[1]} & rows_of(train, test)[0]) / 4,
        ),
        ("expected 0.60", "leaked", lambda train, test: 0.9),
        ("two numbers", "interval", lambda d: 3),
    ],
}


@pytest.mark.parametrize(
    ("module", "said", "name", "answers"),
    [(module, *row[:2], row[2:]) for module, rows in WRONG.items() for row in rows],
)
def test_a_wrong_answer_is_told_what_is_wrong(module, said, name, answers, capsys):
    getattr(module, f"check_{name}")(*answers)
    printed = capsys.readouterr().out
    assert printed.startswith("Not yet: ")
    assert said in printed


def every_check():
    for found in iter_modules(checks.__path__):
        module = import_module(f"checks.{found.name}")
        yield from ((module, n) for n, value in vars(module).items() if isinstance(value, Check))


CHOICES = [(m, n) for m, n in every_check() if getattr(m, n).right]


def test_every_check_is_tried_with_wrong_answers():
    tried = {(module, f"check_{row[1]}") for module, rows in WRONG.items() for row in rows}
    assert {*every_check()} == tried | {*CHOICES}


@pytest.mark.parametrize(("module", "name"), CHOICES)
def test_a_wrong_choice_is_told_why(module, name, capsys):
    check = getattr(module, name)
    answers = {question: its for question, (its, _) in check.right.items()}
    check(answers)
    assert capsys.readouterr().out == f"Right. {check.well}\n"
    for question, (its, why) in check.right.items():
        others = {not its} if isinstance(its, bool) else {*answers.values()} - {its}
        check({**answers, question: others.pop() if others else its + 1})
        printed = capsys.readouterr().out
        assert printed.startswith("Not yet: ") and printed.endswith(f"{why}\n")
        check({**answers, question: "?"})
        assert " needs " in capsys.readouterr().out


@pytest.mark.parametrize(("module", "name"), every_check())
def test_an_answer_of_another_kind_is_told_and_never_raises(module, name, capsys):
    check = getattr(module, name)
    for answer in ("?", {}, [], 7.5):
        check(*[answer] * len(signature(check.judge).parameters))
        printed = capsys.readouterr().out
        assert printed.startswith("Not yet: ") and "your answer raised" not in printed


def test_a_right_answer_is_told_what_is_worth_knowing(capsys):
    check = exercise("Well done.")(lambda answer: None if answer == 1 else "it is 1")
    check(1)
    check(2)
    assert capsys.readouterr().out == "Right. Well done.\nNot yet: it is 1\n"


def printing(lengths):
    print(1 + sum(lengths))


def dividing(lengths):
    whole = sum(lengths)
    return whole / 0


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        *((dots, "No answer yet: put yours in") for dots in (..., {"a": ...}, lambda lengths: ...)),
        ([1, ...], "No answer yet: 1 of 2 has dots still: place 2."),
        ({"now": ..., "Tim": True}, "No answer yet: 1 of 2 has dots still: 'now'."),
        ({"now": "no"}, "No answer yet: 'now' has the text 'no'. Write False, without quotes."),
        ({"now": None}, "No answer yet: 'now' is None. A function that prints and has no `return`"),
        (printing, "No answer yet: printing prints '9' and returns nothing. End it with `return`"),
        (
            dividing,
            "Not yet: your answer raised ZeroDivisionError in line LINE, `return whole / 0`",
        ),
        (
            lambda: 1,
            "Not yet: your answer raised TypeError: <lambda>() takes 0 positional arguments",
        ),
    ],
)
def test_the_first_line_says_what_is_missing_in_an_answer(answer, said, capsys):
    trees.check_distance(answer)
    line = str(dividing.__code__.co_firstlineno + 2)
    assert capsys.readouterr().out.startswith(said.replace("LINE", line))


@pytest.mark.parametrize(
    ("check", "answer"),
    [
        (layers.check_factor, np.float32(np.exp(-10 / 8))),
        (layers.check_factor, torch.tensor(np.exp(-10 / 8))),
        (trees.check_positions, np.array([1, 2, 3, 2, 3])),
        (trees.check_positions, (np.int64(1), 2, 3, 2, 3)),
        (
            trees.check_cells,
            {(*k.split(" – "),): np.bool_(v) for k, (v, _) in trees.check_cells.right.items()},
        ),
    ],
)
def test_numbers_of_numpy_and_pytorch_are_answers(check, answer, capsys):
    check(answer)
    assert capsys.readouterr().out.startswith("Right.")


def test_a_check_before_the_first_cell_says_so(monkeypatch, capsys):
    monkeypatch.chdir(ROOT / "notebooks")  # where a kernel begins
    trees.check_positions([1, 2, 3, 2, 3])
    assert capsys.readouterr().out.startswith("Run the first cell of the notebook")
