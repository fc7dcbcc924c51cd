"""The Lab in a cell of a notebook: ``lab(pipeline, graph, text)`` and ``trace.show()``.

Both are widgets for JupyterLab, Notebook, VS Code, Colab and marimo, by anywidget. The drawings are
the app's; what is done in them comes here as a message, is applied to the session, and is drawn.
Without a kernel a notebook shows a picture of what the widget first showed.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from kbert_core.checkpoints.checkpoint import Card
from kbert_core.errors import KBertError, MissingPackageError
from kbert_core.kbert.visible import Ablation
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.knowledge.triple import Triple
from kbert_core.pipeline import GraphOrPath, Pipeline, as_graph
from kbert_core.reader import Trace
from kbert_core.systems import K_BERT
from kbert_lab.lab.commands import Command, Intervene, Undo, apply, command_of
from kbert_lab.lab.drawings import bundle, source
from kbert_lab.lab.models import NOTHING, ModelInfo
from kbert_lab.lab.running import predicted_after, run
from kbert_lab.lab.scene import NO_MODEL
from kbert_lab.lab.selection import MEAN, identity_of, marks_of
from kbert_lab.lab.session import NO_TASK, OpenedGraph, Reads, Session
from kbert_lab.lab.texts import N_, refusal, sentences, t
from kbert_lab.lab.views import sides
from kbert_lab.lab.views.html import escape
from kbert_lab.lab.views.interventions import describe, turned
from kbert_lab.lab.views.matrix import attention_view, picked, visible_view
from kbert_lab.lab.views.prediction import before_and_now, drawn, outcome
from kbert_lab.lab.views.shared import place_of
from kbert_lab.lab.views.tree import tree_html
from kbert_lab.lab.views.why import in_browser, share_of_layers, visible_in
from kbert_lab.lab.words import MATRIX_TEXTS

try:
    import anywidget
    import traitlets
except ImportError as error:
    raise MissingPackageError(
        f"Drawing in a notebook needs {error.name}, not installed here. Install it: "
        'pip install "kbert-lab[notebooks]"'
    ) from error

STILL = N_("A picture: run this cell to switch, edit and look closer. What it showed first:")
TEXTS = {
    "undo": N_("Undo"),
    "map": N_("What the matrix shows"),
    "late": N_("No answer yet: the kernel is busy or has stopped. If it has, run the cell again."),
}
FIXED = N_("Click a token or a cell. To switch and edit, use lab(pipeline, graph, text).")
EDIT = N_("Switch a branch, or type another tail with ✎.")
BLOCK = N_("Double-click a cell to block or open it.")
GRAPH = "graph"  # the only one
TAILS = 8  # that are offered
ABOVE = 260  # pixels above the matrix, when it is looked at


class LabWidget(anywidget.AnyWidget):
    """A text, how it is read with a graph, and what is predicted; of long texts the first window.

    Args:
        session: what is read, and how.
        read: gives the trace of a session.
        pipeline: the model; None: there is none.
        fixed: nothing is switched or edited.

    Attributes:
        session: with all that was done in the widget.
        trace: of the text as it is read now.
    """

    _esm = f"{bundle('widget')}export default $widget;\n"
    _css = (
        source("page.css").replace(":root {", ":root, :host {")  # marimo's cells are shadows
        + f".kb-matrix {{{source('matrix.css')}}}\n"
        + source("widget.css")
    )
    view = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        session: Session,
        read: Callable[[Session], Any],
        pipeline: Pipeline | None = None,
        *,
        fixed: bool = False,
    ) -> None:
        self.session, self.trace = session, read(session)
        self._read, self._pipeline, self._fixed = read, pipeline, fixed
        self._first, self._begun = self.trace, session.scene()
        self._map, self._answered = "visible", 0
        super().__init__(view=self._drawn())
        self.on_msg(lambda _, message, __: self._hear(message))

    @property
    def graph(self) -> KnowledgeGraph:
        """The graph, with the edits made."""
        return self.session.graph_now()

    @property
    def prediction(self) -> Any:
        """What is predicted now; None without a task head."""
        return self.trace.prediction

    def do(self, command: Command) -> None:
        """Do what a command of ``kbert_lab.lab.commands`` means, or say why it can't be done."""
        session, error = apply(self.session, command)
        try:
            if session.scene() != self.session.scene():
                self.trace = self._read(session)
            self.session = session
        except KBertError as unread:
            error = unread
        self.view = self._drawn(error)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.trace!r}>"

    def _repr_mimebundle_(self, **how: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        data, more = super()._repr_mimebundle_(**how) or ({}, {})
        still = f"<em>{escape(t(STILL))}</em>\n{self._first._repr_html_()}"
        return {**data, "text/html": still, "text/plain": repr(self)}, more

    # What is done in the drawings

    def _hear(self, message: Mapping[str, Any]) -> None:
        match message:
            case {"do": "ask", "request": request, "triple": triple, "tails": tails}:
                self.send({"request": request, **self._tails(Triple(*triple), tails)})
            case {"do": "matrix", "kind": kind}:
                self._map = kind
                self.view = self._drawn()
            case {"do": "undo"}:
                self.do(Undo())
            case {"do": "link", "looks": looks, "at": at}:
                if not self._fixed:
                    cell = identity_of(looks), identity_of(at)
                    self.do(Intervene(turned(self.trace, 0, cell)))
            case _:
                self.do(command_of(message))

    def _tails(self, triple: Triple, asked: Sequence[str]) -> dict[str, Any]:
        """The tails that a relation has in the graph, and what each would make of the prediction.

        Args:
            asked: of which tails to say it; empty: of the commonest.
        """
        tails: list[str] | None = None
        said: dict[str, tuple[str, bool]] = {}
        if not asked:
            found = Counter(own.tail for own in self.graph if own.relation == triple.relation)
            others = (tail for tail, _ in found.most_common())
            tails = [own for own in others if replace(triple, tail=own) not in self.graph]
            asked = tails[:TAILS]
        if self._pipeline is not None and self.prediction is not None:
            scene, info = self.session.scene(), cast(ModelInfo, self.session.reads)
            at = place_of(self.trace, triple) if sides.has_trees(self.trace) else (0, 0)
            edits = [Edit("replace", triple, replace(triple, tail=tail)) for tail in asked]
            after = predicted_after(scene, self.graph, self._pipeline, edits)
            for tail, own in zip(asked, after, strict=True):
                said[tail] = outcome(info, scene.sentences[0], self.prediction, own, at)
        return {"tails": tails, "glosses": {}, "asked": [], "outcomes": said}

    # What is drawn

    def _drawn(self, problem: KBertError | None = None) -> dict[str, Any]:
        """The view: all texts in it are escaped, or are set as text."""
        session, trace, graph = self.session, self.trace, self.graph
        first = self._first if session.scene() != self._begun else None
        names, visible = sides.identities(trace), None
        if sides.system_of(trace) == K_BERT:
            names, visible = trace.rows[0].identities, visible_in(trace, 0)
        marks = marks_of(names, session.selection, visible)
        tree = sides.flow_view(trace, 0, first)
        off = {own for own in tree.triples if own in graph and not graph.is_on(own)}
        live = not self._fixed
        html = tree_html(tree, marks, off, edits=live, switches=live)
        flow = f'<div class="kb-flow kb-flow-{sides.system_of(trace)}">{html}</div>'
        self._answered += 1
        common = {"group": str(id(self)), "answered": self._answered}
        return {
            "tree": {"html": flow, **common},
            "matrix": {**self._matrix(), **common} if sides.has_trees(trace) else None,
            "maps": [[kind, t(MATRIX_TEXTS[kind])] for kind in self._maps()],
            "prediction": self._predicted(first),
            "said": refusal(problem) if problem else self._said(),
            "undo": session.last_step() is not None,
            "texts": {name: t(text) for name, text in TEXTS.items()},
        }

    def _maps(self) -> tuple[str, ...]:
        """What the matrix can show: attention where it was kept, or a model is here."""
        kept = self._pipeline is not None or self.trace.attentions is not None
        return ("visible", "attention") if kept else ("visible",)

    def _matrix(self) -> dict[str, Any]:
        trace, row = self.trace, self.trace.rows[0]
        marks = marks_of(row.identities, self.session.selection)
        if self._map == "visible":
            view = visible_view(row, trace.ablation, share_of_layers(trace, 0))
        else:
            kept = trace.attentions
            if kept is None and self._pipeline is not None:
                kept = self._pipeline.reader.trace(trace.reading, attentions=True).attentions
            size = len(row)
            maps = np.stack([own[0, :, :size, :size].float().cpu().numpy() for own in kept])
            view = attention_view(row, picked(maps, MEAN, MEAN), visible_in(trace, 0))
        why = None if trace.interventions else in_browser(row, range(len(row)), trace.ablation)
        return {**view.data(marks), "why": why, "above": ABOVE}

    def _predicted(self, first: Any) -> str:
        if self.prediction is None:
            return ""
        info, before = cast(ModelInfo, self.session.reads), first.prediction if first else None
        return drawn(self.trace.reading.sentences, before_and_now(info, self.prediction, before))

    def _said(self) -> str:
        """What is blocked and opened; else what can be done."""
        made = getattr(self.trace, "interventions", ())
        if made:
            return " · ".join(describe(one, self.trace.rows[0]) for one in made)
        if self._fixed:
            return t(FIXED)
        return sentences(map(t, (EDIT, BLOCK) if sides.has_trees(self.trace) else (EDIT,)))


def lab(
    reader: Pipeline | str | Path,
    graph: GraphOrPath,
    text: str,
    second: str = "",
    *,
    options: InjectionOptions | None = None,
    ablation: Ablation | None = None,
) -> LabWidget:
    """Draw how a text is read with a graph, to switch, edit and block in the cell of a notebook.

    Args:
        reader: a pipeline, or a model's folder; "words" or "characters": no model.
        graph: or its file.
        second: the second text, for a task on pairs.
        options, ablation: how the text is read; None: as the model was trained.

    Returns:
        The widget; its ``session``, ``graph``, ``trace`` and ``prediction`` are those of now.
    """
    pipeline, name = None, str(reader)
    reads: Reads = NOTHING
    if reader not in NO_MODEL:
        pipeline = reader if isinstance(reader, Pipeline) else Pipeline.from_pretrained(reader)
        name = pipeline.hugging_face_tokenizer.name_or_path
        reads = ModelInfo(name, name, pipeline.card)
    session = Session(
        name,
        reads,
        GRAPH,
        {GRAPH: OpenedGraph(as_graph(graph))},
        task=reads.task or NO_TASK,
        texts=(text, second),
        options=replace(options or reads.options, keep_places=True),
        ablation=ablation or reads.ablation,
    )
    return LabWidget(session, lambda own: run(own.scene(), own.graph_now(), pipeline), pipeline)


def show(trace: Trace) -> LabWidget:
    """Draw a trace as it is, to be looked at closely: what ``trace.show()`` returns."""
    graph = KnowledgeGraph(dict.fromkeys(trace.used))
    reads = ModelInfo("", "", Card())
    session = Session("", reads, GRAPH, {GRAPH: OpenedGraph(graph)}, texts=("", ""))
    return LabWidget(session, lambda _: trace, fixed=True)
