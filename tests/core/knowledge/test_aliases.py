"""Which triples give an entity another name, and which name is whose."""

import pytest

from kbert_core import Triple
from kbert_core.knowledge.triple import ALIAS_RELATIONS, AliasRelations


@pytest.mark.parametrize(
    "relation",
    [
        *("别名", "又名", "又称", "简称", "俗称", "全称", "英文名", "同义词"),
        *("alias", "also_called", "also_known_as", "has_synonym", "abbreviation", "synonym"),
        *("altLabel", "Also known as", "ALSO-KNOWN-AS", " Alias "),
    ],
)
def test_the_tail_is_another_name_of_the_head(relation):
    assert ALIAS_RELATIONS.aliases_in(Triple("糖尿病", relation, "消渴")) == ("消渴", "糖尿病")


@pytest.mark.parametrize("relation", ["alias_of", "synonym_of", "Synonym of", "synonymOf"])
def test_the_head_is_another_name_of_the_tail(relation):
    assert ALIAS_RELATIONS.aliases_in(Triple("消渴", relation, "糖尿病")) == ("消渴", "糖尿病")


def test_other_relations_give_no_alias():
    assert ALIAS_RELATIONS.aliases_in(Triple("糖尿病", "类别", "疾病")) is None
    assert ALIAS_RELATIONS.aliases_in(Triple("a", "aliased", "b")) is None


def test_alias_relations_can_be_chosen():
    own = AliasRelations(frozenset({"Spitz Name"}))
    assert own.aliases_in(Triple("Tim Cook", "spitz_name", "Tim")) == ("Tim", "Tim Cook")
    assert own.aliases_in(Triple("糖尿病", "别名", "消渴")) is None
