"""Random graphs and texts in which everything occurs that makes names and tokens hard."""

import random
from itertools import pairwise

from slow_flatten import assert_same_rows, slow_flatten, slow_tree

from kbert_core import (
    Characters,
    InjectionOptions,
    KnowledgeGraph,
    Triple,
    Words,
    flatten,
    grow_trees,
)
from kbert_core.kbert.flattening import KNOWLEDGE_ROOM
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
    """Read a batch of texts both ways, and compare everything."""
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
    assert list(trees) == slowly, seed
    rows = [slow_flatten(tree, tokenizer, max_length=limit, windows=windows) for tree in slowly]
    for given in (trees, slowly):  # as they were grown, and as if made by hand
        flats = flatten(given, tokenizer, max_length=limit, windows=windows)
        assert flats.texts.tolist() == [i for i, some in enumerate(rows) for _ in some], seed
        assert_same_rows(flats, [row for some in rows for row in some])
    return flats
