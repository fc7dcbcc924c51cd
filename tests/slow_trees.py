"""Random sentence trees, and slow second ways to grow and to flatten them.

Names are looked for in one text, at one place after the other. Flattening is
written from the paper's prose and Figure 2 alone: a tree of nodes with a
parent each, a soft position counted as the number of ancestors, and a visible
matrix filled in by two nested loops that ask of each pair of nodes where they
stand.
"""

from dataclasses import dataclass, field

from kbert_core import KnowledgeGraph, Triple
from kbert_core.kbert import sentence_tree
from kbert_core.knowledge.mentions import Mention, meanings
from kbert_core.knowledge.names import DASHES, UNSPACED, is_word_character, loosen
from kbert_core.knowledge.strategies import select_triples
from kbert_core.knowledge.surface_forms import (
    ALL_RULES,
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
        rows = []
        for one in self.nodes:
            row = []
            for other in self.nodes:
                if one.branch is None and other.branch is None:
                    sees = True  # the trunk sees the trunk
                elif one.branch is other.branch:
                    sees = True  # a branch sees itself
                elif one.branch is None:  # a mention and a branch that hangs from it
                    sees = one.mention is not None and other.hangs_from is one.mention
                elif other.branch is None:
                    sees = other.mention is not None and one.hangs_from is other.mention
                else:
                    sees = False  # two different branches
                row.append(sees)
            rows.append(row)
        return rows


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
