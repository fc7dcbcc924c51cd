"""What is on the Lab's page, as pictures and numbers to keep. No streamlit."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.models import ModelInfo
from app.scene import Scene
from app.texts import t
from app.view_models import matrix, prediction
from app.view_models.diff import Identity, row_of
from app.view_models.figures import Bars, Form, bars_picture, matrix_picture
from app.view_models.tags_picture import tags_picture
from app.view_models.tree import TreeView, tree_view
from app.view_models.tree_picture import tree_picture
from app.view_models.visible import share_of_layers, visible_in
from kbert_core import FlatTree, KBertTrace, KnowledgeGraph, Triple
from kbert_core.knowledge.io.rows import guarded
from kbert_core.tasks import ClassPrediction, MaskPrediction, NerPrediction


@dataclass(frozen=True)
class Kept:
    """The page of a scene, all that is kept of it.

    Attributes:
        scene: what was read.
        graph: with the edits made.
        trace: of the scene.
        before: of the scene compared with, where that could be run.
        names: what that one and the present one are called.
        info: the model; None without one.
        window: which row, where a long text was read in windows.
        hung: whether the tree marks what has changed since ``before``.
    """

    scene: Scene
    graph: KnowledgeGraph
    trace: KBertTrace
    before: KBertTrace | None
    names: tuple[str, str]
    info: ModelInfo | None
    window: int = 0
    hung: bool = True

    @property
    def row(self) -> FlatTree:
        """The row that is shown."""
        return self.trace.rows[self.window]

    @property
    def was(self) -> Any:
        """The earlier prediction, where it is of the same text and kind."""
        before, now = self.before, self.trace
        if before is None or type(before.prediction) is not type(now.prediction):
            return None
        return before.prediction if before.tree.sentences == now.tree.sentences else None

    @property
    def tree(self) -> TreeView:
        """The tree as drawn."""
        earlier = row_of(self.before, self.window, self.row) if self.hung else None
        return tree_view(self.trace, self.window, earlier)


# Pictures


def tree_as(kept: Kept, form: Form) -> bytes:
    """The sentence tree."""
    return tree_picture(kept.tree, form)


def visible_as(kept: Kept, form: Form) -> bytes:
    """The visible matrix, as interventions left it."""
    share = share_of_layers(kept.trace, kept.window)
    view = matrix.visible_view(kept.row, kept.scene.ablation, share)
    return matrix_picture(view, form, title=t("keep.matrix"))


def attention_as(kept: Kept, weights: np.ndarray, which: str, form: Form) -> bytes:
    """One map of attention.

    Args:
        weights: (N, N), row attends to column.
        which: says of which layer and head.
    """
    view = matrix.attention_view(kept.row, weights, visible_of(kept))
    return matrix_picture(view, form, title=f"{t('keep.attention')}: {which}")


def prediction_as(kept: Kept, form: Form) -> bytes:
    """The prediction, before and now; an empty file where there is none."""
    now, was = kept.trace.prediction, kept.was
    if isinstance(now, NerPrediction):
        before, after = kept.names
        return tags_picture(kept.scene.sentences[0], now, after, was, before, form)
    groups = bars_of(kept)
    return bars_picture(groups, form, title=t("prediction.title")) if groups else b""


def bars_of(kept: Kept) -> list[Bars]:
    """The probabilities of a label, a score, or the candidates of every [MASK]."""
    now, was, info = kept.trace.prediction, kept.was, kept.info
    if isinstance(now, ClassPrediction) and info is not None:
        score = prediction.is_score(info, now)
        head = t("class.score_head" if score else "prediction.label")
        before = prediction.probabilities(info, was) if was is not None else None
        return [Bars(head, prediction.probabilities(info, now), before)]
    if isinstance(now, MaskPrediction):
        fillings = prediction.fillings_of(now)
        earlier = prediction.fillings_of(was) if was is not None else [None] * len(fillings)
        return [
            Bars(t("prediction.token", number=number), new, old)
            for number, (old, new) in enumerate(zip(earlier, fillings, strict=False), start=1)
        ]
    return []


# Numbers


def identity_text(identity: Identity) -> str:
    """The name of a token as JSON; see ``FlatTree.identities``."""
    parts = [
        [part.head, part.relation, part.tail] if isinstance(part, Triple) else part
        for part in identity
    ]
    return json.dumps(parts, ensure_ascii=False)


def square_csv(row: FlatTree, values: np.ndarray) -> bytes:
    """A matrix as a table: a line a token that looks, a column a token that is looked at.

    Tokens are named by what they are, and by what they read. What a
    spreadsheet would take for a formula has an apostrophe before it.

    Args:
        row: N tokens.
        values: (N, N), row attends to column; numbers, or true and false.
    """
    names = [guarded(identity_text(name)) for name in row.identities]
    texts = [guarded(token) for token in row.tokens]
    lines: list[Sequence[object]] = [["", "", "token", *texts], ["token", "text", "soft", *names]]
    plain = np.asarray(values)
    numbers = plain.astype(int) if plain.dtype == bool else plain.astype(float).round(6)
    for i, line in enumerate(numbers.tolist()):
        lines.append([names[i], texts[i], row.soft_positions[i], *line])
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue().encode("utf-8-sig")  # or spreadsheets take it for another encoding


def arrays_npz(kept: Kept, maps: np.ndarray | None) -> bytes:
    """The row as arrays: tokens, codes, positions, the visible matrix and all attention.

    Args:
        maps: (L, A, N, N) attention, row to column; None without a model.

    Returns:
        An ``.npz`` file that holds no Python objects.
    """
    row = kept.row
    arrays = {
        "tokens": np.array(row.tokens, dtype=str),
        "identities": np.array([identity_text(name) for name in row.identities], dtype=str),
        "input_ids": np.array(row.input_ids),
        "soft_positions": np.array(row.soft_positions),
        "branch_ids": np.array(row.branch_ids),
        "anchor_ids": np.array(row.anchor_ids),
        "token_type_ids": np.array(row.token_type_ids),
        "visible": visible_of(kept),
    }
    if kept.trace.interventions:
        arrays["visible_layers"] = visible_layers(kept)
    if maps is not None:
        arrays["attention"] = maps
    data = io.BytesIO()
    np.savez_compressed(data, allow_pickle=False, **arrays)
    return data.getvalue()


def visible_of(kept: Kept) -> np.ndarray:
    """(N, N) bool, row may attend to column in any layer; of the row that is shown."""
    return visible_in(kept.trace, kept.window)


def visible_layers(kept: Kept) -> np.ndarray:
    """(L, N, N) bool, the same layer by layer; a single one where no intervention stands."""
    count, trace = len(kept.row), kept.trace
    layers = trace.visible_layers or (trace.visible,)
    return np.stack([layer[kept.window, :count, :count].cpu().numpy() for layer in layers])
