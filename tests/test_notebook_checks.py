"""The checks of the notebooks' exercises: a wrong answer is told what is wrong with it."""

import sys
from functools import cached_property
from pathlib import Path
from statistics import stdev
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from kbert_core import Ablation, InjectionOptions, KnowledgeGraph, Triple, grow_trees, load_graph

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "notebooks"))

from _riddle_trial import KIND_ALONE, TrialOptions, new_pipeline  # noqa: E402
from _riddles import RiddleOptions, make_riddles  # noqa: E402
from _tools import Check, exercise  # noqa: E402
from checks import (  # noqa: E402
    ablation_bench,
    ablations,
    bert_to_kbert,
    explaining,
    fine_tuning,
    knowledge_noise,
    one_layer,
    own_encoder,
    own_graph,
    reading_results,
    self_attention,
    sentence_tree,
    soft_positions,
    start_here,
    visible_matrix,
)

FIGURE_2 = "Tim Cook is visiting Beijing now"
CELLS = {pair: visible for pair, (visible, _) in visible_matrix.CELLS.items()}
MASKS = self_attention.MASKS
LAYERS = {"镜": 1, "查": 2, "[CLS]": 2, "肺's branch": 3}
SAME = {
    "an empty graph": True,
    "a graph that knows none of the names": True,
    "a triple, read with hard positions": False,
    "a triple whose branch the trunk may not see": True,
    "a triple that says nothing new": False,
}

LEAKS = fine_tuning.LEAKS
GRAPH = load_graph(ROOT / "demo_kgs" / "general_en.spo")


class Untrained:
    """A small model of the riddles, made when it is first asked."""

    @cached_property
    def pipeline(self):
        torch.manual_seed(0)
        riddles = make_riddles(GRAPH, RiddleOptions(kinds=3, train=30, held_out=6))
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
    spans = [SimpleNamespace(text=start_here.NAME, label=label) for label in labels]
    return SimpleNamespace(used=used, prediction=SimpleNamespace(spans=spans))


CHANGES = {edit: changes for edit, (changes, _) in start_here.CHANGES.items()}
CLAIMS = {claim: kind for claim, (kind, _) in ablation_bench.CLAIMS.items()}
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


def test_bags_are_the_same_where_words_and_soft_positions_are():
    for pair, same in ablations.BAGS.items():
        one, other = (ablations.bag_of(side) for side in pair.split("  |  "))
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


