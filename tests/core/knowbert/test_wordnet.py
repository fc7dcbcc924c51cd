"""WordNet as a knowledge base: its morphology, its priors, and the data made of it."""

import gzip
import json
from ast import literal_eval

import pytest

from kbert_core import InjectionOptions, KBertError, KnowledgeGraph, Triple
from kbert_core.knowbert.candidates import Base, graph_spans
from kbert_core.knowbert.morphology import inflected_names
from kbert_core.knowledge import load_graph
from results.tools.wordnet import WordNet, examples, framework, irregular_forms, main

SYNSETS = {
    "bank.n.01": ("sloping land beside water", ["bank"], {"bank": 25}),
    "bank.n.02": ("an institution that takes deposits", ["bank", "banking company"], {"bank": 20}),
    "bank.v.01": ("tip to one side", ["bank"], {"bank": 2}),
    "sit.v.01": ("be seated", ["sit", "sit down", "sat"], {"sit": 30, "sat": 30}),
    "take_place.v.01": ("come to pass", ["take place", "took place"], {}),
    "take.v.01": ("carry out", ["take"], {}),
    "leaf.n.01": ("an organ of a plant", ["leaf"], {}),
    "leave.n.01": ("time off", ["leave"], {}),
    "new.a.01": ("not old", ["new"], {}),
    "news.n.01": ("information", ["news"], {}),
    "church.n.01": ("a building", ["church"], {}),
    "sapphire_bank.n.01": ("a made-up name", ["Sapphire Bank"], {}),
}
GRAPH = KnowledgeGraph(
    triple
    for name, (gloss, words, counts) in SYNSETS.items()
    for triple in (
        Triple(name, "gloss", gloss),
        *(Triple(name, "synonym", word) for word in words),
        *(Triple(name, "count", f"{word} {count}") for word, count in counts.items()),
    )
)
BASE = Base.of("wordnet")


def found(text):
    return {
        text[start:end]: set(entities)
        for (start, end), entities in inflected_names(text, GRAPH).items()
    }


@pytest.mark.parametrize(
    ("text", "span", "entities"),
    [
        ("two banks", "banks", {"bank.n.01", "bank.n.02", "bank.v.01"}),  # a noun's s, a verb's s
        ("the plane banked", "banked", {"bank.v.01"}),
        ("It TAKES  place", "TAKES  place", {"take_place.v.01"}),
        ("it took place", "took place", {"take_place.v.01"}),  # irregular: a name of the graph
        ("the leaves fall", "leaves", {"leaf.n.01", "leave.n.01"}),
        ("the news", "news", {"news.n.01"}),  # and not the adjective: -s is a noun's ending
        ("churches", "churches", {"church.n.01"}),
        ("a newer one", "newer", {"new.a.01"}),
        ("the sapphire-bank", "sapphire-bank", {"sapphire_bank.n.01"}),
    ],
)
def test_a_name_is_found_by_the_base_forms_of_its_words(text, span, entities):
    assert found(text)[span] == entities


def test_names_overlap_and_what_is_no_word_is_none():
    assert set(found("He sat by the Sapphire Bank")) == {"sat", "Sapphire Bank", "Bank"}
    assert found("embankment bankside 河岸") == {}
    assert found("") == {}


def test_priors_are_counts_of_the_name_plus_one():
    (span,) = graph_spans(["the bank"], GRAPH, InjectionOptions(), BASE)
    assert [own.entity for own in span.candidates] == ["bank.n.01", "bank.n.02", "bank.v.01"]
    assert [own.prior for own in span.candidates] == pytest.approx([26 / 50, 21 / 50, 3 / 50])
    *_, other = graph_spans(["a banking company"], GRAPH, InjectionOptions(), BASE)
    assert [own.prior for own in other.candidates] == [1]


