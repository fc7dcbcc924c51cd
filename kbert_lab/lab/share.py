"""A scene in a link, or in a session file.

A link holds JSON, packed by zlib, as base64 for addresses. A session file is the same JSON
unpacked, with the graph's triples where they are few. Whoever opens one was sent it by anybody:
what is read is bounded, every field has its type, and what isn't known is refused. Any bytes give
what is shared or a ``ShareError``.
"""

import base64
import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    TypeAdapter,
    ValidationError,
)

from kbert_core.errors import KBertError
from kbert_core.kbert.interventions import Intervention
from kbert_core.kbert.visible import Ablation
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.selection import InjectionOptions, Strategy
from kbert_core.knowledge.surface_forms import RULES, NameRules
from kbert_core.knowledge.triple import ALIAS_RELATIONS, Triple
from kbert_core.systems import SYSTEMS
from kbert_lab.lab import comparing
from kbert_lab.lab.commands import MOST_INTERVENTIONS
from kbert_lab.lab.comparing import GRAPHS, Choice
from kbert_lab.lab.scene import GraphRef, Scene
from kbert_lab.lab.selection import MEAN, Selection
from kbert_lab.lab.texts import N_, t

VERSION = 1
PARAMETER = "scene"  # of the address
ENDING = ".kbert.json"  # of a session file
MOST_CHARACTERS = 8_000  # of a link's parameter: what programs for mail and chat leave whole
MOST_EDITS = 60  # of a link
MOST_UNPACKED = 256 * 1024  # bytes of a link's JSON
MOST_BYTES = 4 * 1024 * 1024  # of a session file
MOST_EDITS_IN_FILE = 2_000
MOST_TRIPLES = 20_000  # of a graph that a session file carries
MOST_LAYERS = 1000  # that an intervention may name; a scene without a model has as many
COMPARISONS = (  # as ``state`` and ``comparing`` name them
    *("auto", "bert", "original", "pinned", "untouched"),
    *("systems", "parts", "models", "graphs", "matrix", "free"),
)
VIEWS: dict[str, tuple[str | bool, ...]] = {  # what panels can show; the first unless said
    "matrix_view": ("visible", "attention", "difference"),
    "difference_of": ("visible", "attention"),
    "difference_shown": ("change", "before", "after"),
    "columns_view": ("visible", "attention"),
    "knowledge_view": ("table", "graph"),
    "all_heads": (False, True),
    "specials": (False, True),
}

CUT_OFF = N_("This can't be opened: it was cut off or changed on the way. Copy all of it again.")
NEWER = N_("This was made by a newer version of K-BERT Lab. Open it there, or update this one.")
HALF = N_(
    "This can't be put into a link or a file: the text or a name contains half a character. Type "
    "it again."
)
TOO_LONG = N_(
    "This is too long for a session file, which holds up to {most} edits. Download the edited "
    "graph, open it, and share from there."
)


class ShareError(KBertError):
    """A link or a session file can't be made or read."""


class TooLong(ShareError):
    """What is shared is too long for a link; a session file takes it."""


@dataclass(frozen=True)
class Shared:
    """What a link or a session file restores."""

    # what is read; its model is a folder's name, never a path, and where it runs is left to the
    # machine that opens it
    scene: Scene
    task: str  # the chosen task
    # how many edits were made together in each step; empty: each for itself
    steps: tuple[int, ...] = ()
    compare: str = "auto"  # what the page compares with, one of COMPARISONS
    pinned: Scene | None = None  # the scene that is pinned, if one is
    selection: Selection = Selection()  # what is chosen, and the attention map
    # what panels show, where it isn't the first of VIEWS
    views: tuple[tuple[str, str | bool], ...] = ()
    window: int = 0  # of a long text, from 0
    # of a free choice of what stands side by side; their options are those that their models were
    # trained with
    panels: tuple[Choice, ...] = ()
    # the triples of the graph that the texts need, for who doesn't have it
    part: tuple[Triple, ...] = ()
    off: tuple[Triple, ...] = ()  # those of them that are switched off

    def on_part(self, name: str = "") -> tuple["Shared", KnowledgeGraph]:
        """Return the same of a graph that has the carried triples only, and that graph."""
        graph = KnowledgeGraph(self.part, name=name, off=self.off)
        before = self.scene.graph
        scene = replace(self.scene, graph=GraphRef(graph.fingerprint, before.name))
        pinned = self.pinned
        if pinned is not None and pinned.graph.fingerprint == before.fingerprint:
            pinned = replace(pinned, graph=GraphRef(graph.fingerprint, pinned.graph.name))
        return replace(self, scene=scene, pinned=pinned, part=(), off=()), graph


