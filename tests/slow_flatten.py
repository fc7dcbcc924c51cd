"""The slow, obvious second implementation: one text, one name, one token after the other.

The core does the same for many texts at once in arrays; the tests compare.
"""

from dataclasses import dataclass, field

from kbert_core.errors import OptionError, TextError
from kbert_core.kbert.flat_tree import CODES, TrunkCut
from kbert_core.kbert.flattening import KNOWLEDGE_ROOM
from kbert_core.kbert.sentence_tree import Branch, Node, SentenceTree
from kbert_core.knowledge.mentions import Mention, meanings
from kbert_core.knowledge.names import (
    ACUTE,
    DASHES,
    DROPPED,
    SLOW,
    UNSPACED,
    NormalisedText,
    is_word_character,
    loose_code,
    normalise,
)
from kbert_core.knowledge.selection import LeftOut, Rule
from kbert_core.knowledge.strategies import select_triples
from kbert_core.knowledge.surface_forms import ALL_RULES, plural_end
from kbert_core.tokens import OVERLAP


def slowly_loosened(text):
    """The characters in which names are looked up, each with its span in the text."""
    normal = NormalisedText(text, range(len(text)), range(1, len(text) + 1))
    if SLOW in text.translate(loose_code):
        normal = normalise(text.replace(ACUTE, "'"))
    found = []
    for character, start, end in zip(normal.text, normal.starts, normal.ends, strict=True):
        loose = loose_code[ord(character)]
        if loose != DROPPED:
            found.append((character if loose == SLOW else loose, start, end))
    return found


def slow_names(text, graph, *, words=None, sentence=0, rules=ALL_RULES):
    """Every name that stands alone: by its start, the longest first."""
    rules = rules.basic if UNSPACED.search(text) else rules
    loose = slowly_loosened(text)
    characters = "".join(character for character, _, _ in loose)

    def cut(place):  # a border here would cut a character or a word
        if not 0 < place < len(loose):
            return False
        (before, start, end), (after, following, _) = loose[place - 1 : place + 1]
        return start == following or (
            end == following and is_word_character(before) and is_word_character(after)
        )

    for place, (_, start, _) in enumerate(loose):
        if cut(place) or (words is not None and start not in {first for first, _ in words}):
            continue
        for key in reversed(graph.names.keys_at(characters, [place])[0]):
            end = loose[place + len(key) - 1][2]
            if cut(place + len(key)):
                end = plural_end(text, end) if rules.plural else None
            if end is None or (words is not None and end not in {last for _, last in words}):
                continue
            span, meant = beside_dashes(text, start, end, graph, key, rules)
            if words is not None and (not meant or span != (start, end)):
                span = start, end
                name = text[start:end]
                meant = meanings(graph, key, name, rules) or meanings(
                    graph, key, without_spaces_between_words(name), rules
                )
            if meant:
                (entity, by_rules), *others = meant
                yield Mention(*span, entity, sentence, tuple(o for o, _ in others), by_rules)


def beside_dashes(text, start, end, graph, key, rules):
    """The span with the dashes beside it that make it most like the graph's name."""
    spans = [(start, end)]
    if text[end : end + 1] in DASHES:
        spans.append((start, end + 1))
    if start and text[start - 1] in DASHES:
        spans += [(start - 1, last) for _, last in tuple(spans)]
    found = [(span, meanings(graph, key, text[slice(*span)], rules)) for span in spans]

    def cost(item):
        rules_taken = item[1][0][1]
        spelling = [rule for rule in rules_taken if rule.name not in ("SENSE", "ALIAS")]
        return len(spelling), len(rules_taken)

    some = [item for item in found if item[1]]
    return min(reversed(some), key=cost) if some else found[0]


def without_spaces_between_words(name):
    kept = []
    for i, character in enumerate(name):
        beside = name[i - 1] + name[i + 1] if 0 < i < len(name) - 1 else ""
        if character != " " or any(map(is_word_character, beside)):
            kept.append(character)
    return "".join(kept)


