"""Tree and matrix of the first example while PyTorch is imported: they need no model's weights.

Nothing here imports PyTorch or transformers, which take longer than all the rest. The Lab then
draws the same, in the same places.
"""

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import streamlit as st
from tokenizers import Tokenizer

from app.components.matrix import draw_matrix
from app.components.tree import draw_tree
from app.language import PARAMETER
from kbert_core import WordPieces, flatten, grow_trees, load_graph
from kbert_core.checkpoints.encoders import CONFIG_FILE, encoder_at, is_adapter
from kbert_core.kbert.visible import ReadConfig
from kbert_core.systems import K_BERT
from kbert_lab.lab.examples import EXAMPLES, FIRST, Example
from kbert_lab.lab.texts import language, t
from kbert_lab.lab.views import matrix, tree
from kbert_lab.lab.views.html import markdown
from kbert_lab.lab.views.selected import Marks
from kbert_lab.lab.views.styles import CSS

ROOT = Path(__file__).resolve().parents[2]


def models_folder() -> Path:
    """Where checkpoints are looked for: KBERT_MODELS, else ``models/``."""
    return Path(os.environ.get("KBERT_MODELS") or ROOT / "models")


def first_look(waits: str) -> bool:
    """Draw the tree and the matrix that a new visitor of the Lab begins with.

    Args:
        waits: what they read where the prediction will stand.

    Returns:
        Whether they could be drawn.
    """
    example = _asked_for()
    try:
        laid = lay(example) if example else None
    except Exception:  # a tokenizer's file raises no narrower one; the Lab says what is wrong
        return False
    if laid is None:
        return False
    flat = laid.rows[0]
    st.html(CSS)
    st.container(key="lab_what")
    st.markdown("&nbsp;")  # where the Lab has a hint
    with st.container(key="lab_panels"):
        left, right = st.columns([6, 5], gap="large")
    left.container(key="lab_prediction_box").container(key="lab_waits").info(waits)
    with left, st.container():
        with st.container(key="lab_head_tree"):
            st.subheader(t("Sentence tree"), anchor=False)
        with st.container(key="lab_tree_box"):
            drawn = tree.tree_html(tree.tree_view(laid))
            draw_tree(drawn, key="lab.tree", on_token=_wait)
            st.caption(markdown(tree.summary(flat, laid.ablation)))
    with right, st.container():
        with st.container(key="lab_head_matrix"):
            st.subheader(t("Matrix"), anchor=False)
        with st.container():
            view = matrix.visible_view(flat, laid.ablation)
            st.html(matrix.legend_html(view))
            draw_matrix(view, Marks(), key="lab.matrix", on_cell=_wait, on_token=_wait)
    return True


def _wait() -> None:
    """A click is answered once the Lab is there."""


def _asked_for() -> Example | None:
    """The example that the Lab will begin with; None where a link asks for something else."""
    asked = st.query_params.to_dict()
    asked.pop(PARAMETER, None)
    key = asked.pop("example", FIRST[language()])
    return None if asked else next((own for own in EXAMPLES if own.key == key), None)


def lay(example: Example) -> tree.Laid | None:
    """Lay an example's text out as its model reads it; None where that grows no sentence tree."""
    folder = models_folder() / example.model
    card: dict[str, Any] = json.loads((folder / "config.json").read_text("utf-8")).get("kbert", {})
    how = {name: card[name] for name in card.keys() - {"system", "task", "notes", "knowledge"}}
    if card.get("system", K_BERT) != K_BERT:
        return None
    config, home = ReadConfig.from_dict(how), folder
    if is_adapter(folder):
        adapter = json.loads((folder / CONFIG_FILE).read_text("utf-8"))
        home = Path(encoder_at(folder, adapter["base_model_name_or_path"]))
    graph = load_graph(ROOT / "demo_kgs" / f"{example.graph}.spo")
    trees = grow_trees([example.sentences], graph, config.options)
    return tree.Laid(
        tuple(flatten(trees, _tokenizer(home), max_length=config.max_length)), config.ablation
    )


def _tokenizer(home: Path) -> WordPieces:
    """A model's tokenizer, without transformers, which imports PyTorch."""
    backend, mask = Tokenizer.from_file(str(home / "tokenizer.json")), "[MASK]"
    known: Any = SimpleNamespace(is_fast=True, backend_tokenizer=backend, added_tokens_decoder={})
    known.pad_token_id, known.mask_token, known.mask_token_id = 0, mask, backend.token_to_id(mask)
    known.unk_token_id = backend.token_to_id("[UNK]")
    return WordPieces(known, masks=True)
