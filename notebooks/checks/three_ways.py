"""Exercises of 13_three_ways_to_inject_knowledge."""

from _tools import exercise

ROOM = {"K-BERT": 10, "Roof-BERT": 510, "plain text": 10}
REACH = {"K-BERT": False, "KnowBert": True, "Roof-BERT": True, "plain text": True}


@exercise("Of the 1,200 tokens that the graph offers, none of the three has room for all.")
def check_room(answer: object) -> str | None:
    """Tokens of knowledge beside 500 of text."""
    if not isinstance(answer, dict) or set(answer) != set(ROOM):
        return "give a dictionary with the three systems."
    for name, right in ROOM.items():
        if answer[name] == right:
            continue
        if answer[name] == right + 2:
            return f"{name}: [CLS] and [SEP] take two."
        if name == "Roof-BERT":
            return "Roof-BERT reads the triples in a row of their own, with its own limit."
        return f"{name}: text and triples share one row."
    return None


@exercise("In K-BERT it takes two: the mention sees its branch first, others see the mention next.")
def check_reach(answer: object) -> str | None:
    """Who can see a triple in the first layer it is in."""
    if not isinstance(answer, dict) or set(answer) != set(REACH):
        return "give a dictionary with the four, each True or False."
    for name, right in REACH.items():
        if bool(answer[name]) is not right:
            if name == "K-BERT":
                return "K-BERT: the visible matrix shows a branch to its mention alone."
            return f"{name}: nothing hides the triple from a token here; look at the table above."
    return None