def test_edits_add_a_sense_move_a_prior_and_take_a_gloss_away():
    new = (Triple("bank.n.99", "gloss", "a store of blood"), Triple("bank.n.99", "synonym", "bank"))
    count = Triple("bank.n.99", "count", "bank 99")
    graph = GRAPH.add(new[0]).add(new[1]).add(count)
    (span,) = graph_spans(["the bank"], graph, InjectionOptions(), BASE)
    assert span.candidates[0].entity == "bank.n.99"
    (span,) = graph_spans(["the bank"], graph.switch_off(count), InjectionOptions(), BASE)
    assert span.candidates[0].entity == "bank.n.01"
    graph = graph.switch_off(new[0])  # without a text an entity has no vector: it is no candidate
    (span,) = graph_spans(["the bank"], graph, InjectionOptions(), BASE)
    assert "bank.n.99" not in [own.entity for own in span.candidates]


def test_a_count_that_is_none_is_said():
    graph = KnowledgeGraph(
        [
            Triple("a.n.01", "gloss", "x"),
            Triple("a.n.01", "synonym", "axe"),
            Triple("a.n.01", "count", "axe often"),
        ]
    )
    with pytest.raises(KBertError, match="'axe often', expected a name and a whole number"):
        graph_spans(["axe"], graph, InjectionOptions(), BASE)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("wordnett", "expected one of graph, wordnet"),
        ({"sizes": 3}, "no such option"),
        ({"kar": {"heads": 7}}, "can't be divided"),
        ({"text": "{tail"}, "can't be filled in"),
        ({"text": "{gloss}"}, "Use {head}"),
        (7, "expected its name or its options"),
        ({"relations": "gloss"}, "relations is 'gloss', expected a list"),
        ({"relations": 5}, "relations is 5, expected a list"),
        ({"kar": 5}, "no such option"),
        ({"vectors_layer": "1"}, "vectors_layer is '1', expected a whole number or None"),
        ({"layer": 2.5}, r"layer is 2\.5, expected a whole number or None"),
        ({"vectors": 7}, "vectors is 7, expected a text"),
        ({"inflected": "no"}, "inflected is 'no', expected True or False"),
        ({"kar": {"null_candidate": [1]}}, "null_candidate is"),
        ({"kar": {"size": "12"}}, "size is '12', expected a whole number"),
    ],
)
def test_a_base_that_cannot_be_is_said(given, words):
    with pytest.raises(KBertError, match=words):
        Base.of(given)


def test_a_base_is_plain_data_and_back():
    base = Base.of({"like": "wordnet", "layer": 3, "kar": {"size": 40}})
    assert base.kar.norms and base.kar.size == 40 and base.relations == ("gloss",)
    assert Base.of(json.loads(json.dumps(base.as_dict()))) == base


def synset(name, gloss, examples, *senses):
    return {
        **{"id": name, "pos": name.split(".")[1], "gloss": gloss, "examples": examples},
        "senses": [[f"{key}::", number, count] for key, number, count in senses],
    }


def sentence(name, words, *senses):
    keys = ("start", "end", "lemma", "pos", "keys")
    named = [(at, at, lemma, part, [f"{key}::"]) for at, lemma, part, key in senses]
    senses = [dict(zip(keys, sense, strict=True)) for sense in named]
    return {"id": name, "tokens": words.split(), "senses": senses}


