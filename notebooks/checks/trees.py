"""Exercises on Figure 2: 01 sentence tree, 02 soft positions, 03 visible matrix."""

import random
from collections.abc import Callable
from itertools import pairwise

from _tools import choices, exercise

TOGETHER = ["London", "located_on", "Thames", "and", "Paris", "capital", "France", "is_a", "city"]
FIGURE_2 = "Tim Cook CEO Apple is visiting Beijing capital China is_a City now".split()


@exercise("K-Query takes the longest name at each place, and a name inside another is passed over.")
def check_longest(answer: object) -> str | None:
    """Mentions of "She left New York for York" among New, York and New York."""
    if not isinstance(answer, (list, tuple)) or not all(isinstance(a, str) for a in answer):
        return 'give a list of names in the order of the text, such as ["Paris", "London"].'
    found = list(answer)
    stray = next((name for name in found if name not in ("York", "New York", "New")), None)
    if stray is not None:
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
    if missing := [token for token in TOGETHER if token not in line]:
        return f"{', '.join(missing)} is missing: every token of a branch, relation and tail."
    if sorted(line) != sorted(TOGETHER):
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
        given = KnowledgeGraph(Triple(*triple) for triple in triples)  # type: ignore[attr-defined]
    except TypeError:
        return "give the triples as a list of (head, relation, tail), or [] for none."
    line = flatten(grow_trees([sentence], given), Words())[0].tokens
    if line != FIGURE_2:
        pairs = enumerate(zip(line, FIGURE_2, strict=False))
        differs = next((i for i, (a, b) in pairs if a != b), min(len(line), len(FIGURE_2)))
        return (
            f"your tree reads '{' '.join(line)}'. It should read '{' '.join(FIGURE_2)}'; "
            f"they differ from token {differs + 1}."
        )
    if sentence == "Tim Cook is visiting Beijing now":
        return "the line is right, but this is Figure 2 itself. Move something into the sentence."
    if sentence.split() == FIGURE_2:
        return "this is the notebook's second tree, all trunk. Leave one branch to the graph."
    return None


@exercise(
    "The trunk counts on as if nothing hung from it, and the branch counts on from its mention."
)
def check_positions(answer: object) -> str | None:
    """Soft positions of "London (located_on Thames) is rainy", [CLS] having 0."""
    if not isinstance(answer, (list, tuple)) or len(answer) != 5:
        return "give five numbers in a list, one for each token of 'London located_on Thames is rainy'."
    match list(answer):
        case [1, 2, 3, 2, 3]:
            return None
        case [1, 2, 3, 4, 5]:
            return "these are the hard positions. 'is' follows 'London' in the sentence: what is its number?"
        case [0, 1, 2, 1, 2]:
            return "nearly: [CLS] has position 0, so London has 1."
        case [first, *_] if first != 1:
            return "London is the first token after [CLS], which has position 0."
        case [_, _, _, third, _] if third != 2:
            return "'is' is the second word of the sentence; the branch doesn't count for it."
        case [*_, last] if last != 3:
            return "'rainy' follows 'is'."
    return "a branch goes on from its mention: its first token has the mention's last position + 1."


@exercise("Every token of every branch pushes the rest of the sentence one place away.")
def check_distance(answer: object) -> str | None:
    """A function: lengths of a mention's branches → hard distance to the next trunk token."""
    if not isinstance(answer, Callable):
        return "give a function: def hard_distance(lengths): return ..."
    dice = random.Random(0)
    for _ in range(50):
        lengths = [dice.randint(1, 5) for _ in range(dice.randint(0, 4))]
        expected, found = 1 + sum(lengths), answer(list(lengths))
        if found == expected:
            continue
        hint = ""
        if found == sum(lengths):
            hint = "Two neighbours without any branch between them are 1 apart, not 0."
        elif found == 1 + len(lengths):
            hint = "A branch has as many tokens as its length says, not one."
        return f"for branches of lengths {lengths} it gives {found}, and it should be {expected}. {hint}"
    return None


@exercise("Every branch counts on from its mention alone; the visible matrix keeps them apart.")
def check_third_branch(of_asia: object, of_now: object) -> str | None:
    """Soft positions of "Asia" and "now" where located_in Asia is Beijing's third branch."""
    if not all(isinstance(n, int) for n in (of_asia, of_now)):
        return "give two whole numbers."
    if (of_asia, of_now) == (7, 6):
        return None
    if (of_asia, of_now) == (13, 14):
        return "these are their hard positions; soft ones count on from Beijing, which has 5."
    if of_now != 6:
        return "'now' is on the trunk, right after Beijing's 5, however many branches hang there."
    if of_asia == 6:
        return "6 is the branch's first token, located_in; Asia is its second."
    return "the third branch hangs from Beijing too, so it counts on from Beijing's 5, as the others do."


check_cells = choices("cells")


@exercise("Another rule is another function of the same two integers; no model has to change.")
def check_sees(answer: object) -> str | None:
    """A function of four codes: Eq. 3, and branches of one mention see each other."""
    from kbert_core import Visibility, why_visible

    if not isinstance(answer, Callable):
        return "give a function: def sees(branch_a, anchor_a, branch_b, anchor_b): return ..."
    dice = random.Random(0)
    for _ in range(400):
        codes = []
        for _ in range(2):
            branch = dice.randint(0, 3)
            codes += [branch, dice.randint(1, 2) if branch else dice.randint(0, 2)]
        if codes[0] == codes[2] > 0:  # one branch hangs from one mention
            codes[3] = codes[1]
        clause = why_visible(*codes)
        expected = clause.visible or clause is Visibility.SIBLINGS
        found = answer(*codes)
        if bool(found) is not expected:
            names = ("branch_a", "anchor_a", "branch_b", "anchor_b")
            given = ", ".join(f"{name}={code}" for name, code in zip(names, codes, strict=True))
            siblings = clause is Visibility.SIBLINGS
            hint = "In K-BERT they are hidden; here they see each other." if siblings else ""
            return (
                f"for {given} it says {bool(found)}, and it should be {expected}: {clause}. {hint}"
            )
    return None


@exercise("From the branch to the mention, from the mention to the trunk: two steps.")
def check_way(answer: object) -> str | None:
    """A way from Apple to [CLS], each token visible to the next."""
    from kbert_core import Words, collate, flatten, grow_trees, load_graph, visible_matrix

    if not isinstance(answer, (list, tuple)) or not all(isinstance(a, str) for a in answer):
        return 'give a list of tokens, such as ["Apple", ..., "[CLS]"].'
    graph = load_graph("demo_kgs/figure2.spo")
    flat = flatten(grow_trees(["Tim Cook is visiting Beijing now"], graph), Words(special=True))[0]
    stray = next((token for token in answer if token not in flat.tokens), None)
    if stray is not None:
        return f"'{stray}' is no token of Figure 2."
    if len(answer) < 2 or answer[0] != "Apple" or answer[-1] != "[CLS]":
        return "begin at Apple and end at [CLS]."
    batch = collate([flat])
    visible = visible_matrix(batch.branch_ids, batch.anchor_ids)[0]
    for source, goal in pairwise(answer):
        if not visible[flat.tokens.index(goal), flat.tokens.index(source)]:
            return f"{goal} may not look at {source}, so nothing gets from {source} to {goal} directly."
    if len(answer) > 3:
        return f"that is a way, in {len(answer) - 1} steps; there is one with fewer."
    return None
