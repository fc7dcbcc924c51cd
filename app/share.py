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
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Self, TypeVar, get_args

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
    model_validator,
)
from pydantic_core import PydanticCustomError

from app import comparing
from app.comparing import GRAPHS, Choice
from app.intervening import MOST
from app.scene import GraphRef, Scene
from app.selection import MEAN, Selection
from app.texts import N_, t
from app.view_models.diff import Identity
from kbert_core import Ablation, InjectionOptions, Intervention, KBertError, KnowledgeGraph, Triple
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.selection import Strategy
from kbert_core.knowledge.surface_forms import RULES, NameRules
from kbert_core.knowledge.triple import ALIAS_RELATIONS
from kbert_core.systems import SYSTEMS

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
Comparison = Literal[  # as ``state`` and ``comparing`` name them
    "auto",
    "bert",
    "original",
    "pinned",
    "untouched",
    "systems",
    "parts",
    "models",
    "graphs",
    "matrix",
    "free",
]
COMPARISONS: tuple[str, ...] = get_args(Comparison)
VIEWS: dict[str, tuple[str | bool, ...]] = {  # what panels can show; the first unless said
    "matrix_view": ("visible", "attention", "difference"),
    "difference_of": ("visible", "attention"),
    "difference_shown": ("change", "before", "after"),
    "columns_view": ("visible", "attention"),
    "knowledge_view": ("table", "graph"),
    "all_heads": (False, True),
    "specials": (False, True),
}


S = TypeVar("S", bound="Shared")


