"""The app's entry: `streamlit run app/main.py` from the repository root."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Timer

import streamlit as st

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

SOON = 3.0  # seconds

# Threads of a model that wait for work would take the processor from the page, and from the
# browser where both are on one machine; read once, when torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


from app import load  # noqa: E402


@asynccontextmanager
async def begun(_: st.App) -> AsyncIterator[None]:
    """Load soon after the start; a visitor who comes at once gets something to read before that."""
    timer = Timer(SOON, load)
    timer.daemon = True
    timer.start()
    yield


app = st.App(ROOT / "app" / "router.py", lifespan=begun)
