"""The sentence tree: the trunk on one line, branches below their mention."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import TYPE_CHECKING
from unicodedata import bidirectional

from kbert_core.kbert.flat_tree import FlatTree, PlacedBranch
from kbert_core.kbert.visible import Ablation
from kbert_core.knowledge.triple import Triple
from kbert_core.tokens import Tokens
from kbert_lab.lab.selection import Marks
from kbert_lab.lab.texts import N_, t, tn
from kbert_lab.lab.views.diff import Identity, Status, code_of
from kbert_lab.lab.views.html import escape, shown
from kbert_lab.lab.views.names import gloss, with_glosses

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
    segments, hard = len(set(flat.token_type_ids)), trace.ablation.positions == "hard"
    return TreeView(tuple(nodes), segments, hard)


@dataclass(frozen=True)
class _Handles:
    """What can be clicked in a tree."""

    marks: Marks  # what is chosen, by hard position
    off: Collection[Triple]  # triples that are switched off, and can be switched on again
    edits: bool  # whether a branch's tail can be changed


def tree_html(
    view: TreeView,
    marks: Marks | None = None,
    off: Collection[Triple] = (),
    *,
    line: int = ONE_LINE,
    legend: bool = True,
    edits: bool = False,
) -> str:
    """Draw a tree; everything in it is escaped.

    Args:
        marks: what of it is chosen, by hard position, where tokens can be
            chosen and branches switched; None: it is a picture.
        off: triples that are switched off.
        line: pixels of a trunk that surely fits.
        legend: say above it what the colours mean.
        edits: whether a branch's tail can be changed in it.
    """
    used = "kb-hard-used" if view.hard_used else "kb-soft-used"
    handles = None if marks is None else _Handles(marks, off, edits)
    body = _trunks_html(view, handles, line)
    role, label = "img", t("Sentence tree")
    if marks is not None:
        role, label = (
            "group",
            t("Sentence tree; arrow keys walk over the tokens, Enter chooses one"),
        )
    is_a = f'role="{role}" aria-label="{escape(label)}"'
    if any(node.gloss or any(map(_glosses_of, node.branches)) for node in view.nodes):
        used += " kb-glossed"
    used += " kb-rtl" if _is_right_to_left(view) else ""
    keys = _legend(view, {branch.status for branch in view.branches})
    keys += _settings() if handles else ""
    above = f'<div class="kb-legend {used}">{keys}</div>' if legend else ""
    return f'{above}<div class="kb-tree {used}" {is_a}>{body}</div>'


def _is_right_to_left(view: TreeView) -> bool:
    """Whether a trunk is written from right to left, as its first letter says."""
    tokens = (token for node in view.nodes for token in node.tokens if not token.special)
    ways = (bidirectional(character) for token in tokens for character in token.text)
    return next((way for way in ways if way in ("L", "R", "AL")), "L") != "L"


def _legend(view: TreeView, states: Collection[Status]) -> str:
    named = [
        ("kb-k-trunk", t("trunk")),
        ("kb-k-mention", t("mention")),
        ("kb-k-branch", t("branch")),
    ]
    if "added" in states:
        named.append(("kb-k-added", t("new")))
    if "removed" in states:
        named.append(("kb-k-removed", t("gone")))
    keys = "".join(f'<span class="kb-key"><i class="{c}"></i>{escape(x)}</span>' for c, x in named)
    soft, hard = t("soft position"), t("hard position")
    keys += (
        f'<span class="kb-key kb-detail"><span class="kb-pos"><b class="kb-soft">{escape(soft)}</b>'
        f'<s></s><b class="kb-hard">{escape(hard)}</b></span></span>'
    )
    if view.segments > 1:
        keys += f'<span class="kb-key kb-detail">{escape(t("A, B: segments"))}</span>'
    return keys


def _settings() -> str:
    """The switches of how it is shown, which the browser keeps; the button that saves it."""
    said = escape(t("Save as SVG, for a paper"))
    save = '<span class="kb-setting" role="button" tabindex="0" data-save="" '
    save += f'title="{said}" aria-label="{said}">SVG</span>'
    return save + "".join(
        f'<span class="kb-setting" role="switch" tabindex="0" aria-checked="false" '
        f'data-setting="{name}" title="{escape(help)}">{escape(said)}</span>'
        for name, said, help in (
            ("details", t("Details"), t("Word pieces, their positions, and B, I")),
            ("large", t("Large"), t("Larger letters, for a lecture hall")),
        )
    )


def _trunks_html(view: TreeView, handles: _Handles | None, line: int) -> str:
    """One trunk, or the two of a pair below each other, each with its letter."""
    sentences = sorted({node.sentence for node in view.nodes})
    parts = []
    for sentence in sentences:
        nodes = [node for node in view.nodes if node.sentence == sentence]
        free = _free(nodes, line)
        drawn = "".join(
            _node_html(node, view.segments, handles, free=number in free)
            for number, node in enumerate(nodes)
        )
        if len(sentences) > 1:
            letter = f'<b class="kb-letter">{"AB"[min(sentence, 1)]}</b>'
            drawn = f'{letter}<div class="kb-one-trunk">{drawn}</div>'
            drawn = f'<div class="kb-trunk-row">{drawn}</div>'
        parts.append(drawn)
    return "".join(parts)


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
        flat.token_type_ids[index],
        flat.identities[index][0] == "special",
        code_of(flat.identities[index]),
        sentence >= 0 and _joined(flat.trunk_tokens[sentence], at),
    )


def _node_html(
    node: NodeView, segments: int, handles: _Handles | None, *, free: bool = False
) -> str:
    kind = "kb-node kb-mention" if node.mention else "kb-node"
    kind += " kb-free" if free else ""
    trunk = "".join(
        _token_html(tok, "kb-special" if tok.special else "kb-trunk", segments, handles)
        for tok in node.tokens
    )
    if node.gloss:
        trunk = _field_html(trunk, node.gloss)
    branches = "".join(_branch_html(branch, segments, handles) for branch in node.branches)
    below = f'<div class="kb-branches">{branches}</div>' if branches else ""
    return f'<div class="{kind}"><div class="kb-toks">{trunk}</div>{below}</div>'


def _branch_html(branch: BranchView, segments: int, handles: _Handles | None) -> str:
    kind = "" if branch.status == "same" else f" kb-{branch.status}"
    mark, note = {"same": ("", ""), "added": ("+", t("new")), "removed": ("−", t("gone"))}[
        branch.status
    ]
    if handles is not None and any(token.hard in handles.marks.branch for token in branch.tokens):
        kind += " kb-picked"
    drawn = (
        "".join(_token_html(tok, "kb-branch-tok", segments, handles) for tok in field)
        for field in branch.fields
    )
    fields = "".join(map(_field_html, drawn, _glosses_of(branch) or repeat("")))
    title = escape(with_glosses(str(branch.triple), branch.triple) + (f" · {note}" if note else ""))
    flag = f'<span class="kb-flag">{mark}</span>' if mark else ""
    buttons = _buttons_html(branch, handles) if handles is not None else ""
    named = f'data-branch="{escape(branch.name)}" title="{title}"'
    return f'<div class="kb-branch{kind}" {named}>{flag}{fields}{buttons}</div>'


def _field_html(tokens: str, gloss: str) -> str:
    below = f'<i class="kb-gloss" title="{escape(gloss)}">{escape(gloss)}</i>' if gloss else ""
    return f'<span class="kb-field">{tokens}{below}</span>'


def _glosses_of(branch: BranchView) -> list[str]:
    """The glosses of a branch's relation and tail, or of its tail alone; empty without any."""
    names = (branch.triple.relation, branch.triple.tail)[-len(branch.fields) :]
    found = [gloss(name) for name in names]
    return found if any(found) else []


