"""A scene in a link, or in a session file: the same values, written as JSON.

A link holds it packed by zlib, as base64 for addresses. Whoever opens one was sent it by anybody:
what is read is bounded, every field has its type, and what isn't known is refused. Any bytes give
what is shared or a ``ShareError``.
"""

import base64
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from kbert_core.errors import KBertError
from kbert_core.kbert.visible import Ablation
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.triple import ALIAS_RELATIONS
from kbert_lab.lab.scene import MOST_EDITS, MOST_PANELS, Choice, GraphRef, Scene
from kbert_lab.lab.selection import Selection
from kbert_lab.lab.texts import N_, t
from kbert_lab.lab.written import STRICT, Count, Name, OneTriple, many

VERSION = 2
PARAMETER = "scene"  # of the address
ENDING = ".kbert.json"  # of a session file
MOST_CHARACTERS = 8_000  # of a link's parameter: what programs for mail and chat leave whole
MOST_UNPACKED = 256 * 1024  # bytes of a link's JSON
MOST_BYTES = 4 * 1024 * 1024  # of a session file
MOST_TRIPLES = 20_000  # of a graph that a session file carries

CUT_OFF = N_("This can't be opened: it was cut off or changed on the way. Copy all of it again.")
NEWER = N_("This was made by a newer version of K-BERT Lab. Open it there, or update this one.")
HALF = N_(
    "This can't be put into a link or a file: the text or a name contains half a character. Type "
    "it again."
)
WRONG = N_(
    "This can't be opened: its part “{part}” is missing, or isn't what it should be. Ask for it "
    "again."
)
LONG_LINK = N_(
    "This is longer than the {most} characters that a link may have. Use the session file instead."
)
LONG_FILE = N_(
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

    __pydantic_config__ = STRICT

    # what is read; its model is a folder's name, never a path, and where it runs is left to the
    # machine that opens it
    scene: Scene
    task: Name  # the chosen task
    # how many edits were made together in each step; empty: each for itself
    steps: Annotated[tuple[Count, ...], many(MOST_EDITS)] = ()
    compare: Name = "auto"  # what the page compares with
    pinned: Scene | None = None  # the scene that is pinned, if one is
    selection: Selection = Selection()  # what is chosen, and the attention map
    # what panels show; a name that a later page doesn't know is passed over there
    views: Mapping[Name, str | bool] = field(default_factory=dict)
    window: Count = 0  # of a long text, from 0
    # of a free choice of what stands side by side; their options are those that their models were
    # trained with
    panels: Annotated[tuple[Choice, ...], many(MOST_PANELS)] = ()
    # triples of the graph: all, or those that the texts need, for who doesn't have it
    triples: Annotated[tuple[OneTriple, ...], many(MOST_TRIPLES)] = ()
    off: Annotated[tuple[OneTriple, ...], many(MOST_TRIPLES)] = ()  # of them, those switched off

    @property
    def graph(self) -> KnowledgeGraph | None:
        """The graph of the triples that go along; None: none do."""
        if not self.triples:
            return None
        off = {*self.off} & {*self.triples}
        return KnowledgeGraph(self.triples, name=self.scene.graph.name, off=off)

    def on(self, graph: KnowledgeGraph) -> "Shared":
        """Return the same of another graph in the place of its own."""
        own, other = self.scene.graph, GraphRef(graph.fingerprint, self.scene.graph.name)
        moved = {
            name: replace(scene, graph=other)
            for name, scene in (("scene", self.scene), ("pinned", self.pinned))
            if scene is not None and scene.graph.fingerprint == own.fingerprint
        }
        return replace(self, **moved)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Waits:
    """What was shared, and can't be shown before its graph is here."""

    shared: Shared


@dataclass(frozen=True)
class Shown:
    """What was shared, and stands on the page."""

    scene: Scene  # as it was put there
    notes: tuple[str, ...]  # what of it could not be had here
    card: bool = False  # whether it is first seen as a card


_SHARED = TypeAdapter(Shared)
_NAMES = {f.name for kind in (Shared, Scene, GraphRef, Ablation, Selection) for f in fields(kind)}


# Out


def to_link(shared: Shared) -> str:
    """Return the value of the address's parameter.

    Raises:
        TooLong: there are too many edits, or too much text.
        ShareError: it can't be written.
    """
    plain = _written(shared)
    value = base64.urlsafe_b64encode(zlib.compress(plain, 9)).rstrip(b"=").decode()
    if len(plain) > MOST_UNPACKED or len(value) > MOST_CHARACTERS:
        raise TooLong(t(LONG_LINK, most=f"{MOST_CHARACTERS:,}"))
    return value


def to_file(shared: Shared, graph: KnowledgeGraph) -> bytes:
    """Return a session file.

    Args:
        shared: what it restores.
        graph: of the scene, without its edits; goes along where it is small.

    Raises:
        ShareError: there are too many edits, or it can't be written.
    """
    if len(shared.scene.edits) > MOST_EDITS:
        raise ShareError(t(LONG_FILE, most=f"{MOST_EDITS:,}"))
    if graph.aliases == ALIAS_RELATIONS and len(graph) <= MOST_TRIPLES:
        whole = replace(shared, triples=tuple(graph), off=tuple(sorted(graph.off)))
        plain = _written(whole.on(whole.graph) if whole.graph else shared)
        if len(plain) <= MOST_BYTES:
            return plain
    return _written(shared)


def _written(shared: Shared) -> bytes:
    data = _SHARED.dump_python(shared, mode="json", exclude_defaults=True)
    try:
        return to_json({"kbert": VERSION, **data})
    except PydanticSerializationError as error:
        raise ShareError(t(HALF)) from error


# Back


def from_link(value: str) -> Shared:
    """Return what a link shares.

    Raises:
        ShareError: it is too long, damaged, or of a newer version; in one plain sentence.
    """
    if len(value) > MOST_CHARACTERS:
        raise ShareError(t(LONG_LINK, most=f"{MOST_CHARACTERS:,}"))
    try:
        packed = base64.b64decode(value + "=" * (-len(value) % 4), altchars=b"-_", validate=True)
        unpack = zlib.decompressobj()
        plain = unpack.decompress(packed, MOST_UNPACKED)
    except (ValueError, zlib.error) as error:
        raise ShareError(t(CUT_OFF)) from error
    if not unpack.eof or unpack.unconsumed_tail or unpack.unused_data:
        raise ShareError(t(CUT_OFF))
    return _read(plain)


def from_file(data: bytes) -> Shared:
    """Return what a session file restores.

    Raises:
        ShareError: it is no session file, too large, damaged, or newer.
    """
    if len(data) > MOST_BYTES:
        text = N_("This file is larger than {most} MB, so it is no session file.")
        raise ShareError(t(text, most=MOST_BYTES >> 20))
    return _read(data)


def _read(plain: bytes) -> Shared:
    """Check JSON, and return what it restores.

    Raises:
        ShareError: a part is missing, unknown, of another type or out of bounds.
    """
    try:
        data = from_json(plain, allow_inf_nan=False)
    except ValueError as error:
        raise ShareError(t(CUT_OFF)) from error
    version = data.pop("kbert", None) if isinstance(data, dict) else None
    if type(version) is not int or version < 1:
        raise ShareError(t("This is no link and no session file (.kbert.json) of K-BERT Lab."))
    if version > VERSION:
        raise ShareError(t(NEWER))
    try:
        shared = _SHARED.validate_json(to_json(_of_version_1(data) if version == 1 else data))
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_context=False)
        if any(one["type"] == "unexpected_keyword_argument" for one in wrong):
            raise ShareError(t(NEWER)) from error
        named = [part for part in wrong[0]["loc"] if part in _NAMES]
        raise ShareError(t(WRONG, part=["kbert", *named][-1])) from error
    if cell := shared.selection.cell:
        shared = replace(shared, selection=replace(shared.selection, token=cell[0]))
    return shared


def _of_version_1(data: dict[str, Any]) -> dict[str, Any]:
    """Put the fields of old, which stood side by side, where they stand now."""
    parts = (("scene", Scene), ("selection", Selection))
    new = {
        part: {f.name: data.pop(f.name) for f in fields(kind) if f.name in data}
        for part, kind in parts
    }
    if "panel" in data:
        views = data.get("views")
        data["views"] = {**(views if isinstance(views, dict) else {}), "matrix_view": data["panel"]}
        del data["panel"]
    if data.pop("twin", False):
        data["compare"] = "models"
    if "part" in data:
        data["triples"] = data.pop("part")
    return {**data, **new}
