"""The sentence tree: the trunk on one line, branches below their mention."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from unicodedata import bidirectional

from kbert_core.kbert.flat_tree import FlatTree, PlacedBranch
from kbert_core.kbert.visible import FULL, Ablation
from kbert_core.knowledge.triple import Triple
from kbert_core.tokens import Tokens
from kbert_lab.lab.selection import Marks, code_of
from kbert_lab.lab.texts import N_, t, tn
from kbert_lab.lab.views.html import rendered
from kbert_lab.lab.views.matrix import Status
from kbert_lab.lab.views.names import gloss, with_glosses
from kbert_lab.lab.written import Identity

if TYPE_CHECKING:  # see kbert_lab/lab/views/why.py
    from kbert_core.kbert.kbert import KBertTrace

ONE_LINE = 600  # pixels of a trunk that surely fits
MOST = 4000  # mentions and other tokens of a trunk that are drawn
AROUND = 100  # pixels beside a branch's tokens


@dataclass(frozen=True, slots=True)
class TokenView:
    """One token as drawn."""

    text: str  # the text's own characters
    soft: int | None = None  # its positions; None where it isn't in the tree
    hard: int | None = None
    segment: int = 0  # or 1
    special: bool = False  # [CLS], [SEP]
    name: str = ""  # that identifies it in every drawing; empty where it never was in the tree
    joined: bool = False  # to the token before it, without a space


Field = tuple[TokenView, ...]  # the tokens of a branch's relation or tail


@dataclass(frozen=True, slots=True)
class BranchView:
    """One branch as drawn."""

    triple: Triple  # what it says
    name: str  # that identifies it, where it hangs, in every drawing
    fields: tuple[Field, ...]  # its relation and its tail, or its tail alone
    # against the scene compared with; "removed" branches are no longer in the tree
    status: Status = "same"

    @property
    def tokens(self) -> Field:
        """All its tokens."""
        return tuple(token for field in self.fields for token in field)

    @property
    def glosses(self) -> list[str]:
        """What its relation and its tail mean, or its tail alone; empty strings if unknown."""
        names = (self.triple.relation, self.triple.tail)[-len(self.fields) :]
        return list(map(gloss, names))

    @property
    def title(self) -> str:
        """What stands under the mouse; plain text."""
        note = {"same": "", "added": t("new"), "removed": t("gone")}[self.status]
        return with_glosses(str(self.triple), self.triple) + (f" · {note}" if note else "")


@dataclass(frozen=True, slots=True)
class NodeView:
    """A run of trunk tokens: a mention with its branches, or one other token."""

    tokens: tuple[TokenView, ...]  # the run, in order
    mention: bool = False  # whether it is one
    branches: tuple[BranchView, ...] = ()  # what hangs from it
    gloss: str = ""  # what the mention means, for visitors who don't read its language
    sentence: int = 0  # which of one text or two it is part of


@dataclass(frozen=True, slots=True)
class TreeView:
    """A sentence tree as drawn."""

    nodes: tuple[NodeView, ...]  # the trunk in order
    segments: int  # how many segments it has
    hard_used: bool  # whether the model was given the hard positions

    @property
    def branches(self) -> tuple[BranchView, ...]:
        """All, in the order in which they are drawn."""
        return tuple(branch for node in self.nodes for branch in node.branches)

    @property
    def triples(self) -> tuple[Triple, ...]:
        """Of the branches."""
        return tuple(branch.triple for branch in self.branches)


@dataclass(frozen=True, slots=True)
class Laid:
    """What of a trace is drawn, where there is no model."""

    rows: tuple[FlatTree, ...]  # one, or several where a long text is read in windows
    ablation: Ablation  # how positions are read


def tree_view(
    trace: "KBertTrace | Laid", window: int = 0, before: FlatTree | None = None
) -> TreeView:
    """Lay out one row of a trace.

    Args:
        window: which row, where a long text was read in windows.
        before: the row of the scene compared with; its branches that are
            gone are drawn as removed.
    """
    flat = trace.rows[window]
    branches = _branches(flat, before)
    runs: list[tuple[int, int, list[TokenView]]] = []  # sentence, anchor, tokens
    sentence = 0
    for index, branch in enumerate(flat.branch_ids):
        if branch:
            continue
        sentence, anchor = max(sentence, flat.trunk_places[index][0]), flat.anchor_ids[index]
        if not (anchor and runs and runs[-1][:2] == (sentence, anchor)):
            runs.append((sentence, anchor, []))
        runs[-1][2].append(_token(flat, index))
    nodes = [
        NodeView(
            tuple(run),
            bool(anchor),
            tuple(branches.get(anchor, ())),
            _meaning(flat, anchor - 1) if anchor else "",
            sentence,
        )
        for sentence, anchor, run in runs[:MOST]
    ]
    segments = 1 if trace.ablation.segments == "none" else len(set(flat.token_type_ids))
    return TreeView(tuple(nodes), segments, trace.ablation.positions == "hard")


def tree_html(
    view: TreeView,
    marks: Marks | None = None,
    off: Collection[Triple] = (),
    *,
    line: int = ONE_LINE,
    legend: bool = True,
    edits: bool = False,
    switches: bool = True,
) -> str:
    """Draw a tree; everything in it is escaped.

    Args:
        marks: what of it is chosen, by hard position, where tokens can be
            chosen and branches switched; None: it is a picture.
        off: triples that are switched off.
        line: pixels of a trunk that surely fits.
        legend: say above it what the colours mean.
        edits: whether a branch's tail can be changed in it.
        switches: whether its branches can be switched.
    """
    of = {node.sentence for node in view.nodes}
    trunks = [[node for node in view.nodes if node.sentence == own] for own in sorted(of)]
    return rendered(
        "tree",
        view=view,
        marks=marks,
        off=off,
        legend=legend,
        edits=edits,
        switches=switches,
        trunks=[(nodes, _free(nodes, line)) for nodes in trunks],
        states={branch.status for branch in view.branches},
        glossed=any(n.gloss or any(map(any, (b.glosses for b in n.branches))) for n in view.nodes),
        right_to_left=_is_right_to_left(view),
    )


def _is_right_to_left(view: TreeView) -> bool:
    """Whether a trunk is written from right to left, as its first letter says."""
    tokens = (token for node in view.nodes for token in node.tokens if not token.special)
    ways = (bidirectional(character) for token in tokens for character in token.text)
    return next((way for way in ways if way in ("L", "R", "AL")), "L") != "L"


def _free(nodes: Sequence[NodeView], line: int) -> set[int]:
    """Which nodes need no hole in the trunk for their branches: the tokens after have none.

    Only in a trunk that fits in one line, where no token is moved away from below it.
    """
    widths = [sum(map(_width, node.tokens)) for node in nodes]
    if sum(widths) > line:
        return set()
    free: set[int] = set()
    room = line - sum(widths)  # from a node's start to the next branches, or to the line's end
    for number in reversed(range(len(nodes))):
        room += widths[number]
        if nodes[number].branches:
            long = max(sum(map(_width, b.tokens)) for b in nodes[number].branches) + AROUND
            if long <= room:
                free.add(number)
            room = 0
    return free


def _width(token: TokenView) -> int:
    """About how wide a token is drawn, in pixels."""
    return 13 + sum(9 if character.isascii() else 17 for character in token.text)


def _branches(flat: FlatTree, before: FlatTree | None) -> dict[int, list[BranchView]]:
    """Branches by anchor: those in, and those gone since where they stood."""
    found: dict[int, list[BranchView]] = {}
    now, earlier = _hung(flat), _hung(before) if before is not None else None
    for name, placed in now.items():
        status: Status = "same" if earlier is None or name in earlier else "added"
        found.setdefault(placed.node + 1, []).append(_branch(flat, name, placed, status))
    anchors = {_name(flat, n, None)[:3]: n + 1 for n in range(len(flat.tree.nodes))}
    places: dict[int, int] = {}  # where a branch that is gone stood, and stays
    for name, placed in (earlier or {}).items():
        at = places[placed.node] = places.get(placed.node, -1) + 1
        if name not in now and name[:3] in anchors and before is not None:
            gone = _branch(before, name, placed, "removed")
            found.setdefault(anchors[name[:3]], []).insert(at, gone)
    return found


def _branch(flat: FlatTree, name: Identity, placed: PlacedBranch, status: Status) -> BranchView:
    fields, index = [], placed.start
    for own in flat.tokenizer.tokenize_branches(placed.branch.texts):
        field = [replace(_token(flat, index + n), joined=_joined(own, n)) for n in range(len(own))]
        if status == "removed":  # they have no place now
            field = [TokenView(token.text, joined=token.joined) for token in field]
        fields.append(tuple(field))
        index += len(own)
    return BranchView(placed.branch.triple, code_of(name), tuple(fields), status)


def _joined(tokens: Tokens, at: int) -> bool:
    """Whether a token stands right after the one before it."""
    return at > 0 and tokens.starts[at] == tokens.ends[at - 1]


def _meaning(flat: FlatTree, node: int) -> str:
    """The gloss of a mention: of what the text says, else of the one entity that it is."""
    own = flat.tree.nodes[node]
    text = flat.tree.sentences[own.mention.sentence][own.mention.start : own.mention.end]
    heads = {triple.head for triple in own.used}
    return gloss(text) or (gloss(heads.pop()) if len(heads) == 1 else "")


def _name(flat: FlatTree, node: int, triple: Triple | None) -> Identity:
    mention = flat.tree.nodes[node].mention
    return "branch", mention.sentence, mention.start, triple


def _hung(flat: FlatTree) -> dict[Identity, PlacedBranch]:
    """The branches that stand in a row, by where they hang and what they say."""
    return {_name(flat, own.node, own.branch.triple): own for own in flat.branches}


def _token(flat: FlatTree, index: int) -> TokenView:
    sentence, at = flat.trunk_places[index]
    return TokenView(
        flat.tokens[index],
        flat.soft_positions[index],
        index,
        min(flat.token_type_ids[index], 1),
        flat.identities[index][0] == "special",
        code_of(flat.identities[index]),
        sentence >= 0 and _joined(flat.trunk_tokens[sentence], at),
    )


def reads_as(triple: Triple) -> str:
    """A triple as people say it."""
    return f"{triple.head} {triple.relation} {triple.tail}".replace("_", " ")


def summary(flat: FlatTree, ablation: Ablation) -> str:
    """Say in one line what stands in the tree; plain text."""
    trunk = sum(1 for b in flat.branch_ids if b == 0)
    text = N_("{tokens} tokens: {trunk} trunk, {branch} branch")
    parts = [
        t(text, tokens=len(flat), trunk=trunk, branch=len(flat) - trunk),
        tn("1 branch", "{n} branches", len(flat.branches)),
    ]
    return " · ".join([*parts, *ablated(ablation)])


def ablated(ablation: Ablation) -> list[str]:
    """What is taken away, in words; plain text."""
    texts = {
        "positions": N_("hard positions"),
        "visible": N_("everything visible"),
        "segments": N_("no segments"),
    }
    return [t(text) for part, text in texts.items() if vars(ablation)[part] != vars(FULL)[part]]
