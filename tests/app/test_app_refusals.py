"""What the core refuses, said in the visitor's language."""

import ast
import gzip
import json
import re
import shutil
from functools import partial
from pathlib import Path

import pytest
from babel.messages.pofile import read_po

import kbert_core
import kbert_lab
from app import audits, services
from kbert_core import Intervention, KBertError, KnowledgeGraph, Triple
from kbert_core.kbert.interventions import Tokens
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.io import ReadOptions, rows_of
from kbert_lab.data.labelled import Example, check_labels
from kbert_lab.graphs.store.store import GraphStore
from kbert_lab.lab import workspaces
from kbert_lab.lab.commands import Redo, ReplaceTail, Undo, apply
from kbert_lab.lab.models import NOTHING
from kbert_lab.lab.scene import WORDS, GraphRef, Scene
from kbert_lab.lab.session import OpenedGraph, Session
from kbert_lab.lab.texts import LOCALES, refusal, speaking
from kbert_lab.lab.views.importing import preview

FOLDERS = [Path(package.__file__).parent for package in (kbert_core, kbert_lab)]
PO = LOCALES / "zh" / "LC_MESSAGES" / "core.po"
# What was given, which stays as it is: names in quotes, reasons of libraries, files, code, values.
GIVEN = re.compile(r"“[^”]*”|（[^（）]*）|`[^`]*`|\([^()]*\)|[\w./<>:\\-]*[./_<>\\][\w./<>:\\-]*")
SENTENCE = re.compile(r"[A-Za-z']+ [A-Za-z']+ [a-z']+")  # three words of English


@pytest.fixture(autouse=True)
def chinese():
    """A Chinese visitor causes it."""
    with speaking("zh"):
        yield


def catalogue():
    with PO.open("rb") as file:
        return [message for message in read_po(file, locale="zh") if message.id]