WRONG = [
    (start_here.check_triple, ("zorvex", clinical_reader, GRAPH), "three texts in brackets"),
    (start_here.check_triple, (("zorvex", "is_a", ""), clinical_reader, GRAPH), "none is empty"),
    (
        start_here.check_triple,
        (("disease", "is_a", "zorvex"), clinical_reader, GRAPH),
        "turned round",
    ),
    (start_here.check_triple, (("Vorzex", "is_a", "x"), clinical_reader, GRAPH), "isn't found"),
    (start_here.check_triple, (("zorvex", "is_a", "drug"), clinical_reader, GRAPH), "a chemical"),
    (start_here.check_triple, (("zorvex", "is_a", "x"), clinical_reader, GRAPH), "no name at all"),
    (start_here.check_changes, ({},), "no answer yet"),
    (start_here.check_changes, (True,), "give a dictionary"),
    (start_here.check_changes, (dict.fromkeys(CHANGES, 1),), "write True or False"),
    (start_here.check_changes, (dict.fromkeys(CHANGES, True),), "the next triples move up"),
    (ablation_bench.check_table, (-10, MEASURED), "give a dictionary"),
    (ablation_bench.check_table, table("ten"), "give a number"),
    (ablation_bench.check_table, table(10.0), "sign is turned"),
    (ablation_bench.check_table, table(60.0), "the F1 itself"),
    (ablation_bench.check_table, table(-0.1), "in per cent"),
    (ablation_bench.check_table, table(-3.0), "difference of precision"),
    (ablation_bench.check_table, table(-15.0), "difference of recall"),
    (ablation_bench.check_table, table(-5.0), "the English model's"),
    (ablation_bench.check_table, table(-30.0), "the row 'both'"),
    (ablation_bench.check_table, table(-12.0), "measure('Chinese', …)"),
    (ablation_bench.check_claims, ("read",), "give a dictionary"),
    (ablation_bench.check_claims, ({},), "no answer yet"),
    (ablation_bench.check_claims, (dict.fromkeys(CLAIMS, "both"),), "none of the three"),
    (ablation_bench.check_claims, (dict.fromkeys(CLAIMS, "read"),), "from its first step"),
    (ablation_bench.check_setting, ("hard", setting_score), "give a dictionary"),
    (ablation_bench.check_setting, ({"graph": "none"}, setting_score), "leave graph as it is"),
    (ablation_bench.check_setting, ({"layers": 1}, setting_score), "is no setting"),
    (ablation_bench.check_setting, ({"positions": "hard"}, setting_score), "F1 69.0, and as"),
    (sentence_tree.check_longest, (["York", "New York"],), "in the order of the text"),
    (sentence_tree.check_longest, (["New", "York"],), "the longer name wins"),
    (sentence_tree.check_longest, (["New York"],), "a second city"),
    (sentence_tree.check_longest, (["New York", "York", "York"],), "already taken"),
    (sentence_tree.check_longest, (["Boston"],), "'Boston' is no entity"),
    (sentence_tree.check_longest, ("New York",), "give a list"),
    (sentence_tree.check_longest, (["York"],), "two words may make one name"),
    (sentence_tree.check_line, ("London and Paris",), "is missing"),
    (
        sentence_tree.check_line,
        ("London and Paris located_on Thames capital France is_a city",),
        "right after its mention",
    ),
    (
        sentence_tree.check_line,
        ("London located_on Thames and Paris is_a city capital France",),
        "order of the graph",
    ),
    (sentence_tree.check_line, (7,), "nine tokens"),
    (
        sentence_tree.check_line,
        ("London Thames located_on and Paris capital France is_a city",),
        "from left to right",
    ),
    (sentence_tree.check_twin, (FIGURE_2, []), "they differ from token 3"),
    (
        sentence_tree.check_twin,
        (
            FIGURE_2,
            [
                ("Tim Cook", "CEO", "Apple"),
                ("Beijing", "capital", "China"),
                ("Beijing", "is_a", "City"),
            ],
        ),
        "Figure 2 itself",
    ),
    (sentence_tree.check_twin, (" ".join(sentence_tree.FIGURE_2), []), "all trunk"),
    (sentence_tree.check_twin, (FIGURE_2, "CEO"), "list of (head, relation, tail)"),
    (sentence_tree.check_twin, (3, []), "as a string"),
    (soft_positions.check_positions, ([1, 2, 3, 4, 5],), "these are the hard positions"),
    (soft_positions.check_positions, ([0, 1, 2, 1, 2],), "[CLS] has position 0"),
    (soft_positions.check_positions, ([1, 2, 3, 3, 4],), "second word of the sentence"),
    (soft_positions.check_positions, ([1, 3, 4, 2, 3],), "goes on from its mention"),
    (soft_positions.check_positions, ([1, 2, 3, 2, 5],), "'rainy' follows 'is'"),
    (soft_positions.check_positions, ([2, 3, 4, 3, 4],), "first token after [CLS]"),
    (soft_positions.check_positions, ([1],), "five numbers"),
    (soft_positions.check_distance, (sum,), "are 1 apart, not 0"),
    (soft_positions.check_distance, (lambda lengths: 1 + len(lengths),), "not one"),
    (soft_positions.check_distance, (lambda lengths: 1,), "it should be"),
    (soft_positions.check_distance, (lambda lengths: 1 / 0,), "raised ZeroDivisionError"),
    (soft_positions.check_distance, (3,), "give a function"),
    (soft_positions.check_third_branch, (13, 14), "hard positions"),
    (soft_positions.check_third_branch, (9, 6), "hangs from Beijing too"),
    (soft_positions.check_third_branch, (7, 8), "however many branches"),
    (soft_positions.check_third_branch, (6, 6), "Asia is its second"),
    (soft_positions.check_third_branch, ("7", "6"), "whole numbers"),
    (visible_matrix.check_cells, ({**CELLS, ("capital", "City"): True},), "two branches"),
    (visible_matrix.check_cells, ({**CELLS, ("now", "Tim"): False},), "both stand on the trunk"),
    (visible_matrix.check_cells, ({("now", "Tim"): True},), "has no answer yet"),
    (visible_matrix.check_cells, ([True],), "give a dictionary"),
    (visible_matrix.check_sees, (as_in_k_bert,), "here they see each other"),
    (visible_matrix.check_sees, (lambda a, b, c, d: a == c or b != d,), "it should be False"),
    (visible_matrix.check_sees, (lambda a, b, c, d: a == c,), "it should be True"),
    (visible_matrix.check_sees, (True,), "give a function"),
    (visible_matrix.check_way, (["Apple", "[CLS]"],), "[CLS] may not look at Apple"),
    (visible_matrix.check_way, (["Apple", "CEO", "Tim", "[CLS]"],), "one with fewer"),
    (visible_matrix.check_way, (["[CLS]", "Tim", "Apple"],), "begin at Apple"),
    (visible_matrix.check_way, (["Apple", "Google", "[CLS]"],), "'Google' is no token"),
    (visible_matrix.check_way, ("Apple",), "give a list"),
    (self_attention.check_softmax, (unshifted,), "e^1000 is infinite"),
    (self_attention.check_softmax, (unmasked,), "a hidden token gets a weight"),
    (self_attention.check_softmax, (masked_afterwards,), "after normalising"),
    (self_attention.check_softmax, (lambda s, v: s[:1],), "gives the shape"),
    (self_attention.check_softmax, (lambda s, v: v / v.sum(),), "aren't e^score"),
    (self_attention.check_softmax, (0.5,), "give a function"),
    (self_attention.check_factor, (float(np.exp(-10)),), "as if the mask weren't scaled"),
    (self_attention.check_factor, (float(np.exp(-10 / 64)),), "divides by its root"),
    (self_attention.check_factor, (-1.25,), "stands in the exponent"),
    (self_attention.check_factor, (0.5,), "softmax takes e^score"),
    (self_attention.check_factor, ("0.3",), "give a number"),
    (self_attention.check_masks, ({**MASKS, "True and False, added": True},), "True counts as 1"),
    (
        self_attention.check_masks,
        ({**MASKS, "1 and 0, multiplied with the weights": True},),
        "less than 1",
    ),
    (self_attention.check_masks, ({**MASKS, "0 and -10000, added": False},), "so it does hide"),
    (self_attention.check_masks, ({},), "no answer yet"),
    (self_attention.check_masks, ("all",), "give a dictionary"),
    (bert_to_kbert.check_layers, ({**LAYERS, "镜": 2},), "very first layer"),
    (bert_to_kbert.check_layers, ({**LAYERS, "[CLS]": 1},), "not its branch"),
    (bert_to_kbert.check_layers, ({**LAYERS, "肺's branch": 2},), "Count the steps"),
    (bert_to_kbert.check_layers, ({},), "no answer yet"),
    (bert_to_kbert.check_layers, (2,), "give a dictionary"),
    (bert_to_kbert.check_reach, (one_step,), "multiplied 2 times"),
    (bert_to_kbert.check_reach, (lambda v, n: v,), "knows only of itself"),
    (bert_to_kbert.check_reach, (lambda v, n: v[:1],), "gives the shape"),
    (bert_to_kbert.check_reach, (2,), "give a function"),
    (
        bert_to_kbert.check_reach,
        (lambda v, n: np.eye(len(v), dtype=bool) | (n > 0),),
        "it says that token",
    ),
    (
        bert_to_kbert.check_reach,
        (lambda v, n: np.linalg.matrix_power(v.T.astype(int), n) > 0,),
        "transposed",
    ),
    (
        bert_to_kbert.check_same_as_bert,
        ({**SAME, "an empty graph": False},),
        "all of it is visible",
    ),
    (
        bert_to_kbert.check_same_as_bert,
        ({**SAME, "a triple that says nothing new": True},),
        "are looked at",
    ),
    (bert_to_kbert.check_same_as_bert, ({},), "no answer yet"),
    (bert_to_kbert.check_same_as_bert, (1,), "give a dictionary"),
    (
        fine_tuning.check_leaks,
        ({**LEAKS, "the graph knows the names of the test set": True},),
        "BERT has no graph",
    ),
    (fine_tuning.check_leaks, ({},), "no answer yet"),
    (fine_tuning.check_leaks, (True,), "give a dictionary"),
    (fine_tuning.check_all_drugs, (0,), "there this graph is right"),
    (fine_tuning.check_all_drugs, (0.9,), "What will it say of London"),
    (fine_tuning.check_all_drugs, (0.4,), "of the six kinds"),
    (fine_tuning.check_all_drugs, ("all",), "give a number"),
    (ablations.check_controls, ({},), "no answer yet"),
    (ablations.check_controls, ("BERT",), "give a dictionary"),
    (
        ablations.check_controls,
        ({**ablations.CONTROLS, "must the graph be true?": "hard positions"},),
        "but that the tails belong",
    ),
    (
        ablations.check_controls,
        ({**ablations.CONTROLS, "must the graph be true?": "BERT"},),
        "'BERT' is no row",
    ),
    (ablations.check_paired, (lambda a, b: (-6, 1),), "the sign is turned"),
    (ablations.check_paired, (lambda a, b: (1, 1),), "it should be 6.00"),
    (ablations.check_paired, (lambda a, b: (6, 0.816496580927726),), "divide by n − 1"),
    (
        ablations.check_paired,
        (lambda a, b: (6, abs(stdev(a) - stdev(b))),),
        "the spread of the differences",
    ),
    (ablations.check_paired, (lambda a, b: (6, 3),), "it is 1.00"),
    (ablations.check_paired, (lambda a, b: 6,), "two numbers"),
    (ablations.check_paired, (6,), "give a function"),
    (ablations.check_ceilings, (0.5,), "give a dictionary"),
    (ablations.check_ceilings, ({},), "no answer yet"),
    (ablations.check_ceilings, ({"K-BERT": "all"},), "give a number"),
    (ablations.check_ceilings, ({"K-BERT": 100},), "write 100 per cent as 1"),
    (ablations.check_ceilings, ({"K-BERT": 0.5},), "nothing that it needs is hidden"),
    (ablations.check_ceilings, ({"K-BERT": 1, "everything visible": 0.61},), "are a bag"),
    (ablations.check_bags, (True,), "give a dictionary"),
    (ablations.check_bags, ({},), "no answer yet"),
    (ablations.check_bags, (dict.fromkeys(ablations.BAGS, 1),), "write True or False"),
    (ablations.check_bags, (dict.fromkeys(ablations.BAGS, False),), "the lists are equal"),
    (ablations.check_bags, (dict.fromkeys(ablations.BAGS, True),), "alone: Oslo at 2, Rome at 2"),
    (knowledge_noise.check_variation, (lambda p, q: doubled(p, q),), "counts twice"),
    (knowledge_noise.check_variation, (lambda p, q: sum(p) - sum(q),), "cancel out"),
    (knowledge_noise.check_variation, (lambda p, q: doubled(p, q) / len(p),), "the mean"),
    (knowledge_noise.check_variation, (lambda p, q: 0.5,), "it should be"),
    (knowledge_noise.check_variation, (0.5,), "give a function"),
    (knowledge_noise.check_reached, ({},), "no answer yet"),
    (knowledge_noise.check_reached, (True,), "give a dictionary"),
    (
        knowledge_noise.check_reached,
        ({**knowledge_noise.REACHED, "查, hard positions": False},),
        "further away",
    ),
    (knowledge_noise.check_options, (CLINICAL, MEDICAL, POURED, "none"), "give InjectionOptions"),
    (knowledge_noise.check_options, (CLINICAL, MEDICAL, POURED, InjectionOptions(0)), "nothing"),
    (
        knowledge_noise.check_options,
        (CLINICAL, MEDICAL, POURED, InjectionOptions(2)),
        "are poured ones",
    ),
    (explaining.check_effect, (lambda s, every, one: s(every - {one}) - s(every),), "turned"),
    (explaining.check_effect, (lambda s, every, one: s({one}) - s(()),), "does alone"),
    (explaining.check_effect, (lambda s, every, one: s(every - {one}),), "the score without it"),
    (explaining.check_effect, (lambda s, every, one: 7.0,), "it should be"),
    (explaining.check_effect, (7.0,), "give a function"),
    (explaining.check_twins, (1, 0.5), "The other still says it"),
    (explaining.check_twins, (0, 1), "Who comes second adds nothing"),
    (explaining.check_twins, (0, 0), "there are two orders"),
    (explaining.check_twins, ("0", "1"), "two numbers"),
    (explaining.check_statements, ({},), "no answer yet"),
    (explaining.check_statements, (False,), "give a dictionary"),
    (
        explaining.check_statements,
        ({**explaining.ALWAYS, "the effects add up to what all triples do together": True},),
        "two triples that say the same",
    ),
    (own_graph.check_line, (7,), "a line as a string"),
    (own_graph.check_line, ("violin made_of maple",), "found 1 field"),
    (own_graph.check_line, ("maple\tmade_of\tviolin",), "the head is 'maple'"),
    (own_graph.check_line, ("violin\tmade_of\toak",), "the tail is 'oak'"),
    (own_graph.check_line, ("violin\tis_a\tmaple",), "that a violin is a maple"),
    (own_graph.check_line, ("violin\ta\tmaple\nviolin\tb\tmaple",), "one line, please"),
    (own_graph.check_audit, ({},), "no answer yet"),
    (own_graph.check_audit, (True,), "give a dictionary"),
    (
        own_graph.check_audit,
        ({**own_graph.NO_USE, "one text in five names a head of the graph": True},),
        "with that fifth",
    ),
    (fine_tuning.check_new_name, (MODEL, GRAPH, "city"), "give a triple"),
    (fine_tuning.check_new_name, (MODEL, GRAPH, (1, 2, 3)), "are texts"),
    (fine_tuning.check_new_name, (MODEL, GRAPH, ("Paris", "is_a", "city")), "it isn't found"),
    (fine_tuning.check_new_name, (MODEL, GRAPH, ("Zanzibar", "kind", "city")), "'is_a' alone"),
    (
        fine_tuning.check_new_name,
        (MODEL, GRAPH, ("Zanzibar", "is_a", "company")),
        "now says company",
    ),
]