def slow_mentions(text, graph, *, masks=(), **how):
    """Leftmost-longest, non-overlapping, and none that touches a mask."""
    taken = []
    for mention in slow_names(text, graph, **how):
        if not taken or mention.start >= taken[-1].end:
            taken.append(mention)
    return [m for m in taken if not any(m.start < end and start < m.end for start, end in masks)]


def slow_tree(sentences, graph, options, *, words=None, masks=None, scorer=None):
    """K-Query and K-Inject of one text."""
    nodes = []
    for number, text in enumerate(sentences):
        mentions = slow_mentions(
            text,
            graph,
            words=words[number] if words else None,
            masks=masks[number] if masks else (),
            sentence=number,
            rules=options.names,
        )
        for mention in mentions:
            (chosen,) = select_triples([sentences], [mention], graph, options, scorer)
            branches = tuple(
                Branch(t, (t.tail,) if options.tail_only else (t.relation, t.tail), reason)
                for t, reason in zip(chosen.used, chosen.reasons, strict=True)
            )
            nodes.append(Node(mention, branches, chosen.left_out))
    return SentenceTree(tuple(sentences), tuple(nodes), words)


@dataclass
class SlowRow:
    """A flat tree as lists that grow token by token."""

    tree: SentenceTree
    input_ids: list = field(default_factory=list)
    soft_positions: list = field(default_factory=list)
    branch_ids: list = field(default_factory=list)
    anchor_ids: list = field(default_factory=list)
    token_type_ids: list = field(default_factory=list)
    tokens: list = field(default_factory=list)
    trunk_places: list = field(default_factory=list)
    branches: list = field(default_factory=list)
    specials: list = field(default_factory=list)
    left_out: list = field(default_factory=list)
    trunk_cuts: list = field(default_factory=list)

    def put(self, token, text, position, branch, anchor, segment, place=(-1, -1)):
        for name, value in zip(CODES, (token, position, branch, anchor, segment), strict=True):
            getattr(self, name).append(value)
        self.tokens.append(text)
        self.trunk_places.append(place)


def slow_flatten(tree, tokenizer, *, max_length=None, windows=False):
    """The rows of one tree."""
    trunk = tuple(tokenizer.tokenize(tree.sentences))
    layout = tokenizer.layout(len(trunk))
    if max_length is None:
        return [slow_row(tree, tokenizer, trunk, layout, [(0, len(t)) for t in trunk], None)]
    room = max_length - layout.count
    if room <= 0:
        raise OptionError(
            f"The length limit is {max_length} tokens, and {layout.count} of them are special. "
            f"Give at least {layout.count + 1}."
        )
    if windows and sum(map(len, trunk)) > room:
        return slow_windows(tree, tokenizer, trunk, layout, room, max_length)
    kept = [len(t) for t in trunk]
    while sum(kept) > room:  # one token after the other, off the longer sentence
        kept[0 if kept[0] >= kept[-1] else -1] -= 1
    return [slow_row(tree, tokenizer, trunk, layout, [(0, k) for k in kept], max_length)]


def slow_windows(tree, tokenizer, trunk, layout, room, max_length):
    first, total, size = sum(map(len, trunk[:-1])), len(trunk[-1]), int(room * (1 - KNOWLEDGE_ROOM))
    if first > size // 2:
        raise TextError(
            f"The first text has {first} tokens. Every window repeats it and has room for {size} "
            "tokens, and it may use at most half of them. Shorten the first text, or raise the "
            "length limit."
        )
    size = min(total, max(1, size - first))
    spans = [(0, size)]
    while spans[-1][1] < total:
        start = min(spans[-1][0] + max(1, int(size * (1 - OVERLAP))), total - size)
        spans.append((start, start + size))
    inside, whole = [[] for _ in spans], [(0, len(tokens)) for tokens in trunk[:-1]]
    for number, node in enumerate(tree.nodes):
        if node.mention.sentence < len(trunk) - 1:
            for window in inside:
                window.append(number)
            continue
        first, last = trunk[-1].over(node.mention.start, node.mention.end)
        wholly = [i for i, (begin, stop) in enumerate(spans) if begin <= first and last <= stop]
        touched = [i for i, (_, stop) in enumerate(spans) if first < stop]
        for window in wholly or touched[:1] or [len(spans) - 1]:
            inside[window].append(number)
    rows = [
        slow_row(tree, tokenizer, trunk, layout, [*whole, span], max_length, nodes)
        for span, nodes in zip(spans, inside, strict=True)
    ]
    for row in rows:
        row.trunk_cuts = []
    return rows


