"""The documents: what they show runs and prints what they say, and every link leads somewhere."""

import importlib.util
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from pkgutil import resolve_name

import pytest
import yaml

import kbert_core
from kbert_core import (
    MaskTransformer,
    Pipeline,
    k_inject,
    k_query,
    load_graph,
    visible_matrix,
)
from kbert_core.kbert import mask_transformer
from kbert_core.options import option_fields
from kbert_lab import cli
from kbert_lab.cli import parser
from kbert_lab.cli.commands import COMMANDS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
WRITTEN = subprocess.run(
    ["git", "ls-files", "-co", "--exclude-standard", "*.md"],
    **{"cwd": ROOT, "capture_output": True, "encoding": "utf-8", "check": True},
).stdout.split()
PASTED = ("results/selection/section.md", "results/expected/section.md")  # into docs/results/
LINKED = [  # the findings' links are those of docs/results.md, which is made of them
    file
    for file in WRITTEN
    if file not in (*PASTED, "results/findings.md") and not re.match("models/.*/", file)
]
BLOCK = re.compile(  # with what stands below it as its output
    r"^```(\w+)\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL
)
ELSEWHERE = {"docs/sharing.md"}  # its Python runs in tests/app/test_app_share.py
MADE = {"docs/reference/commands.md", "docs/reference/suites.md"}  # when the site is built


def text_of(file):
    return (ROOT / file).read_text(encoding="utf-8")


def lines_of(block):
    block = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "DATE", block)
    return [line for line in block.replace("\\\n", " ").splitlines() if line.strip()]


def blocks_of(file):
    return BLOCK.findall(text_of(file))


ARCHITECTURE = text_of("docs/architecture.md")
WALK = re.findall(r"^\d\. `([\w/]+)\.py`, `([\w.]+)`", ARCHITECTURE, flags=re.MULTILINE)
RUN = [
    file
    for file in LINKED
    if file == "README.md" or (file.startswith("docs/") and file not in ELSEWHERE)
    if any(kind in ("console", "python") for kind, *_ in blocks_of(file))
]
PARSED = [
    (file, line)
    for file in LINKED
    for kind, block, _ in blocks_of(file)
    if kind in ("sh", "bash")
    for line in lines_of(block)
    if line.startswith("kbert ")
]


