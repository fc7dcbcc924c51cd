"""How the names of a text were read, in words."""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import islice, pairwise

from kbert_core.files import shipped
from kbert_core.kbert.sentence_tree import Node, SentenceTree
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import Mention, PassedOver
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.triple import Triple
from kbert_lab.lab.texts import N_, language, listed, t
from kbert_lab.lab.words import NAME_RULE

SHOWN = 6  # lines of a kind


def name_lines(tree: SentenceTree, over: Sequence[PassedOver]) -> tuple[str, ...]:
    """Say which mentions are written otherwise than in the graph, or mean several things.

    And which names are no mentions, and why. Plain text, a line each.

    Args:
        over: the names passed over in it.
    """

    def text(mention: Mention) -> str:
        return tree.sentences[mention.sentence][mention.start : mention.end]

    said = []
    for node in tree.nodes:
        mention = node.mention
        if mention.rules:
            rules = listed(t(NAME_RULE[rule.name]) for rule in mention.rules)
            words = N_("“{text}” is read as “{entity}” ({rules})")
            said.append(t(words, text=text(mention), entity=_as_in_graph(node), rules=rules))
        if mention.others:
            entities = listed(mention.entities)
            said.append(t("“{text}” may mean {entities}", text=text(mention), entities=entities))
    passed = [
        t(
            "“{text}” is not a mention: it is part of “{longer}”"
            if one.inside
            else "“{text}” is not a mention: it overlaps “{longer}”",
            text=text(one.mention),
            longer=text(one.taken),
        )
        for one in over
    ]
    return (*_first(said), *_first(passed))


def _as_in_graph(node: Node) -> str:
    """The entity's name as one of its triples writes it."""
    triples = [branch.triple for branch in node.branches] + [out.triple for out in node.left_out]
    heads = (triple.head for triple in triples)
    return next(
        (head for head in heads if normalise_name(head) == node.mention.entity), node.mention.entity
    )


def _first(lines: list[str]) -> list[str]:
    """The first lines, each once, and how many more there are."""
    lines = list(dict.fromkeys(lines))
    more = len(lines) - SHOWN
    return [*lines[:SHOWN], t("and {count} more", count=more)] if more > 0 else lines


MOST_NEAR = 5
MOST_LOOKED_AT = 50_000  # heads; a visitor waits for them


def nearest_names(sentences: Sequence[str], graph: KnowledgeGraph) -> tuple[str, ...]:
    """Return heads that share most of their character pairs with the text, as in the graph."""
    text = " ".join(normalise_name(sentence) for sentence in sentences)
    pairs, characters = _pairs(text), set(text) - {" "}
    scored = []
    for entity in islice(graph.entities(), MOST_LOOKED_AT):
        if characters.isdisjoint(entity):
            continue
        own = _pairs(entity)
        shared = len(own & pairs) / len(own) if own else 0.0
        alike = len(set(entity) & characters) / len(set(entity))
        if shared >= 0.3 or (alike >= 0.5 and not entity.isascii() and len(entity) <= 4):
            scored.append((-shared - 0.3 * alike, len(entity), entity))
    best = [entity for _, _, entity in sorted(scored)[:MOST_NEAR]]
    return tuple(graph.triples_of(entity)[0].head for entity in best)


def _pairs(text: str) -> set[str]:
    return {a + b for a, b in pairwise(text) if a + b != "  "}


GLOSSES = "demo_kgs/glosses.tsv"


def gloss(name: str) -> str:
    """An entity's or a relation's English gloss; empty where there is none, or nobody needs it."""
    return _glosses().get(name, "") if language() == "en" else ""


def with_glosses(said: str, triple: Triple) -> str:
    """What is said of a triple, and what its names mean, as far as that is known."""
    found = [gloss(name) for name in (triple.head, triple.relation, triple.tail)]
    return f"{said} · {', '.join(filter(None, found))}" if any(found) else said


@cache
def _glosses() -> Mapping[str, str]:
    lines = shipped(GLOSSES).read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t") for line in lines)
