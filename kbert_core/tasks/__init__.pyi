import collections.abc

from .base import Task as Task
from .classify import Classify as Classify
from .classify import ClassPrediction as ClassPrediction
from .classify import LabelsPrediction as LabelsPrediction
from .classify import MultiLabel as MultiLabel
from .classify import Pair as Pair
from .classify import Rank as Rank
from .classify import RankedAnswer as RankedAnswer
from .link import NULL as NULL
from .link import Link as Link
from .link import LinkEntities as LinkEntities
from .link import LinkPrediction as LinkPrediction
from .mask import Filling as Filling
from .mask import FillMask as FillMask
from .mask import MaskPrediction as MaskPrediction
from .ner import LabelledToken as LabelledToken
from .ner import Ner as Ner
from .ner import NerPrediction as NerPrediction
from .ner import Span as Span
from .qa import Answer as Answer
from .qa import AnswerPrediction as AnswerPrediction
from .qa import AnswerQuestion as AnswerQuestion

TASKS: collections.abc.Mapping[str, Task]