def slow_row(tree, tokenizer, trunk, layout, spans, max_length, nodes=None):
    """Lay a tree's tokens down one after the other."""
    row = SlowRow(tree)
    free = float("inf")
    if max_length is not None:
        free = max_length - layout.count - sum(stop - begin for begin, stop in spans)
    position = 0

    def put_specials(specials):
        nonlocal position
        for special in specials:
            row.specials.append((len(row.tokens), special))
            row.put(special.id, special.text, position, 0, 0, special.segment)
            position += 1

    for number, (tokens, (begin, stop)) in enumerate(zip(trunk, spans, strict=True)):
        put_specials(layout.before[number])
        segment, text = layout.segments[number], tree.sentences[number]
        anchors, ends = {}, {}  # node by token; node by its last token
        before = 0
        outs = {}
        for index, node in enumerate(tree.nodes):
            if node.mention.sentence != number or (nodes is not None and index not in nodes):
                continue
            first, last = tokens.over(node.mention.start, node.mention.end)
            outs[index] = None
            if last <= first:
                outs[index] = Rule.NO_TOKENS
            elif first < before:
                outs[index] = Rule.SHARED_TOKEN
            elif first < begin or last > stop:
                outs[index] = Rule.TRUNK_CUT
            else:
                before = last
                anchors |= dict.fromkeys(range(first, last), index)
                ends[last - 1] = index
        hung = {}
        for at in range(begin, stop):
            span = tokens.starts[at], tokens.ends[at]
            anchor = 1 + anchors[at] if at in anchors else 0
            place = (number, at)
            row.put(tokens.ids[at], text[slice(*span)], position, 0, anchor, segment, place)
            position += 1
            if at not in ends:
                continue
            index = ends[at]
            hung[index] = []
            for branch in tree.nodes[index].branches:
                pieces = tokenizer.tokenize_branches(branch.texts)
                ids = [token for piece in pieces for token in piece.ids]
                if not ids or len(ids) > free:
                    hung[index].append(
                        LeftOut(branch.triple, Rule.LENGTH if ids else Rule.NO_TOKENS)
                    )
                    continue
                free -= len(ids)
                start = len(row.tokens)
                row.branches.append((index, branch, start, start + len(ids)))
                reads = [
                    reading[s:e]
                    for reading, piece in zip(branch.texts, pieces, strict=True)
                    for s, e in zip(piece.starts, piece.ends, strict=True)
                ]
                for shift, (token, read) in enumerate(zip(ids, reads, strict=True)):
                    branch_id = len(row.branches)
                    row.put(token, read, position + shift, branch_id, index + 1, segment)
        for index, rule in outs.items():
            node = tree.nodes[index]
            out = [LeftOut(b.triple, rule) for b in node.branches] if rule else hung[index]
            row.left_out += [(index, item) for item in (*node.left_out, *out)]
        if stop - begin < len(tokens):
            row.trunk_cuts.append(TrunkCut(number, stop - begin, len(tokens)))
    put_specials(layout.after)
    return row


def assert_same_rows(flats, rows):
    """Compare flat trees with slowly made rows, in everything they say."""
    assert len(flats) == len(rows)
    for flat, row in zip(flats, rows, strict=True):
        for name in (*CODES, "tokens", "trunk_places"):
            assert list(getattr(flat, name)) == getattr(row, name), (name, row.tree)
        assert [(b.node, b.branch, b.start, b.end) for b in flat.branches] == row.branches
        for name in ("specials", "left_out", "trunk_cuts"):
            assert list(getattr(flat, name)) == getattr(row, name), (name, row.tree)
        assert flat.tree == row.tree