# Links


def to_link(shared: Shared) -> str:
    """Return the value of the address's parameter.

    Raises:
        TooLong: there are too many edits, or too much text.
        ShareError: it would not come back as it is.
    """
    plain = _json(data_of(shared))
    value = base64.urlsafe_b64encode(zlib.compress(plain, 9)).rstrip(b"=").decode()
    most = max(_edits(shared))
    if most > MOST_EDITS or len(plain) > MOST_UNPACKED or len(value) > MOST_CHARACTERS:
        text = N_(
            "This is too long for a link, which holds up to {most} edits and {characters} "
            "characters. Send the session file instead."
        )
        raise TooLong(t(text, most=MOST_EDITS, characters=f"{MOST_CHARACTERS:,}"))
    if from_link(value) != portable(shared):
        raise ShareError(t(HALF))
    return value


def from_link(value: str) -> Shared:
    """Return what a link shares.

    Raises:
        ShareError: it is too long, damaged, or of a newer version; in one
            plain sentence.
    """
    if len(value) > MOST_CHARACTERS:
        raise ShareError(
            t(
                "This link is longer than the {characters} characters that a link may have. Ask "
                "for the session file instead.",
                characters=f"{MOST_CHARACTERS:,}",
            )
        )
    try:
        packed = base64.b64decode(value + "=" * (-len(value) % 4), altchars=b"-_", validate=True)
        unpack = zlib.decompressobj()
        plain = unpack.decompress(packed, MOST_UNPACKED)
    except (ValueError, zlib.error) as error:
        raise ShareError(t(CUT_OFF)) from error
    if not unpack.eof or unpack.unconsumed_tail or unpack.unused_data:
        raise ShareError(t(CUT_OFF))
    shared, graph = _read(_parsed(plain), MOST_EDITS)
    if graph is not None:
        raise _refused("triples")
    return shared


# Session files


def to_file(shared: Shared, graph: KnowledgeGraph) -> bytes:
    """Return a session file.

    Args:
        shared: what it restores.
        graph: of the scene, without its edits; goes along where it is small.

    Raises:
        ShareError: there are too many edits, or it would not come back as it is.
    """
    named = graph.fingerprint == shared.scene.graph.fingerprint
    if named and graph.aliases == ALIAS_RELATIONS and len(graph) <= MOST_TRIPLES:
        all_of_it = replace(shared, part=tuple(graph), off=tuple(graph.off))
        whole, carried = all_of_it.on_part(graph.name)
        data = {**data_of(whole), "triples": [*carried], "off": sorted(carried.off)}
        plain = _lines(data)
        if len(plain) <= MOST_BYTES:
            return _checked(plain, whole)
    return _checked(_lines(data_of(shared)), shared)


def from_file(data: bytes) -> tuple[Shared, KnowledgeGraph | None]:
    """Return what a session file restores, and its graph where it carries one.

    Raises:
        ShareError: it is no session file, too large, damaged, or newer.
    """
    if len(data) > MOST_BYTES:
        text = N_("This file is larger than {most} MB, so it is no session file.")
        raise ShareError(t(text, most=MOST_BYTES >> 20))
    parsed = _parsed(data)
    if not isinstance(parsed, dict) or "kbert" not in parsed:
        raise ShareError(t("This is no session file of K-BERT Lab (.kbert.json)."))
    return _read(parsed, MOST_EDITS_IN_FILE)


