"""Whole-word masking: the pieces of a word are masked together."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kbert_core.labels import IGNORED
from kbert_lab.training.batches import BATCH
from kbert_lab.training.corpus import MaskedRows, encode_passages, pack
from kbert_lab.training.vocabulary import character_tokenizer

LENGTH = 48
PARTS = ["糖尿病", "hypertensions", "covid199", "tension", "有", "，"]
PASSAGES = [
    f"患者{n}有糖尿病史，今查心电图与血常规检查，hypertension第{n}年covid{n}。" for n in range(200)
]
TOKENIZER = character_tokenizer(PASSAGES, word_pieces=120)


def rows(passages=PASSAGES, tokenizer=TOKENIZER, **options):
    corpus = encode_passages(passages, tokenizer, max_length=LENGTH)
    packed = pack(corpus, max_length=LENGTH, seed=0)
    how = {"max_length": LENGTH, "positions": 64, "count": 4 * len(packed), **options}
    return MaskedRows(corpus, packed, tokenizer, **how)


def words_of(made, item):
    """The tokens of each word of an item's row, as places in the row."""
    found, at = [], 0
    for number in made.passages(item):
        inside = made.corpus.inside[made.corpus.place(number)]
        for goes_on in inside:
            if goes_on:
                found[-1].append(at)
            else:
                found.append([at])
            at += 1
    return found


def test_the_pieces_of_a_word_go_on_with_it():
    corpus = encode_passages(["有糖尿病与 hypertensions"], TOKENIZER, max_length=32)
    tokens = TOKENIZER.convert_ids_to_tokens(corpus.ids.tolist())
    assert tokens[:6] == ["[CLS]", "有", "糖", "尿", "病", "与"]
    assert [t.startswith("##") for t in tokens] == corpus.inside.tolist()
    assert corpus.inside.any()


def test_no_word_is_masked_by_half_and_its_tokens_share_their_manner():
    made = rows()
    several = 0
    for item in range(len(made)):
        row = made[item]
        masked = row["labels"] != IGNORED
        hidden = row["input_ids"] == made.masking.mask_id
        for places in words_of(made, item):
            assert len(set(masked[places].tolist())) == 1
            assert len(set(hidden[places].tolist())) == 1
            several += len(places) > 1 and bool(masked[places[0]])
    assert several > 100


def test_the_share_of_masked_tokens_stays_at_fifteen_per_cent():
    for whole_words in (True, False):
        made = rows(whole_words=whole_words)
        masked = real = 0
        for item in range(len(made)):
            row = made[item]
            special = torch.isin(row["labels"], torch.from_numpy(made.masking.specials))
            assert not special.any()
            ids = torch.where(row["labels"] != IGNORED, row["labels"], row["input_ids"])
            real += int((~torch.isin(ids, torch.from_numpy(made.masking.specials))).sum())
            masked += int((row["labels"] != IGNORED).sum())
        assert masked / real == pytest.approx(0.15, abs=0.012)


def test_an_item_is_a_function_of_its_number_in_any_order():
    one, other = rows(), rows()
    for item in (7, 0, 300, 7):
        for name, tensor in one[item].items():
            assert torch.equal(tensor, other[item][name])
    assert one[5][BATCH] == 5
    masked = [tuple(rows(seed=seed)[3]["labels"].tolist()) for seed in (0, 1)]
    assert masked[0] != masked[1]


def test_nothing_changes_for_single_characters():
    tokenizer = character_tokenizer(PASSAGES)
    plain, whole = (rows(tokenizer=tokenizer, whole_words=w) for w in (False, True))
    assert not plain.corpus.inside.any()
    for item in range(0, len(plain), 7):
        assert all(torch.equal(plain[item][n], whole[item][n]) for n in plain[item])


@given(st.lists(st.sampled_from(PARTS), min_size=1))
def test_a_word_that_fits_is_never_cut_between_two_pieces(parts):
    text = "有， " + " ".join(parts)
    cut = encode_passages([text], TOKENIZER, max_length=9)
    whole = encode_passages([text], TOKENIZER, max_length=500)
    ids, at = whole.ids[1:-1].tolist(), 0
    for number in range(len(cut)):
        piece = cut.passage(number)[1:-1].tolist()
        assert len(piece) <= 7
        while at < len(ids) and ids[at : at + len(piece)] != piece:
            at += 1  # a token that was left over alone
        assert not whole.inside[1 + at]
        at += len(piece)
    assert len(ids) - at <= 1
