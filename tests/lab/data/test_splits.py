"""Splits: deduplicated, entity-disjoint, by substitution; `kbert split` and `kg control`."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbert_core.errors import DataError, OptionError
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.io import read_triples
from kbert_core.knowledge.surface_forms import ALL_RULES
from kbert_core.knowledge.triple import Triple
from kbert_lab.data.labelled import SPLITS, Example, read_examples, tagged_examples
from kbert_lab.data.splits import (
    EntityDisjoint,
    by_fold,
    deduplicated,
    entity_disjoint,
    substituted,
    write_split,
)
from kbert_lab.data.tables import Source
from results.tools import graph_controls

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


def knowing(*names, name="G"):
    return KnowledgeGraph([Triple(n, "类别", "疾病") for n in names], name=name)


def test_the_covered_variant_holds_out_names_of_the_graph_only():
    examples = [sentence(n) for n in NAMES]
    splits = entity_disjoint(examples, EntityDisjoint(3), graph=knowing(*NAMES[:16]))
    assert names_of(splits["test"]) | names_of(splits["dev"]) <= set(NAMES[:16])
    said = r"1 entity names that the graph small knows \(32 in all\)"
    with pytest.raises(DataError, match=said):
        entity_disjoint(examples, graph=knowing(NAMES[0], name="small"))


@pytest.mark.parametrize("draw", [entity_disjoint, substituted])
def test_a_graph_knows_names_in_another_script_where_the_rules_say_so(draw):
    letters = "甲乙丙丁戊己庚辛"
    graph, texts = knowing(*(f"{n}热" for n in letters)), [sentence(f"{n}熱") for n in letters]
    data = [texts] if draw is entity_disjoint else [{"train": texts, "test": texts}, 0.5]
    assert names_of(draw(*data, graph=graph, rules=ALL_RULES)["test"])
    with pytest.raises(DataError, match=r"\b0 (entity )?names"):
        draw(*data, graph=graph)


def test_deduplicated_keeps_test_and_takes_its_texts_from_train():
    a, b, c = sentence("甲病"), sentence("乙炎"), sentence("丙症")
    wide = Example(("甲病 ",), None, ((0, 1), (1, 2)), ("B-D", "I-D"))
    splits = deduplicated({"train": [a, b, b, c], "dev": [c], "test": [wide]})
    assert splits == {"train": [b], "dev": [c], "test": [wide]}


def typed(*names):
    """Names with a 和 between them, their type their last character."""
    text, tags = "和".join(names), []
    for name in names:
        tags += ["O", f"B-{name[-1]}", *[f"I-{name[-1]}"] * (len(name) - 1)]
    return Example((text,), None, tuple((i, i + 1) for i in range(len(text))), tuple(tags[1:]))


def three_splits():
    dice = random.Random(0)

    def draw(count):
        names = [*NAMES, "甲乙病"]
        return [typed(*dice.sample(names, dice.randint(1, 3))) for _ in range(count)]

    return {"train": draw(60), "dev": draw(20), "test": draw(30)}


def share_unseen(splits, split):
    mentions = [e.sentences[0][a:b] for e in splits[split] for a, b, _ in e.spans]
    return sum(name not in names_of(splits["train"]) for name in mentions) / len(mentions)


@pytest.mark.parametrize("unseen", [0.1, 0.25, 0.5])
def test_substitution_takes_names_out_of_train_and_changes_nothing_else(unseen):
    before = three_splits()
    after = substituted(before, unseen, seed=3)
    assert (after["dev"], after["test"]) == (before["dev"], before["test"])
    for split in ("dev", "test"):
        assert share_unseen(after, split) == pytest.approx(unseen, abs=0.03)
    held_out = names_of(before["train"]) - names_of(after["train"])
    assert held_out and names_of(after["train"]) < names_of(before["train"])
    assert len(after["train"]) == len(before["train"])
    for was, is_ in zip(before["train"], after["train"], strict=True):
        assert [label for *_, label in is_.spans] == [label for *_, label in was.spans]
        assert [is_.sentences[0][a:b] for a, b in is_.words] == [*is_.sentences[0]]
        for (a, b, _), (c, d, _) in zip(was.spans, is_.spans, strict=True):
            name = was.sentences[0][a:b]
            assert (is_.sentences[0][c:d] == name) == (name not in held_out)
    assert substituted(before, unseen, seed=3) == after != substituted(before, unseen, seed=4)


def test_substitution_keeps_what_stands_between_names_and_repeats_no_row_of_test():
    train = [typed("甲乙病", "丙炎"), typed("丁病", "戊炎")]
    test = {"test": [typed("甲乙病", "戊炎")]}
    after = substituted({"train": train, **test}, 0.5, seed=1)
    texts = {e.sentences[0] for e in after["train"]}
    assert texts in ({"丁病和丙炎", "丁病和戊炎"}, {"甲乙病和丙炎", "丁病和丙炎"})
    train = [typed("甲病"), typed("乙病", "丙病"), typed("丁病"), typed("丁病", "乙病")]
    test = [typed("甲病"), typed("乙病")]
    for seed in range(20):
        after = substituted({"train": train, "test": test}, 0.5, seed=seed)
        changed = [new for old, new in zip(train, after["train"], strict=True) if new != old]
        assert changed and not {e.sentences for e in changed} & {e.sentences for e in test}


def test_a_fold_of_names_stands_in_the_place_of_the_others():
    train = three_splits()["train"]
    folds = [by_fold(train, 3, number, seed=1) for number in range(3)]
    named = [names_of(fold) for fold in folds]
    assert set.union(*named) == names_of(train) and sum(map(len, named)) == len(names_of(train))
    for fold in folds:
        types = [[label for *_, label in example.spans] for example in fold]
        assert types == [[label for *_, label in example.spans] for example in train]
    assert by_fold(train, 3, 0, seed=1) == folds[0] != by_fold(train, 3, 0, seed=2)
    few = [typed("甲病"), typed("乙病"), typed("丙炎")]  # a fold without a type's name keeps it
    named = sorted(sorted(names_of(by_fold(few, 2, number))) for number in range(2))
    assert named == [["丙炎", "乙病"], ["丙炎", "甲病"]]


def test_substitution_among_a_graphs_names_puts_such_names_in_their_place():
    before = {name: of for name, of in three_splits().items() if name != "dev"}
    after = substituted(before, 0.25, seed=1, graph=knowing(*NAMES[:16]))
    assert names_of(before["train"]) - names_of(after["train"]) <= set(NAMES[:16])

    def known(splits):
        named = [e.sentences[0][a:b] for e in splits["train"] for a, b, _ in e.spans]
        return sum(name in NAMES[:16] for name in named)

    assert known(after) == known(before)


FEW = {split: [typed("甲病"), typed("乙炎")] for split in ("train", "test")}
UNLABELLED = replace(sentence("甲病"), tags=("O", "O"))
NOT_SUBSTITUTED = [
    ({}, 1.5, "unseen is 1.5, expected a share"),
    ({"dev": [sentence("新病", "新炎")]}, 0.1, "New names make up 100.0% of the mentions of dev"),
    ({"test": [UNLABELLED]}, 0.1, "no mention in test"),
    ({"dev": None, "test": None}, 0.1, "no mention in dev and test"),
    ({**FEW, "dev": None}, 0.5, "Train would keep no name of the type ."),
]


@pytest.mark.parametrize(("change", "unseen", "message"), NOT_SUBSTITUTED)
def test_what_substitution_can_not_do_is_said(change, unseen, message):
    splits = {name: of for name, of in {**three_splits(), **change}.items() if of is not None}
    with pytest.raises((DataError, OptionError), match=message):
        substituted(splits, unseen)


def letters(unfit="\t\n\r"):
    fit = st.characters(exclude_categories=["Cs"], exclude_characters=unfit)
    return st.text(fit, min_size=1, max_size=6)


def fields():
    return letters().filter(str.strip)


def plain(*parts, label=fields(), group=st.just("")):
    return st.lists(st.builds(Example, st.tuples(*parts), label, group=group), min_size=1)


def rows_of_tokens():
    words = letters(" \t\n\r")
    tags = st.one_of(st.just("O"), words.map("B-{}".format), words.map("I-{}".format))
    pairs = st.lists(st.tuples(words, tags), min_size=1, max_size=6)

    def made(rows):
        numbered = enumerate([[("a", "B-X")] * 3, *rows])
        split = ((n, *zip(*row, strict=True)) for n, row in numbered)
        return tagged_examples(split, Source("made"))

    return st.lists(pairs, min_size=1, max_size=5).map(made)


def questions():
    """Some with a number of their own, some told by their text."""
    label = st.sampled_from("01")
    own = st.builds(Example, st.tuples(fields(), fields()), label, group=fields())
    told = own.map(lambda example: replace(example, group=example.sentences[0]))
    return st.lists(own, min_size=1) | st.lists(told, min_size=1) | st.lists(own | told, min_size=1)


EVERY_TASK = {
    "ner": rows_of_tokens(),
    "classify": plain(fields()),
    "pair": plain(fields(), fields()),
    "rank": questions(),
    "mask": plain(fields(), label=st.none()),
}


@pytest.mark.parametrize("task", EVERY_TASK)
@given(data=st.data())
def test_examples_of_every_task_are_read_as_they_were_written(task, tmp_path_factory, data):
    examples = data.draw(EVERY_TASK[task])
    folder = tmp_path_factory.mktemp("written")
    write_split(folder, {"train": examples})
    assert read_examples(folder / "train.tsv", task) == examples


def test_what_the_format_can_not_hold_becomes_a_space_and_is_said(tmp_path, caplog):
    texts = [Example(("fine",), "1"), Example(("a\tb\r\nc",), "0")]
    write_split(tmp_path, {"train": texts})
    assert read_examples(tmp_path / "train.tsv", "classify")[1].sentences == ("a b  c",)
    assert f"{tmp_path / 'train.tsv'}: 1 rows have a tab or a line break" in caplog.text
    rows = [(1, ["New York", " ", "?"], ["B-X", "O", "O"]), (2, [], [])]
    write_split(tmp_path, {"dev": tagged_examples(rows, Source("hub", "row"))})
    (read,) = read_examples(tmp_path / "dev.tsv", "ner")
    assert read.sentences == ("New\xa0York \xa0 ?",)
    assert read.spans == ((0, 8, "X"),)
    assert "white space in a token" in caplog.text
    assert "1 rows without a single token are left out. The first: hub, row 2" in caplog.text


@pytest.fixture
def folder(tmp_path):
    rows = [f"有 {' '.join(n)}\tO B-D I-D" for n in NAMES]
    for split in SPLITS:
        (tmp_path / f"{split}.tsv").write_text("text_a\tlabel\n" + "\n".join(rows) + "\n")
    lines = [f"{n}\t类别\t{'疾病' if i % 2 else '症状'}" for i, n in enumerate(NAMES[:20])]
    (tmp_path / "kg.spo").write_text("\n".join(lines) + "\n")
    return tmp_path


@pytest.fixture
def split(kbert, folder):
    """Run `kbert split` on the folder, into another."""

    def run(*more, code=0):
        return kbert("split", "--data", folder, "--output", folder / "new", *more, code=code)

    return run


def test_split_writes_entity_disjoint_files_among_the_names_of_a_graph(folder, split):
    report = split("--seed", 1, "--kg", folder / "kg.spo", "--json")
    counts = {"sentences": 7, "before": 32, "mentions": 7, "unseen in train": 7}
    assert report["test"] == counts
    found = {
        split: {e.sentences[0][1:] for e in read_examples(folder / "new" / f"{split}.tsv", "ner")}
        for split in SPLITS
    }
    assert found["test"] | found["dev"] <= set(NAMES[:20])
    assert found["train"] | found["test"] | found["dev"] == set(NAMES)
    assert not found["train"] & (found["test"] | found["dev"])
    (folder / "kg.spo").write_text("甲病\t类别\t疾病\n")
    said = split("--kg", folder / "kg.spo", code=2).err
    assert "1 entity names that the graph kg knows (32 in all)" in said


def test_split_can_take_leaks_out_only(folder, split):
    (folder / "dev.tsv").write_text("text_a\tlabel\n无 痛\tO B-D\n")
    assert "No labelled row is left for train" in split("--by", "deduplicated", code=2).err
    (folder / "test.tsv").unlink()
    split("--by", "deduplicated")
    assert len(read_examples(folder / "new" / "train.tsv", "ner")) == 32


def test_split_by_substitution_says_the_share_of_new_names(split):
    report = split("--by", "substitution", "--unseen", "0.25", "--seed", "1", "--json")
    counts = {"sentences": 32, "before": 32, "mentions": 32, "unseen in train": 8}
    assert report["test"] == counts
    said = split("--by", "substitution", code=2).err
    assert "--by substitution and --unseen go together" in said


def test_kg_control_writes_a_graph_of_wrong_tails(folder, kbert):
    output = folder / "shuffled.spo"
    control = ("kg", "control", "--kg", folder / "kg.spo", "--output", output)
    report = kbert(*control, "--tails", "shuffled", "--json")
    assert report["share with a true tail still"] == 0
    before, after = (read_triples(path).triples for path in (folder / "kg.spo", output))
    assert [t.head for t in before] == [t.head for t in after]
    assert not set(before) & set(after)


def test_a_graph_is_brought_to_shares_of_labelled_texts(folder, capsys):
    for split in SPLITS[1:]:
        (folder / f"{split}.tsv").write_text(
            "text_a\tlabel\n有 新 病 和 新 炎\tO B-D I-D O B-D I-D\n"
        )
    output = folder / "half.spo"
    arguments = ["--kg", str(folder / "kg.spo"), "--output", str(output)]
    graph_controls.main([*arguments, "--data", str(folder), "--known", "0.5"])
    shown = capsys.readouterr().out
    assert "'test': 0.5" in shown and "'added': 1" in shown
    assert "train: bits of tails about labels, 0.00 before, 0.00 now" in shown
    assert len(read_triples(output).triples) == len(read_triples(folder / "kg.spo").triples) + 1
