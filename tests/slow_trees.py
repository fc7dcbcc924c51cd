"""Random sentence trees, and slow second ways to grow and to flatten them.

Names are looked for in one text, at one place after the other. Flattening is
written from the paper's prose and Figure 2 alone: a tree of nodes with a
parent each, a soft position counted as the number of ancestors, and a visible
matrix filled in by two nested loops that ask of each pair of nodes where they
stand. At the end, random graphs and texts in which everything occurs that
makes names and tokens hard, for both.
"""

import random
from dataclasses import dataclass, field
from itertools import pairwise

from kbert_core import (
    Characters,
    InjectionOptions,
    KnowledgeGraph,
    Triple,
    Words,
    flatten,
    grow_trees,
)
from kbert_core.kbert import sentence_tree
from kbert_core.kbert.flat_tree import KNOWLEDGE_ROOM, rows_of_trees
from kbert_core.knowledge.mentions import Mention, meanings
from kbert_core.knowledge.names import DASHES, UNSPACED, is_word_character, loosen
from kbert_core.knowledge.strategies import select_triples
from kbert_core.knowledge.surface_forms import (
    ALL_RULES,
    RULES,
    NameRules,
    plural_end,
    without_spaces_between_words,
)


@dataclass(frozen=True)
class Entity:
    """A name of one or more words, and branches of one or more words each."""

    words: tuple[str, ...]
    facts: tuple[Triple, ...]


@dataclass
class Scene:
    """Sentences of plain words and entities, and the graph that knows the entities."""

    sentences: list[list[object]]
    entities: list[Entity]

    @property
    def texts(self):
        return [
            " ".join(
                " ".join(item.words) if isinstance(item, Entity) else item for item in sentence
            )
            for sentence in self.sentences
        ]

    @property
    def graph(self):
        return KnowledgeGraph(fact for entity in self.entities for fact in entity.facts)


def random_scene(dice, sentences):
    entities = []
    for number in range(dice.randint(0, 4)):
        words = tuple(f"e{number}{'abc'[i]}" for i in range(dice.randint(1, 3)))
        facts = tuple(
            Triple(" ".join(words), some_words(dice, "r"), some_words(dice, f"t{i}_"))
            for i in range(dice.randint(1, 4))
        )
        entities.append(Entity(words, facts))
    plain = [f"w{i}" for i in range(6)]
    return Scene(
        [
            [dice.choice(plain + entities) for _ in range(dice.randint(0, 8))]
            for _ in range(sentences)
        ],
        entities,
    )


def some_words(dice, start):
    return " ".join(f"{start}{i}" for i in range(dice.randint(1, 3)))


@dataclass(eq=False)
class Node:
    """A token: where it stands in the tree."""

    text: str
    segment: int
    parent: "Node | None"
    mention: object = None  # the occurrence of an entity that it is part of
    branch: object = None  # the branch that it is part of; None on the trunk
    hangs_from: object = None  # the mention that its branch hangs from


@dataclass
class SlowFlat:
    """Nodes in reading order, and what was left out: (fact, "length" or "cut")."""

    nodes: list[Node] = field(default_factory=list)
    left_out: list[tuple[Triple, str]] = field(default_factory=list)

    @property
    def tokens(self):
        return [node.text for node in self.nodes]

    @property
    def segments(self):
        return [node.segment for node in self.nodes]

    @property
    def soft_positions(self):
        positions = []
        for node in self.nodes:
            ancestors = 0
            while node.parent is not None:
                node = node.parent
                ancestors += 1
            positions.append(ancestors)
        return positions

    @property
    def visible(self):
        return [[sees(one, other) for other in self.nodes] for one in self.nodes]


def sees(one, other):
    """Whether two tokens see each other, by where they stand."""
    if one.branch is other.branch:
        return True  # the trunk sees the trunk, a branch sees itself
    if other.branch is None:
        one, other = other, one
    if one.branch is not None:
        return False  # two different branches
    return one.mention is not None and other.hangs_from is one.mention


