"""Pages of the site that are made when it is built: the reference of commands, files outside docs/.

MkDocs calls the functions ``on_…`` (see ``mkdocs.yml``). Links in a page stay as they work on the
code host; here one to a file outside ``docs/`` becomes one to its page, or to the repository.
"""

import argparse
import inspect
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import MISSING
from os.path import relpath
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
PAGES = {  # a file outside docs/ → its page
    "README.md": "index.md",
    "README.zh.md": "index.zh.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "demo_kgs/README.md": "demo_graphs.md",
    "models/README.md": "models.md",
    "notebooks/README.md": "notebooks.md",
}
COMMANDS = "reference/commands.md"
SUITES = "reference/suites.md"
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)(#[^)\s]*)?(?=\))")
BADGE = re.compile(r"^\[!\[.*\n", re.MULTILINE)
SHARED = 8  # an option of at least so many commands is described once


def repository() -> str:
    """The address of the repository; the one place is ``pyproject.toml``."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return str(project["urls"]["Repository"])


def on_config(config: Any) -> Any:
    """Add a link to the repository: as ``repo_url`` the theme would ask its host for stars."""
    config.extra["social"] = [{"icon": "fontawesome/brands/git-alt", "link": repository()}]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that aren't in docs/."""
    from mkdocs.structure.files import File

    made = {page: (ROOT / file).read_text("utf-8") for file, page in PAGES.items()}
    made["index.md"] = BADGE.sub("", made["index.md"])  # their pictures lie on other hosts
    made[COMMANDS], made[SUITES] = commands_page(), suites_page()
    made["logo.svg"] = (ROOT / "app" / "logo.svg").read_text("utf-8")
    made |= handouts()
    for page, text in made.items():
        files.append(File.generated(config, page, content=text))
    return files


def on_post_build(config: Any) -> None:
    """Add the pages that read texts in the browser, with their models."""
    from kbert_lab.lab.page.build import build

    build(Path(config.site_dir) / "try")


def handouts() -> dict[str, str]:
    """The notebooks as web pages with their stored outputs, by where they stand in the site."""
    sys.path.insert(0, str(ROOT / "notebooks" / "source"))
    from pages import main

    with TemporaryDirectory() as folder:
        main([folder])
        files = [*Path(folder).rglob("*.html")]
        return {f"notebooks/{f.relative_to(folder)}": f.read_text("utf-8") for f in files}


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Let links that work on the code host work here; two [MASK] in a row are none."""
    made = linked(markdown, page.file.src_uri, f"{repository()}/blob/main")
    return made.replace("[MASK][MASK]", "[MASK]&#91;MASK]")


def linked(markdown: str, page: str, repository: str) -> str:
    """The text of a page with its links to files outside docs/ led to their pages.

    A link to no file is left, so that the build fails on it.
    """
    source = ROOT / next((file for file, at in PAGES.items() if at == page), f"docs/{page}")

    def there(link: re.Match[str]) -> str:
        path = (source.parent / link[1]).resolve()
        if not path.is_relative_to(ROOT) or not path.exists():
            return link[0]
        file, anchor = path.relative_to(ROOT).as_posix(), link[2] or ""
        if file.startswith("docs/") or file in PAGES:
            to = PAGES.get(file, file.removeprefix("docs/"))
            return relpath(to, PurePosixPath(page).parent) + anchor
        if file.endswith(".ipynb"):
            return relpath(file.replace(".ipynb", ".html"), PurePosixPath(page).parent)
        return f"{repository}/{file}{anchor}"

    return LINK.sub(there, markdown)


def commands() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command with its parser, in the order of ``kbert --help``."""
    from kbert_lab.cli import parser

    def below(name: str, at: argparse.ArgumentParser) -> Iterator[Any]:
        for action in at._actions:
            if isinstance(action, argparse._SubParsersAction):
                for word, sub in action.choices.items():
                    yield from below(f"{name} {word}", sub)
                return
        yield name, at

    return below("kbert", parser())


def commands_page() -> str:
    """The reference of commands, in Markdown, made from the parser."""
    every = [(name, at, [a for a in at._actions if a.dest != "help"]) for name, at in commands()]
    times = Counter(row(a) for _, _, actions in every for a in actions if a.option_strings)
    shared = [text for text, count in times.items() if count >= SHARED]
    lines = [
        "# Commands",
        "",
        "Made from the program itself; `kbert COMMAND --help` says the same. Options that many",
        "commands share are described once, [at the end](#shared-options).",
    ]
    for name, at, actions in every:
        first, _, more = (at.description or "").partition("\n\n")
        usage = " ".join([name, *(typed(a) for a in actions if not a.option_strings), "[OPTION …]"])
        lines += ["", f"## {name}", "", " ".join(first.split()), "", f"```text\n{usage}\n```"]
        lines += ["", " ".join(more.split())] if more else []
        own = [row(a) for a in actions if row(a) not in shared and (a.option_strings or a.help)]
        lines += ["", *HEAD, *own] if own else []
        others = [words(a) for a in actions if row(a) in shared]
        lines += ["", f"Shared: {', '.join(others)}"]
    return "\n".join([*lines, "", "## Shared options", "", *HEAD, *shared, ""])


HEAD = ("| | |", "|---|---|")


def words(action: argparse.Action) -> str:
    """How an argument is typed: its flags, or its name."""
    return ", ".join(f"`{flag}`" for flag in action.option_strings) or f"`{value(action)}`"


def typed(action: argparse.Action) -> str:
    """An argument without a flag, in a line of usage."""
    name = value(action) + (" …" if action.nargs in ("+", "*") else "")
    return f"[{name}]" if action.nargs in ("?", "*") else name


def value(action: argparse.Action) -> str:
    """What stands in the place of an argument's value."""
    if action.choices is not None:
        return f"{{{','.join(map(str, action.choices))}}}"
    metavar = action.metavar[0] if isinstance(action.metavar, tuple) else action.metavar
    return metavar or action.dest.upper()


def row(action: argparse.Action) -> str:
    """The line of an argument in a table."""
    takes = f" `{value(action)}`" if action.option_strings and action.nargs != 0 else ""
    more = " …" if action.nargs in ("+", "*") else ""
    needed = "needed; " if action.option_strings and action.required else ""
    return f"| {words(action)}{takes}{more} | {needed}{action.help or ''} |"


def suites_page() -> str:
    """The reference of a suite's keys, in Markdown, made from the classes that check them."""
    from kbert_core.knowledge.selection import InjectionOptions
    from kbert_core.options import option_fields
    from kbert_lab.cli.commands import described
    from kbert_lab.suites import suite
    from kbert_lab.training.options import Recipe, TrainOptions

    lines = [
        "# Keys of a suite",
        "",
        "What `kbert experiment SUITE.yaml` reads; [Compare](../compare.md) explains it. Made from",
        "the classes that check a suite. A run or a baseline that leaves out "
        f"{', '.join(f'`{key}`' for key in suite.INHERITED)} takes the suite's.",
    ]
    for title, *classes in (
        ("The suite", suite.Suite),
        ("data", suite.Data),
        ("runs", suite.Condition, suite.Row, suite.Run),
        ("baselines", suite.Condition, suite.Row, suite.Baseline),
        ("conditions", suite.Condition),
        ("side_by_side", suite.SideBySide),
    ):
        about = " ".join((classes[-1].__doc__ or "").split())
        lines += ["", f"## {title}", "", about, "", "| key | values | |", "|---|---|---|"]
        for kind in classes:
            keys = KEY.findall(inspect.getsource(kind))
            notes = {key: above or beside for above, key, beside in keys}
            lines += [
                f"| `{name}` | {values(option_fields(kind)[name], notes[name])} | {notes[name]} |"
                for name in kind.__annotations__
                if name != "path"
            ]
    for title, options, elsewhere in (
        ("train", TrainOptions, suite.SET_ELSEWHERE),
        ("recipe", Recipe, set()),
        ("injection", InjectionOptions, set()),
    ):
        said = described(options)[1]
        helps = {name: said[name][1] if name in said else "" for name in option_fields(options)}
        lines += ["", f"## {title}", "", "| key | |", "|---|---|"]
        lines += [f"| `{key}` | {text} |" for key, text in helps.items() if key not in elsewhere]
    return "\n".join([*lines, ""])


# The comment above or beside a field says what it is.
KEY = re.compile(r"(?:^    # (.*)\n)?^    (\w+): .*?(?:  # (.*))?$", re.MULTILINE)


def values(field: Any, note: str) -> str:
    """The words that a key takes, the default first, or that it is needed."""
    words = [*field.metadata.get("choices", ())]
    if field.default is field.default_factory is MISSING:
        words = words if "default: " in note else ["needed", *words]
    elif isinstance(field.default, str) and field.default:
        words = [field.default, *(word for word in words if word != field.default)]
    return ", ".join(word if word == "needed" else f"`{word}`" for word in words)