def _checked(plain: bytes, shared: Shared) -> bytes:
    if len(plain) > MOST_BYTES or max(_edits(shared)) > MOST_EDITS_IN_FILE:
        raise ShareError(t(TOO_LONG, most=f"{MOST_EDITS_IN_FILE:,}"))
    if from_file(plain)[0] != portable(shared):
        raise ShareError(t(HALF))
    return plain


# Out


def data_of(shared: Shared) -> dict[str, Any]:
    """Return plain data, ready for JSON; what is as usual is left out."""
    shared = portable(shared)
    chosen, views = shared.selection, dict(shared.views)
    given = {**_values(shared.scene), **_values(chosen), **_values(shared)}
    given |= {"kbert": VERSION, "panel": views.pop("matrix_view", "visible"), "views": views}
    if chosen.cell:
        del given["token"]
    plain: dict[str, Any] = json.loads(_json(_written(_Given, given)))
    return plain


def portable(shared: Shared) -> Shared:
    """Return what comes back elsewhere: without folders, and run where it is opened."""
    pinned = _portable(shared.pinned) if shared.pinned is not None else None
    panels = tuple(
        replace(own, model=folder_name(own.model), options=None) for own in shared.panels
    )
    return replace(shared, scene=_portable(shared.scene), pinned=pinned, panels=panels)


def folder_name(path: str) -> str:
    """Return the last part of a path of any system: never where it lies."""
    return re.split(r"[\\/]", path.rstrip("\\/"))[-1]


def _portable(scene: Scene) -> Scene:
    options, scorer = scene.options, scene.options.scorer
    if scorer is not None:
        options = replace(options, scorer=folder_name(scorer))
    return replace(scene, model=folder_name(scene.model), options=options, device="auto")


def _edits(shared: Shared) -> list[int]:
    return [len(scene.edits) for scene in (shared.scene, shared.pinned) if scene is not None]


def _values(part: Any) -> dict[str, Any]:
    return {field.name: getattr(part, field.name) for field in fields(part)}


def _written(kind: type[BaseModel], given: Mapping[str, Any]) -> dict[str, Any]:
    """What is written of the fields that are read, without those that are as usual."""
    known = kind.model_fields.items()
    return {name: given[name] for name, f in known if given.get(name, f.default) != f.default}


def _plain(part: object) -> object:
    """A value of the scene, as JSON has it."""
    match part:
        case Triple():
            return [part.head, part.relation, part.tail]
        case Edit():
            every = (part.action, part.triple, part.new, part.index)
            return [own for own in every if own is not None]
        case InjectionOptions() | Intervention():
            return part.as_dict()
        case Scene():
            return _written(_Scene, _values(part))
        case _:
            return {name: own for name, own in _values(part).items() if own is not None}


def _json(data: object) -> bytes:
    plain = json.dumps(data, ensure_ascii=False, separators=(",", ":"), default=_plain)
    return plain.encode("utf-8", "replace")


def _lines(data: Mapping[str, object]) -> bytes:
    """An object with a line a field, to be read by people too."""
    fields = [_json(name) + b": " + _json(value) for name, value in data.items()]
    return b"{\n" + b",\n".join(fields) + b"\n}\n"


# Back: what each part has to be


def _folder(name: str) -> str:
    if name != folder_name(name) or name in (".", ".."):
        raise ValueError("a path")
    return name


_ANY = 1_000_000  # of numbers and texts that only have to be small
_Count = Annotated[StrictInt, Field(ge=0, le=_ANY)]
_Number = Annotated[StrictFloat, Field(ge=-_ANY, le=_ANY)]
_Text = Annotated[StrictStr, Field(max_length=_ANY)]
_Name = Annotated[StrictStr, Field(max_length=1000)]
_Filled = Annotated[_Name, Field(pattern=r"\S")]
_Folder = Annotated[_Filled, AfterValidator(_folder)]
_System = Literal["", *SYSTEMS]  # type: ignore[valid-type]
_Names = Annotated[tuple[_Name, ...], Field(fail_fast=True)]


def _triple(three: tuple[str, str, str]) -> Triple:
    triple = Triple(*three)
    if problem := triple.problem():
        raise ValueError(problem)
    return triple