def slowly_flattened(scene, *, special, tail_only=False, max_length=None):
    """Lay the tree down node by node; cut and leave out as the limit asks."""
    count = len(scene.sentences)
    lengths = [
        sum(len(item.words) if isinstance(item, Entity) else 1 for item in sentence)
        for sentence in scene.sentences
    ]
    specials = count + 1 if special else 0
    kept = list(lengths)
    if max_length is not None:
        while sum(kept) + specials > max_length:  # one token after the other, off the longer
            longer = 0 if kept[0] >= kept[-1] else count - 1
            kept[longer] -= 1
        free = max_length - specials - sum(kept)
    else:
        free = 10**9

    flat = SlowFlat()
    last = None  # the trunk's last node

    def on_trunk(text, segment, mention=None):
        nonlocal last
        last = Node(text, segment, last, mention)
        flat.nodes.append(last)

    for number, sentence in enumerate(scene.sentences):
        if special:
            on_trunk("[SEP]" if number else "[CLS]", 0)
        left = kept[number]
        for item in sentence:
            if not isinstance(item, Entity):
                if left:
                    on_trunk(item, number)
                    left -= 1
                continue
            facts = item.facts
            if left < len(item.words):
                flat.left_out += [(fact, "cut") for fact in facts]
                for word in item.words[:left]:
                    on_trunk(word, number)
                left = 0
                continue
            mention = object()
            for word in item.words:
                on_trunk(word, number, mention)
            left -= len(item.words)
            for fact in facts:
                words = fact.tail.split() if tail_only else f"{fact.relation} {fact.tail}".split()
                if len(words) > free:
                    flat.left_out.append((fact, "length"))
                    continue
                free -= len(words)
                branch, parent = object(), last
                for word in words:
                    parent = Node(word, number, parent, None, branch, mention)
                    flat.nodes.append(parent)
    if special:
        on_trunk("[SEP]", count - 1)
    return flat


def slow_names(text, graph, *, words=None, sentence=0, rules=ALL_RULES):
    """Every name that stands alone: by its start, the longest first."""
    rules = rules.basic if UNSPACED.search(text) else rules
    (found,) = loosen([text]).split()  # its last character is a border
    loose = [*zip(map(chr, found.ids), found.starts, found.ends, strict=True)][:-1]
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
                sentence_tree.branch_of(triple, options, reason)
                for triple, reason in zip(chosen.used, chosen.reasons, strict=True)
            )
            nodes.append(sentence_tree.Node(mention, branches, chosen.left_out))
    return sentence_tree.SentenceTree(tuple(sentences), tuple(nodes))


ALPHABET = "ab cAB中文-心國国Ⅱ℃éｃs\u0301·😀\0\x01（）'´ "
NO_VOCABULARY = (Characters(), Characters(special=True), Words(), Words(special=True))


def random_text(dice, longest, alphabet=ALPHABET):
    return "".join(dice.choice(alphabet) for _ in range(dice.randint(1, longest)))


