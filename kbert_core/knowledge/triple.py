"""Triple(head, relation, tail): the unit of knowledge."""

import re
from dataclasses import dataclass

from kbert_core.errors import GraphEditError

CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


@dataclass(frozen=True, slots=True, order=True)
class Triple:
    """One fact, as in the paper's epsilon = (w_i, r_j, w_k).

    Fields are stripped of outer white space when a file is read or an edit
    is made (:meth:`checked`); a ``Triple`` built directly is taken as given.
    """

    head: str
    relation: str
    tail: str

    def __str__(self) -> str:
        return f"({self.head}, {self.relation}, {self.tail})"

    @classmethod
    def checked(cls, head: str, relation: str, tail: str) -> "Triple":
        """Return a triple of stripped fields.

        Raises:
            GraphEditError: a field is empty or holds a control character.
        """
        triple = cls(head.strip(), relation.strip(), tail.strip())
        problem = triple.problem()
        if problem:
            raise GraphEditError(f"The triple {triple} can't be used: {problem}.")
        return triple

    def problem(self) -> str | None:
        """Say what makes this triple unusable, or None."""
        for name in ("head", "relation", "tail"):
            value = getattr(self, name)
            if not value:
                return f"its {name} is empty; give it a text"
            control = CONTROL.search(value)
            if control:
                code = ord(control.group())
                kind = "line break, tab or control character"
                return f"its {name} holds a {kind} (U+{code:04X}); take it out"
        return None
