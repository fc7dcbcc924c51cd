"""Drawings in the browser, for any host: ES modules with ``draw(element, view, send)``.

A drawing is shown by calling ``draw`` with an element, again whenever the view changes. What a
visitor does in it is sent as a message that names triples and tokens, and never places; see
``kbert_lab.lab.commands.command_of``.
"""

import re
from pathlib import Path

IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=function (\w+)|const (.*))", re.MULTILINE)


def source(name: str) -> str:
    """The text of a file of this folder."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def needed(*modules: str) -> list[str]:
    """Modules and all that they import, each after what it imports."""
    found: dict[str, None] = {}
    for module in modules:
        imported = [other for _, other in IMPORT.findall(source(f"{module}.js"))]
        found |= dict.fromkeys([*needed(*imported), module])
    return list(found)


def bundle(name: str) -> str:
    """A module and all that it imports as one script: each a constant with what it exports.

    Args:
        name: of the module; ``bundle("tree")`` leaves a constant ``$tree``, with ``$tree.draw``.
    """
    return "".join(map(_as_constant, needed(name)))


def _as_constant(module: str) -> str:
    text = source(f"{module}.js")
    exported = [
        name
        for function, constants in EXPORT.findall(text)
        for name in ([function] if function else re.findall(r"(\w+) = ", constants))
    ]
    body = EXPORT.sub("", IMPORT.sub(_taken, text))
    return f"const ${module} = (() => {{\n{body}return {{ {', '.join(exported)} }};\n}})();\n"


def _taken(found: re.Match[str]) -> str:
    """An import, from a module that stands above."""
    return f"const {found[1].replace(' as ', ': ')} = ${found[2]};\n"
