"""One file per task: its head, its labels, what its logits mean.

A task is a small object without state; ``TASKS`` finds it by the name used on
the command line, in cards and in the app.
"""

from kbert_core.tasks.base import Task
from kbert_core.tasks.classify import Classify, ClassPrediction, Pair, Rank, RankedAnswer
from kbert_core.tasks.link import NULL, Link, LinkEntities, LinkPrediction
from kbert_core.tasks.mask import Filling, FillMask, MaskPrediction
from kbert_core.tasks.ner import LabelledToken, Ner, NerPrediction, Span
from kbert_core.tasks.qa import Answer, AnswerPrediction, AnswerQuestion

TASKS: dict[str, Task] = {
    task.name: task
    for task in (Ner(), Classify(), Pair(), FillMask(), Rank(), LinkEntities(), AnswerQuestion())
}

__all__ = [
    "NULL",
    "TASKS",
    "Answer",
    "AnswerPrediction",
    "AnswerQuestion",
    "ClassPrediction",
    "Classify",
    "FillMask",
    "Filling",
    "LabelledToken",
    "Link",
    "LinkEntities",
    "LinkPrediction",
    "MaskPrediction",
    "Ner",
    "NerPrediction",
    "Pair",
    "Rank",
    "RankedAnswer",
    "Span",
    "Task",
]
