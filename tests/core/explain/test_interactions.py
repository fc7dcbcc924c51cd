"""Interactions of pairs, against runs of their own."""

import json
from dataclasses import dataclass

import pytest
from core.explain.games import Game
from explaining import GRAPH, IS_CURE

from kbert_core import KnowledgeGraph
from kbert_core.explain.case import Case, Piece
from kbert_core.explain.effects import interactions, stream_interactions
from kbert_lab.explain.drawing import BLUE, ORANGE


def test_interaction_is_what_two_triples_do_beyond_the_sum(case, score):
    found = interactions(case)
    assert [pair.pieces for pair in found.each] == [
        (case.pieces[0], case.pieces[1]),
        (case.pieces[0], case.pieces[2]),
        (case.pieces[1], case.pieces[2]),
    ]
    for pair in found.each:
        a, b = (piece.triple for piece in pair.pieces)
        neither = score(KnowledgeGraph(triple for triple in GRAPH if triple not in (a, b)))
        expected = score(GRAPH) - score(GRAPH.remove(a)) - score(GRAPH.remove(b)) + neither
        assert pair.value == pytest.approx(expected, abs=1e-5)
        assert abs(pair.value) > 1e-4
    assert found.runs == 1 + 3 + 3


@dataclass
class Pair(Game):
    """A game of two pieces that are left out of a whole."""

    def without(self, pieces):
        return frozenset(range(self.count)) - self.with_only(pieces)


@pytest.mark.parametrize(("sign", "value"), [(1, -1), (-1, 1)])
def test_two_that_do_the_same_interact_against_their_own_sign(sign, value):
    """Each does by itself all that the two do: above zero where they lower the score."""
    scores = {frozenset(): 0, **{frozenset(s): sign for s in ([0], [1], [0, 1])}}
    *_, found = stream_interactions(Pair(scores, 2))
    assert [pair.value for pair in found.each] == [value]
    legend = [text.get_text() for text in found.figure().legends[0].get_texts()]
    assert legend == ["together above the sum", "together below the sum"]


def test_interactions_of_some_pieces_leave_the_others_where_they_are(case):
    chosen = interactions(case, pieces=case.pieces[:2])
    assert [pair.value for pair in chosen.each] == pytest.approx(
        [interactions(case).each[0].value], abs=1e-5
    )
    assert interactions(case, pieces=[Piece(IS_CURE)]).each == ()


def test_interactions_come_batch_by_batch(case, monkeypatch):
    monkeypatch.setattr(Case, "at_once", lambda _: 2)
    grown = list(stream_interactions(case))
    assert [(len(found.each), found.runs) for found in grown] == [(0, 2), (0, 4), (2, 6), (3, 7)]
    assert {found.total for found in grown} == {3}


def test_interactions_are_rows_plain_data_and_a_figure(case):
    found = interactions(case)
    assert list(found.to_frame()["other_tail"]) == ["多饮", "治疗", "治疗"]
    data = json.loads(json.dumps(found.as_dict()))
    assert data["interactions"][0]["interaction"] == found.each[0].value
    (panel,) = found.figure().axes
    colours = [bar.get_facecolor()[:3] for bar in panel.patches]
    for colour, pair in zip(colours, found.ranked, strict=True):
        meant = BLUE if pair.value >= 0 else ORANGE
        assert colour == pytest.approx([int(meant[i : i + 2], 16) / 255 for i in (1, 3, 5)])
