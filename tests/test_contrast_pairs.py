"""More pairs of the texts of a small set: what is said of them, and what they never are."""

import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from kbert_core.errors import DataError
from kbert_lab.data.labelled import Example, read_examples

sys.path.insert(0, str(Path(__file__).parents[1] / "models"))

from contrast_pairs import (
    PIECE,
    contrast_pairs,
    main,
    texts_of,
    write_contrast_set,
)

SETS = {
    "zh": [
        Example(("怎么学好英语口语", "英语口语怎么学好"), "1"),
        Example(("怎么学好数学", "数学怎么才能考高分"), "0"),
        Example(("北京有什么好玩的地方", "上海有什么好吃的东西"), "0"),
        Example(("红烧肉怎么做才好吃", "怎么做红烧肉"), "1"),
    ],
    "en": [
        Example(("how do I learn to cook", "what is the way to learn cooking"), "1"),
        Example(("how do I learn to swim", "where do I learn to swim fast"), "0"),
        Example(("where is the nearest station", "is there a station near here"), "1"),
    ],
}
each_language = pytest.mark.parametrize("labelled", SETS.values(), ids=SETS)


def made(labelled, seeds=range(40), **how):
    return [pair for seed in seeds for pair in contrast_pairs(labelled, seed=seed, **how)]


def pieces(text):
    return Counter(piece.strip() for piece in PIECE.findall(text))


def origins(side, texts):
    """The texts that a side may be a changed copy of: at most two pieces are lost, none is new."""
    its = pieces(side)
    return {t for t in texts if not its - pieces(t) and (pieces(t) - its).total() <= 2}


def second(pair, text):
    """The side that isn't the text; the text, where both are."""
    return next((side for side in pair.sentences if side != text), text)


def of_texts(labelled, seeds=range(40)):
    """(text, its copy, another, its copy with a part of another), over and over."""
    texts = texts_of(labelled)
    for seed in seeds:
        found = list(contrast_pairs(labelled, seed=seed))
        for text, *three in zip(texts, found[::3], found[1::3], found[2::3], strict=True):
            assert all(text in pair.sentences for pair in three)
            yield text, *(second(pair, text) for pair in three)


@each_language
def test_every_text_stands_in_three_pairs_of_which_one_says_the_same(labelled):
    found = list(contrast_pairs(labelled, seed=1))
    assert [pair.label for pair in found] == ["1", "0", "0"] * len(texts_of(labelled))


@each_language
def test_a_copy_keeps_its_pieces_save_two_at_most_and_no_mate_is_called_another(labelled):
    texts = texts_of(labelled)
    mates = {frozenset(pair.sentences) for pair in labelled}
    for text, copy, other, _ in of_texts(labelled):
        assert text in origins(copy, texts)
        assert any(frozenset((text, of)) not in mates for of in origins(other, texts))


def test_no_text_is_called_another_that_may_mean_the_same():
    chain = ["怎么学好英语口语", "英语口语如何提高", "提高英语口语的方法", "口语提高有什么办法"]
    labelled = [Example(pair, "1") for pair in pairwise(chain)]
    for text, _, other, _ in of_texts([*labelled, Example(("红烧肉怎么做", "北京在哪里"), "0")]):
        assert text not in chain or not origins(other, chain)
    assert not made(labelled)
    alike = ["怎么学好英语口语", "英语口语怎么学好?"]  # their order and punctuation differ
    assert not made([Example((one, "红烧肉怎么做"), "0") for one in alike])


@each_language
def test_an_exchanged_part_brings_something_new_and_leaves_most(labelled):
    words = {piece for text in texts_of(labelled) for piece in pieces(text)}
    for text, _, _, exchanged in of_texts(labelled):
        new, lost = pieces(exchanged) - pieces(text), pieces(text) - pieces(exchanged)
        assert new.total() <= 2 and lost.total() <= 4  # two exchanged, two left out
        assert set(new) <= words
        assert any(piece.isalnum() for piece in new), "nothing says that it means something else"


@each_language
def test_held_out_texts_are_in_none_and_the_seed_decides(labelled):
    held = {labelled[0].sentences[1]}
    found = list(contrast_pairs(labelled, held, seed=3))
    assert len(found) == 3 * (len(texts_of(labelled)) - 1)
    assert not any(held & set(pair.sentences) for pair in found)
    assert found == list(contrast_pairs(labelled, held, seed=3))
    assert found != list(contrast_pairs(labelled, held, seed=4))


def test_the_command_writes_pairs_to_train_on(tmp_path, capsys):
    rows = [(pair.label, *pair.sentences) for pair in SETS["zh"]]
    lines = ["label\ttext_a\ttext_b", *("\t".join(row) for row in rows), "0\t短\t怎么学好数学"]
    (tmp_path / "train.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "test.tsv").write_text("\n".join(lines[:2]) + "\n", encoding="utf-8")
    out = tmp_path / "more.tsv"
    given = ["--input", str(tmp_path / "train.tsv"), "--output", str(out)]
    main([*given, "--leave-out", str(tmp_path / "test.tsv")])
    assert capsys.readouterr().out == "texts 9, left out 3, pairs 18\n"
    found = read_examples(out, "pair")
    assert len(found) == 18
    assert Counter(example.label for example in found) == {"0": 12, "1": 6}
    with pytest.raises(SystemExit, match="can't be read"):
        main(["--input", str(tmp_path / "none.tsv"), "--output", str(out)])


FEW = "1\t怎么学好英语\t英语怎么学好\n"
ENOUGH = FEW + "0\t红烧肉怎么做\t北京在哪里\n"


@pytest.mark.parametrize(
    ("lines", "output", "said"),
    [
        (FEW.replace("1", "2"), "more.tsv", r"few\.tsv: has the label '2'.* Write these"),
        (FEW, "more.tsv", r"few\.tsv: too few texts .* Give a larger file"),
        (ENOUGH, "nowhere/more.tsv", r"nowhere.*can't be written"),
    ],
)
def test_what_cannot_be_made_is_told(tmp_path, lines, output, said):
    (tmp_path / "few.tsv").write_text(f"label\ttext_a\ttext_b\n{lines}", encoding="utf-8")
    with pytest.raises(DataError, match=said):
        write_contrast_set(tmp_path / "few.tsv", tmp_path / output)
    assert not (tmp_path / output).exists()
