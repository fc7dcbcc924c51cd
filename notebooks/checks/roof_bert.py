"""Exercises of 12_roof_bert."""

from _tools import exercise

STRING = "[CLS] 胃镜的类别是检查 [SEP] 胃镜的部位是胃 [SEP]"
SIDES = {
    "another tail for the first triple of 胃镜": "logits",
    "another tail for a triple of 阿司匹林": "neither",
    "another character in the text": "both",
    "the whole graph taken away": "logits",
}


@exercise("Expand 2 would say 它 in place of the second 胃镜, and spare a [SEP].")
def check_string(answer: object) -> str | None:
    """Two triples as the knowledge encoder reads them."""
    if not isinstance(answer, str):
        return "give a text."
    plain, right = "".join(answer.split()), "".join(STRING.split())
    if plain == right:
        return None
    if "它" in plain:
        return "a pronoun is Expand 2; here each triple names its head."
    if not plain.startswith("[CLS]"):
        return "an encoder's row begins with [CLS]."
    if plain.count("[SEP]") != 2:
        return "each triple is closed by [SEP]."
    return "a triple reads: head 的 relation 是 tail."


@exercise("The text's side is read before any triple is seen; that is why it can be kept.")
def check_sides(answer: object) -> str | None:
    """What changes the text's side, and what the logits."""
    if not isinstance(answer, dict):
        return "give a dictionary: each change with two of True or False."
    for change, right in SIDES.items():
        given = answer.get(change)
        if given not in ("logits", "both", "neither"):
            return f"'{change}' needs one of logits, both and neither."
        if given == right:
            continue
        if "both" in (given, right):
            return f"'{change}': look again at what the text's encoder is given."
        return f"'{change}': does the string of triples change?"
    return None
