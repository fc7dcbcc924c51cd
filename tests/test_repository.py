"""What a stranger looks for in a repository: licences, attributions, how to cite, forms."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
LISTED = ["git", "ls-files", "-co", "--exclude-standard"]
FILES = subprocess.run(LISTED, cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
MODELS = {file.split("/")[1] for file in FILES.stdout.split() if re.match("models/.*/config", file)}
NO_ATTRIBUTION = {"–", "none", "or for research only", "mixed", "of several sources"}
NO_ATTRIBUTION |= {"CC0", "CC0 and mixed", "Apache-2.0"}


def text_of(file):
    return (ROOT / file).read_text(encoding="utf-8")


def licences():
    """The rows of the table of licences, by model."""
    section = text_of("models/README.md").partition("## Licences")[2].partition("\n## ")[0]
    rows = (line.strip("| ").split(" | ") for line in section.splitlines() if line[:3] == "| `")
    return {name.strip("`"): row for name, *row in rows}


def test_every_model_stands_in_the_table_of_licences():
    assert set(licences()) == MODELS
    assert {len(row) for row in licences().values()} == {5}


@pytest.mark.parametrize("model", sorted(MODELS))
def test_every_attribution_that_a_licence_asks_for_is_in_the_notice(model):
    _, of_data, _, of_graph, encoder = licences()[model]
    assert encoder in ("`zh-mini`", "– (made here)", "all-MiniLM-L6-v2, Apache-2.0")
    asked = set(re.split("[;,] ", f"{of_data}; {of_graph}")) - NO_ATTRIBUTION
    assert asked <= {"CC BY 3.0", "CC BY 4.0", "CC BY-SA 3.0", "CC BY-SA 4.0", "WordNet"}
    attributions = re.split(r"\n\n+", text_of("NOTICE"))
    own = [part for part in attributions if re.search(rf"models/{model}(?![\w-])", part)]
    assert [licence for licence in asked if not any(licence in part for part in own)] == []


def test_the_packages_licence_names_those_of_its_parts_and_holds_their_texts():
    assert PROJECT["license"] == "Apache-2.0 AND CC0-1.0 AND LicenseRef-WordNet"
    begins = {"LICENSE": "Apache License", "demo_kgs/LICENSE": "CC0 1.0 Universal"}
    begins |= {"NOTICE": "K-BERT Lab", "models/wsd-knowbert/WORDNET_LICENSE.txt": "Princeton"}
    assert set(PROJECT["license-files"]) == set(begins)
    for file, words in begins.items():
        assert words in text_of(file)[:400]
    assert "Copyright 2006 by Princeton University" in text_of("NOTICE")


def test_the_citation_is_of_this_version_and_of_the_paper():
    cited = yaml.safe_load(text_of("CITATION.cff"))
    assert (cited["cff-version"], cited["version"]) == ("1.2.0", PROJECT["version"])
    assert {"title", "message", "authors", "license"} <= cited.keys()
    (paper,) = cited["references"]
    assert paper["title"].startswith("K-BERT: Enabling")
    assert [author["family-names"] for author in paper["authors"]][::6] == ["Liu", "Wang"]


def test_every_address_of_the_repository_is_the_one_of_the_project():
    """Where this fails, the address in pyproject.toml was set: write it here, too."""
    address, wrong = PROJECT["urls"]["Repository"], []
    looked_at = ("README.md", "CONTRIBUTING.md", "CITATION.cff", "docs/install.md")
    for file in (*looked_at, ".github/ISSUE_TEMPLATE/config.yml"):
        found = re.findall(r"https://github\.com/[\w.-]+/kbert-lab\b", text_of(file))
        assert found, file
        wrong += [f"{file}: {own}" for own in found if own != address]
    assert wrong == []


def test_the_badges_are_true():
    badges = re.findall(r"^\[!\[(.*?)\]\((.*?)\)\]\((.*?)\)$", text_of("README.md"), re.MULTILINE)
    pictures = {name: picture for name, picture, _ in badges}
    assert set(pictures) == {"test", "Apache-2.0", "Python"}
    first, after = re.findall(r"3\.(\d+)", PROJECT["requires-python"])
    assert f"3.{first}_to_3.{int(after) - 1}-" in pictures["Python"]
    workflow = ".github/workflows" + pictures["test"].partition("workflows")[2]
    steps = yaml.safe_load(text_of(workflow.removesuffix("/badge.svg")))["jobs"]["test"]["steps"]
    assert ".ci/run" in [step.get("run") for step in steps]
    assert "Apache License" in text_of("LICENSE")