def random_graph(dice, size=35):
    """Homonyms, aliases, ligatures, dashes; some triples removed, switched off or added."""
    heads = [random_text(dice, 7) for _ in range(size // 2)]
    heads += [f"{head}（{random_text(dice, 2, 'ab中')}）" for head in heads[:4]]
    triples = [
        Triple(
            dice.choice(heads),
            dice.choice(["r", "s", "别名", "中 b"]),
            random_text(dice, 6) if dice.random() < 0.8 else dice.choice(heads),
        )
        for _ in range(size)
    ]
    graph = KnowledgeGraph(triple for triple in triples if not triple.problem())
    for triple in dice.sample(list(graph), min(4, len(graph))):
        graph = dice.choice((graph.remove, graph.switch_off))(triple)
    new = Triple(f"中{dice.choice('ab文')}", "new", "name")
    return graph if new in graph else graph.add(new)


def random_words(dice, text):
    borders = sorted({0, len(text), *(dice.randint(0, len(text)) for _ in range(6))})
    return tuple(pairwise(borders))


def random_options(dice):
    return InjectionOptions(
        max_triples=dice.randint(0, 4),
        tail_only=dice.random() < 0.5,
        names=NameRules.of([rule for rule in RULES if dice.random() < 0.8]),
        strategy=dice.choice(["first", "first", "tail_in_text", "rare"]),
        first_relations=dice.choice([(), ("s",)]),
    )


def check_random_batch(seed, tokenizers):
    """Grow trees of a batch of texts in two ways, and check their rows."""
    dice = random.Random(seed)
    graph, options, tokenizer = random_graph(dice), random_options(dice), dice.choice(tokenizers)
    windows = dice.random() < 0.4
    names = [triple.head for triple in graph]

    def sentence():
        parts = (
            dice.choice(names)
            if dice.random() < 0.35
            else "[MASK]"
            if dice.random() < 0.08
            else random_text(dice, 5)
            for _ in range(dice.randint(0, 7))
        )
        return "".join(parts)

    texts = [(sentence(),) if dice.random() < 0.6 else (sentence(), sentence()) for _ in range(10)]
    limit = dice.choice([None, None, 4, 7, 12, 25, 40])
    if windows and limit:  # a first sentence that leaves room for windows of the second
        room = int((limit - tokenizer.layout(2).count) * (1 - KNOWLEDGE_ROOM)) // 2
        firsts = tokenizer.tokenize([text[0] for text in texts])
        texts = [
            text if len(tokens) <= room else text[:1]
            for text, tokens in zip(texts, firsts, strict=True)
        ]
    words = [None] * len(texts)
    if dice.random() < 0.3:
        words = [
            None if dice.random() < 0.2 else tuple(random_words(dice, s) for s in text)
            for text in texts
        ]
    masks = [None] * len(texts)
    if getattr(tokenizer, "reads_masks", False):
        masks = [tuple(map(tokenizer.mask_spans, text)) for text in texts]

    trees = grow_trees(texts, graph, options, words=words, masks=masks)
    slowly = [
        slow_tree(text, graph, options, words=own, masks=hidden)
        for text, own, hidden in zip(texts, words, masks, strict=True)
    ]
    assert trees == slowly, seed
    made = rows_of_trees(trees, tokenizer, max_length=limit, windows=windows)
    for tree, rows in zip(trees, made, strict=True):
        alone = flatten([tree], tokenizer, max_length=limit, windows=windows)
        assert tuple(alone) == rows, seed
        for row in rows:
            assert limit is None or len(row) <= limit, seed
            assert not (windows and row.trunk_cuts), seed
            check_row(row)
        check_nothing_is_lost(tree, rows)
    return made


def check_row(row):
    """Check what the paper says of a tree in reading order, token by token."""
    trunk = [at for at, branch in enumerate(row.branch_ids) if branch == 0]
    assert [row.soft_positions[at] for at in trunk] == list(range(len(trunk)))
    assert sorted({*row.branch_ids} - {0}) == list(range(1, len(row.branches) + 1))
    for number, (node, branch, start, end) in enumerate(row.branches, start=1):
        assert [at for at, own in enumerate(row.branch_ids) if own == number] == [
            *range(start, end)
        ]
        mention = row.tree.nodes[node].mention
        named = [at for at in trunk if row.anchor_ids[at] == node + 1]
        begin = 1 + row.soft_positions[named[-1]]
        assert row.soft_positions[start:end] == list(range(begin, begin + end - start))
        assert {*row.anchor_ids[start:end]} == {node + 1}
        assert {*row.token_type_ids[named[0] : end]} == {row.token_type_ids[named[0]]}
        places = [row.trunk_places[at] for at in named]
        assert {sentence for sentence, _ in places} == {mention.sentence}
        own = row.trunk_tokens[mention.sentence]
        assert own.starts[places[0][1]] < mention.end and own.ends[places[-1][1]] > mention.start
        assert [
            id for text in row.tokenizer.tokenize_branches(branch.texts) for id in text.ids
        ] == (row.input_ids[start:end])
    for at, (sentence, place) in enumerate(row.trunk_places):
        if sentence >= 0:
            assert row.input_ids[at] == row.trunk_tokens[sentence].ids[place]


def check_nothing_is_lost(tree, rows):
    """Check that every token is in some row or cut, and every triple in some row or left out."""
    places = {place for row in rows for place in row.trunk_places}
    for number, tokens in enumerate(rows[0].trunk_tokens):
        cut = next((cut.kept for cut in rows[0].trunk_cuts if cut.sentence == number), len(tokens))
        assert {at for sentence, at in places if sentence == number} == set(range(cut))
    for number, node in enumerate(tree.nodes):
        placed = {b.branch.triple for row in rows for b in row.branches if b.node == number}
        left_out = {item.triple for row in rows for n, item in row.left_out if n == number}
        assert placed | left_out == {*node.used, *(item.triple for item in node.left_out)}