def _edit(parts: tuple[Any, ...]) -> Edit:
    action, triple, *rest = parts
    last = rest[0] if rest else None
    return Edit(action, triple, last) if action == "replace" else Edit(action, triple, index=last)


_Triple = Annotated[tuple[_Text, _Text, _Text], AfterValidator(_triple)]
_Triples = Annotated[tuple[_Triple, ...], Field(max_length=MOST_TRIPLES, fail_fast=True)]
_Edit = Annotated[
    tuple[Literal["remove", "switch_off", "switch_on", "add"], _Triple]
    | tuple[Literal["add"], _Triple, _Count]
    | tuple[Literal["replace"], _Triple, _Triple],
    AfterValidator(_edit),
]
_Identity = (
    tuple[Literal["special"], _Count]
    | tuple[Literal["trunk"], _Count, _Count]
    | tuple[Literal["branch"], _Count, _Count, _Triple, _Count]
)
_Tokens = tuple[_Count, _Count, _Triple | None, _Identity | tuple[()]]
_TOKENS = TypeAdapter[_Tokens](_Tokens)


def _intervention(value: Any) -> Intervention:
    """Check an intervention; what it would not say itself in the same words is refused."""
    try:
        one = Intervention.from_dict(value)
    except (KBertError, TypeError, AttributeError) as error:
        raise ValueError("no intervention") from error
    if one.as_dict() != value or any(layer > MOST_LAYERS for layer in one.layers):
        raise ValueError("not in its own words")
    for own in (value["seer"], value["seen"]):
        place = own.get("sentence", 0), own.get("start", 0)
        _TOKENS.validate_python((*place, own.get("triple"), own.get("identity", ())))
    return one


def _known_views(views: dict[str, str | bool]) -> dict[str, str | bool]:
    for name, value in views.items():
        if (type(value), value) not in [(type(one), one) for one in VIEWS.get(name, ())]:
            raise ValueError("no view")
    return views


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


def _made(kind: Any, read: _Part, **more: Any) -> Any:
    """A value of the fields that were read under its names, and of more."""
    return kind(**{n: own for n, own in read if n in kind.__dataclass_fields__} | more)


def _as(kind: type) -> AfterValidator:
    return AfterValidator(lambda read: _made(kind, read))


class _Graph(_Part):
    fingerprint: _Filled
    name: _Name


class _Ablation(_Part):
    positions: Literal["soft", "hard"]
    visible: Literal["tree", "all"]


class _Options(_Part):
    max_triples: Annotated[StrictInt, Field(ge=0, le=1000)]
    tail_only: StrictBool
    relations: _Names | None
    names: Annotated[tuple[Literal[RULES], ...], Field(fail_fast=True)]  # type: ignore[valid-type]
    not_relations: _Names = ()
    first_relations: _Names = ()
    strategy: Literal[*Strategy] = Strategy.FIRST  # type: ignore[valid-type]
    threshold: _Number | None = None
    one_sense: StrictBool = False
    keep_places: StrictBool = False
    scorer: _Folder | None = None


def _options(read: _Options) -> InjectionOptions:
    try:
        options: InjectionOptions = _made(InjectionOptions, read, names=NameRules.of(read.names))
    except KBertError as error:
        raise ValueError(str(error)) from error
    return options


class _Scene(_Part):
    sentences: Annotated[tuple[_Text, ...], Field(min_length=1, max_length=2)]
    model: _Folder
    graph: Annotated[_Graph, _as(GraphRef)]
    edits: Annotated[tuple[_Edit, ...], Field(fail_fast=True)]
    options: Annotated[_Options, AfterValidator(_options)]
    ablation: Annotated[_Ablation, _as(Ablation)]
    interventions: Annotated[
        tuple[Annotated[Intervention, PlainValidator(_intervention)], ...],
        Field(max_length=MOST_INTERVENTIONS, fail_fast=True),
    ] = ()
    system: _System = ""
    threshold: _Number | None = None


class _Panel(_Part):
    model: _Folder
    graph: Literal[GRAPHS]  # type: ignore[valid-type]
    ablation: Annotated[_Ablation, _as(Ablation)]
    system: _System


