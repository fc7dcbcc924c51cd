"""Attention mass on triples, against slow loops; where it and the effect part."""

import json
from itertools import combinations

import pytest
from explaining import DISEASE, GRAPH, HAS_SYMPTOM, IS_CURE, IS_DISEASE, TEXT
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from kbert_core import Ablation, KnowledgeGraph, Triple
from kbert_core.explain.case import Case, Outcome, Piece, Target
from kbert_core.explain.effects import Effect, Effects
from kbert_core.kbert.interventions import Intervention, Tokens
from kbert_lab.explain.attention import Attended, AttentionEffect, Kind, attention_effect

BASE = Outcome(0.0, "疾病")


def made(*pairs):
    """A text whose triples have these masses and effects."""
    each = tuple(
        Attended(
            Effect(Piece(Triple("h", "r", str(n))), (), BASE, Outcome(-effect, "疾病")),
            (0.0,),
            (mass,),
        )
        for n, (mass, effect) in enumerate(pairs)
    )
    found = Effects(
        ("text",), DISEASE, BASE, BASE, tuple(a.effect for a in each), len(each), len(each)
    )
    return AttentionEffect(found, each)


def slow_mass(ner, text, graph, lookers, triple, ablation=None):
    """The same by loops: per layer the mean over lookers and heads of the sum over a branch."""
    trace = ner(text, graph=graph, attentions=True, ablation=ablation)
    (row,) = trace.rows
    branch = [i for h in row.branches if h.branch.triple == triple for i in range(h.start, h.end)]
    found = []
    for layer in trace.attentions:
        heads = layer.shape[1]
        total = sum(
            float(layer[0, head, i, j]) for head in range(heads) for i in lookers for j in branch
        )
        found.append(total / heads / len(lookers))
    return found


def test_mass_is_the_mean_over_heads_and_lookers_of_the_sum_over_the_branch(ner, case):
    found = attention_effect(case)
    (row,) = case.trace.rows
    trunk = [i for i, branch in enumerate(row.branch_ids) if branch == 0]
    span = [i for i, (_, at) in enumerate(row.trunk_places) if 3 <= at < 6]
    for one in found.each:
        triple = one.piece.triple
        assert one.by_trunk == pytest.approx(slow_mass(ner, TEXT, GRAPH, trunk, triple))
        assert one.by_target == pytest.approx(slow_mass(ner, TEXT, GRAPH, span, triple))
        assert len(one.by_trunk) == 3  # layers
        assert one.mass() == pytest.approx(sum(one.by_trunk) / 3)
    assert [one.mass("target") > 0 for one in found.each] == [True, True, False]  # IS_CURE: unseen


def test_cls_gives_a_branch_no_attention_unless_everything_is_visible(classifier):
    tree = Case.of(classifier, TEXT, graph=GRAPH)
    flat = Case.of(classifier, TEXT, graph=GRAPH, ablation=Ablation("soft", "all"))
    masses = [[one.mass("target") for one in attention_effect(c).each] for c in (tree, flat)]
    assert masses[0] == [0, 0, 0]
    assert min(masses[1]) > 0
    assert attention_effect(tree).rank_correlation("target") is None
    assert attention_effect(tree).disagreements("target") == ()
    assert all(abs(one.effect.effect) > 1e-4 for one in attention_effect(tree).each)


def test_a_branch_blocked_from_its_mention_gets_no_attention(ner):
    whose = Tokens("branch", 0, 3, IS_DISEASE)
    blocked = Intervention("block", Tokens("trunk"), whose)
    case = Case.of(ner, TEXT, graph=GRAPH, target=DISEASE, interventions=(blocked,))
    masses = [one.mass() for one in attention_effect(case).each]
    assert masses[0] == 0 and min(masses[1:]) > 0


def test_windows_of_a_long_text_count_together(ner):
    text = TEXT * 6
    case = Case.of(ner, text, graph=GRAPH, target=DISEASE)
    assert len(case.trace.rows) > 2
    found = attention_effect(case)
    trace = ner(text, graph=GRAPH, attentions=True)
    total = lookers = 0.0
    for number, row in enumerate(trace.rows):
        branch = [
            i for h in row.branches if h.branch.triple == IS_CURE for i in range(h.start, h.end)
        ]
        trunk = [i for i, b in enumerate(row.branch_ids) if b == 0]
        lookers += len(trunk)
        total += float(trace.attentions[0][number].mean(0)[trunk][:, branch].sum())
    cure = next(one for one in found.each if one.piece.triple == IS_CURE)
    assert cure.by_trunk[0] == pytest.approx(total / lookers, rel=1e-4)


