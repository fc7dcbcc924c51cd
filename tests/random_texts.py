"""Random graphs and texts in which everything occurs that makes names and tokens hard."""

import random
from itertools import pairwise

from slow_trees import slow_tree

from kbert_core import (
    Characters,
    InjectionOptions,
    KnowledgeGraph,
    Triple,
    Words,
    flatten,
    grow_trees,
)
from kbert_core.kbert.flat_tree import KNOWLEDGE_ROOM, rows_of_trees
from kbert_core.knowledge.surface_forms import RULES, NameRules

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