POSITIONS, SEGMENTS = one_layer.POSITIONS, one_layer.SEGMENTS
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


FOLLOWS, DECISIONS = reading_results.FOLLOWS, reading_results.DECISIONS
WRONG += [
    (one_layer.check_embedding, (7, SEGMENTS), "give 8 soft positions"),
    (one_layer.check_embedding, (POSITIONS, "A"), "give 8 segments"),
    (one_layer.check_embedding, ([*range(8)], SEGMENTS), "the hard positions"),
    (one_layer.check_embedding, ([0, 1, 2, 3, 4, 3, 0, 1], SEGMENTS), "doesn't begin again"),
    (one_layer.check_embedding, ([0, 1, 2, 1, 2, 3, 4, 5], SEGMENTS), "goes on from its mention"),
    (
        one_layer.check_embedding,
        ([0, 1, 2, 3, 4, 2, 4, 5], SEGMENTS),
        "trunk alone",
    ),
    (one_layer.check_embedding, (POSITIONS, [0, 0, 0, 1, 1, 0, 1, 1]), "segment of its mention"),
    (one_layer.check_embedding, (POSITIONS, [0, 0, 0, 0, 0, 1, 1, 1]), "closes A"),
    (one_layer.check_embedding, (POSITIONS, [0] * 8), "A is 0 and B is 1"),
    (one_layer.check_mixing, (True,), "give a dictionary"),
    (one_layer.check_mixing, ({"embedding sum": 1},), "needs True or False"),
    *(
        (one_layer.check_mixing, ({**one_layer.STEPS, step: not right},), said)
        for (step, right), said in zip(
            one_layer.STEPS.items(),
            ("belong to one token", "of one token", "Eq. 6", "nobody else's", "each row", "[CLS]"),
            strict=True,
        )
    ),
    (one_layer.check_add_and_norm, (1,), "give a function"),
    (one_layer.check_add_and_norm, (lambda x, c, g, b: x[:1],), "gives the shape"),
    (one_layer.check_add_and_norm, (lambda x, c, g, b: normalised(x + c, 0) * g + b,), "axis 0"),
    (
        one_layer.check_add_and_norm,
        (lambda x, c, g, b: normalised(x + c, power=1) * g + b,),
        "divided by the variance",
    ),
    (
        one_layer.check_add_and_norm,
        (lambda x, c, g, b: normalised(c) * g + b,),
        "residual is missing",
    ),
    (one_layer.check_add_and_norm, (lambda x, c, g, b: normalised(x) * g + b,), "`x` alone"),
    (
        one_layer.check_add_and_norm,
        (lambda x, c, g, b: normalised(x + c, free=1) * g + b,),
        "`ddof=1`",
    ),
    (one_layer.check_add_and_norm, (lambda x, c, g, b: normalised(x + c),), "`gain` and `bias`"),
    (
        one_layer.check_add_and_norm,
        (lambda x, c, g, b: x + normalised(c) * g + b,),
        "normalised first",
    ),
    (one_layer.check_add_and_norm, (lambda x, c, g, b: x + c,), "add first, then"),
    (one_layer.check_parameters, (True, 0), "two whole numbers"),
    (one_layer.check_parameters, (786_432, 0), "the matrices alone"),
    (one_layer.check_parameters, (788_736, 0), "layer norms are missing"),
    (one_layer.check_parameters, (787_456, 0), "biases are missing"),
    (one_layer.check_parameters, (789_248, 0), "two layer norms"),
    (one_layer.check_parameters, (723_968, 0), "four matrices"),
    (one_layer.check_parameters, (1_379_584, 0), "share the 256 columns"),
    (one_layer.check_parameters, (1, 0), "count six linears"),
    (one_layer.check_parameters, (LAYER, 512), "a mask has no weights"),
    (own_encoder.check_probe, (True,), "give a dictionary"),
    (own_encoder.check_probe, ({},), "needs one of"),
    *(
        (
            own_encoder.check_probe,
            ({**own_encoder.SAID, encoder: "deaf" if right != "deaf" else "leaks"},),
            why,
        )
        for (encoder, right), why in zip(own_encoder.SAID.items(), own_encoder.WHY, strict=True)
    ),
    (own_encoder.check_leak, (1,), "give a function"),
    (own_encoder.check_leak, (lambda run: run(ONE, apart()),), "return one number"),
    (own_encoder.check_leak, (lambda run: run(ONE, apart()).max(),), "twice"),
    (own_encoder.check_leak, (compared(ONE, OTHER, apart() | True),), "first half see the second"),
    (own_encoder.check_leak, (compared(ONE, OTHER, apart() & False),), "sees nothing"),
    (own_encoder.check_leak, (compared(ONE, OTHER[::-1], apart()),), "of course they move"),
    (own_encoder.check_leak, (compared(ONE, ONE, apart()),), "the same tokens"),
    (own_encoder.check_leak, (compared(ONE, OTHER, apart(), slice(None)),), "first four states"),
    (
        own_encoder.check_leak,
        (lambda run: min(0, (run(ONE, apart()) - run(OTHER, apart()))[:4].sum()),),
        "absolute",
    ),
    (own_encoder.check_leak, (lambda run: run([1], apart()),), "raised ValueError"),
    (own_encoder.check_rank, ("30720", 1), "two numbers"),
    (own_encoder.check_rank, (8 * 768 * 3072, 1), "eight whole matrices"),
    (own_encoder.check_rank, (8 * 768, 1), "A alone"),
    (own_encoder.check_rank, (8 * 3072, 1), "B alone"),
    (own_encoder.check_rank, (768 * 3072, 1), "stays frozen"),
    (own_encoder.check_rank, (64, 1), "8 × 8"),
    (own_encoder.check_rank, (2, 1), "count the numbers"),
    (own_encoder.check_rank, (30720, 0.01302), "Multiply it by 100"),
    (own_encoder.check_rank, (30720, 5), "Divide it by"),
    (reading_results.check_interval, (1,), "give a function"),
    (reading_results.check_interval, (lambda d: 3,), "two numbers"),
    (reading_results.check_interval, (lambda d: (0, 1),), "it should be the mean"),
    (
        reading_results.check_interval,
        (halved(lambda s, n: -student(n) * s / n**0.5),),
        "are exchanged",
    ),
    (reading_results.check_interval, (halved(lambda s, n: 1.96 * s / n**0.5),), "many seeds"),
    (reading_results.check_interval, (halved(lambda s, n: s),), "one training lies"),
    (reading_results.check_interval, (halved(lambda s, n: student(n) * s),), "divide s by √n"),
    (
        reading_results.check_interval,
        (halved(lambda s, n: student(n) * s * (n - 1) ** 0.5 / n),),
        "seeds are a sample",
    ),
    (
        reading_results.check_interval,
        (halved(lambda s, n: student(n) * s**2 / n**0.5),),
        "took the variance",
    ),
    (reading_results.check_interval, (halved(lambda s, n: student(n) * s / n),), "not by n"),
    (reading_results.check_interval, (halved(lambda s, n: 100),), "the half-width is"),
    (reading_results.check_leaked, (1,), "give a function"),
    (reading_results.check_leaked, (lambda train, test: "3/5",), "from 0 to 1"),
    (
        reading_results.check_leaked,
        (lambda train, test: sum(row in train for row in test) / len(test),),
        "another label",
    ),
    (reading_results.check_leaked, (lambda train, test: 3,), "return a share: divide"),
    (reading_results.check_leaked, (lambda train, test: 60,), "not per cent"),
    (reading_results.check_leaked, (lambda train, test: 3 / len(train),), "rows of train"),
    (
        reading_results.check_leaked,
        (lambda train, test: sum(t in rows_of(train, test)[1] for t, _ in train) / len(train),),
        "share of train rows",
    ),
    (
        reading_results.check_leaked,
        (lambda train, test: len({*rows_of(train, test)[1]} & rows_of(train, test)[0]) / 4,),
        "counts twice",
    ),
    (reading_results.check_leaked, (lambda train, test: 0.9,), "expected 0.60"),
    (reading_results.check_follows, (True,), "give a dictionary"),
    (reading_results.check_follows, ({},), "needs True or False"),
    *(
        (reading_results.check_follows, ({**FOLLOWS, statement: not right},), said)
        for (statement, right), said in zip(
            FOLLOWS.items(),
            ("leaves both open", "below 0", "far outside", "the data set wasn't", "the mean, +1.3"),
            strict=True,
        )
    ),
    (reading_results.check_decisions, ("A",), "give a dictionary"),
    (reading_results.check_decisions, ({},), "needs one of"),
    *(
        (
            reading_results.check_decisions,
            ({**DECISIONS, case: "train" if case != "E" else "no room"},),
            said,
        )
        for case, said in zip(
            "ABCDE",
            ("half of the test texts", "97 %", "hardly knows", "own annotations", "nothing stands"),
            strict=True,
        )
    ),
]


