"""What a notebook shows of a trace, a tree, a graph and a prediction: all of it, and escaped."""

from html.parser import HTMLParser

import pytest

from kbert_core import (
    InjectionOptions,
    KnowledgeGraph,
    Pipeline,
    Triple,
    Words,
    flatten,
    grow_trees,
)
from kbert_core.tasks import (
    Answer,
    AnswerPrediction,
    ClassPrediction,
    Filling,
    Link,
    LinkPrediction,
    MaskPrediction,
    NerPrediction,
    Span,
)

HOSTILE = '<script>alert("1")</script>'


class Drawn(HTMLParser):
    """The texts and tags of a piece of HTML."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.texts = [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.texts.append(data.strip())


def drawn(value):
    return Drawn(value._repr_html_())


def flat(graph, text="Tim Cook is visiting Beijing now"):
    trees = grow_trees([text], graph, InjectionOptions(9))
    return flatten(trees, Words(special=True))[0]


def test_a_tree_shows_every_token_with_its_soft_position_and_its_place(figure_2):
    row = flat(figure_2)
    texts = drawn(row).texts
    for index, (token, soft) in enumerate(zip(row.tokens, row.soft_positions, strict=True)):
        at = [i for i, text in enumerate(texts) if text == f"| {index}"]
        assert [texts[i - 1] for i in at] == [str(soft)]
        assert [texts[i - 2] for i in at] == [token]
    assert repr(row) == "<FlatTree: 14 tokens, 3 branches>"


def test_a_trace_shows_its_tree_and_its_prediction_and_is_short_in_words(checkpoints):
    graph = KnowledgeGraph([Triple("糖尿病", "类别", "疾病")])
    trace = Pipeline.from_pretrained(checkpoints["ner"])("患者有糖尿病史", graph=graph)
    assert trace._repr_html_() == trace.rows[0]._repr_html_() + trace.prediction._repr_html_()
    assert repr(trace) == (
        f"<KBertTrace of '患者有糖尿病史': {len(trace.rows[0])} tokens, 1 triples, NerPrediction>"
    )


def test_a_graph_shows_ten_triples_and_how_many_there_are(figure_2):
    triples = [Triple(f"h{number}", "r", "t") for number in range(12)]
    graph = KnowledgeGraph(triples, name=HOSTILE, off=triples[:1])
    found = drawn(graph)
    assert found.tags.count("tr") == 11 and "script" not in found.tags
    assert f"{HOSTILE}: 12 triples, 1 switched off; the first 10" in found.texts
    assert "h9" in found.texts and "h10" not in found.texts
    assert found.texts.count("off") == 1
    assert repr(figure_2) == "<KnowledgeGraph 'figure 2': 3 triples>"


def test_what_a_text_or_a_graph_says_is_never_markup():
    names = [Triple("Tim Cook", HOSTILE, HOSTILE)]
    for graph in (KnowledgeGraph(), KnowledgeGraph(names)):
        found = drawn(flat(graph, f"Tim Cook {HOSTILE} now"))
        assert "script" not in found.tags


@pytest.mark.parametrize(
    ("prediction", "first"),
    [
        (NerPrediction((Span(0, 1, "T", HOSTILE, 0.25),), ()), [HOSTILE, "T", "25.0 %"]),
        (ClassPrediction("b", {"a": 0.25, HOSTILE: 0.75}), [HOSTILE, "75.0 %", "a", "25.0 %"]),
        (MaskPrediction((Filling(0, 6, ((HOSTILE, 0.5),)),)), [HOSTILE, "50.0 %"]),
        (LinkPrediction((Link(0, 1, None, 2.0, 1.0),)), ["[0, 1)", "NULL", "100.0 %"]),
        (AnswerPrediction((Answer(0, 1, HOSTILE, 0.5),), (), (), ()), [HOSTILE, "50.0 %"]),
    ],
)
def test_a_prediction_shows_its_probabilities_the_best_first(prediction, first):
    found = drawn(prediction)
    assert "script" not in found.tags
    cells = [text for text in found.texts if text]
    heads = found.tags.count("th")
    assert cells[heads : heads + len(first)] == first
