"""Triple(head, relation, tail): the unit of knowledge; and which of them say another name."""

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache

from kbert_core.errors import GraphEditError
from kbert_core.knowledge.names import normalise_name

TYPE_RELATIONS = ("类别", "类型", "type", "is_a", "instance of", "instance_of", "rdf:type")
COUNT = "count"  # the relation of triples that say how often a name meant an entity: "bank 12"
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


@dataclass(frozen=True, slots=True, order=True)
class Triple:
    """One fact, as in the paper's epsilon = (w_i, r_j, w_k).

    Fields are stripped when a file is read or by :meth:`checked`; else they are taken as given.
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
        texts = (text.strip() if isinstance(text, str) else text for text in (head, relation, tail))
        return cls(*texts).usable()

    def usable(self) -> "Triple":
        """Return this triple; a GraphEditError if it has a problem."""
        if problem := self.problem():
            raise GraphEditError(f"The triple {self} can't be used: {problem}.")
        return self

    def problem(self) -> str | None:
        """Say what makes this triple unusable, or None."""
        head, relation, tail = self.head, self.relation, self.tail
        texts = isinstance(head, str) and isinstance(relation, str) and isinstance(tail, str)
        if texts and head and relation and tail and (head + relation + tail).isprintable():
            return None  # the quick way: millions are asked
        for name in ("head", "relation", "tail"):
            value = getattr(self, name)
            if not isinstance(value, str):
                return f"its {name} is {value!r:.60}; give it a text"
            if not value:
                return f"its {name} is empty; give it a text"
            if control := CONTROL.search(value):
                kind = "line break, tab or control character"
                return f"its {name} holds a {kind} (U+{ord(control.group()):04X}); take it out"
        return None


def refuse_no_triple(given: object) -> None:
    """Refuse what is no triple; GraphEditError."""
    if not isinstance(given, Triple):
        raise GraphEditError(f"Got {given!r:.60} as a triple. Give Triple(head, relation, tail).")


@dataclass(frozen=True)
class AliasRelations:
    """The relations that give an entity other names.

    They are compared without case, spaces, hyphens and underscores: "Also known as" is
    "also_known_as".

    Attributes:
        names_of_head: the tail is another name of the head (aspirin, also_known_as, ASA).
        names_of_tail: the head is another name of the tail (ASA, synonym_of, aspirin).
    """

    names_of_head: frozenset[str]
    names_of_tail: frozenset[str] = frozenset()

    def joined(self, other: "AliasRelations") -> "AliasRelations":
        """Return these relations together with others."""
        return AliasRelations(
            self.names_of_head | other.names_of_head, self.names_of_tail | other.names_of_tail
        )

    def aliases_in(self, triple: Triple) -> tuple[str, str] | None:
        """Return the alias and its entity, as the triple writes them; None: it says no alias."""
        of_head, of_tail = self._compared
        relation = _compared(triple.relation)
        if relation in of_head:
            return triple.tail, triple.head
        return (triple.head, triple.tail) if relation in of_tail else None

    @cached_property
    def _compared(self) -> tuple[frozenset[str], frozenset[str]]:
        of_head, of_tail = self.names_of_head, self.names_of_tail
        return frozenset(map(_compared, of_head)), frozenset(map(_compared, of_tail))


@lru_cache(4096)
def _compared(relation: str) -> str:
    return re.sub(r"[\s_-]+", "", normalise_name(relation))


ALIAS_RELATIONS = AliasRelations(
    names_of_head=frozenset(
        (
            *("别名", "别称", "又名", "又称", "简称", "俗称", "全称", "英文名", "同义词"),
            *("alias", "aliases", "also_called", "also_known_as", "abbreviation"),
            *("synonym", "synonyms", "has_synonym", "alt_label"),
            *("exact_synonym", "has_exact_synonym"),
        )
    ),
    names_of_tail=frozenset(("alias_of", "synonym_of", "abbreviation_of")),
)
