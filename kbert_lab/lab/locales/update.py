"""Bring translations up to date after texts changed: ``python -m kbert_lab.lab.locales.update``.

New texts come without a translation, or with that of a similar text, marked
``fuzzy``: translate it, take the mark away. Texts that are no longer used go.

Errors of the core stand in ``core.po``, which is written by hand: a text of the core with its
values named, or what a library says in one. ``kbert_lab.lab.texts.refusal`` finds them again.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po, write_po
from jinja2 import Environment
from jinja2.nodes import Call, Const

from kbert_lab.lab.examples import EXAMPLES, SCENES
from kbert_lab.lab.texts import LOCALES
from kbert_lab.lab.views.lessons import LESSONS, texts_of
from kbert_lab.study import verdict

ROOT = LOCALES.parents[2]
SPEAKING = (ROOT / "app", LOCALES.parent)  # whose texts are translated
HEADER = """msgid ""
msgstr ""
"Language: {0.locale}\\n"
"Content-Type: text/plain; charset=utf-8\\n"
"Plural-Forms: {0.plural_forms}\\n"

"""


def texts_in(source: str) -> Iterator[tuple[int, str | tuple[str, str]]]:
    """Each text of a program, by line: what ``t``, ``tn`` and ``N_`` are given."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and node.args:
            name = getattr(node.func, "id", getattr(node.func, "attr", None))
            if name == "tn":
                one, many = (arg.value for arg in node.args[:2] if isinstance(arg, ast.Constant))
                yield node.lineno, (str(one), str(many))
            elif name in ("t", "N_"):
                yield from ((node.lineno, text) for text in _constants(node.args[0]))


def texts_in_template(source: str) -> Iterator[tuple[int, str]]:
    """Each text of a template, by line: what ``t`` is given."""
    for call in Environment().parse(source).find_all(Call):
        if getattr(call.node, "name", "") == "t" and isinstance(call.args[0], Const):
            yield call.lineno, call.args[0].value


def extracted() -> Catalog:
    """All texts of the app, with the files they stand in; those of the core's verdict too."""
    catalog = Catalog()
    kinds = {".py": texts_in, ".jinja": texts_in_template}
    files = sorted(path for folder in SPEAKING for path in folder.rglob("*"))
    for path in (path for path in files if path.suffix in kinds):
        name, found = path.relative_to(ROOT).as_posix(), kinds[path.suffix](path.read_text("utf-8"))
        for line, text in sorted(found, key=lambda own: own[0]):
            catalog.add(text, locations=[(name, line)])
    for number, text in enumerate(verdict.english().values()):
        catalog.add(text, locations=[("kbert_lab/study/verdict.yaml", number)])
    scenes = [text for scene in SCENES for text in (scene.title, scene.text)]
    for text in [*(example.name for example in EXAMPLES), *scenes]:
        catalog.add(text, locations=[("kbert_lab/lab/examples.yaml", 1)])
    for text in (text for lesson in LESSONS for text in texts_of(lesson)):
        catalog.add(text, locations=[("kbert_lab/lab/views/lessons.yaml", 1)])
    return catalog


def write(catalog: Catalog, path: Path) -> None:
    """Write a language's texts in the order of the program."""
    for message in catalog:
        message.flags &= {"fuzzy"}
    with path.open("wb") as file:
        file.write(HEADER.format(catalog).encode())
        write_po(file, catalog, 100, omit_header=True, sort_by_file=True, include_lineno=False)


def update() -> None:
    """Take the app's texts into every language."""
    found = extracted()
    for path in LOCALES.glob("*/LC_MESSAGES/app.po"):
        with path.open("rb") as file:
            catalog = read_po(file, locale=path.parts[-3])
        catalog.update(found)
        catalog.obsolete.clear()
        write(catalog, path)


def _constants(node: ast.expr) -> Iterator[str]:
    """A text, or the two of ``a if … else b``."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from _constants(node.body)
        yield from _constants(node.orelse)


if __name__ == "__main__":
    update()