@pytest.fixture
def files(tmp_path):
    """A WordNet of three synsets, a SemCor of two sentences, and a set of the framework."""
    go, home = "go%2:38:00", "home%1:06:00"
    synsets = [
        synset(
            "go.v.01", "move", ["He went home", "no word"], (go, 1, 9), ("travel%2:38:00", 1, 3)
        ),
        synset("home.n.01", "where one lives", [], (home, 2, 1)),
        synset("home.r.01", "to one's home", ["drove home"], ("home%4:02:00", 1, 4)),
    ]
    went = (2, "go", "VERB", go), (3, "home", "ADV", "home%4:02:00")
    person = (0, "person", "NOUN", home), (1, "go", "VERB", go)
    sentences = [
        sentence("a", "`` She went home ''", *went),
        sentence("b", "Smith went to Homes", *person),
    ]
    with gzip.open(tmp_path / "wordnet.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(own) + "\n" for own in synsets)
    (tmp_path / "semcor.jsonl").write_text("".join(json.dumps(own) + "\n" for own in sentences))
    (tmp_path / "s.data.xml").write_text(
        '<corpus><text><sentence id="s0"><wf lemma="she" pos="PRON">She</wf>'
        '<instance id="s0.t0" lemma="go" pos="VERB">goes</instance>'
        '<instance id="s0.t1" lemma="home" pos="ADV">home</instance></sentence></text></corpus>'
    )
    (tmp_path / "s.gold.key.txt").write_text("s0.t0 go%2:38:00::\ns0.t1 home%4:02:00::\n")
    return tmp_path


def test_wordnet_is_written_as_a_graph_with_irregular_forms(files, capsys):
    arguments = [files / "wordnet.jsonl.gz", "--semcor", files / "semcor.jsonl"]
    arguments += ["--test", files / "s.data.xml", "--output", files / "out"]
    main(["--wordnet", *map(str, arguments)])
    counts = literal_eval(capsys.readouterr().out)
    assert counts["test.jsonl"] == 2
    graph = load_graph(files / "out" / "wordnet.spo.xz")
    assert len(graph) == counts["wordnet.spo.xz"] == len(list(graph))
    assert Triple("go.v.01", "synonym", "went") in graph
    assert Triple("go.v.01", "count", "went 9") in graph
    (span,) = graph_spans(["they went"], graph, InjectionOptions(), BASE)
    assert span.candidates[0].entity == "go.v.01"
    rows = [json.loads(line) for line in (files / "out" / "train.jsonl").open()]
    assert rows[0]["text"] == '" She went home "'
    assert [rows[0]["text"][slice(*own["span"])] for own in rows[0]["labels"]] == ["went", "home"]
    assert [own["entity_id"] for own in rows[1]["labels"]] == ["go.v.01"]  # a generic person isn't


def test_examples_of_glosses_are_labelled_where_a_word_stands_in_them(files):
    wordnet = WordNet(files / "wordnet.jsonl.gz")
    irregular = irregular_forms(files / "semcor.jsonl", wordnet)
    assert irregular == [("went", "go", "v")]
    made = {
        text: [text[own.start : own.end] for own in labels]
        for text, labels in examples(wordnet, irregular)
    }
    assert made == {"He went home": ["went"], "drove home": ["home"]}


def test_the_frameworks_candidates_are_those_of_word_and_part_of_speech(files):
    wordnet = WordNet(files / "wordnet.jsonl.gz")
    ((text, labels),) = framework(files / "s.data.xml", wordnet)
    assert text == "She goes home"
    assert [own.candidates for own in labels] == [("go.v.01",), ("home.r.01",)]
    assert [own.entities for own in labels] == [("go.v.01",), ("home.r.01",)]


def test_broken_files_are_said(files):
    wordnet = WordNet(files / "wordnet.jsonl.gz")
    (files / "s.gold.key.txt").write_text("s0.t0 go%9:99:99::\n")
    with pytest.raises(KBertError, match=r"Take WordNet 3\.0"):
        list(framework(files / "s.data.xml", wordnet))
    (files / "s.gold.key.txt").unlink()
    with pytest.raises(KBertError, match=r"s\.gold\.key\.txt"):
        list(framework(files / "s.data.xml", wordnet))
    (files / "w.jsonl").write_text('{"id": "x"}\n')
    with pytest.raises(KBertError, match="line 1: found no synset"):
        WordNet(files / "w.jsonl")
    (files / "w.jsonl").write_text("no JSON\n")
    with pytest.raises(KBertError, match="can't be read as JSON Lines"):
        WordNet(files / "w.jsonl")
