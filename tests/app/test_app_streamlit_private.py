"""What the app uses of Streamlit's insides is there in the version that is installed."""

import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import streamlit
from packaging.requirements import Requirement
from streamlit import config
from streamlit.testing.v1 import AppTest

from app import streamlit_private

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
DRAWN = [*(ROOT / "kbert_lab" / "lab" / "drawings").iterdir(), Path(streamlit_private.__file__)]


def test_the_version_is_bounded_above():
    wanted = map(Requirement, PROJECT["optional-dependencies"]["app"])
    (bound,) = (own.specifier for own in wanted if own.name == "streamlit")
    major, minor, *_ = version("streamlit").split(".")
    assert version("streamlit") in bound
    assert f"{major}.{int(minor) + 1}.0" not in bound


def test_the_app_uses_insides_in_one_file():
    inside = r"streamlit\.(runtime|proto|elements|commands|delta_generator_singletons)"
    files = (ROOT / "app").rglob("*.py")
    found = [file.name for file in files if re.search(inside, file.read_text("utf-8"))]
    assert found == ["streamlit_private.py"]


def test_the_parts_of_a_page_that_styles_and_scripts_name_are_there():
    built = Path(streamlit.__file__).parent / "static" / "static" / "js"
    code = "".join(file.read_text("utf-8") for file in built.glob("*.js"))
    texts = [file.read_text("utf-8") for file in DRAWN if file.is_file()]
    names = {name for text in texts for name in re.findall(r'data-testid="(\w+)"', text)}
    assert "stApp" in names
    assert [name for name in sorted(names) if name not in code] == []


def test_every_setting_is_known():
    settings = tomllib.loads((ROOT / "app" / ".streamlit" / "config.toml").read_text("utf-8"))
    known = config.get_config_options()
    for section, own in settings.items():
        for name in own:
            nested = f"{section}.{name}"
            assert any(key == nested or key.startswith(f"{nested}.") for key in known), nested


def page():
    import streamlit as st

    from app import streamlit_private

    st.session_state["inside"] = streamlit_private.in_a_page()


def test_a_page_that_is_being_made_is_told_from_a_test():
    at = AppTest.from_function(page).run()
    assert at.session_state["inside"] is True
    assert streamlit_private.in_a_page() is False