def test_effects_that_are_known_are_not_measured_again(case):
    known = made((0, 1), (0, 2), (0, 3)).effects
    pieces = (IS_DISEASE, HAS_SYMPTOM, IS_CURE)
    each = tuple(
        Effect(Piece(triple), (), BASE, effect.without)
        for triple, effect in zip(pieces, known.each, strict=True)
    )
    found = attention_effect(case, measured=Effects(*[*astuple(known)[:4], each, 3, 3]))
    assert [one.effect.effect for one in found.each] == [1, 2, 3]
    assert all(one.mass() > 0 for one in found.each)


def astuple(found):
    return [getattr(found, name) for name in found.__dataclass_fields__]


@pytest.mark.parametrize(
    ("pairs", "rho"),
    [
        ([(0.1, 1), (0.2, -2), (0.3, 3)], 1.0),  # the sign doesn't count
        ([(0.3, 1), (0.2, 2), (0.1, 3)], -1.0),
        ([(0.1, 2), (0.2, 1), (0.3, 3)], 0.5),
        ([(0.1, 1), (0.2, 2)], None),
        ([(0.0, 1), (0.0, 2), (0.0, 3)], None),
    ],
)
def test_rank_correlation_is_spearmans(pairs, rho):
    assert made(*pairs).rank_correlation() == (None if rho is None else pytest.approx(rho))


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-5, 5)), min_size=3, max_size=12))
def test_rank_correlation_is_that_of_scipy_ties_included(pairs):
    found = made(*pairs).rank_correlation()
    masses, effects = zip(*pairs, strict=True)
    sizes = [abs(effect) for effect in effects]
    if len(set(masses)) == 1 or len(set(sizes)) == 1:
        assert found is None
    else:
        assert found == pytest.approx(spearmanr(masses, sizes).statistic)


def test_a_triple_much_looked_at_that_does_nothing_is_said():
    (said,) = made((0.5, 0.02), (0.3, -4.0), (0.1, 1.0)).disagreements()
    assert said.kind is Kind.IDLE
    assert (said.rank, said.count) == (3, 3)
    assert str(said) == (
        "h · r · 0 gets the most attention, and leaving it out changes the score by +0.020 nats "
        "only; h · r · 1 changes it by −4.0."
    )


def test_a_triple_hardly_looked_at_that_does_most_is_said():
    (said,) = made((0.5, 1.0), (0.3, -1.5), (0.1, 4.0)).disagreements()
    assert (said.kind, said.rank, said.count) == (Kind.OVERLOOKED, 3, 3)
    assert "number 3 of 3 by attention" in str(said)
    assert made((0.5, 4.0), (0.3, -1.5), (0.1, 1.0)).disagreements() == ()
    assert made((0.5, 4.0)).disagreements() == ()


def test_where_nothing_is_attended_or_nothing_acts_nothing_parts():
    assert made((0.0, 1.0), (0.0, 4.0)).disagreements() == ()
    rounding = made((0.5, 1e-8), (0.3, 2e-8), (0.1, 3e-7))
    assert rounding.disagreements() == ()


def test_pieces_that_get_the_same_attention_share_a_rank():
    assert made((0.2, 1.0), (0.2, 2.0), (0.2, 4.0)).disagreements() == ()
    assert made((0.2, 0.01), (0.2, 4.0)).disagreements() == ()
    (said,) = made((0.3, 1.0), (0.3, 2.0), (0.1, 4.0)).disagreements()
    assert (said.kind, said.rank) == (Kind.OVERLOOKED, 3)


def test_attention_is_rows_plain_data_and_a_figure(case):
    found = attention_effect(case)
    assert list(found.to_frame()["effect"]) == [one.effect.effect for one in found.each]
    data = json.loads(json.dumps(found.as_dict()))
    assert len(data["pieces"][0]["by_trunk"]) == 3
    (panel,) = found.figure().axes
    assert len(panel.lines) == 3


def test_names_in_the_figure_cover_neither_each_other_nor_the_edge():
    close = made(*((0.02 + n / 2000, 0.01 * (n % 3)) for n in range(8)), (0.08, 2.0))
    (panel,) = close.figure().axes
    boxes = [text.get_window_extent() for text in panel.texts if text.get_text()]
    assert len(boxes) == 9
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    (left, bottom), (right, top) = panel.bbox.get_points()
    assert all(left <= b.x0 and b.x1 <= right and bottom <= b.y0 and b.y1 <= top for b in boxes)


def test_a_text_without_knowledge_has_no_attention(ner):
    found = attention_effect(Case.of(ner, TEXT, graph=KnowledgeGraph(), target=Target("O", 0, 2)))
    assert (found.each, found.rank_correlation(), found.disagreements()) == ((), None, ())
    found.figure()