def _buttons_html(branch: BranchView, handles: _Handles) -> str:
    """What switches a branch's triple off, or on again, and changes its tail; as far as it can."""
    gone = branch.status == "removed"
    if gone and branch.triple not in handles.off:
        return ""
    said = escape(t("Switch on {triple}" if gone else "Switch off {triple}", triple=branch.triple))
    turn, state = ("on", t("off")) if gone else ("off", t("on"))
    switch = (
        f'<span class="kb-switch kb-toggle" role="switch" tabindex="0" data-switch="{turn}" '
        f'aria-checked="{str(not gone).lower()}" aria-label="{said}" title="{said}">'
        f"<i></i>{escape(state)}</span>"
    )
    if gone or not handles.edits:
        return switch
    said = escape(t("Change the tail of {triple}", triple=branch.triple))
    return switch + (
        f'<span class="kb-switch" role="button" tabindex="0" aria-label="{said}" title="{said}" '
        f'data-edit="" data-tail="{escape(branch.triple.tail)}">✎</span>'
    )


def _token_html(token: TokenView, kind: str, segments: int, handles: _Handles | None) -> str:
    positions = handle = ""
    kind += " kb-joined" if token.joined else ""
    if token.soft is not None:
        seg = f"<u>{'AB'[min(token.segment, 1)]}</u>" if segments > 1 else ""
        positions = (
            f'<span class="kb-pos"><b class="kb-soft">{token.soft}</b><s></s>'
            f'<b class="kb-hard">{token.hard}</b>{seg}</span>'
        )
    if handles is not None and token.hard is not None:
        marks = handles.marks
        chosen = token.hard == marks.token
        handle = (
            f' role="button" tabindex="-1" aria-pressed="{str(chosen).lower()}" '
            f'data-name="{escape(token.name)}"'
        )
        if chosen:
            kind += " kb-chosen"
        elif marks.seen is not None and token.hard not in marks.seen:
            kind += " kb-unseen"
        if token.hard == marks.target:
            kind += " kb-target"
    text = shown(token.text)
    if "kb-branch-tok" in kind:  # its underscores stand for spaces
        text = text.replace("_", '<u class="kb-under">_</u>')
    return (
        f'<span class="kb-tok {kind} kb-seg{min(token.segment, 1)}"{handle}>'
        f'<span class="kb-text">{text}</span>{positions}</span>'
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
    if ablation.positions == "hard":
        parts.append(t("the model reads the hard positions"))
    if ablation.visible == "all":
        parts.append(t("everything visible"))
    return " · ".join(parts)
