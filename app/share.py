"""A scene in a link, or in a session file.

A link holds JSON, packed by zlib, as base64 for addresses. A session file is
the same JSON unpacked, with the graph's triples where they are few. Both are
opened by whoever was sent them, so that what is read is bounded and checked
(see ``share_data``): any bytes give what is shared or a ``ShareError``.
"""

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import replace

from app.scene import GraphRef
from app.share_data import (
    Shared,
    ShareError,
    data_of,
    list_of,
    portable,
    refused,
    shared_of,
    triple_data,
    triple_of,
)
from app.texts import t
from kbert_core import KnowledgeGraph
from kbert_core.knowledge.triple import ALIAS_RELATIONS

PARAMETER = "scene"  # of the address
ENDING = ".kbert.json"  # of a session file
MOST_CHARACTERS = 8_000  # of a link's parameter: what programs for mail and chat leave whole
MOST_EDITS = 60  # of a link
MOST_UNPACKED = 256 * 1024  # bytes of a link's JSON
MOST_BYTES = 4 * 1024 * 1024  # of a session file
MOST_EDITS_IN_FILE = 2_000
MOST_TRIPLES = 20_000  # of a graph that a session file carries


class TooLong(ShareError):
    """What is shared is too long for a link; a session file takes it."""


# Links


def to_link(shared: Shared) -> str:
    """Return the value of the address's parameter.

    Raises:
        TooLong: there are too many edits, or too much text.
        ShareError: it would not come back as it is.
    """
    edits = (len(s.edits) for s in (shared.scene, shared.pinned) if s is not None)
    plain = _json(data_of(shared))
    value = base64.urlsafe_b64encode(zlib.compress(plain, 9)).rstrip(b"=").decode()
    if max(edits) > MOST_EDITS or len(plain) > MOST_UNPACKED or len(value) > MOST_CHARACTERS:
        raise TooLong(t("share.too_long", most=MOST_EDITS, characters=f"{MOST_CHARACTERS:,}"))
    if from_link(value) != portable(shared):
        raise ShareError(t("share.not_told"))
    return value


def from_link(value: str) -> Shared:
    """Return what a link shares.

    Raises:
        ShareError: it is too long, damaged, or of a newer version; in one
            plain sentence.
    """
    if len(value) > MOST_CHARACTERS:
        raise ShareError(t("share.link_too_long", characters=f"{MOST_CHARACTERS:,}"))
    try:
        packed = base64.b64decode(value + "=" * (-len(value) % 4), altchars=b"-_", validate=True)
        unpack = zlib.decompressobj()
        plain = unpack.decompress(packed, MOST_UNPACKED)
    except (ValueError, zlib.error) as error:
        raise ShareError(t("share.damaged")) from error
    if not unpack.eof or unpack.unconsumed_tail or unpack.unused_data:
        raise ShareError(t("share.damaged"))
    return shared_of(_parsed(plain), most_edits=MOST_EDITS)


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
    carried = _carried(graph) if named else None
    if carried is not None:
        renamed = _renamed(shared, graph.fingerprint, carried.fingerprint)
        data = data_of(renamed)
        data["triples"] = [triple_data(triple) for triple in carried]
        data["off"] = [triple_data(triple) for triple in sorted(carried.off)]
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
        raise ShareError(t("share.file_too_large", most=MOST_BYTES >> 20))
    parsed = _parsed(data)
    if not isinstance(parsed, dict) or "kbert" not in parsed:
        raise ShareError(t("share.no_file"))
    triples, off = parsed.pop("triples", None), parsed.pop("off", [])
    shared = shared_of(parsed, most_edits=MOST_EDITS_IN_FILE)
    if triples is None:
        return shared, None
    graph = KnowledgeGraph(
        [triple_of(item, "triples") for item in list_of(triples, "triples", MOST_TRIPLES)],
        name=shared.scene.graph.name,
        off=[triple_of(item, "off") for item in list_of(off, "off", MOST_TRIPLES)],
    )
    if any(triple not in graph for triple in graph.off):
        raise refused("off")
    if graph.fingerprint != shared.scene.graph.fingerprint:
        raise refused("triples")
    return shared, graph


def _checked(plain: bytes, shared: Shared) -> bytes:
    edits = (len(s.edits) for s in (shared.scene, shared.pinned) if s is not None)
    if len(plain) > MOST_BYTES or max(edits) > MOST_EDITS_IN_FILE:
        raise ShareError(t("share.file_too_long", most=f"{MOST_EDITS_IN_FILE:,}"))
    if from_file(plain)[0] != portable(shared):
        raise ShareError(t("share.not_told"))
    return plain


def _carried(graph: KnowledgeGraph) -> KnowledgeGraph | None:
    """A small graph as a file can tell it; None for a large one."""
    if graph.aliases != ALIAS_RELATIONS or len(graph) > MOST_TRIPLES:
        return None
    return KnowledgeGraph(graph, name=graph.name, off=graph.off)


def _renamed(shared: Shared, old: str, new: str) -> Shared:
    """The same with the graph called by the fingerprint it has once it is read from the file."""

    def renamed(ref: GraphRef) -> GraphRef:
        return GraphRef(new, ref.name) if ref.fingerprint == old else ref

    scene = replace(shared.scene, graph=renamed(shared.scene.graph))
    pinned = shared.pinned
    if pinned is not None:
        pinned = replace(pinned, graph=renamed(pinned.graph))
    return replace(shared, scene=scene, pinned=pinned)


# JSON


def _json(data: object) -> bytes:
    plain = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return plain.encode("utf-8", "replace")


def _lines(data: Mapping[str, object]) -> bytes:
    """An object with a line a field, to be read by people too."""
    fields = [_json(name) + b": " + _json(value) for name, value in data.items()]
    return b"{\n" + b",\n".join(fields) + b"\n}\n"


def _parsed(data: bytes) -> object:
    try:
        return json.loads(data, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ShareError(t("share.damaged")) from error


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no number")