class _Given(_Scene):
    """What a link or a file holds; only a file has ``triples``."""

    kbert: Literal[1]
    task: _Filled
    steps: Annotated[tuple[Annotated[_Count, Field(ge=1)], ...], Field(fail_fast=True)] = ()
    compare: Literal[COMPARISONS] = "auto"  # type: ignore[valid-type]
    pinned: Annotated[_Scene, _as(Scene)] | None = None
    twin: StrictBool = False  # of links of old
    cell: tuple[_Identity, _Identity] | None = None
    token: _Identity | None = None
    triple: _Triple | None = None
    panel: Literal["visible", "attention", "difference"] = "visible"
    layer: Annotated[StrictInt, Field(ge=0, le=MOST_LAYERS)] | None = None
    head: Annotated[StrictInt, Field(ge=0, le=MOST_LAYERS)] = MEAN
    views: Annotated[dict[str, StrictStr | StrictBool], AfterValidator(_known_views)] = {}
    window: _Count = 0
    panels: Annotated[
        tuple[Annotated[_Panel, _as(Choice)], ...], Field(max_length=comparing.MOST)
    ] = ()
    part: _Triples = ()
    off: _Triples = ()
    triples: _Triples | None = None


_NAMES = {name for kind in (_Given, _Graph, _Ablation, _Options) for name in kind.model_fields}


def _parsed(data: bytes) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ShareError(t(CUT_OFF)) from error


def _read(data: object, most_edits: int) -> tuple[Shared, KnowledgeGraph | None]:
    """Check plain data, and return what it restores, with its graph where it has all of it.

    Raises:
        ShareError: a part is missing, unknown, of another type or out of bounds.
    """
    given = data.get("kbert") if isinstance(data, Mapping) else None
    if type(given) is int and given > VERSION:
        raise ShareError(t(NEWER))
    if type(given) is not int:
        raise _refused("kbert")
    try:
        read: Any = _Given.model_validate(data)
    except ValidationError as error:
        raise _said(error) from error
    panel = [("matrix_view", read.panel)] if read.panel != "visible" else []
    shared: Shared = _made(
        Shared,
        read,
        scene=_made(Scene, read),
        compare="models" if read.twin else read.compare,
        selection=_made(Selection, read, token=read.cell[0] if read.cell else read.token),
        views=(*panel, *read.views.items()),
        off=read.off if read.part else (),
    )
    if max(_edits(shared)) > most_edits:
        raise _refused("edits")
    if shared.steps and sum(shared.steps) != len(shared.scene.edits):
        raise _refused("steps")
    if read.compare == "pinned" and shared.pinned is None:
        raise _refused("pinned")
    if not {*shared.off} <= {*shared.part}:
        raise _refused("off")
    if read.triples is None:
        return shared, None
    graph = KnowledgeGraph(read.triples, name=shared.scene.graph.name, off=read.off)
    if any(triple not in graph for triple in graph.off):
        raise _refused("off")
    if graph.fingerprint != shared.scene.graph.fingerprint:
        raise _refused("triples")
    return shared, graph


def _said(error: ValidationError) -> ShareError:
    """Name the innermost part that isn't as it should be."""
    first = error.errors(include_url=False, include_context=False)[0]
    if (*first["loc"][-1:], first["input"]) == ("strategy", "learned"):  # of links of old
        return ShareError(
            t(
                "This can't be opened: its triples were chosen by a learned scorer (strategy "
                "“learned”), which there is no longer. Choose those most similar to the sentence "
                "(context) instead."
            )
        )
    if first["type"] == "extra_forbidden":
        return ShareError(t(NEWER))
    return _refused(["kbert", *(str(part) for part in first["loc"] if part in _NAMES)][-1])


def _refused(part: str) -> ShareError:
    named = part[:40].encode("utf-8", "replace").decode()  # an unknown field's name is anybody's
    return ShareError(
        t(
            "This can't be opened: its part “{part}” is missing or wrong. It may have been cut "
            "off or changed on the way. Ask for it again.",
            part=named,
        )
    )
