"""Two languages of the same texts."""

import ast
import pkgutil
import re
import string
from pathlib import Path

import pytest
from jinja2 import Environment, meta

import app
from app import texts

ROOT = Path(app.__file__).parent
CHINESE = re.compile(r"[\u4e00-\u9fff]")
ALIKE = re.compile(  # texts that need no translation: values, names and commands alone
    r"(\{[^}]*\}|F1|MRR|P@1|MB|MASK|K-BERT Lab|K-BERT|KnowBert|Roof-BERT"
    r"|train\.tsv|\W|\d)*|git .*|kbert .*|/path/.*"
)


def placeholders(text):
    if "{{" in text:
        return meta.find_undeclared_variables(Environment().parse(text))
    return {
        re.split(r"[.\[]", name)[0]
        for _, name, _, _ in string.Formatter().parse(text)
        if name is not None
    }


def test_every_module_of_texts_is_registered():
    found = {name for _, name, _ in pkgutil.iter_modules([str(ROOT)]) if name.startswith("texts_")}
    assert found == {module.__name__.removeprefix("app.") for module in texts.MODULES}


@pytest.mark.parametrize("module", texts.MODULES, ids=lambda module: module.__name__)
def test_languages_have_the_same_keys_and_placeholders(module):
    assert module.ENGLISH.keys() == module.CHINESE.keys()
    for key, english in module.ENGLISH.items():
        assert placeholders(english) == placeholders(module.CHINESE[key]), key


@pytest.mark.parametrize("module", texts.MODULES, ids=lambda module: module.__name__)
def test_every_text_is_translated(module):
    same = [
        key
        for key, chinese in module.CHINESE.items()
        if not CHINESE.search(chinese) and not ALIKE.fullmatch(chinese)
    ]
    assert same == []
    for key, english in module.ENGLISH.items():
        assert key.startswith("example.") or not CHINESE.search(english), key


def test_no_key_stands_in_two_modules():
    keys = [key for module in texts.MODULES for key in module.ENGLISH]
    assert sorted(keys) == sorted(set(keys))


def test_a_text_is_in_the_language_asked_for_at_that_moment(monkeypatch):
    language = "zh"
    monkeypatch.setattr(texts, "language_of", lambda: language)
    assert texts.t("tree.count", tokens=3, trunk=2, branch=1) == "3 个词元：主干 2，分支 1"
    assert texts.sentences(["甲。", "乙。"]) == "甲。乙。"
    language = "en"
    assert texts.t("tree.count", tokens=3, trunk=2, branch=1) == "3 tokens: 2 trunk, 1 branch"
    assert texts.listed([1, 2]) == "1, 2"


@pytest.mark.parametrize(("given", "language"), [("zh", "zh"), ("en", "en"), ("tlh", "en")])
def test_the_default_language_is_the_environments(monkeypatch, given, language):
    monkeypatch.setenv("KBERT_LANGUAGE", given)
    assert texts.default_language() == language


def test_no_text_is_asked_for_at_import():
    """A text kept by a module or a decorator would keep the language of the first visitor."""
    for path in sorted(ROOT.rglob("*.py")):
        if path.name == "main.py":
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
                assert name != "t", f"{path.name}, line {node.lineno}"
            at_import += list(ast.iter_child_nodes(node))