@pytest.mark.parametrize(("check", "answer", "said"), WRONG)
def test_a_wrong_answer_is_told_what_is_wrong(check, answer, said, capsys):
    check(*answer)
    printed = capsys.readouterr().out
    assert printed.startswith("Not yet: ")
    assert said in printed


def every_check():
    modules = [module for name, module in sys.modules.items() if name.startswith("checks.")]
    return {c for module in modules for c in vars(module).values() if isinstance(c, Check)}


def test_every_check_is_tried_with_wrong_answers():
    assert every_check() == {check for check, _, _ in WRONG}


@pytest.mark.parametrize("answer", [..., [1, ...], {"a": ...}])
def test_dots_are_no_answer(answer, capsys):
    soft_positions.check_positions(answer)
    assert capsys.readouterr().out.startswith("No answer yet")


def test_a_function_that_returns_dots_is_no_answer(capsys):
    for check in (
        soft_positions.check_distance,
        visible_matrix.check_sees,
        self_attention.check_softmax,
        bert_to_kbert.check_reach,
        one_layer.check_add_and_norm,
        own_encoder.check_leak,
        reading_results.check_interval,
        reading_results.check_leaked,
    ):
        check(lambda *answers: ...)
        assert capsys.readouterr().out.startswith("No answer yet")


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
    ("check", "answer", "first_line"),
    [
        (
            soft_positions.check_distance,
            printing,
            "No answer yet: printing prints '9' and returns nothing. End it with `return` and the "
            "value.",
        ),
        (
            soft_positions.check_distance,
            dividing,
            "Not yet: your answer raised ZeroDivisionError in line LINE, `return whole / 0`: "
            "division by zero",
        ),
        (
            soft_positions.check_distance,
            lambda: 1,
            "Not yet: your answer raised TypeError: <lambda>() takes 0 positional arguments but 1 "
            "was given",
        ),
        (
            visible_matrix.check_cells,
            {**CELLS, ("now", "Tim"): "no"},
            "No answer yet: ('now', 'Tim') has the text 'no'. Write False, without quotes.",
        ),
        (
            visible_matrix.check_cells,
            {**CELLS, ("now", "Tim"): ...},
            "No answer yet: 1 of 6 has dots still: ('now', 'Tim').",
        ),
        (
            visible_matrix.check_cells,
            {**CELLS, ("now", "Tim"): None},
            "No answer yet: ('now', 'Tim') is None. A function that prints and has no `return` "
            "gives that.",
        ),
    ],
)
def test_the_first_line_says_what_is_missing_in_an_answer(check, answer, first_line, capsys):
    check(answer)
    line = str(dividing.__code__.co_firstlineno + 2)
    assert capsys.readouterr().out == first_line.replace("LINE", line) + "\n"


@pytest.mark.parametrize(
    ("check", "answer"),
    [
        (self_attention.check_factor, np.float32(np.exp(-10 / 8))),
        (self_attention.check_factor, torch.tensor(np.exp(-10 / 8))),
        (soft_positions.check_positions, np.array([1, 2, 3, 2, 3])),
        (soft_positions.check_positions, (np.int64(1), 2, 3, 2, 3)),
        (visible_matrix.check_cells, {key: np.bool_(value) for key, value in CELLS.items()}),
    ],
)
def test_numbers_of_numpy_and_pytorch_are_answers(check, answer, capsys):
    check(answer)
    assert capsys.readouterr().out.startswith("Right.")


def test_a_check_before_the_first_cell_says_so(monkeypatch, capsys):
    monkeypatch.chdir(ROOT / "notebooks")  # where a kernel begins
    soft_positions.check_positions([1, 2, 3, 2, 3])
    assert capsys.readouterr().out.startswith("Run the first cell of the notebook")
