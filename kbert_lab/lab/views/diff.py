"""Two flat trees side by side, joined by what their tokens are."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from kbert_core.kbert.flat_tree import FlatTree
from kbert_core.knowledge.triple import Triple

if TYPE_CHECKING:  # see kbert_lab/lab/views/why.py
    from kbert_core.kbert.kbert import KBertTrace

from kbert_lab.lab.written import Identity

Status = Literal["same", "added", "removed"]


def code_of(identity: Identity) -> str:
    """A token's identity, or a branch's, as the drawings of a page name it; see identity_of."""
    return json.dumps(identity, ensure_ascii=False, separators=(",", ":"), default=_fields)


def _fields(triple: Triple) -> list[str]:
    return [triple.head, triple.relation, triple.tail]


def identity_of(code: str) -> Identity:
    """The identity that a drawing names."""
    return tuple(Triple(*part) if isinstance(part, list) else part for part in json.loads(code))


@dataclass(frozen=True, slots=True)
class Aligned:
    """One token of two trees."""

    identity: Identity  # see FlatTree.identities
    text: str  # what it reads
    before: int | None  # its index along N in each tree; None: not there
    after: int | None

    @property
    def status(self) -> Status:
        """Whether the token is in both trees or in one only."""
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "same"


def align(before: FlatTree, after: FlatTree) -> tuple[Aligned, ...]:
    """Join two flat trees by identity, in the order of the second.

    A token that only the first has keeps its place behind the token it
    followed there. An index-wise join would call everything behind an
    inserted branch changed.
    """
    places_before = {name: i for i, name in enumerate(before.identities)}
    places_after = {name: i for i, name in enumerate(after.identities)}
    gone: dict[Identity | None, list[Aligned]] = {}
    follows: Identity | None = None
    for index, name in enumerate(before.identities):
        if name in places_after:
            follows = name
        else:
            gone.setdefault(follows, []).append(Aligned(name, before.tokens[index], index, None))
    joined = gone.pop(None, [])
    for index, name in enumerate(after.identities):
        joined.append(Aligned(name, after.tokens[index], places_before.get(name), index))
        joined.extend(gone.pop(name, ()))
    return tuple(joined)


def same_text(before: FlatTree, after: FlatTree) -> bool:
    """Say whether two trees can be joined: same sentences, cut the same way."""
    return before.tree.sentences == after.tree.sentences and [
        list(zip(t.starts, t.ends, strict=True)) for t in before.trunk_tokens
    ] == [list(zip(t.starts, t.ends, strict=True)) for t in after.trunk_tokens]


def row_of(trace: "KBertTrace | None", window: int, like: FlatTree) -> FlatTree | None:
    """The row of another trace that can be laid over one, if there is one."""
    if trace is None or window >= len(trace.rows):
        return None
    row = trace.rows[window]
    return row if same_text(row, like) else None
