"""The picture of a trace: spans, candidates, what was chosen."""

from tiny_knowbert import SENSES, TEXT, knowbert_in

from kbert_core import KnowledgeGraph, Triple
from kbert_lab.explain.drawing import linked_html


def test_a_trace_is_drawn_with_its_candidates_the_best_first(tmp_path, checkpoints):
    trace = knowbert_in(tmp_path, checkpoints, head=False)(TEXT, graph=SENSES)
    drawn = trace._repr_html_()
    (linked,) = trace.links
    order = sorted(linked.candidates, key=lambda own: -own.score)
    places = [drawn.index(f"{own.candidate.entity}<") for own in order]
    assert f"<b>{order[0].candidate.entity}</b>" in drawn
    assert drawn.rindex(order[0].candidate.entity) < drawn.rindex(order[1].candidate.entity)
    assert len(places) == 2
    assert f"{order[0].weight:.3f}" in drawn and f"{order[0].candidate.prior:.3f}" in drawn
    assert f"width:{100 * order[0].weight:.1f}%" in drawn
    assert "一种检查" in drawn and "一张图" in drawn
    assert "[3, 6)" in drawn


def test_what_a_graph_says_is_escaped(tmp_path, checkpoints):
    graph = KnowledgeGraph([Triple("心电图", "gloss", "<script>alert(1)</script>")])
    drawn = knowbert_in(tmp_path, checkpoints)(TEXT, graph=graph)._repr_html_()
    assert "<script>" not in drawn and "&lt;script&gt;" in drawn


def test_a_text_without_names_and_a_name_that_means_nothing_say_so(tmp_path, checkpoints):
    pipeline = knowbert_in(tmp_path, checkpoints, null=True)
    assert "No name of the graph" in pipeline("今天天气好", graph=SENSES)._repr_html_()
    assert ">NULL<" in pipeline(TEXT, graph=SENSES)._repr_html_()


def test_more_candidates_than_are_shown_are_counted(tmp_path, checkpoints):
    graph = KnowledgeGraph(
        triple
        for n in range(9)
        for triple in (Triple(f"图{n}", "gloss", f"义{n}"), Triple(f"图{n}", "synonym", "心电图"))
    )
    trace = knowbert_in(tmp_path, checkpoints)(TEXT, graph=graph)
    assert "and 4 more" in trace._repr_html_()
    assert "more" not in linked_html(trace.links, (TEXT,), most=None)
