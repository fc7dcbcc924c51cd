"""Deduplicated and entity-disjoint splits."""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbert_core.errors import DataError, OptionError
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.triples import Triple
from kbert_core.training.datasets import SPLITS, Example, read_examples
from kbert_core.training.splits import EntityDisjoint, deduplicated, entity_disjoint, write_split

NAMES = [f"{a}{b}" for a in "甲乙丙丁戊己庚辛" for b in "病炎症痛"]  # 32 names


def sentence(*names):
    """The names with a 和 between them, each tagged."""
    text = "和".join(names)
    words = tuple((i, i + 1) for i in range(len(text)))
    tags = "O".join("BI" for _ in names)
    return Example((text,), None, words, tuple("O" if t == "O" else f"{t}-D" for t in tags))


def names_of(examples):
    return {e.sentences[0][a:b] for e in examples for a, b, _ in e.spans}


sentences = st.lists(
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map(lambda n: sentence(*n)),
    min_size=60,
    max_size=120,
)


@settings(max_examples=40, deadline=None)
@given(sentences, st.integers(0, 1000))
def test_no_held_out_name_is_labelled_in_an_earlier_split(examples, seed):
    try:
        splits = entity_disjoint(examples, EntityDisjoint(seed))
    except DataError:
        return  # all sentences touch a test name
    held_out = names_of(splits["test"]) - names_of(splits["train"])
    texts = [e.sentences[0] for s in SPLITS for e in splits[s]]
    assert sorted(texts) == sorted({e.sentences[0] for e in examples})
    for example in splits["test"]:
        assert names_of([example]) & held_out
        assert names_of([example]) - names_of(splits["train"]) - names_of(splits["dev"])
    for example in splits["dev"]:
        assert names_of([example]) - names_of(splits["train"])


def test_seeds_draw_different_names_and_the_same_seed_the_same():
    examples = [sentence(n) for n in NAMES]
    first, again, other = (entity_disjoint(examples, EntityDisjoint(seed)) for seed in (1, 1, 2))
    assert first == again
    assert names_of(first["test"]) != names_of(other["test"])
    assert len(first["test"]) == 7  # 22 % of 32
    assert len(first["dev"]) == 3


def test_the_covered_variant_holds_out_names_of_the_graph_only():
    graph = KnowledgeGraph([Triple(n, "类别", "疾病") for n in NAMES[:16]], name="G")
    splits = entity_disjoint([sentence(n) for n in NAMES], EntityDisjoint(3), graph=graph)
    assert names_of(splits["test"]) | names_of(splits["dev"]) <= set(NAMES[:16])


def test_too_few_names_in_the_graph_is_an_error_with_the_numbers():
    graph = KnowledgeGraph([Triple(NAMES[0], "类别", "疾病")], name="small")
    with pytest.raises(DataError, match=r"1 entity names that the graph small knows, of 32"):
        entity_disjoint([sentence(n) for n in NAMES], graph=graph)


@pytest.mark.parametrize("wrong", [{"test_share": 0}, {"dev_share": 1.5}, {"seed": -1}])
def test_options_are_checked(wrong):
    with pytest.raises(OptionError, match=next(iter(wrong))):
        EntityDisjoint(**wrong)


def test_deduplicated_keeps_test_and_takes_its_texts_from_train():
    a, b, c = sentence("甲病"), sentence("乙炎"), sentence("丙症")
    wide = Example(("甲病 ",), None, ((0, 1), (1, 2)), ("B-D", "I-D"))
    splits = deduplicated({"train": [a, b, b, c], "dev": [c], "test": [wide]})
    assert splits == {"train": [b], "dev": [c], "test": [wide]}


def test_a_written_split_is_read_as_it_was(tmp_path):
    splits = entity_disjoint([sentence(n, "疼痛") for n in NAMES], EntityDisjoint(0))
    write_split(tmp_path / "new", splits)
    for split in SPLITS:
        read = read_examples(tmp_path / "new" / f"{split}.tsv", "ner")
        assert [(e.sentences, e.tags) for e in read] == [
            (e.sentences, e.tags) for e in splits[split]
        ]
    pairs = {"train": [Example(("一", "二"), "1")]}
    write_split(tmp_path / "pairs", pairs)
    assert read_examples(tmp_path / "pairs" / "train.tsv", "pair")[0].sentences == ("一", "二")


@pytest.mark.skipif("KBERT_DATA" not in os.environ, reason="KBERT_DATA names no data folder")
def test_medical_ner_can_be_split_entity_disjoint():
    data = os.environ["KBERT_DATA"]
    examples = [
        e for s in SPLITS for e in read_examples(f"{data}/ner/medical_ner_dedup/{s}.tsv", "ner")
    ]
    graph = KnowledgeGraph.from_files(f"{data}/kbert/Medical.spo")
    splits = entity_disjoint(examples, EntityDisjoint(1), graph=graph)
    assert min(map(len, splits.values())) > 200
    unseen = names_of(splits["test"]) - names_of(splits["train"]) - names_of(splits["dev"])
    assert len(unseen) > 500
