"""Alias relations: those whose triples say another name of an entity, and in which direction."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.triple import Triple


@dataclass(frozen=True)
class AliasRelations:
    """The relations that give an entity other names.

    Relations are compared without case, spaces, hyphens and underscores:
    "Also known as" is "also_known_as".

    Attributes:
        names_of_head: the tail is another name of the head
            (aspirin, also_known_as, acetylsalicylic acid).
        names_of_tail: the head is another name of the tail
            (acetylsalicylic acid, synonym_of, aspirin).
    """

    names_of_head: frozenset[str]
    names_of_tail: frozenset[str] = frozenset()

    def joined(self, other: "AliasRelations") -> "AliasRelations":
        """Return these relations and others."""
        return AliasRelations(
            self.names_of_head | other.names_of_head, self.names_of_tail | other.names_of_tail
        )

    @classmethod
    def default_and(
        cls, names_of_head: Iterable[str] = (), names_of_tail: Iterable[str] = ()
    ) -> "AliasRelations":
        """Return the relations known by default, and others."""
        return ALIAS_RELATIONS.joined(cls(frozenset(names_of_head), frozenset(names_of_tail)))

    def aliases_in(self, triple: Triple) -> tuple[str, str] | None:
        """Return the alias and the entity it names, as the triple writes them; None: no alias."""
        relation = _compared(triple.relation)
        if relation in self._of_head:
            return triple.tail, triple.head
        if relation in self._of_tail:
            return triple.head, triple.tail
        return None

    @cached_property
    def _of_head(self) -> frozenset[str]:
        return frozenset(map(_compared, self.names_of_head))

    @cached_property
    def _of_tail(self) -> frozenset[str]:
        return frozenset(map(_compared, self.names_of_tail))


@lru_cache(4096)
def _compared(relation: str) -> str:
    return re.sub(r"[\s_-]+", "", normalise_name(relation))


ALIAS_RELATIONS = AliasRelations(
    names_of_head=frozenset(
        (
            *("别名", "别称", "又名", "又称", "简称", "俗称", "全称", "英文名", "同义词"),
            *("alias", "aliases", "also_called", "also_known_as", "abbreviation"),
            *("synonym", "synonyms", "has_synonym", "alt_label"),
        )
    ),
    names_of_tail=frozenset(("alias_of", "synonym_of", "abbreviation_of")),
)
