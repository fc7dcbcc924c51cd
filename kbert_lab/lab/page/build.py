"""The scripts of the page, as a site holds them."""

from pathlib import Path

SCRIPTS = {path.name: path.read_text("utf-8") for path in Path(__file__).parent.glob("*.js")}
