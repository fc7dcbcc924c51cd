"""The slow, obvious second implementation: one text, one name, one token after the other.

The core does the same for many texts at once in arrays; the tests compare.
"""

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
from kbert_core.knowledge.strategies import select_triples
from kbert_core.knowledge.surface_forms import ALL_RULES, plural_end


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
    return SentenceTree(tuple(sentences), tuple(nodes))
