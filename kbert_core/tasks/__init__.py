"""One file per task: its head, its labels, what its logits mean.

A task is a small object without state; ``TASKS`` finds it by the name used on
the command line, in cards and in the app. A task's file is read when it is asked for.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from pkgutil import resolve_name

from lazy_loader import attach_stub

from kbert_core.tasks.base import Task

_FOUND = {
    "ner": "ner:Ner",
    "classify": "classify:Classify",
    "multilabel": "classify:MultiLabel",
    "pair": "classify:Pair",
    "mask": "mask:FillMask",
    "rank": "classify:Rank",
    "link": "link:LinkEntities",
    "qa": "qa:AnswerQuestion",
}


@cache
def _task(name: str) -> Task:
    task: Task = resolve_name(f"kbert_core.tasks.{_FOUND[name]}")()
    return task


class _Tasks(Mapping[str, Task]):
    def __getitem__(self, name: str) -> Task:
        return _task(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_FOUND)

    def __contains__(self, name: object) -> bool:
        return name in list(_FOUND)

    def __len__(self) -> int:
        return len(_FOUND)


TASKS = _Tasks()
__getattr__, __dir__, _ = attach_stub(__name__, __file__)  # of the names in __init__.pyi
