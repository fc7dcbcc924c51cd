"""Two languages of the same texts."""

import ast
import re
import string
from pathlib import Path

import pytest
from babel.messages.pofile import read_po
from jinja2 import Environment, meta

import app
from kbert_lab.lab import texts
from kbert_lab.lab.examples import EXAMPLES
from kbert_lab.lab.locales import update
from kbert_lab.lab.models import type_name
from kbert_lab.lab.texts import LOCALES, N_, t, tn

ROOT = Path(app.__file__).parent
PO = LOCALES / "zh" / "LC_MESSAGES" / "app.po"
CHINESE = re.compile(r"[\u4e00-\u9fff]")
ALIKE = re.compile(  # texts that need no translation: values, names and commands alone
    r"(\{[^}]*\}|F1|MRR|P@1|MB|MASK|K-BERT Lab|(K-|Roof-)?BERT|KnowBert|train\.tsv|\W|\d)*"
    r"|git .*|kbert .*|/path/.*"
)


@pytest.fixture(scope="module")
def chinese():
    """The messages of the Chinese catalogue."""
    with PO.open("rb") as file:
        return [message for message in read_po(file, locale="zh") if message.id]


def forms(value):
    """A text, or the texts for one thing and for several."""
    return [value] if isinstance(value, str) else list(value)


def placeholders(text):
    if "{{" in text or "{%" in text:
        return meta.find_undeclared_variables(Environment().parse(text))
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def test_every_text_of_the_app_is_translated_and_no_other(chinese):
    used = {message.id for message in update.extracted() if message.id}
    known = {tuple(forms(m.id)) if m.pluralizable else m.id for m in chinese}
    assert used == known, "run: python -m kbert_lab.lab.locales.update"
    left = [m.id for m in chinese if m.fuzzy or not all(forms(m.string))]
    assert left == []


def test_both_languages_have_the_same_placeholders(chinese):
    for message in chinese:
        *_, english = forms(message.id)
        assert placeholders(english) == placeholders(forms(message.string)[0]), english


def test_every_text_is_in_its_language(chinese):
    said = [forms(message.string)[0] for message in chinese]
    assert [x for x in said if not CHINESE.search(x) and not ALIKE.fullmatch(x)] == []
    for message in chinese:
        english = forms(message.id)[0]
        assert not CHINESE.search(english) or english in {own.name for own in EXAMPLES}, english


def test_texts_are_found_in_programs():
    source = """
t("a"); t("b" if x else "c", n=t("d")); f"{t('e')}"; tn("1 f", "{n} f", 2); {"k": N_("g" "h")}
st.text("i"); t(name); t(f"{x} j"); texts.t("k")
"""
    found = [text for _, text in update.texts_in(source)]
    assert sorted(map(str, found)) == ["('1 f', '{n} f')", *"abcde", "gh", "k"]


def test_the_catalogue_stays_as_it_is_written(tmp_path, monkeypatch):
    copy = tmp_path / "zh" / "LC_MESSAGES" / "app.po"
    copy.parent.mkdir(parents=True)
    copy.write_bytes(PO.read_bytes())
    monkeypatch.setattr(update, "LOCALES", tmp_path)
    update.update()
    assert copy.read_text("utf-8") == PO.read_text("utf-8")


def test_a_text_is_in_the_language_asked_for_at_that_moment(monkeypatch):
    language = "zh"
    monkeypatch.setattr(texts, "language_of", lambda: language)
    values = {"tokens": 3, "trunk": 2, "branch": 1}
    count = N_("{tokens} tokens: {trunk} trunk, {branch} branch")
    assert t(count, **values) == "3 个词元：主干 2，分支 1"
    assert tn("1 edit", "{n} edits", 1) == "1 次修改"
    assert tn("1 edit", "{n} edits", 1234) == "1,234 次修改"
    assert texts.sentences(["甲。", "乙。"]) == "甲。乙。"
    assert texts.listed([1, 2]) == "1、2"
    language = "en"
    assert t(count, **values) == "3 tokens: 2 trunk, 1 branch"
    assert tn("1 edit", "{n} edits", 1) == "1 edit"
    assert tn("1 edit", "{n} edits", 1234) == "1,234 edits"
    assert texts.listed([1, 2]) == "1, 2"


def test_a_text_without_a_translation_is_shown_in_english():
    with texts.speaking("zh"):
        assert t("{n} unheard-of words", n=2) == "2 unheard-of words"
        assert tn("1 unheard-of word", "{n} unheard-of words", 1) == "1 unheard-of word"


def test_entity_types_have_their_chinese_name_before_them():
    assert [type_name(label) for label in ("Examine", "O", "7")] == ["Examine", "O", "7"]
    with texts.speaking("zh"):
        assert [type_name(label) for label in ("Examine", "O")] == ["检查 Examine", "O"]


@pytest.mark.parametrize(("given", "language"), [("zh", "zh"), ("en", "en"), ("tlh", "en")])
def test_the_default_language_is_the_environments(monkeypatch, given, language):
    monkeypatch.setenv("KBERT_LANGUAGE", given)
    assert texts.default_language() == language


def test_no_text_is_asked_for_at_import():
    """A text kept by a module or a decorator would keep the language of the first visitor."""
    for path in sorted(ROOT.rglob("*.py")):
        if path.name == "router.py":
            continue  # a script: run anew for everyone
        tree = ast.parse(path.read_text(encoding="utf-8"))
        at_import = list(tree.body)
        while at_import:
            node = at_import.pop()
            if isinstance(node, ast.FunctionDef | ast.Lambda):
                at_import += [*getattr(node, "decorator_list", []), *node.args.defaults]
                continue
            if isinstance(node, ast.Call):
                name = getattr(node.func, "id", getattr(node.func, "attr", None))
                assert name not in ("t", "tn"), f"{path.name}, line {node.lineno}"
            at_import += list(ast.iter_child_nodes(node))
