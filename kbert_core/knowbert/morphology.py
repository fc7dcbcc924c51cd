"""Names in a text that inflects them: WordNet's morphology, Morphy.

A base form counts where the graph has it as a name. Irregular forms ("went") are other names in the
graph, so that no list of exceptions is needed here.
"""

import re
from collections.abc import Iterator, Sequence

from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.names import loose_key

Names = dict[tuple[int, int], dict[str, set[str]]]  # span → entity → names that led to it
MOST_WORDS = 6  # of a name, as in the paper
WORD = re.compile(r"[^\W_]+")
OF_SYNSET = re.compile(r"\.([nvasr])\.\d+$")
# Parts of speech, and (ending, what stands in its place): the rules of detachment of WordNet 3.0.
RULES: dict[str, tuple[tuple[str, str], ...]] = {
    "n": (
        *(("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z"), ("ches", "ch")),
        *(("shes", "sh"), ("men", "man"), ("ies", "y")),
    ),
    "v": (
        *(("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", "")),
        *(("ing", "e"), ("ing", "")),
    ),
    "as": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
}


def inflected_names(text: str, graph: KnowledgeGraph) -> Names:
    """Find every name of one to six words, as it stands and by the base forms of its words.

    Args:
        graph: case, dashes and spaces of its names don't matter.

    Returns:
        Per span in characters, end exclusive, the entities it may mean.
    """
    places = [match.span() for match in WORD.finditer(text)]
    words = [text[start:end].lower() for start, end in places]
    known: dict[str, tuple[str, ...]] = graph.kept("names by key", dict)
    names: Names = {}
    for parts, forms in (("", words), *base_forms(words, graph)):
        changed = [form != word or not parts for form, word in zip(forms, words, strict=True)]
        for first in range(len(words)):
            for stop in range(first + 1, min(first + MOST_WORDS, len(words)) + 1):
                if not any(changed[first:stop]):
                    continue
                key = loose_key(" ".join(forms[first:stop]))
                entities = known.get(key)
                if entities is None:
                    if not (meant := graph.meant_by(key)):
                        continue
                    entities = known[key] = tuple(e for e in meant if _is_called(e, key, graph))
                span = places[first][0], places[stop - 1][1]
                for entity in entities:
                    if not parts or part_of_speech(entity) in (*parts, ""):
                        names.setdefault(span, {}).setdefault(entity, set()).add(key)
    return names


def _is_called(entity: str, key: str, graph: KnowledgeGraph) -> bool:
    """Whether an entity is written so, and not only alike, as a plural is."""
    for triple in graph.triples_of(entity):
        said = graph.aliases.aliases_in(triple)
        named = said is not None and graph.is_on(triple) and loose_key(said[0]) == key
        if named or loose_key(triple.head) == key:
            return True
    return False


def part_of_speech(entity: str) -> str:
    """The letter of a synset's name, as in "storm.v.02"; empty for any other entity."""
    match = OF_SYNSET.search(entity)
    return match[1] if match else ""


def base_forms(words: Sequence[str], graph: KnowledgeGraph) -> Iterator[tuple[str, list[str]]]:
    """Write a text's words in their base forms, for one part of speech after the other.

    Args:
        words: of a text, in order.
        graph: whose names count as forms.

    Yields:
        Letters of the part of speech, and as many words: each in a base form where it has one,
        else as it stands. Several times where a word has several.
    """
    known: dict[tuple[str, str], list[str]] = graph.kept("base forms", dict)
    for parts, rules in RULES.items():
        forms = []
        for word in words:
            key = parts, word.lower()
            if key not in known:
                known[key] = [
                    form
                    for ending, new in rules
                    if (form := key[1].removesuffix(ending) + new) != key[1]
                    and key[1].endswith(ending)
                    and _is_name(form, parts, graph)
                ]
            forms.append(known[key])
        for k in range(max(map(len, forms), default=0)):
            chosen = zip(words, forms, strict=True)
            yield parts, [own[min(k, len(own) - 1)] if own else word for word, own in chosen]


def _is_name(form: str, parts: str, graph: KnowledgeGraph) -> bool:
    meant = graph.meant_by(loose_key(form)) if form else ()
    return any(part_of_speech(entity) in (*parts, "") for entity in meant)