CUT_OFF = N_("This can't be opened: it was cut off or changed on the way. Copy all of it again.")
HALF = N_(
    "This can't be put into a link or a file: the text or a name contains half a character. Type "
    "it again."
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

    def on_part(self, name: str = "") -> tuple[Self, KnowledgeGraph]:
        """Return the same of a graph that has the carried triples only, and that graph."""
        graph = KnowledgeGraph(self.part, name=name, off=self.off)
        renamed = _renamed(self, self.scene.graph.fingerprint, graph.fingerprint)
        return replace(renamed, part=(), off=()), graph


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
    return _read(_InLink, _parsed(plain), MOST_EDITS).shared()


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
        carried = KnowledgeGraph(graph, name=graph.name, off=graph.off)
        renamed = _renamed(shared, graph.fingerprint, carried.fingerprint)
        renamed = replace(renamed, part=(), off=())  # all of it goes along
        data = data_of(renamed)
        data["triples"] = [_triple_data(triple) for triple in carried]
        data["off"] = [_triple_data(triple) for triple in sorted(carried.off)]
        plain = _lines(data)
        if len(plain) <= MOST_BYTES:
            return _checked(plain, renamed)
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
    read = _read(_InFile, parsed, MOST_EDITS_IN_FILE)
    shared = read.shared()
    if read.triples is None:
        return shared, None
    graph = KnowledgeGraph(read.triples, name=shared.scene.graph.name, off=read.off)
    if any(triple not in graph for triple in graph.off):
        raise _refused("off")
    if graph.fingerprint != shared.scene.graph.fingerprint:
        raise _refused("triples")
    return shared, graph


def _checked(plain: bytes, shared: Shared) -> bytes:
    if len(plain) > MOST_BYTES or max(_edits(shared)) > MOST_EDITS_IN_FILE:
        raise ShareError(
            t(
                "This is too long for a session file, which holds up to {most} edits. Download "
                "the edited graph, open it, and share from there.",
                most=f"{MOST_EDITS_IN_FILE:,}",
            )
        )
    if from_file(plain)[0] != portable(shared):
        raise ShareError(t(HALF))
    return plain


def _renamed(shared: S, old: str, new: str) -> S:
    """The same with the graph called by the fingerprint it has once it is read from the file."""

    def renamed(scene: Scene) -> Scene:
        named = scene.graph.fingerprint == old
        return replace(scene, graph=GraphRef(new, scene.graph.name)) if named else scene

    pinned = renamed(shared.pinned) if shared.pinned is not None else None
    return replace(shared, scene=renamed(shared.scene), pinned=pinned)


# Out


def data_of(shared: Shared) -> dict[str, Any]:
    """Return plain data, ready for JSON; what is as usual is left out."""
    shared = portable(shared)
    chosen, views = shared.selection, dict(shared.views)
    data: dict[str, Any] = {"kbert": VERSION, "task": shared.task, **_scene_data(shared.scene)}
    parts: dict[str, Any] = {
        "steps": list(shared.steps),
        "compare": shared.compare if shared.compare != "auto" else None,
        "pinned": _scene_data(shared.pinned) if shared.pinned is not None else None,
        "cell": [_identity_data(name) for name in chosen.cell or ()],
        "token": _identity_data(chosen.token) if chosen.token and not chosen.cell else None,
        "triple": _triple_data(chosen.triple) if chosen.triple is not None else None,
        "layer": chosen.layer,
        "head": chosen.head if chosen.head != MEAN else None,
        "panel": views.pop("matrix_view", None),
        "views": views,
        "window": shared.window or None,
        "panels": [
            {
                "model": own.model,
                "graph": own.graph,
                "ablation": _ablation_data(own.ablation),
                "system": own.system,
            }
            for own in shared.panels
        ],
        "part": [_triple_data(triple) for triple in shared.part],
        "off": [_triple_data(triple) for triple in shared.off],
    }
    return data | {name: own for name, own in parts.items() if own not in (None, [], {})}


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


def _scene_data(scene: Scene) -> dict[str, Any]:
    data: dict[str, Any] = {
        "sentences": list(scene.sentences),
        "model": scene.model,
        "graph": {"name": scene.graph.name, "fingerprint": scene.graph.fingerprint},
        "edits": [_edit_data(edit) for edit in scene.edits],
        "options": scene.options.as_dict(),
        "ablation": _ablation_data(scene.ablation),
    }
    if scene.interventions:
        data["interventions"] = [one.as_dict() for one in scene.interventions]
    if scene.system:
        data["system"] = scene.system
    if scene.threshold is not None:
        data["threshold"] = float(scene.threshold)
    return data


def _ablation_data(ablation: Ablation) -> dict[str, str]:
    return {"positions": ablation.positions, "visible": ablation.visible}


def _triple_data(triple: Triple) -> list[str]:
    return [triple.head, triple.relation, triple.tail]


def _edit_data(edit: Edit) -> list[Any]:
    more = [_triple_data(edit.new) if edit.new is not None else None, edit.index]
    return [edit.action, _triple_data(edit.triple), *(own for own in more if own is not None)]


def _identity_data(identity: Identity) -> list[Any]:
    return [_triple_data(part) if isinstance(part, Triple) else part for part in identity]


def _json(data: object) -> bytes:
    plain = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return plain.encode("utf-8", "replace")


def _lines(data: Mapping[str, object]) -> bytes:
    """An object with a line a field, to be read by people too."""
    fields = [_json(name) + b": " + _json(value) for name, value in data.items()]
    return b"{\n" + b",\n".join(fields) + b"\n}\n"


# Back: what each part has to be


def _filled(text: str) -> str:
    if not text.strip():
        raise ValueError("empty")
    return text


def _folder(name: str) -> str:
    if name != folder_name(name) or name in (".", ".."):
        raise ValueError("a path")
    return name


_ANY = 1_000_000  # of numbers and texts that only have to be small
_Count = Annotated[StrictInt, Field(ge=0, le=_ANY)]
_Number = Annotated[StrictFloat, Field(ge=-_ANY, le=_ANY)]
_Text = Annotated[StrictStr, Field(max_length=_ANY)]
_Name = Annotated[StrictStr, Field(max_length=1000)]
_Filled = Annotated[_Name, AfterValidator(_filled)]
_Folder = Annotated[_Filled, AfterValidator(_folder)]
_System = Literal["", *SYSTEMS]  # type: ignore[valid-type]
_Names = Annotated[tuple[_Name, ...], Field(fail_fast=True)]
_THREE = TypeAdapter[tuple[str, str, str]](tuple[_Text, _Text, _Text])


def _triple(value: object) -> Triple:
    triple = Triple(*_THREE.validate_python(value))
    if problem := triple.problem():
        raise ValueError(problem)
    return triple


_Triple = Annotated[Triple, PlainValidator(_triple)]
_Triples = Annotated[list[_Triple], Field(max_length=MOST_TRIPLES, fail_fast=True)]
_EDIT = TypeAdapter[tuple[Any, ...]](
    tuple[Literal["remove", "switch_off", "switch_on", "add"], _Triple]
    | tuple[Literal["add"], _Triple, _Count]
    | tuple[Literal["replace"], _Triple, _Triple]
)
_Identity = (
    tuple[Literal["special"], _Count]
    | tuple[Literal["trunk"], _Count, _Count]
    | tuple[Literal["branch"], _Count, _Count, _Triple, _Count]
)
_IDENTITY = TypeAdapter[Identity](_Identity)
_PLACE = TypeAdapter[tuple[int, int]](tuple[_Count, _Count])


def _edit(value: object) -> Edit:
    action, triple, *rest = _EDIT.validate_python(value)
    last = rest[0] if rest else None
    return Edit(action, triple, last) if action == "replace" else Edit(action, triple, index=last)


def _strategy(value: object) -> Strategy:
    if value == "learned":  # of a link from before it went
        raise PydanticCustomError("learned", "gone")
    try:
        return Strategy(value)  # type: ignore[arg-type]
    except KBertError as error:
        raise ValueError("no strategy") from error


def _intervention(value: Any) -> Intervention:
    """Check an intervention; what it would not say itself in the same words is refused."""
    try:
        one = Intervention.from_dict(value)
    except (KBertError, TypeError, AttributeError) as error:
        raise ValueError("no intervention") from error
    if one.as_dict() != value or any(layer > MOST_LAYERS for layer in one.layers):
        raise ValueError("not in its own words")
    for tokens in (one.seer, one.seen):
        _PLACE.validate_python((tokens.sentence, tokens.start))
        if tokens.triple is not None:
            _triple(_triple_data(tokens.triple))
        if tokens.identity:
            _IDENTITY.validate_python(_identity_data(tokens.identity))
    return one


def _known_views(views: dict[str, str | bool]) -> dict[str, str | bool]:
    for name, value in views.items():
        if (type(value), value) not in [(type(one), one) for one in VIEWS.get(name, ())]:
            raise ValueError("no view")
    return views


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class _Graph(_Part):
    fingerprint: _Filled
    name: _Name


class _Ablation(_Part):
    positions: Literal["soft", "hard"]
    visible: Literal["tree", "all"]

    def made(self) -> Ablation:
        """The ablation."""
        return Ablation(self.positions, self.visible)


class _Options(_Part):
    max_triples: Annotated[StrictInt, Field(ge=0, le=1000)]
    tail_only: StrictBool
    relations: _Names | None
    names: Annotated[tuple[Literal[RULES], ...], Field(fail_fast=True)]  # type: ignore[valid-type]
    not_relations: _Names = ()
    first_relations: _Names = ()
    strategy: Annotated[Strategy, PlainValidator(_strategy)] = Strategy.FIRST
    threshold: _Number | None = None
    one_sense: StrictBool = False
    keep_places: StrictBool = False
    scorer: _Folder | None = None

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        try:
            self.made()
        except KBertError as error:
            raise ValueError(str(error)) from error
        return self

    def made(self) -> InjectionOptions:
        """The options."""
        return InjectionOptions(**{**dict(self), "names": NameRules.of(self.names)})


class _Scene(_Part):
    sentences: Annotated[tuple[_Text, ...], Field(min_length=1, max_length=2)]
    model: _Folder
    graph: _Graph
    edits: Annotated[tuple[Annotated[Edit, PlainValidator(_edit)], ...], Field(fail_fast=True)]
    options: _Options
    ablation: _Ablation
    interventions: Annotated[
        tuple[Annotated[Intervention, PlainValidator(_intervention)], ...],
        Field(max_length=MOST, fail_fast=True),
    ] = ()
    system: _System = ""
    threshold: _Number | None = None

    def scene(self) -> Scene:
        """The scene."""
        return Scene(
            self.sentences,
            self.model,
            GraphRef(self.graph.fingerprint, self.graph.name),
            self.edits,
            self.options.made(),
            self.ablation.made(),
            interventions=self.interventions,
            system=self.system,
            threshold=self.threshold,
        )


class _Panel(_Part):
    model: _Folder
    graph: Literal[GRAPHS]  # type: ignore[valid-type]
    ablation: _Ablation
    system: _System

    def made(self) -> Choice:
        """What was chosen."""
        return Choice(self.model, None, self.graph, self.ablation.made(), self.system)


class _InLink(_Scene):
    kbert: Literal[1]
    task: _Filled
    steps: Annotated[tuple[Annotated[_Count, Field(ge=1)], ...], Field(fail_fast=True)] = ()
    compare: Comparison = "auto"
    pinned: _Scene | None = None
    twin: StrictBool = False  # of links of old
    cell: tuple[_Identity, _Identity] | None = None
    token: _Identity | None = None
    triple: _Triple | None = None
    panel: Literal["visible", "attention", "difference"] = "visible"
    layer: Annotated[StrictInt, Field(ge=0, le=MOST_LAYERS)] | None = None
    head: Annotated[StrictInt, Field(ge=0, le=MOST_LAYERS)] = MEAN
    views: Annotated[dict[str, StrictStr | StrictBool], AfterValidator(_known_views)] = {}
    window: _Count = 0
    panels: Annotated[tuple[_Panel, ...], Field(max_length=comparing.MOST)] = ()
    part: _Triples = []
    off: _Triples = []

    def shared(self) -> Shared:
        """What is shared."""
        token = self.cell[0] if self.cell else self.token
        panel = [("matrix_view", self.panel)] if self.panel != "visible" else []
        return Shared(
            self.scene(),
            self.task,
            self.steps,
            "models" if self.twin else self.compare,
            self.pinned.scene() if self.pinned is not None else None,
            Selection(token, self.triple, self.cell, self.layer, self.head),
            (*panel, *self.views.items()),
            self.window,
            tuple(own.made() for own in self.panels),
            tuple(self.part),
            tuple(self.off) if self.part else (),
        )


class _InFile(_InLink):
    triples: _Triples | None = None


L = TypeVar("L", bound=_InLink)
_NAMES = {name for part in (_InFile, _Graph, _Ablation, _Options) for name in part.model_fields}


def _parsed(data: bytes) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ShareError(t(CUT_OFF)) from error


def _read(kind: type[L], data: object, most_edits: int) -> L:
    """Check plain data.

    Raises:
        ShareError: a part is missing, unknown, of another type or out of bounds.
    """
    given = data.get("kbert") if isinstance(data, Mapping) else None
    if type(given) is int and given > VERSION:
        raise ShareError(
            t("This was made by a newer version of K-BERT Lab. Open it there, or update this one.")
        )
    if type(given) is not int:
        raise _refused("kbert")
    try:
        read = kind.model_validate(data)
    except ValidationError as error:
        raise _said(error) from error
    pinned = read.pinned.edits if read.pinned is not None else ()
    if max(len(read.edits), len(pinned)) > most_edits:
        raise _refused("edits")
    if read.steps and sum(read.steps) != len(read.edits):
        raise _refused("steps")
    if read.compare == "pinned" and read.pinned is None:
        raise _refused("pinned")
    if read.part and not set(read.off) <= set(read.part):
        raise _refused("off")
    return read


def _said(error: ValidationError) -> ShareError:
    """Name the innermost part that isn't as it should be."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    if first["type"] == "learned":
        return ShareError(
            t(
                "This can't be opened: its triples were chosen by a learned scorer (strategy "
                "“learned”), which there is no longer. Choose those most similar to the sentence "
                "(context) instead."
            )
        )
    named = [part for part in first["loc"] if part in _NAMES]
    unknown = first["loc"][-1:] if first["type"] == "extra_forbidden" else ()
    return _refused(str([*named, *unknown][-1]))


def _refused(part: str) -> ShareError:
    named = part[:40].encode("utf-8", "replace").decode()  # an unknown field's name is anybody's
    return ShareError(
        t(
            "This can't be opened: its part “{part}” is missing or wrong. It may have been cut "
            "off or changed on the way. Ask for it again.",
            part=named,
        )
    )