@pytest.fixture(scope="module")
def hooks():
    spec = importlib.util.spec_from_file_location("hooks", DOCS / "hooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("file", RUN)
def test_what_a_document_shows_runs_and_prints_what_it_says(file, tmp_path, capsys, monkeypatch):
    for folder in ("demo_kgs", "models"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    monkeypatch.chdir(tmp_path)
    space = {}
    for kind, block, shown in blocks_of(file):
        if kind == "python":
            exec(block, space)
        elif kind == "console":
            for line in lines_of(block):
                assert line.startswith("kbert "), f"{line}: not a command that this test can run"
                capsys.readouterr()
                assert cli.main(shlex.split(line)[1:]) == 0, capsys.readouterr().err
        else:
            continue
        out = capsys.readouterr().out
        assert out.strip()
        if shown:
            assert fits(lines_of(shown), lines_of(out)), f"{block}\nprints:\n{out}"


def fits(shown, printed):
    """Whether lines are as shown, where "…" stands for any lines; numbers may differ a little."""
    if not shown:
        return not printed
    if shown[0].strip() == "…":
        return any(fits(shown[1:], printed[at:]) for at in range(len(printed) + 1))
    return bool(printed) and alike(shown[0], printed[0]) and fits(shown[1:], printed[1:])


def alike(shown, printed):
    words = shown.split(), printed.split()
    return len(words[0]) == len(words[1]) and all(map(equal, *words))


def equal(shown, printed):
    try:
        a, b = (float(word.strip(",;%()[]").replace("−", "-")) for word in (shown, printed))
    except ValueError:
        return shown == printed
    return abs(a - b) <= 0.02 * abs(a) + 0.002


def test_a_document_that_shows_another_result_is_found():
    assert fits(["a 1.00", "…", "z"], ["a 1.01", "b", "c", "z"])
    assert not fits(["a 1.00", "…", "z"], ["a 1.20", "z"])
    assert not fits(["a", "z"], ["a", "b", "z"])
    assert not fits(["a"], ["a", "b"])


def test_the_documents_show_commands():
    assert {"README.md", "docs/tutorial.md", "docs/explain.md", "docs/graphs.md"} <= set(RUN)
    assert {"docs/encoders.md", "docs/train.md"} <= {file for file, _ in PARSED}


@pytest.mark.parametrize(("file", "command"), PARSED)
def test_a_command_that_is_not_run_can_be_parsed(file, command):
    assert parser().parse_args(shlex.split(command, comments=True)[1:]).command


def slugs(file):
    """The addresses of a document's headings, as the code host and the site make them."""
    text = re.sub(r"^```.*?^```", "", text_of(file), flags=re.MULTILINE | re.DOTALL)
    names = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    plain = [re.sub(r"\[(.*?)\]\(.*?\)", r"\1", name).lower() for name in names]
    return {re.sub(r"[^\w\- ]", "", name).strip().replace(" ", "-") for name in plain}


@pytest.mark.parametrize("file", LINKED)
def test_every_link_leads_to_a_file_and_a_heading(file):
    for target, anchor in re.findall(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)", text_of(file)):
        path = (ROOT / file).parent / target if target else ROOT / file
        at = path.resolve().relative_to(ROOT).as_posix()
        if at not in MADE and not re.match(r"docs/results/.*\.png$", at):  # `make docs` draws them
            assert path.exists(), f"{file}: no {target}"
            assert not anchor or at.endswith(".ipynb") or anchor in slugs(at), f"{at}#{anchor}"


def test_every_page_of_the_site_is_in_its_menu(hooks):
    def files(part):
        if isinstance(part, str):
            return [part]
        return [
            f for each in (part.values() if isinstance(part, dict) else part) for f in files(each)
        ]

    site = yaml.safe_load(text_of("mkdocs.yml"))
    pages = {*hooks.PAGES.values(), hooks.COMMANDS, hooks.SUITES}
    pages |= {f.removeprefix("docs/") for f in WRITTEN if f.startswith("docs/")}
    in_menu = files(site["nav"])
    assert len(in_menu) == len(set(in_menu))
    assert set(in_menu) == pages


def test_a_link_out_of_the_site_leads_to_a_page_or_to_the_repository(hooks):
    text = "[a](../SECURITY.md#limits) [b](../Makefile) [c](graphs.md) [d](../nowhere) [e](#x)"
    made = hooks.linked(text, "see.md", "HOST")
    assert (
        made == "[a](security.md#limits) [b](HOST/Makefile) [c](graphs.md) [d](../nowhere) [e](#x)"
    )
    assert hooks.linked("[a](docs/decisions/probe.md)", "index.md", "HOST") == (
        "[a](decisions/probe.md)"
    )
    assert hooks.linked("[a](../zh-mini) [b](../docs/data.md)", "models.md", "HOST") == (
        "[a](../zh-mini) [b](data.md)"
    )
    assert hooks.linked("[a](zh/00_start_here.ipynb)", "notebooks.md", "HOST") == (
        "[a](notebooks/zh/00_start_here.html)"
    )


def test_every_option_of_every_command_is_in_the_reference(hooks, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "2000")  # else --train-data is broken after its second hyphen
    page = hooks.commands_page()
    assert len(COMMANDS) > 35
    for name in COMMANDS:
        with pytest.raises(SystemExit):
            cli.main([*name.split(), "--help"])
        said = capsys.readouterr().out.partition("\noptions:")[2]  # not what is said before them
        options = set(re.findall(r"(?<![\w-])--[a-z][\w-]+", said))
        (section,) = re.findall(rf"^## kbert {name}\n(.*?)(?=^## )", page, re.MULTILINE | re.DOTALL)
        described = set(re.findall(r"`(--[\w-]+)`", section))
        assert options - described - {"--help"} == set(), name
    shared = set(re.findall(r"^Shared: (.*)$", page, flags=re.MULTILINE))
    named = {flag for line in shared for flag in re.findall(r"`(--[\w-]+)`", line)}
    assert named == set(re.findall(r"`(--[\w-]+)`", page.partition("## Shared options")[2]))


def test_every_option_of_a_command_says_what_it_is(hooks):
    for name, command in hooks.commands():
        for action in command._actions:
            assert action.help or not action.option_strings, f"{name} {action.option_strings}"


def test_every_key_of_a_suite_is_in_the_reference_and_says_what_it_is(hooks):
    page = hooks.suites_page()
    for kind in ("Suite", "Data", "Run", "Baseline", "Condition", "SideBySide"):
        for key in option_fields(resolve_name(f"kbert_lab.suites.suite:{kind}")).keys() - {"path"}:
            assert re.search(rf"^\| `{key}` \|.*\| \S.* \|$", page, flags=re.MULTILINE), key


def test_every_public_name_is_in_the_reference_of_python():
    names = re.findall(r"^::: ([\w.]+)$", text_of("docs/reference/python.md"), re.MULTILINE)
    public = {name.split(".")[1] for name in names if name.count(".") == 1}
    assert public == set(kbert_core.__all__)
    for name in names:
        module, _, last = name.rpartition(".")
        resolve_name(f"{module}:{last}")


def test_the_findings_are_few_short_and_lead_to_every_page_of_results():
    text = text_of("docs/results.md")
    assert len(text.split()) <= 900
    assert 8 <= len(re.findall(r"^\d+\. ", text, re.MULTILINE)) <= 12
    pages = {f"results/{path.name}" for path in (DOCS / "results").glob("*.md")}
    assert not pages - set(re.findall(r"\((results/[\w-]+\.md)", text))


def test_what_a_suite_shows_is_said_in_sentences_of_one_figure_and_what_it_cannot_say():
    for path in sorted((ROOT / "results" / "suites").glob("*.yaml")):
        summary = yaml.safe_load(path.read_text(encoding="utf-8"))["summary"]
        lines = [line for line in summary.splitlines() if line.startswith("- ")]
        assert 2 <= len(lines) <= 5, path
        assert all(line.count("{{") <= 1 for line in lines), path
        assert lines[-1].startswith("- *What it can't say:* "), path


PROGRAM = ("kbert_core", "kbert_lab", "app")


def test_every_variable_that_the_program_reads_is_documented():
    program = [f for folder in PROGRAM for f in (ROOT / folder).rglob("*.py")]
    found = {v for f in program for v in re.findall(r"KBERT_[A-Z_]+", f.read_text("utf-8"))}
    said = text_of("docs/install.md") + text_of("SECURITY.md")
    assert len(found) > 5
    assert not {name for name in found if f"`{name}`" not in said}


def test_the_terms_are_those_of_the_app():
    rows = re.findall(r"^\| ([a-z].*?) \| (.*?) \| .* \|$", text_of("docs/terms.md"), re.MULTILINE)
    english, chinese = zip(*[row for row in rows if row[0] != "term"], strict=True)
    assert len(english) == len(set(english)) > 40
    app = text_of("kbert_lab/lab/locales/zh/LC_MESSAGES/app.po")
    absent = {word for words in chinese for word in words.split("、") if word not in app}
    assert absent <= OUTSIDE_THE_APP


OUTSIDE_THE_APP = {
    *"策略、训练配方、反事实、掩码 Transformer、对照".split("、"),
    *"顶部层、实体链接器、随机种子、打乱的尾实体、不变的尾实体、模型卡".split("、"),
}


def test_the_site_builds_and_fetches_nothing(tmp_path):
    pytest.importorskip("mkdocs", reason="installed by make docs")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", str(tmp_path)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    assert not done.returncode, done.stderr + done.stdout
    index = json.loads((tmp_path / "search" / "search_index.json").read_text("utf-8"))
    assert len(index["docs"]) > 100
    fetched = re.compile(
        r"<(?:script|img|iframe)[^>]* src=\W?(?:https?:)?//|rel=\W?stylesheet[^>]*//"
    )
    assert not [
        page for page in tmp_path.rglob("*.html") if fetched.search(page.read_text("utf-8"))
    ]


def test_the_page_on_the_program_names_files_that_are_there():
    named = set(re.findall(r"[`(]([\w/]+\.py)`", ARCHITECTURE)) - {"kbert_core/NAME/NAME.py"}
    missing = [n for n in named if not any((ROOT / at / n).is_file() for at in ("", *PROGRAM))]
    assert len(named) > 10
    assert not missing


def test_the_walk_of_one_sentence_names_functions_that_are_there():
    assert len(WALK) == 8  # files that one sentence meets
    for file, function in WALK:
        resolve_name(f"kbert_core.{file.replace('/', '.')}:{function}")


def test_one_sentence_runs_the_files_of_the_walk_and_few_others():
    walk = {f"{file}.py" for file, _ in WALK}
    (most,) = re.findall(r"at most (\d+)\s+files of the core run", ARCHITECTURE)
    pipeline = Pipeline.from_pretrained(ROOT / "models" / "medical-ner-kbert", device="cpu")
    graph = load_graph(ROOT / "demo_kgs" / "medical_zh.spo")
    run = set()

    def note(frame, event, _):
        _, core, file = frame.f_code.co_filename.rpartition("/kbert_core/")
        if core and event == "call":
            run.add(file)

    def read():
        return list(pipeline.read([("患者行胃镜检查未见异常",)], graph=graph))

    read()  # what is loaded or compared once
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        read()
    finally:
        sys.setprofile(before)
    assert walk <= run
    assert len(run) <= int(most)


def test_each_equation_of_the_paper_is_named_where_it_is_computed():
    for function, equation in ((k_query, 1), (k_inject, 2), (visible_matrix, 3)):
        assert f"Eq. {equation})" in function.__doc__
    assert "Eq. 4-6" in MaskTransformer.forward.__doc__
    assert all(f"(Eq. {number})" in mask_transformer.__doc__ for number in (4, 5, 6))
