"""Riddles whose answer only a graph knows, and the small model that is trained on them."""

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch

from kbert_core import NO_KNOWLEDGE, Ablation, InjectionOptions, KnowledgeGraph, Triple, load_graph
from kbert_core.errors import DataError
from kbert_core.knowledge.mentions import find_mentions

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "notebooks"))

from _riddles import (  # noqa: E402
    ALL_TRIPLES,
    KIND_ALONE,
    ROWS,
    TEMPLATES,
    TRAINING,
    TrialOptions,
    accuracy,
    kinds_of,
    loss_of,
    make_riddles,
    new_pipeline,
    order_riddles,
    read,
    train_row,
    trial,
)
from benchmarks import order_riddles as ordering  # noqa: E402
from benchmarks import riddles as benchmark  # noqa: E402

SMALL = {"train": 120, "held_out": 60}


@pytest.fixture(scope="module")
def graph():
    names = ("general_en", "medical_en")
    return load_graph(*(ROOT / "demo_kgs" / f"{name}.spo" for name in names))


@pytest.fixture(scope="module")
def riddles(graph):
    return make_riddles(graph, **SMALL, seed=1)


def asked_and_other(text):
    """The two names of a sentence, by its template: a slow second way."""
    for template in TEMPLATES:
        start, rest = template.split("{", 1)
        first, rest = rest.split("}", 1)
        middle, rest = rest.split("{", 1)
        end = rest.split("}", 1)[1]
        if text.startswith(start) and middle in text[len(start) :] and text.endswith(end):
            inner = text[len(start) : len(text) - len(end)]
            one, other = inner.split(middle)
            return (one, other) if first == "asked" else (other, one)
    raise AssertionError(text)


def test_the_label_is_the_kind_of_the_name_that_is_asked_for(riddles):
    for example in (*riddles.train, *riddles.seen, *riddles.unseen):
        asked, other = asked_and_other(example.sentences[0])
        kinds = [
            [t.tail for t in riddles.graph.triples_of(name) if t.relation == "is_a"]
            for name in (asked, other)
        ]
        assert kinds[0] == [example.label]
        assert kinds[1] != kinds[0]


def test_seen_sentences_have_names_of_training_alone_and_unseen_ones_share_no_word(riddles):
    known, unknown = (
        {name for names in of.values() for name in names}
        for of in (riddles.names, riddles.unseen_names)
    )
    for some, names in ((riddles.seen, known), (riddles.unseen, unknown)):
        assert {n for e in some for n in asked_and_other(e.sentences[0])} <= names
    shown = {word for example in riddles.train for word in example.sentences[0].lower().split()}
    hidden = {word for name in unknown for word in name.lower().replace("-", " ").split()}
    assert hidden and not known & unknown and not shown & hidden


def test_both_names_of_every_sentence_are_found_as_mentions(riddles):
    for example in (*riddles.train, *riddles.unseen):
        text = example.sentences[0]
        found = [text[m.start : m.end] for m in find_mentions([text], riddles.graph)[0]]
        assert sorted(found) == sorted(asked_and_other(text))


def test_riddles_depend_on_the_seed_alone(graph, riddles):
    again = make_riddles(graph, **SMALL, seed=1)
    assert (again.train, again.unseen, again.names) == (
        riddles.train,
        riddles.unseen,
        riddles.names,
    )
    assert again.graph.fingerprint == riddles.graph.fingerprint
    assert make_riddles(graph, **SMALL, seed=2).unseen_names != riddles.unseen_names


def test_a_name_whose_kind_would_not_be_injected_is_left_out():
    triples = [Triple(f"name{n}", "is_a", ("city", "drug")[n % 2]) for n in range(40)]
    said = [Triple("Rome", "near", f"place{n}") for n in range(InjectionOptions().max_triples)]
    hidden = KnowledgeGraph([*triples, *said, Triple("Rome", "is_a", "city")])
    assert "Rome" not in kinds_of(hidden, 2)["city"]
    shown = KnowledgeGraph([*triples, *said[1:], Triple("Rome", "is_a", "city")])
    assert "Rome" in kinds_of(shown, 2)["city"]


def test_a_graph_with_too_few_names_is_refused(figure_2):
    with pytest.raises(DataError, match=r"'figure 2' has 0 kinds .* 6 were asked for"):
        make_riddles(figure_2)


# The small model


def test_a_trial_learns_and_is_the_same_again(riddles):
    options = TrialOptions(steps=12, batch=8, hidden_size=32, num_hidden_layers=1, every=5)
    made = [trial(riddles, riddles.graph, seed=3, options=options) for _ in range(2)]
    assert made[0].curve == made[1].curve
    assert [point.step for point in made[0].curve] == [5, 10, 12]
    states = [m.pipeline.encoder.model.state_dict() for m in made]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    before = new_pipeline(riddles, KIND_ALONE, Ablation(), options).encoder.model.state_dict()
    assert any(not torch.equal(before[name], states[0][name]) for name in before)
    assert not made[0].pipeline.encoder.model.training


