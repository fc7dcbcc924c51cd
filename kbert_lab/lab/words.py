"""What several modules call the same things: texts by the name of the thing."""

from kbert_lab.lab.texts import N_

AUDIT_SPLIT = {"train": N_("train"), "dev": N_("dev"), "test": N_("test")}

COMPARE_NAME = {
    "auto": N_("before the last edit"),
    "bert": N_("no knowledge"),
    "original": N_("graph as loaded"),
    "pinned": N_("pinned scene"),
    "untouched": N_("without interventions"),
}

EDIT_TEXTS = {
    "add": N_("added {triple}"),
    "remove": N_("deleted {triple}"),
    "replace": N_("changed {triple} to {new}"),
    "switch_off": N_("switched off {triple}"),
    "switch_on": N_("switched on {triple}"),
}

IV_TEXTS = {
    "both": N_("both"),
    "one_way": N_("one"),
    "block": N_("Block"),
    "open": N_("Open"),
    "clear": N_("Clear all"),
    "block_one": N_("{seer} may not see {seen}"),
    "block_both": N_("{seer} and {seen} may not see each other"),
    "open_one": N_("{seer} may see {seen}"),
    "open_both": N_("{seer} and {seen} may see each other"),
}

KNOWLEDGE_TEXTS = {
    "table": N_("Table"),
    "graph": N_("Graph"),
    "head": N_("head"),
    "relation": N_("relation"),
    "tail": N_("tail"),
}

MATRIX_TEXTS = {
    "visible": N_("Visible"),
    "attention": N_("Attention"),
    "difference": N_("Difference"),
    "layer": N_("Layer"),
    "head": N_("Head"),
}

NAME_RULE = {
    "WIDTH": N_("full or half width"),
    "CASE": N_("upper or lower case"),
    "SCRIPT": N_("traditional characters"),
    "DASHES": N_("dashes and dots"),
    "SPACES": N_("spaces"),
    "PLURAL": N_("English plural"),
    "SENSE": N_("without the sense in parentheses"),
    "ALIAS": N_("another name in the graph"),
    "UNDERSCORES": N_("underscores for spaces"),
    "HTML": N_("characters written as in HTML"),
    "GREEK": N_("Greek letters spelt out"),
    "NUMERALS": N_("Roman numerals"),
    "POSSESSIVE": N_("the possessive ’s"),
    "LATIN": N_("Latin plural"),
    "ACRONYMS": N_("short acronyms only in capitals"),
    "WHOLE": N_("no parts of compounds or numbers"),
}

OPTIONS_TEXTS = {
    "positions": N_("Positions"),
    "soft": N_("soft"),
    "hard": N_("hard"),
    "visible": N_("Visible matrix"),
    "tree": N_("by the tree"),
    "all": N_("everything"),
    "segments": N_("Segments"),
    "sentences": N_("by sentence"),
    "none": N_("all the same"),
}

OPTIONS_STRATEGY = {
    "first": N_("first in graph order"),
    "tail_in_text": N_("those whose tail is in the text"),
    "context": N_("most similar to the sentence"),
    "rare": N_("those with the rarest relations"),
}

READERS = {  # of a text, where no model reads it; see kbert_lab.lab.scene
    "words": N_("No model: words as tokens"),
    "characters": N_("No model: characters as tokens"),
}

RULE_TEXTS = {
    "OFF": N_("switched off"),
    "RELATION": N_("relation not used"),
    "OWN_NAME": N_("only repeats the name in the text"),
    "TAIL": N_("tail not in the text"),
    "SENSE": N_("another meaning fits better"),
    "SCORE": N_("below the threshold"),
    "LIMIT": N_("over the limit per mention"),
    "LENGTH": N_("no room within the length limit"),
    "TRUNK_CUT": N_("mention cut with the text"),
    "NO_TOKENS": N_("has no tokens"),
    "SHARED_TOKEN": N_("mention shares a token with another"),
}

SIDES_SYSTEM = {
    "own": N_("as the model was trained"),
    "k-bert": N_("K-BERT"),
    "plain-text": N_("triples as plain text"),
}

TASK_TEXTS = {
    "tree": N_("Tree and matrix only"),
    "ner": N_("Named entities"),
    "classify": N_("Sentence classification"),
    "multilabel": N_("Several labels a text"),
    "pair": N_("Sentence-pair classification"),
    "rank": N_("Answer selection"),
    "mask": N_("Fill-mask"),
    "link": N_("Entity linking"),
    "qa": N_("Reading comprehension"),
}


CHINESE, ENGLISH = N_("Chinese"), N_("English")
LATIN, SEVERAL = N_("Latin script"), N_("several scripts")
BY_NAME = SPOKEN = {"zh": CHINESE, "en": ENGLISH}
