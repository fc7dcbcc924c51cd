"""Exercises of 01_sentence_tree."""

from collections.abc import Sequence

from _tools import exercise

YORKS = ("York", "New York", "New")
TOGETHER = ["London", "located_on", "Thames", "and", "Paris", "capital", "France", "is_a", "city"]
FIGURE_2 = "Tim Cook CEO Apple is visiting Beijing capital China is_a City now".split()


@exercise("K-Query takes the longest name at each place, and a name inside another is passed over.")
def check_longest(answer: object) -> str | None:
    """Mentions of "She left New York for York" among New, York and New York."""
    if not isinstance(answer, (list, tuple)) or not all(isinstance(a, str) for a in answer):
        return 'give a list of names in the order of the text, such as ["Paris", "London"].'
    found = list(answer)
    if any(name not in YORKS for name in found):
        stray = next(name for name in found if name not in YORKS)
        return f"'{stray}' is no entity of this graph; its entities are New, York and New York."
    if found == ["New York", "York"]:
        return None
    if found == ["York", "New York"]:
        return "the names are right, but give them in the order of the text."
    if "New" in found:
        return "'New' begins where 'New York' does, and the longer name wins."
    if found.count("York") > 1:
        return "the 'York' inside 'New York' is already taken by the longer name."
    if "New York" not in found:
        return "two words may make one name: look again at 'New York'."
    return "a second city is named at the end of the sentence."


@exercise("Branches stand right after their mention's last token, in the order of the graph.")
def check_line(answer: object) -> str | None:
    """The tokens of the tree of "London and Paris", in one line."""
    if isinstance(answer, str):
        answer = answer.split()
    if not isinstance(answer, (list, tuple)):
        return "give the nine tokens as a list, or as one string with spaces."
    line = list(answer)
    if line == TOGETHER:
        return None
    if sorted(line) != sorted(TOGETHER):
        missing = [token for token in TOGETHER if token not in line]
        if missing:
            return f"{', '.join(missing)} is missing: every token of a branch, relation and tail."
        return f"there are {len(TOGETHER)} tokens, each once; you gave {len(line)}."
    if line[:2] == ["London", "and"]:
        return "a branch stands right after its mention, not at the end of the sentence."
    if line.index("is_a") < line.index("capital"):
        return "the branches of Paris keep the order of the graph: 'capital France' comes first."
    return "go from left to right: a word of the trunk, then its branches, then the next word."


@exercise("Another tree with the same line: so the line alone doesn't say who belongs to whom.")
def check_twin(sentence: object, triples: object) -> str | None:
    """Another sentence and graph that flatten to Figure 2's line."""
    from kbert_core import KnowledgeGraph, Triple, Words, flatten, grow_trees

    if not isinstance(sentence, str):
        return "give the sentence as a string."
    try:
        given = [Triple(*triple) for triple in _rows(triples)]
    except TypeError:
        return "give the triples as a list of (head, relation, tail), or [] for none."
    line = flatten(grow_trees([sentence], KnowledgeGraph(given)), Words())[0].tokens
    if line != FIGURE_2:
        differs = next(
            (i for i, (a, b) in enumerate(zip(line, FIGURE_2, strict=False)) if a != b),
            min(len(line), len(FIGURE_2)),
        )
        return (
            f"your tree reads '{' '.join(line)}'. It should read '{' '.join(FIGURE_2)}'; "
            f"they differ from token {differs + 1}."
        )
    if sentence == "Tim Cook is visiting Beijing now":
        return "the line is right, but this is Figure 2 itself. Move something into the sentence."
    if sentence.split() == FIGURE_2:
        return "this is the notebook's second tree, all trunk. Leave one branch to the graph."
    return None


def _rows(triples: object) -> Sequence[tuple[str, str, str]]:
    if not isinstance(triples, (list, tuple)):
        raise TypeError
    return triples
