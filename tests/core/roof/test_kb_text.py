"""The knowledge side as a string, by hand: wording, order, limits."""

import pytest
from conftest import tiny_tokenizer

from kbert_core import Triple
from kbert_core.roof.kb_text import kb_text
from kbert_core.text import WordPieces

TOKENIZER = WordPieces(tiny_tokenizer())
DIABETES = (Triple("糖尿病", "类别", "疾病"), Triple("糖尿病", "症状", "多饮"))
TEST = Triple("心电图", "类别", "检查")
COOK = (Triple("tim cook", "job", "boss"), Triple("tim cook", "city", "x"))


@pytest.mark.parametrize(
    ("expand", "text"),
    [
        (0, "[CLS] 糖尿病 类别 疾病 [SEP] 糖尿病 症状 多饮 [SEP] 心电图 类别 检查 [SEP]"),
        (1, "[CLS] 糖尿病的类别是疾病 [SEP] 糖尿病的症状是多饮 [SEP] 心电图的类别是检查 [SEP]"),
        (2, "[CLS] 糖尿病的类别是疾病，它的症状是多饮 [SEP] 心电图的类别是检查 [SEP]"),
    ],
)
def test_triples_are_worded_in_three_ways(expand, text):
    assert kb_text((*DIABETES, TEST), TOKENIZER, expand=expand).text == text


def test_english_triples_are_worded_in_english():
    assert kb_text(COOK, TOKENIZER, expand=1).text == (
        "[CLS] the job of tim cook is boss [SEP] the city of tim cook is x [SEP]"
    )
    assert kb_text(COOK, TOKENIZER).text == (
        "[CLS] the job of tim cook is boss, its city is x [SEP]"
    )


def test_only_triples_that_stand_together_share_a_sentence():
    mixed = kb_text((DIABETES[0], TEST, DIABETES[1]), TOKENIZER)
    assert mixed.text.count("[SEP]") == 3
    assert "它" not in mixed.text


def test_a_triple_counts_once_and_its_tokens_are_known():
    kb = kb_text((*DIABETES, DIABETES[0], TEST), TOKENIZER)
    assert kb.triples == (*DIABETES, TEST)
    words = TOKENIZER.hugging_face.convert_ids_to_tokens(kb.ids)
    (first, end), _, (begin, last) = kb.places
    assert "".join(words[first:end]) == "糖尿病[UNK]类别[UNK]疾病"  # 的 and 是 are unknown here
    assert "".join(words[begin:last]) == "心电图[UNK]类别[UNK]检查"
    assert words[0] == "[CLS]" and words[last:] == ["[SEP]"]


def test_nothing_is_two_special_tokens():
    kb = kb_text((), TOKENIZER)
    assert kb.text == "[CLS] [SEP]"
    assert len(kb) == 2


def test_the_limit_leaves_whole_triples_out():
    every = kb_text((*DIABETES, TEST), TOKENIZER)
    for limit in range(2, len(every) + 1):
        kb = kb_text((*DIABETES, TEST), TOKENIZER, max_length=limit)
        assert len(kb) <= limit
        assert kb.triples + kb.left_out == every.triples
        assert kb.ids[:-1] == every.ids[: len(kb) - 1]
    assert not kb.left_out


def test_fifty_thousand_triples_are_cut_and_named():
    many = [Triple("糖尿病", "类别", str(number)) for number in range(50_000)]
    kb = kb_text(many, TOKENIZER, max_length=512)
    assert len(kb) <= 512
    assert len(kb.triples) + len(kb.left_out) == 50_000
    assert kb.triples == tuple(many[: len(kb.triples)])
