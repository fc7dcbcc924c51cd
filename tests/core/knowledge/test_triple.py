"""Triple: what can be one, what is wrong with what can't, and which give another name."""

import pytest

from kbert_core import Triple
from kbert_core.errors import GraphEditError
from kbert_core.knowledge.triple import ALIAS_RELATIONS, AliasRelations


def test_triple_reads_as_in_the_paper():
    assert str(Triple("Tim Cook", "CEO", "Apple")) == "(Tim Cook, CEO, Apple)"


def test_checked_triple_is_stripped():
    assert Triple.checked(" a ", "\tb", "c\u3000") == Triple("a", "b", "c")


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (("", "b", "c"), "its head is empty; give it a text"),
        (("a", "  ", "c"), "its relation is empty"),
        (("a", "b", ""), "its tail is empty"),
        (("a", "b\tb", "c"), r"its relation holds a .* \(U\+0009\); take it out"),
        (("a", "b", "c\nd"), r"\(U\+000A\)"),
        (("a\ud800", "b", "c"), r"\(U\+D800\)"),
    ],
)
def test_checked_triple_says_what_is_wrong(fields, text):
    with pytest.raises(GraphEditError, match=text):
        Triple.checked(*fields)


def test_triple_may_have_its_head_for_a_tail():
    assert Triple("a", "is", "a").problem() is None


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