def texts_of_the_core():
    for path in (path for folder in FOLDERS for path in folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = (p.value if isinstance(p, ast.Constant) else "{}" for p in node.values)
                yield "".join(map(str, parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def test_every_text_of_the_catalogue_is_still_said_by_the_core():
    said = "\0".join(texts_of_the_core())
    gone = []
    for message in catalogue():
        if "of a library" not in message.auto_comments:
            text = re.sub(r"\{\w+\}", "{}", message.id)
            text = text.strip("{}:. ") or text  # what one text begins, another may end
            gone += [message.id] if text not in said else []
    assert gone == []


def test_every_text_of_the_catalogue_is_translated_with_its_values():
    for message in catalogue():
        english, chinese = (re.findall(r"\{(\w+)\}", text) for text in (message.id, message.string))
        assert message.string and len(set(english)) == len(english)
        assert set(chinese) <= set(english), message.id


OPTION = re.compile(r"(?<![\w-])--[a-z{]|kbert kg import")


@pytest.mark.parametrize("spoken", ["zh", "en"])
def test_no_refusal_names_an_option_of_a_command(spoken):
    """But in the name of a whole command, as `kbert train --adapter`; en/core.po has the others."""
    for message in catalogue():
        with speaking(spoken):
            said = refusal(message.id) if spoken == "en" else message.string
        assert not OPTION.search(re.sub("`kbert [^`]*`", "", said)), said


def test_a_refusal_names_no_folder_to_who_is_not_at_the_machine(checkpoints, tmp_path, monkeypatch):
    folder = tmp_path / "broken"
    shutil.copytree(checkpoints["ner"], folder)
    (folder / "tokenizer.json").unlink()
    monkeypatch.setenv("KBERT_MODELS", str(tmp_path))
    for here in "10":
        monkeypatch.setenv("KBERT_OPEN_PATHS", here)
        with pytest.raises(KBertError) as refused:
            services.pipeline(str(folder), "cpu")
        for spoken in ("en", "zh"):
            with speaking(spoken):
                said = refusal(refused.value)
            assert "broken" in said and (str(tmp_path) in said) is (here == "1")


def is_chinese(error):
    """Whether an error is said in Chinese alone, but for what was given."""
    said = refusal(error)
    assert re.search("[\u4e00-\u9fff]", said), said
    bare = said
    while (fewer := GIVEN.sub("", bare)) != bare:
        bare = fewer
    assert not SENTENCE.search(bare), said
    with speaking("en"):
        assert refusal(error) == str(error) or "--" in str(error)
        assert "--encoding" not in refusal(error)
    return said


BEIJING, PARIS = Triple("Beijing", "is", "big"), Triple("Paris", "is", "old")
GRAPH = KnowledgeGraph([BEIJING], name="mine").switch_off(BEIJING)
UPLOADS = {
    "a.spo": b"a\tb\nc\n\na\t\tc\na\tb\tc\td\n" + b"x\ty\t" + b"z" * 60_000,
    "b.csv": b'head,relation,tail\na,b\n"a,b,c\n',
    "c.jsonl": b'{"head": 1\n[1, 2]\n',
    "d.spo": "癫痫\t类别\t疾病\n".encode("gb18030"),
    "e.spo": "癫痫\t类别\t疾病\n".encode("utf-16-le"),
    "f.nt": b"<http://a> <b> nonsense .\n",
    "g.spo": b"",
    "h.spo.gz": b"no gzip",
    "i.spo.gz": gzip.compress(b"a\tb\tc\n" * 9000, mtime=0)[:-12],
    "j.spo": b"only words here\n" * 300,
    "k.spo": b"\xff\xfe\x41",
    "l.spo": "癫痫\t类别\t疾病\n".encode() * 2 + b"\xff\tb\tc\n",
}
OPTIONS = [{"encoding": "klingon"}, *({"columns": tuple(names)} for names in ("129", "abb", "abz"))]
EDITS = [
    *(Edit(action, PARIS) for action in ("remove", "switch_off", "switch_on")),
    *(Edit("add", BEIJING), Edit("add", PARIS, index=7), Edit("replace", PARIS, BEIJING)),
]
FIELDS = [("", "a", "b"), ("a", "b\nb", "c"), ("a", "b", "")]
DATA = [  # a file's name, what is in it, and the task
    ("train.tsv", "label\ttext_a\nO O\ta b c\n", "ner"),
    ("train.tsv", "label\ttext_a\nO O\ta \n", "ner"),
    ("train.tsv", "label\ttext_a\nB\ta\n", "ner"),
    ("train.tsv", "label\ttext_a\nS_x\ta\n", "ner"),
    ("train.tsv", "label\ttext_a\nPER\ta\n", "ner"),
    ("train.tsv", "label\ttext_a\nLABEL_1\ta\n", "ner"),
    ("train.tsv", "label\ttext_a\nE-x\ta\n", "ner"),
    ("train.tsv", "label\ttext_a\nyes\n", "classify"),
    ("train.tsv", "sentence_id\tword\ttag\n1\ta\tO\n", "classify"),
    ("train.tsv", "text\tentities\na\tb\n", None),
    ("train.tsv", "label\ttext_a\n0.5\ta\n", "classify"),
    ("train.tsv", '{"text": "a", "label": 1}\n', "classify"),
    ("train.tsv", "患者头痛三天。 O\n胃痛两天了， O\n", "ner"),
    ("train.tsv", "label\ttext_a\nyes\t \n", "classify"),
    ("train.tsv", "label\ttext_a\ttext_b\nyes\ta\tb\n", "rank"),
    ("train.tsv", "label\ttext_a\n", "classify"),
    ("train.tsv", "", "classify"),
    ("train.tsv", "one\ttwo\na\tb\n", "classify"),
    ("train.tsv", "one\ttwo\na\tb\n ", None),
    ("train.tsv", "a\tO\nb\tB-x\n\nc d e f\n", "ner"),
    ("train.jsonl", '{"text": "a", "label": {"b": 1}}', "classify"),
    ("train.jsonl", '{"tokens": ["a"], "ner_tags": [1]}', "ner"),
    ("train.jsonl", '{"text": ["a"], "label": "b"}', "classify"),
    ("train.jsonl", '{"text": "a", "label": 0.5}', "classify"),
    ("train.jsonl", '{"text": "a", "label": -1}', "classify"),
    ("train.jsonl", '{"text": "a", "label": 1}\n{"text": "b", "label": "c"}', "classify"),
    ("train.jsonl", "[1, 2]", "classify"),
    ("train.json", "", "classify"),
    ("train.json", "{", "classify"),
    ("train.csv", 'text,label\n"a,1\n', "classify"),
]
LAYER = Intervention("block", Tokens("all"), Tokens("all"), True, (99,))
READINGS = [{"interventions": (LAYER,)}, {"device": "abacus"}, {"device": "cuda:77"}]


def read(checkpoints, text="Beijing is big", **how):
    scene = Scene((text,), str(checkpoints["ner"]), GraphRef.of(GRAPH), **how)
    return services.trace(scene, GRAPH)


REFUSED = {
    **{name: partial(services.read_upload, data, name) for name, data in UPLOADS.items()},
    **{str(edit): partial(GRAPH.apply, edit) for edit in EDITS},
    **{str(fields): partial(Triple.checked, *fields) for fields in FIELDS},
    **{
        f"{name} {table} {task}": partial(audits.uploaded, [(name, table.encode())], task)
        for name, table, task in DATA
    },
    "a blank head": lambda: GRAPH.add(Triple(" ", "a", "b")),
    "two names": lambda: audits.uploaded([("a.tsv", b""), ("b.tsv", b"")], None),
    "no text": lambda: audits.uploaded([("train.tsv", b"label\ttext_a\nx\t\xff\n")], None),
    **{
        str(options): partial(
            lambda options: list(rows_of(b"a\tb\tc\n", "a.tsv", ReadOptions(**options))), options
        )
        for options in OPTIONS
    },
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_refused_in_chinese_and_without_options(name):
    with pytest.raises(KBertError) as refused:
        REFUSED[name]()
    is_chinese(refused.value)
    with speaking("en"):
        assert name in map(str, OPTIONS) or not OPTION.search(
            re.sub("`kbert [^`]*`", "", refusal(refused.value))
        )


@pytest.mark.parametrize("name", UPLOADS)
def test_what_is_wrong_with_a_file_is_seen_in_chinese_before_it_is_added(name):
    seen = preview(UPLOADS[name], name, KnowledgeGraph())
    for said in (*seen.problems, *filter(None, [seen.error])):
        assert said == is_chinese(said)


def test_paths_that_are_no_graph_are_refused_in_chinese(tmp_path):
    (tmp_path / "no.kg").write_bytes(b"no database" * 100)
    for path in (tmp_path, tmp_path / "none.spo", tmp_path / "none.kg", tmp_path / "no.kg"):
        with pytest.raises(KBertError) as refused:
            services.open_graph(str(path))
        is_chinese(refused.value)


def test_what_was_given_stays_as_it_is():
    """Words that the core says too are no words of the core where somebody wrote them."""
    head = Triple("head", "relation", "line")
    with pytest.raises(KBertError) as refused:
        KnowledgeGraph([head]).add(head)
    assert "(head, relation, line)" in is_chinese(refused.value)
    untold = "an error that nobody has translated"
    assert refusal(untold) == untold


def test_a_workspace_refuses_in_chinese_and_by_its_title(tmp_path, monkeypatch):
    monkeypatch.setenv("KBERT_WORKSPACES", str(tmp_path))
    key = workspaces.create(KnowledgeGraph([BEIJING]), (), title="ours")
    path = workspaces.place_of(key)
    with GraphStore(path, write=True) as store:
        store.undo()
        for number in (None, 0, 1, 9):
            with pytest.raises(KBertError) as refused:
                store.undo(number)
            said = workspaces.without_path(refused.value, path, "ours")
            assert "ours" in said and str(tmp_path) not in said
            is_chinese(said)


def test_a_private_log_refuses_in_chinese():
    graphs = {"own": OpenedGraph(KnowledgeGraph([BEIJING], name="图"))}
    session = Session(WORDS, NOTHING, "own", graphs)
    for tail in ("a", "b"):
        session = ReplaceTail(session.graph_now().triples_of(BEIJING.head)[0], tail)(session)
    for command in (Redo(), Redo(1), Undo(1), Undo(9)):
        _, refused = apply(session, command)
        is_chinese(refusal(refused))


def test_labels_that_a_model_does_not_know_are_refused_in_chinese():
    with pytest.raises(KBertError) as refused:
        check_labels([Example(("有病",), label="9")], ["0"], "the model")
    assert "不在模型的标签之中" in refusal(refused.value)


def config(**changes):
    def changed(folder):
        file = folder / "config.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))

    return changed


BROKEN = {
    "no folder": lambda folder: shutil.rmtree(folder),
    "no config": lambda folder: (folder / "config.json").unlink(),
    "no json": lambda folder: (folder / "config.json").write_text("{"),
    "a list": lambda folder: (folder / "config.json").write_text("[]"),
    "no weights": lambda folder: (folder / "model.safetensors").unlink(),
    "cut weights": lambda folder: (folder / "model.safetensors").write_bytes(b"123"),
    "no tokenizer": lambda folder: [file.unlink() for file in folder.glob("*token*")],
    "no tokens": lambda folder: (folder / "tokenizer.json").write_text("{}"),
    "card": config(kbert=3),
    "system": config(kbert={"system": "soul", "task": "ner"}),
    "task": config(kbert={"task": "sing"}),
    "size": config(hidden_size=64),
    "vocabulary": config(vocab_size=3),
    "sizes": config(hidden_size=10**9),
}


@pytest.mark.parametrize("how", BROKEN)
def test_model_folders_are_refused_in_chinese(how, checkpoints, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(checkpoints["ner"], folder)
    BROKEN[how](folder)
    with pytest.raises(KBertError) as refused:
        services.pipeline(str(folder), "cpu")
    is_chinese(refused.value)


@pytest.mark.parametrize("how", [{"text": "half \ud800"}, *READINGS], ids=str)
def test_texts_options_and_interventions_are_refused_in_chinese(checkpoints, how):
    with pytest.raises(KBertError) as refused:
        read(checkpoints, **how)
    is_chinese(refused.value)