def test_the_loss_and_the_share_of_right_answers_are_what_they_say(riddles):
    torch.manual_seed(0)
    options = TrialOptions(hidden_size=32, num_hidden_layers=1)
    pipeline = new_pipeline(riddles, KIND_ALONE, Ablation(), options)
    some = riddles.seen[:7]
    rows = read(pipeline, some, riddles.graph)
    assert all(len(row.branches) == 2 for row in rows)  # each of two mentions with its kind
    assert all(not row.branches for row in read(pipeline, some, NO_KNOWLEDGE))
    labels = torch.tensor([riddles.kinds.index(e.label) for e in some])
    logits = pipeline.reader.encode(rows, pipeline.config)["logits"]
    slow = -logits.log_softmax(-1)[range(7), labels].mean()
    pipeline.encoder.model.eval()
    assert loss_of(pipeline, rows, labels).item() == pytest.approx(slow.item(), abs=1e-5)
    predictions = list(pipeline.predict([e.sentences for e in some], graph=riddles.graph))
    right = [p.label == e.label for p, e in zip(predictions, some, strict=True)]
    assert accuracy(pipeline, rows, some) == pytest.approx(sum(right) / 7)


# Riddles about the order of names


@pytest.fixture(scope="module")
def ordered():
    return order_riddles(seed=1, train=40, held_out=12)


def asked_name(text):
    """The name that a sentence asks for, by its words: a slow second way."""
    what, came, place, colon, *names = text.split()
    assert (what, came, colon, len(names)) == ("what", "came", ":", 3)
    return names[["first", "second", "third"].index(place)]


def test_the_label_is_what_the_asked_name_is(ordered):
    for example in (*ordered.train, *ordered.seen, *ordered.unseen, *ordered.more):
        said = {
            t.relation: t.tail for t in ordered.graph.triples_of(asked_name(*example.sentences))
        }
        assert said["is"] == example.label
        assert list(said.values()).count(example.label) == 1


def test_every_name_stands_in_one_set_and_has_as_many_triples_as_it_says(ordered):
    riddles = ordered
    sets = {
        which: {name for e in examples for name in e.sentences[0].split()[-3:]}
        for which, examples in (("train", riddles.train), ("new", riddles.unseen))
    }
    more = {name for e in ordered.more for name in e.sentences[0].split()[-3:]}
    assert not sets["train"] & sets["new"] and not more & (sets["train"] | sets["new"])
    assert {n for e in riddles.seen for n in e.sentences[0].split()[-3:]} <= sets["train"]
    counts = {len(riddles.graph.triples_of(name)) for name in sets["train"] | sets["new"]}
    assert counts == {1, 2, 3}
    assert {len(riddles.graph.triples_of(name)) for name in more} == {4, 5, 6}


def test_to_the_small_model_all_names_are_one_unknown_token(ordered):
    options = TrialOptions(hidden_size=32, num_hidden_layers=1)
    pipeline = new_pipeline(ordered, ALL_TRIPLES, Ablation(), options)
    unknown = pipeline.hugging_face_tokenizer.unk_token_id
    for row in read(pipeline, ordered.more, ordered.graph):
        mentions = [node for node in row.tree.nodes]
        assert len(mentions) == 3 and len(row.branches) >= 12
        assert row.input_ids.count(unknown) == 3


@pytest.mark.parametrize(
    ("way", "same"),
    [
        (Ablation(visible="all"), True),
        (Ablation(), False),
        (Ablation("hard", "all"), False),
        (Ablation(positions="hard"), False),
    ],
)
def test_only_with_everything_visible_and_soft_positions_tails_are_a_bag(ordered, way, same):
    torch.manual_seed(0)
    options = replace(TRAINING, hidden_size=32, initializer_range=0.5)
    pipeline = new_pipeline(ordered, ALL_TRIPLES, way, options)
    pipeline.encoder.model.eval()
    example = ordered.more[0]
    name = asked_name(*example.sentences)
    graph = ordered.graph
    one, other = graph.triples_of(name)[:2]
    swapped = graph.replace(one, replace(one, tail=other.tail))
    swapped = swapped.replace(other, replace(other, tail=one.tail))
    logits = [
        pipeline.reader.encode(read(pipeline, [example], g), pipeline.config)["logits"]
        for g in (graph, swapped)
    ]
    assert torch.allclose(*logits, atol=1e-4) is same


def test_a_row_trains_with_its_part_taken_away():
    options = replace(TRAINING, steps=2, batch=4, hidden_size=32, num_attention_heads=2)
    sizes = {"train": 12, "held_out": 6}
    made = {name: train_row(name, seed=1, options=options, **sizes) for name in ROWS}
    for name, row in ROWS.items():
        pipeline = made[name].pipeline
        assert pipeline.card.reading.ablation == row.get("ablation", Ablation())
        assert pipeline.encoder.layer_count == row.get("layers", 3)
    again = train_row("K-BERT", seed=1, options=options, **sizes)
    assert again.curve == made["K-BERT"].curve


@pytest.mark.parametrize(
    ("made_by", "options"), [(benchmark, TrialOptions()), (ordering, ordering.OPTIONS)]
)
def test_the_committed_results_are_of_every_run_and_of_the_options_as_they_are(made_by, options):
    found = json.loads(made_by.RESULTS.read_text(encoding="utf-8"))
    runs = [(one["row"], one["seed"]) for one in found["runs"]]
    if made_by is benchmark:
        assert sorted(runs) == sorted(made_by.planned())
    else:
        assert runs == [one for one in made_by.planned() if one in runs]  # in order, each once
        assert {(row, seed) for row in ROWS for seed in (1, 2)} <= {*runs}
    assert found["training"] == asdict(options)
    assert all(one["curve"][-1]["step"] == options.steps for one in found["runs"])
