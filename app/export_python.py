"""A scene as the lines of Python that run it again with ``kbert_core``.

Texts and names stand in these lines as Python's own literals, so that nothing
in them can become code.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, fields

from app.scene import NO_GRAPH, WORDS, GraphRef, Scene
from kbert_core import Ablation, InjectionOptions, Triple
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.surface_forms import ALL_RULES


@dataclass(frozen=True, slots=True)
class Source:
    """Where a script gets a graph from.

    Attributes:
        path: of its file, as the script finds it; empty: it has no triples.
        public: the name of a graph to fetch, in place of a path.
        skip_bad: whether bad lines of the file are left out.
        edited: whether the file holds the graph as edited, as downloaded
            from the page, so that there are no edits left to make.
        sure: whether whoever has this project has the file.
    """

    path: str = ""
    public: str = ""
    skip_bad: bool = False
    edited: bool = False
    sure: bool = False


def as_python(
    now: Scene,
    before: Scene | None,
    *,
    source_of: Callable[[GraphRef], Source],
    model_of: Callable[[str], str],
    decode: bool,
    longest: int,
    window: int = 0,
) -> str:
    """Write the script.

    Args:
        now: the scene on the page.
        before: the one it is compared with, if any.
        source_of: where the graph of a scene comes from.
        model_of: a model as ``Pipeline.load`` takes it.
        decode: whether there is a prediction.
        longest: tokens that are read where no model sets a limit.
        window: which row is printed, where a long text is read in windows.
    """
    script = _Script(source_of, model_of, decode, longest)
    script.add("text", now.sentences)
    script.run(now, "trace")
    if now.has_model:
        if decode:
            script.lines.append("print(trace.prediction)")
        script.lines += [
            f"print(trace.rows[{window}].tokens, trace.rows[{window}].soft_positions)",
            f"print(trace.visible[{window}].int())  # (N, N), row may attend to column",
        ]
        script.run(now, "attending", attentions=True)
        script.lines += [
            f"layers = [layer[{window}] for layer in attending.attentions]",
            "maps = torch.stack(layers)  # (L, A, N, N)",
            "print(maps.mean((0, 1)))",
        ]
        script.bare.add("torch")
    if before is not None and (before.graph == NO_GRAPH or not source_of(before.graph).edited):
        script.lines += ["", "# What it is compared with."]
        script.run(before, "before")
        if decode and before.has_model:
            script.lines.append("print(before.prediction)")
    return script.text()


@dataclass
class _Script:
    """Lines of Python, and what they import.

    Attributes:
        lines: below the imports.
        names: imported from the core: module → names.
        bare: modules that are imported whole.
        graphs, models: the variables that hold what has been loaded.
        edited: the variables that hold edited graphs.
        values: the variables that hold anything else, by what they hold.
        texts: that have a name.
    """

    source_of: Callable[[GraphRef], Source]
    model_of: Callable[[str], str]
    decode: bool
    longest: int
    lines: list[str] = field(default_factory=list)
    names: dict[str, set[str]] = field(default_factory=dict)
    bare: set[str] = field(default_factory=set)
    graphs: dict[GraphRef, str] = field(default_factory=dict)
    models: dict[str, str] = field(default_factory=dict)
    edited: dict[tuple[GraphRef, tuple[Edit, ...]], str] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    texts: tuple[str, ...] = ()

    def text(self) -> str:
        """The whole script."""
        imports = [f"import {name}" for name in sorted(self.bare)]
        imports += [""] if self.bare else []
        imports += [
            f"from {module} import {', '.join(sorted(names, key=str.lower))}"
            for module, names in sorted(self.names.items())
        ]
        return "\n".join([*imports, "", *self.lines]) + "\n"

    def add(self, name: str, texts: tuple[str, ...]) -> None:
        """Name the texts."""
        self.texts = texts
        self.lines.append(f"{name} = {_list(texts)}")

    def run(self, scene: Scene, name: str, *, attentions: bool = False) -> None:
        """Run a scene; its trace, or without a model its row, gets a name."""
        text = "text" if scene.sentences == self.texts else _list(scene.sentences)
        graph = self.graph(scene)
        options, ablation = self._options(scene.options), self._ablation(scene.ablation)
        if not scene.has_model:
            graph = graph or self._new("KnowledgeGraph", "()")
            self._read(scene, name, text, f"{graph}, {options}", ablation)
            return
        model = self._model(scene.model)
        given = [f"*{text}", *([f"graph={graph}"] if graph else [])]
        given += [f"options={options}", f"ablation={ablation}"]
        made = self._interventions(scene)
        given += [f"interventions={made}"] if made else []
        given += ["attentions=True"] if attentions else []
        given += [] if self.decode and not attentions else ["decode=False"]
        self.lines.append(f"{name} = {model}({', '.join(given)})")

    def graph(self, scene: Scene) -> str:
        """Load and edit a scene's graph; return what it is called, empty for none."""
        if scene.graph == NO_GRAPH:
            return ""
        if (scene.graph, scene.edits) in self.edited:
            return self.edited[scene.graph, scene.edits]
        source = self.source_of(scene.graph)
        edits = () if source.edited else scene.edits
        loaded = self.graphs.get(scene.graph)
        if loaded is None:
            loaded = self.graphs[scene.graph] = _free("graph", self.graphs.values())
            self.lines.append(f"{loaded} = {self._loaded(source)}")
        if not edits:
            return loaded
        self._import("kbert_core", "Edit", "Triple")
        name = self.edited[scene.graph, edits] = _free("edited", self.edited.values())
        made = [f"    {_edit(edit)}," for edit in edits]
        self.lines += [f"{name} = {loaded}.apply(", *made, ")"]
        return name

    def _loaded(self, source: Source) -> str:
        if source.public:
            self._import("kbert_core", "load_graph")
            self._import("kbert_core.knowledge.io.download", "fetch")
            return f"load_graph(fetch({source.public!r}))"
        if not source.path:
            self._import("kbert_core", "KnowledgeGraph")
            return "KnowledgeGraph()"
        self._import("kbert_core", "load_graph")
        bad = ", skip_bad=True" if source.skip_bad else ""
        where = "" if source.sure else "  # download it from the page, or name your own file"
        return f"load_graph({source.path!r}{bad}){where}"

    def _model(self, path: str) -> str:
        self._import("kbert_core", "Pipeline")
        if path not in self.models:
            self.models[path] = _free("kbert", self.models.values())
            self.lines.append(f"{self.models[path]} = Pipeline.load({self.model_of(path)!r})")
        return self.models[path]

    def _read(self, scene: Scene, name: str, text: str, knowledge: str, ablation: str) -> None:
        reader = "Words" if scene.model == WORDS else "Characters"
        self._import("kbert_core", reader, "collate", "flatten", "grow_trees")
        made, visible = self._interventions(scene), f"{ablation}.visible_in(collate([{name}]))"
        if made:
            self._import("kbert_core.kbert.interventions", "intervene")
            most = max((layer for one in scene.interventions for layer in one.layers), default=1)
            visible = f"intervene({visible}, [{name}], {made}, {most}).layers[-1]"
        self.lines += [
            f"trees = grow_trees([{text}], {knowledge})",
            f"{name} = flatten(trees, {reader}(special=True), max_length={self.longest})[0]",
            f"print({name}.tokens, {name}.soft_positions)",
            f"visible = {visible}",
            "print(visible[0].int())  # (N, N), row may attend to column",
        ]

    def _options(self, options: InjectionOptions) -> str:
        given = [f"{options.max_triples}"]
        for option in fields(options):
            value = getattr(options, option.name)
            if option.name in ("max_triples", "names") or value == option.default:
                continue
            shown = str(value) if option.name == "strategy" else value
            if option.name == "scorer":
                shown = self.model_of(value)
            given.append(f"{option.name}={shown!r}")
        if options.names != ALL_RULES:
            self._import("kbert_core.knowledge.surface_forms", "NameRules")
            given.append(f"names=NameRules.of({options.names.as_list()!r})")
        return self._held("options", self._new("InjectionOptions", f"({', '.join(given)})"))

    def _ablation(self, ablation: Ablation) -> str:
        made = self._new("Ablation", f"({ablation.positions!r}, {ablation.visible!r})")
        return self._held("ablation", made)

    def _interventions(self, scene: Scene) -> str:
        """A variable that holds them; empty for none."""
        if not scene.interventions:
            return ""
        self._import("kbert_core.kbert.interventions", "Intervention", "Tokens")
        self._import("kbert_core", "Triple")
        return self._held("interventions", f"[{', '.join(map(repr, scene.interventions))}]")

    def _held(self, name: str, made: str) -> str:
        """A variable that holds a value."""
        if made not in self.values:
            taken = [known for known in self.values.values() if known.startswith(name)]
            self.values[made] = _free(name, taken)
            self.lines.append(f"{self.values[made]} = {made}")
        return self.values[made]

    def _new(self, name: str, arguments: str) -> str:
        self._import("kbert_core", name)
        return name + arguments

    def _import(self, module: str, *names: str) -> None:
        self.names.setdefault(module, set()).update(names)


def _edit(edit: Edit) -> str:
    parts = [repr(str(edit.action)), _triple(edit.triple)]
    if edit.new is not None:
        parts.append(_triple(edit.new))
    if edit.index is not None:
        parts.append(f"index={edit.index}")
    return f"Edit({', '.join(parts)})"


def _triple(triple: Triple) -> str:
    return f"Triple({triple.head!r}, {triple.relation!r}, {triple.tail!r})"


def _list(texts: Sequence[str]) -> str:
    return f"[{', '.join(map(repr, texts))}]"


def _free(name: str, taken: Collection[str]) -> str:
    """A name, with a number where it is taken."""
    return f"{name}_{len(taken) + 1}" if taken else name
