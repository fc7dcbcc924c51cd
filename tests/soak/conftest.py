"""What soak tests count and measure goes to one file."""

import json
from pathlib import Path

import pytest

FIGURES = Path(__file__).parents[2] / "benchmarks" / "results" / "soak.json"


@pytest.fixture(scope="session")
def figures():
    """Figures by name; those of tests that aren't run stay as they were."""
    found: dict[str, dict] = {}
    yield found
    FIGURES.parent.mkdir(parents=True, exist_ok=True)
    before = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.is_file() else {}
    FIGURES.write_text(json.dumps({**before, **found}, indent=1) + "\n", encoding="utf-8")
