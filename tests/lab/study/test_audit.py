"""What an audit counts, against a data set small enough to count by hand."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from tagged_texts import row, tagged

from kbert_core.knowledge import load_graph
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.knowledge.surface_forms import ALL_RULES, AS_WRITTEN
from kbert_core.knowledge.triple import Triple
from kbert_core.words import Characters
from kbert_lab.data.labelled import Example
from kbert_lab.study.audit import audit
from kbert_lab.study.audit_values import Gain, Group, LookedUp, Matches, Share, read_data
from kbert_lab.study.expected import WAYS, Point, point_of
from kbert_lab.study.verdict import Level, Report, verdict_of

HEADS = {
    "糖尿病": ("疾病",),
    "胃炎": ("疾病", "症状"),
    "头痛": ("症状",),
    "头痛剧烈": ("症状",),
    "心电图": ("检查",),
    "彩超": ("检查",),
}
GRAPH = KnowledgeGraph(
    [Triple(head, "类别", tail) for head, tails in HEADS.items() for tail in tails]
    + [Triple(f"病{n}", "类别", "疾病") for n in range(40)],
    name="types",
)
SPLITS = {
    "train": [
        tagged("有糖尿病", ("糖尿病", "D")),
        tagged("有糖尿病", ("糖尿病", "S")),  # the same text, labelled otherwise
        tagged("糖尿病，行心电图", ("糖尿病", "D"), ("心电图", "E")),
        tagged("行心电图", ("心电图", "E")),
        tagged("心电图与胸片", ("心电图", "E"), ("胸片", "E")),
    ],
    "test": [
        tagged("行心电图", ("心电图", "E")),  # stands in train
        tagged("胃炎及头痛剧烈", ("胃炎", "D"), ("头痛", "S")),
        tagged("无异常"),
    ],
}


def audited(splits=SPLITS, graph=GRAPH, task="ner", **more):
    return audit(splits, graph, task=task, tokenizer=Characters(special=True), **more)


def level(made, kind):
    return {f.kind: f.level for f in verdict_of(made).findings}[kind]


def said(made, kind):
    return {f.kind: f.in_words() for f in verdict_of(made).findings}[kind]


@pytest.fixture(scope="module")
def made():
    return audited(max_length=10)


def test_a_splits_rows_repeats_and_matches_are_counted(made):
    train, test = made.splits["train"], made.splits["test"]
    assert train.examples == 5
    assert train.labels == {"D": 2, "E": 4, "S": 1}
    assert train.repeated == Share(1, 5)
    assert (test.with_match, test.matches) == (Share(2, 3), 3)  # 心电图, 胃炎, 头痛剧烈
    assert test.kinds == Matches(Share(2, 3), Share(0, 3), Share(1, 3), Share(0, 3))
    assert made.missing == ("dev",)
    assert made.held_out == "test"


def test_a_match_is_exact_part_of_its_type_part_of_another_or_outside():
    train = 3 * [tagged("有糖尿病", ("糖尿病", "D")), tagged("行心电图", ("心电图", "E"))]
    test = [
        tagged("胃炎", ("胃炎", "D")),
        tagged("慢性胃炎、急性彩超", ("慢性胃炎", "D"), ("急性彩超", "D")),
        tagged("无胃炎"),
    ]
    made = audited({"train": train, "test": test})
    assert made.splits["test"].kinds == Matches(*4 * [Share(1, 4)])
    assert "25.0 % are part of one of their type" in said(made, "noise")


def test_mentions_are_known_by_name_and_reached_where_the_longest_match_is_the_mention(made):
    gold = made.splits["test"].mentions
    assert gold.all.known == Share(3, 3)
    assert gold.all.reached == Share(2, 3)  # 头痛剧烈 hides 头痛
    assert gold.by_label["S"].reached == Share(0, 1)
    assert (gold.seen.known, gold.unseen.known) == (Share(1, 1), Share(2, 2))
    assert gold.unseen_names == Share(2, 3)
    train = made.splits["train"].mentions
    assert (train.all.known, train.unseen) == (Share(6, 7), None)  # not 胸片


def test_names_are_told_apart_by_the_splits_they_stand_in(made):
    assert made.answers.known_names == {
        "train only": Share(1, 2),
        "test only": Share(2, 2),
        "train and test": Share(1, 1),
    }
    assert made.answers.gold_heads == Share(4, 46)


def test_the_type_relation_its_groups_and_ambiguous_heads_are_found(made):
    assert made.ambiguity.relation == "类别"
    assert made.ambiguity.several == Share(1, 46)
    assert made.ambiguity.examples == (("胃炎", ("疾病", "症状")),)
    assert made.answers.groups == (
        Group("疾病", Share(2, 42)),
        Group("症状", Share(2, 3)),
        Group("检查", Share(1, 2)),
    )


SENSES = KnowledgeGraph(
    Triple(head, "类别", "某类") for head in ("苹果（水果）", "苹果（公司）", "小米", "手机")
)
FRUIT = [
    Example(("苹果和小米", "苹果"), "1"),
    Example(("小米", "手机"), "0"),
    Example(("无", "无"), "0"),
]


def test_names_that_may_mean_several_heads_are_counted_and_named():
    made = audited({"train": FRUIT, "test": FRUIT}, SENSES, "pair")
    homonyms = made.splits["test"].homonyms
    assert (homonyms.matches, homonyms.rows) == (Share(2, 5), Share(1, 2))
    assert homonyms.examples == (("苹果", ("苹果(水果)", "苹果(公司)")),)
    assert level(made, "homonyms") is Level.NOTE
    told = "40.0 % of the 5 matches in test have a name that may mean several heads, in 50.0 % of"
    assert told in said(made, "homonyms") and "--one-sense" in said(made, "homonyms")
    counts = {row[""]: row["test"] for row in Report(made, verdict_of(made)).rows()}
    assert counts["homonyms, examples, 苹果"] == "苹果(水果), 苹果(公司)"
    assert "homonyms" not in {finding.kind for finding in verdict_of(audited()).findings}
    options = InjectionOptions(strategy="rare", one_sense=True)
    chosen = audited({"train": FRUIT}, SENSES, "pair", options=options)
    assert "--one-sense" not in said(chosen, "homonyms")


def test_without_a_relation_of_types_heads_are_grouped_by_relation():
    graph = KnowledgeGraph([Triple("糖尿病", "症状", "口渴"), Triple("胃炎", "症状", "腹痛")])
    made = audited(graph=graph)
    assert made.ambiguity.relation is None
    assert made.answers.groups == (Group("症状", Share(2, 2)),)


def test_the_dictionary_is_scored_on_the_held_out_set(made):
    scores = made.splits["test"].dictionary
    # 症状 has no match in training and means what 类别 does: 3 E, 2 D, 1 S. So 头痛剧烈 is an E.
    assert made.tail_labels == {"疾病": "D", "检查": "E", "症状": "E"}
    assert (scores["right"], scores["predicted"], scores["gold"]) == (2, 3, 3)
    assert scores["unseen"] == {"recall": 0.5, "gold": 2, "right": 1}
    assert made.splits["train"].dictionary is None


def test_tokens_added_and_cut_are_counted():
    made = audited(max_length=9).splits["test"].injection
    # with [CLS] and [SEP] 6, 9 and 5; 类别检查 adds 4; 类别疾病, 类别症状 and 类别症状 add 12
    assert made.tokens == 6 + 9 + 5
    assert made.added == Share(4 + 12, 20)
    assert made.longest == 21
    assert made.long_trees == Share(2, 3)
    assert made.added_over == Share(1 + 12, 16)
    tails = audited(options=InjectionOptions(max_triples=1, tail_only=True))
    assert tails.splits["test"].injection.added == Share(2 + 4, 20)


def test_only_the_relations_asked_for_count():
    graph = GRAPH.add(Triple("异常", "别名", "不正常"))
    both = audited(graph=graph).splits["test"]
    assert both.with_match == Share(3, 3)
    one = audited(graph=graph, options=InjectionOptions(relations=("别名",)))
    assert one.splits["test"].with_match == Share(1, 3)
    assert (one.triples, one.heads) == (1, 1)


def test_a_triple_that_is_off_is_no_knowledge():
    off = GRAPH.switch_off(Triple("心电图", "类别", "检查"))
    assert audited(graph=off).splits["test"].with_match == Share(1, 3)


PAIRS = {
    "train": [Example(("头痛怎么办", "糖尿病"), "1"), Example(("b", "a"), "0")],
    "test": [Example(("a", "b"), "1"), Example(("胃炎", "胃炎"), "1"), Example(("c", "d"), "2")],
}


def test_pairs_are_matched_in_both_texts_and_are_the_same_in_either_order():
    made = audited(PAIRS, task="pair")
    test = made.splits["test"]
    assert (test.with_match, test.matches) == (Share(1, 3), 2)
    assert test.ambiguous_matches == Share(2, 2)
    assert made.leaks[0].texts == Share(1, 3)
    assert made.conflicts.examples == ("a ‖ b",)
    assert (test.mentions, test.dictionary, made.answers) == (None, None, None)
    # [CLS] a [SEP] b [SEP]
    assert test.injection.tokens == 5 + 7 + 5
    assert test.injection.added == Share(16, 17)


def test_the_most_frequent_label_of_training_is_a_baseline():
    splits = {
        "train": [Example(("x",), "1"), Example(("y",), "1"), Example(("z",), "0")],
        "test": [Example(("v",), "0"), Example(("w",), "1"), Example(("u",), "2")],
    }
    made = audited(splits, task="classify")
    assert made.splits["test"].majority == Share(1, 3)
    assert made.splits["test"].labels == {"0": 1, "1": 1, "2": 1}


# The verdict


def names(numbers, label="D"):
    return [tagged(f"有病{n}号", (f"病{n}号", label)) for n in numbers]


def graph_of(numbers, type_="疾病"):
    return KnowledgeGraph([Triple(f"病{n}号", "类别", type_) for n in numbers], name="numbers")


MORE = range(1000, 1100)  # heads that no text names
HIDDEN, HARM = "unknown_new", "K-BERT may find fewer of the new names than BERT"
SILENT = range(95, 101)  # five of the names of train, and one that is new


GOOD, NOTE, WARNING = Level.GOOD, Level.NOTE, Level.WARNING
NEW, LATER = range(60, 100), range(60, 160)
UNKNOWN = "knows 11.0 % of training's mentions and 2.0 % of the new ones"
MADE, ROOM = "made_from_data", "at most 1.0 % of all mentions are new"
JUDGED = [  # names of train and test, heads; a finding, its level, what it and the headline say
    (range(60), NEW, range(100), MADE, WARNING, "疾病 100.0 %", "not that independent knowledge"),
    (range(60), NEW, range(50, 250), MADE, GOOD, "25.0 %", "Nothing counted here stands against"),
    (range(20), range(20, 40), range(40), MADE, GOOD, "It can't be told whether", ""),  # too small
    (range(50), range(40), range(20, 300), "leaks", WARNING, "100.0 %", "split can hardly show"),
    (range(50), range(40), range(20, 300), "room", WARNING, "", ""),
    (range(60), LATER, range(100, 400), "leaks", GOOD, "", ""),
    (range(60), [0, *LATER[:99]], range(100, 400), "leaks", NOTE, "", ""),
    (range(60), [*range(5), *LATER[:95]], range(100, 400), "leaks", WARNING, "", ""),
    (range(60), LATER, [*range(60, 64), *MORE], "coverage", WARNING, "", ""),
    (range(60), LATER, [*range(60, 65), *MORE], "coverage", NOTE, "", ""),
    (range(60), LATER, [*range(60, 80), *MORE], "coverage", GOOD, "", ""),
    (range(100), range(50, 150), [*range(101), *MORE], "room", NOTE, ROOM, ""),  # one of 50
    (range(100), range(50, 150), [*SILENT, *MORE], "room", NOTE, "Where training is silent", ""),
    (range(100), range(50, 150), [*range(102), *MORE], "room", GOOD, "", ""),
    # on the map such a graph costs K-BERT three points; others know enough, or there is little new
    (range(100), range(50, 150), [*range(40, 51), 100, *MORE], HIDDEN, WARNING, UNKNOWN, HARM),
    (range(100), range(50, 150), [*range(102), *MORE], HIDDEN, None, "", ""),
    (range(100), range(50, 150), [*SILENT, *MORE], HIDDEN, None, "", ""),  # teaches nothing
    (range(100), range(5, 105), [*range(100), *MORE], HIDDEN, None, "", ""),
]


@pytest.mark.parametrize(("train", "test", "heads", "kind", "expected", "text", "headline"), JUDGED)
def test_what_is_counted_is_judged_by_thresholds(
    train, test, heads, kind, expected, text, headline
):
    verdict = verdict_of(audited({"train": names(train), "test": names(test)}, graph_of(heads)))
    first = verdict.headline.in_words()
    assert headline in first and (kind != HIDDEN or (HARM in first) == bool(expected))
    (finding,) = [f for f in verdict.findings if f.kind == kind] or [None]
    assert (finding and finding.level) == expected
    assert finding is None or text in finding.in_words()


FRUIT_GRAPH = KnowledgeGraph([Triple("apple", "is_a", "fruit")], name="fruit")
OF_TRAIN = {"train": SPLITS["train"]}


@pytest.mark.parametrize(
    ("given", "kind", "expected", "text", "headline"),
    [
        (
            {"splits": {**SPLITS, "test": [tagged("病3号已愈")]}},
            *("unlabelled", Level.WARNING, "begins with B-"),
            "No entity is labelled in the test set, so nothing says what a graph would help",
        ),
        (
            {"graph": FRUIT_GRAPH},
            *("coverage", Level.WARNING, "knows 0.0 % of the 3 test mentions"),
            "The graph names nothing in the test set",
        ),
        ({"graph": FRUIT_GRAPH}, "dictionary", Level.NOTE, "tags nothing", ""),
        ({"splits": OF_TRAIN}, "missing", Level.WARNING, "neither a dev nor a test set", "No set"),
        ({"max_length": 9}, "length", Level.NOTE, "66.7 % of the inputs are over 9 tokens", ""),
        ({}, "length", Level.NOTE, "a limit of 256 cuts no input", ""),
        (
            {"splits": {**SPLITS, "train": [tagged("有胸片", ("胸片", "E"))]}},
            *("untaught", Level.WARNING, "a K-BERT trained on it never sees a branch"),
            "nothing can be learnt of how to read it",
        ),
    ],
)
def test_what_stands_against_the_experiment_is_said(given, kind, expected, text, headline):
    made = audited(**given)
    assert level(made, kind) is expected
    assert text in said(made, kind) and headline in verdict_of(made).headline.in_words()


# The command


@pytest.fixture
def folder(tmp_path):
    for split, examples in SPLITS.items():
        lines = ["text_a\tlabel", *map(row, examples)]
        (tmp_path / f"{split}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "kg.spo").write_text(
        "".join(f"{t.head}\t{t.relation}\t{t.tail}\n" for t in GRAPH), encoding="utf-8"
    )
    return tmp_path


def test_the_command_says_what_to_expect_then_the_verdict_and_the_numbers_for_all(kbert, folder):
    out = kbert("audit", "--data", folder, "--kg", folder / "kg.spo").out
    lines = out.splitlines()
    assert lines[0].endswith("(named entities) with kg: 47 triples, 46 heads")
    assert lines[2].startswith("What a graph would change can't be said: the test set has 3 ment")
    assert lines[4] == "Scores on this split are too good: the splits leak."
    assert lines[5].startswith("  ! The splits share texts: 33.3 % of test stand in train.")
    assert len(lines) <= 14 and lines[-1].endswith("counts: --all")
    out = kbert("audit", "--data", folder, "--kg", folder / "kg.spo", "--all").out
    lines = out.splitlines()
    assert "no data: dev" in lines
    assert "examples, 胃炎 疾病, 症状" in out
    words = " ".join(out.split())
    assert "gold heads 8.7 % (4 of 46)" in words


def test_the_command_prints_json_with_the_verdict_and_counts_as_a_model_does(
    kbert, folder, checkpoints
):
    arguments = ("--data", folder, "--kg", folder / "kg.spo", "--max-length", 9, "--json")
    found = kbert("audit", *arguments, "--max-triples", 1, "--tail-only")
    assert (found["task"], found["verdict"]["findings"][0]["level"]) == ("ner", "warning")
    assert found["splits"]["test"]["with_match"] == {"count": 2, "total": 3, "share": 2 / 3}
    injection = found["splits"]["test"]["injection"]
    assert (injection["limit"], injection["added"]["count"]) == (9, 6)
    found = kbert("audit", *arguments, "--model", checkpoints["ner"])
    assert (found["options"]["max_triples"], found["options"]["tail_only"]) == (3, True)


@pytest.mark.parametrize(
    ("text", "count"), [("cat 糖尿病", 0), ("cat 丨丶", 2), ("кот и пёс", 3), ("cat cat cat", 0)]
)
def test_tokens_that_the_vocabulary_lacks_are_counted(kbert, folder, checkpoints, text, count):
    (folder / "test.tsv").write_text(f"label\ttext_a\na\t{text}\n", encoding="utf-8")
    (folder / "train.tsv").write_text("label\ttext_a\na\tcat\n", encoding="utf-8")
    arguments = ("--data", folder, "--kg", folder / "kg.spo", "--json")
    plain = kbert("audit", *arguments)
    assert plain["splits"]["test"]["injection"]["unknown"] is None
    found = kbert("audit", *arguments, "--model", checkpoints["classify"])
    assert found["splits"]["test"]["injection"]["unknown"]["count"] == count
    said = [f for f in found["verdict"]["findings"] if f["kind"] == "unknown"]
    assert [f["level"] for f in said] == ["warning"] * bool(count)
    if count:
        assert f"vocabulary lacks {100 * count / 3:.1f} % of the 3 tokens" in said[0]["text"]


def test_reading_comprehension_is_audited(kbert, tmp_path):
    def asked(**questions):
        rows = [
            {"id": asks, "question": asks, "answers": [{"text": a, "answer_start": text.index(a)}]}
            for asks, a in questions.items()
        ]
        return json.dumps({"data": [{"paragraphs": [{"context": text, "qas": rows}]}]})

    text, asks = "Aspirin treats headache. Tea is warm.", "What treats headache?"
    (tmp_path / "train.json").write_text(asked(**{asks: "Aspirin"}))
    (tmp_path / "test.json").write_text(asked(**{asks: "Aspirin", "What is warm?": "Tea"}))
    (tmp_path / "kg.tsv").write_text("headache\ttreated by\taspirin\n")
    arguments = ("--data", tmp_path, "--kg", tmp_path / "kg.tsv")
    assert "--task qa for questions" in kbert("audit", *arguments, code=2).err
    found = kbert("audit", *arguments, "--task", "qa", "--json")
    test = found["splits"]["test"]
    assert (test["with_match"]["count"], test["matches"], test["examples"]) == (2, 3, 2)
    assert test["answers_known"] == {"count": 1, "total": 2, "share": 0.5}
    assert found["leaks"][0]["texts"]["count"] == 1
    out = kbert("audit", *arguments, "--task", "qa").out
    assert "(reading comprehension) with kg" in out
    assert "50.0 % of the 2 test questions have an answer that is a tail" in " ".join(out.split())


def test_what_is_not_used_is_named(kbert, caplog, folder, checkpoints):
    arguments = ("--data", folder, "--kg", folder / "kg.spo")
    kbert("audit", *arguments, "--model", checkpoints["classify"])
    assert "The model is for classification, and only one for named entities is read" in caplog.text
    kbert("audit", *arguments, "--relations", "种类")
    assert "No triple has the relation 种类; there is 类别." in caplog.text


# The public data


def test_the_published_split_and_graph_are_as_known_and_said_to_show_reading_only():
    """The numbers were found by other means."""
    data = os.environ.get("KBERT_DATA")
    if not data:
        pytest.skip("KBERT_DATA is not set")
    found = read_data(Path(data) / "kbert" / "medical_ner")
    graph = load_graph(Path(data) / "kbert" / "Medical.spo")
    public = audit(found.splits, graph, task=found.task, tokenizer=Characters())
    leaks = {(leak.of, leak.into): leak.texts for leak in public.leaks}
    assert leaks["test", "train"] == Share(332, 755)
    assert leaks["dev", "train"] == Share(438, 939)
    assert public.conflicts.texts.count == 164
    assert public.ambiguity.several == Share(311, 13_553)
    test = public.splits["test"]
    assert test.with_match.share == pytest.approx(0.499, abs=0.0005)
    assert test.kinds.exact.share == pytest.approx(0.69, abs=0.005)
    assert test.mentions.all.known.share == pytest.approx(0.2124, abs=0.0005)
    percent = {la: round(100 * c.known.share) for la, c in test.mentions.by_label.items()}
    assert percent == {"BodyPart": 17, "Cure": 64, "Disease": 55, "Examine": 33, "Symptom": 5}
    groups = {group.name: round(100 * group.gold.share) for group in public.answers.groups}
    assert groups == {"疾病": 2, "症状": 1, "部位": 98, "治疗": 92, "检查": 94}
    headline = verdict_of(public).headline.in_words()
    assert "This split can hardly show what knowledge adds" in headline
    assert "not that independent knowledge helps" in headline


def test_what_a_gain_depends_on_is_counted_in_the_held_out_split(made):
    # of three mentions 胃炎 is new and gets its label; 头痛剧烈 overlaps 头痛
    split = made.splits["test"]
    assert point_of(split) == Point(1 / 3, 1 / 3)
    assert point_of(made.splits["train"]) is None  # nothing there is new
    without = audited(graph=KnowledgeGraph())
    assert point_of(without.splits["test"]) is None and without.expected == {}
    beside = [*SPLITS["test"], tagged("彩超"), tagged("彩超")]  # a name that is no mention: half
    assert point_of(audited({**SPLITS, "test": beside}).splits["test"]) == Point(1 / 3, 2 / 3)


@pytest.mark.parametrize(
    ("gain", "says"),
    [
        ((0.03, 0.012, 0.048), "a gain, between +1 and +5 points of F1 over BERT."),
        ((-0.03, -0.048, -0.012), "a loss, between -5 and -1 points of F1 over BERT."),
        ((0.12, -0.02, 0.29), "perhaps a gain, between -2 and +29 points of F1 over BERT."),
        ((-0.02, -0.08, 0.04), "perhaps a loss, between -8 and +4 points of F1 over BERT."),
        ((0.002, -0.03, 0.04), "probably nothing, between -3 and +4 points of F1 over BERT."),
    ],
)
def test_the_first_words_are_what_to_expect_of_k_bert_a_gate_and_names_written_over(
    made, gain, says
):
    way = Gain(*gain, outside=False)
    many = replace(expecting(made, 0, 0), expected=dict.fromkeys(WAYS, way))
    split = many.splits[many.held_out]
    known = replace(split.mentions.all, known=Share(1, 30))
    mentions = replace(split.mentions, all=known)
    many = replace(many, splits={**many.splits, many.held_out: replace(split, mentions=mentions)})
    answers = [answer.in_words() for answer in verdict_of(many).answers]
    called = (
        "K-BERT",
        "The graph's names through a gate",
        "The graph's names written over a model",
    )
    assert answers == [f"{name}: {says}" for name in called]
    measured = replace(many, looked_up=LookedUp("m", "test", 0.5, 0.5, {}))
    assert [answer.in_words() for answer in verdict_of(measured).answers] == answers[:1]


@pytest.mark.parametrize(
    ("dictionary", "gate", "more", "texts"),
    [
        (-0.006, 0.019, {}, ("Don't write the graph", "change F1 by -1 [-20, +20]")),
        (0.05, 0.02, {}, ("Look the graph's names up through a gate", "F1 by +2 [-20, +20]")),
        (-0.004, 0.019, {}, None),
        (-0.006, 0.02, {"mentions": 29}, None),
        (
            -0.006,
            0.02,
            {"looked_up": LookedUp("m", "test", 0.5, None, {"dictionary": (0.1, 0, 0.2)})},
            None,
        ),
    ],
)
def test_the_verdict_says_what_to_do_with_a_graphs_names(made, dictionary, gate, more, texts):
    expected = expecting(made, dictionary, gate, **more)
    if texts is None:  # little is expected, mentions are few, or a model was read
        assert "advice" not in {finding.kind for finding in verdict_of(expected).findings}
        return
    advice = said(expected, "advice")
    assert all(text in advice for text in texts)
    assert level(expected, "advice") is (Level.WARNING if dictionary < 0 else Level.NOTE)
    assert ("Don't" in advice, "gate" in advice) == (dictionary < 0, gate >= 0.02)


def expecting(made, dictionary, gate, *, mentions=30, right=1, looked_up=None):
    split = made.splits[made.held_out]
    scores = {**split.dictionary, "gold": mentions, "predicted": 30, "right": right}
    held_out = replace(split, dictionary=scores)
    made = replace(made, splits={**made.splits, made.held_out: held_out})
    means = {"K-BERT": 0.01, "dictionary": dictionary, "gate": gate}
    expected = {way: Gain(mean, -0.2, 0.2, outside=False) for way, mean in means.items()}
    return replace(made, expected=expected, looked_up=looked_up)


# Names in other words, and what can't be


WORDS = {"E1": "糖尿病", "E2": "胃炎", "E3": "高血压"}
OTHER_NAMES = KnowledgeGraph(
    [
        *(Triple(head, "类别", "疾病") for head in WORDS),
        *(Triple(head, "别名", name) for head, name in WORDS.items()),
    ],
    name="other names",
)
IN_TRADITIONAL = {
    "train": 3 * [tagged("有糖尿病", ("糖尿病", "D"))],
    "dev": [tagged("有高血壓", ("高血壓", "D"))],
    "test": [tagged("有高血壓", ("高血壓", "D")), tagged("有胃炎", ("胃炎", "D"))],
}


def test_a_name_is_known_by_the_rules_that_injection_goes_by():
    def known(names):
        splits = {name: of for name, of in IN_TRADITIONAL.items() if name != "dev"}
        made = audited(splits, OTHER_NAMES, options=InjectionOptions(names=names))
        test = made.splits["test"]
        counted = test.mentions.all.known, test.dictionary["right"], test.matches
        return counted, said(made, "coverage")

    counted, words = known(ALL_RULES)
    assert counted == (Share(2, 2), 2, 2) and "knows 100.0 % of the 2 test mentions" in words
    counted, words = known(AS_WRITTEN)
    assert counted == (Share(0, 2), 0, 0) and "knows 0.0 %" in words


def test_where_dev_has_no_wrong_name_a_gate_is_not_advised():
    right = expecting(audited(IN_TRADITIONAL, OTHER_NAMES), 0.05, 0.03, right=30)
    text = said(right, "advice")
    assert "Write the graph's names over a model" in text and "kbert gate" not in text
    without = {split: of for split, of in IN_TRADITIONAL.items() if split != "dev"}
    assert "needs a dev set" in said(expecting(audited(without, OTHER_NAMES), 0.05, 0.03), "advice")


def test_no_more_is_expected_than_f1_can_change():
    many = [tagged("一胃炎二胃炎三胃炎" * 9, ("一", "D"))] * 30
    made = audited({"train": [tagged("胃炎", ("胃炎", "D"))] * 3, "test": many})
    gain = made.expected["dictionary"]
    assert (gain.mean, gain.low, gain.outside) == (-1, -1, True)
    assert "only a guess: in none of our data" in said(made, "advice")
    headline = verdict_of(made).headline.in_words()
    assert "are expected to lower its F1" in headline and "stands against" not in headline
    gains = {**made.expected, "dictionary": replace(gain, mean=-0.02, high=0.01)}
    unsure = verdict_of(replace(made, expected=gains)).headline.in_words()
    assert "the graph's names may lower its F1" in unsure
    gains = dict.fromkeys(("dictionary", "oracle"), (-0.03, -0.04, -0.02))
    measured = replace(made, looked_up=LookedUp("bert", "test", 0.9, None, gains))
    first = verdict_of(measured).headline.in_words()
    assert "Written over bert, the graph's names lower its F1." in first
    assert "bert, which reads the graph itself, reaches" in said(measured, "looked_up")


def test_texts_that_differ_in_width_or_case_are_in_both_splits():
    wide = [tagged("行ＣＴ", ("ＣＴ", "E"))]
    made = audited({"train": [tagged("行ct", ("ct", "E"))], "test": wide})
    assert [leak.texts for leak in made.leaks] == [Share(1, 1)]
    other = audited(
        {"train": [tagged("行ct", ("ct", "E"))], "test": [tagged("行ＣＴ", ("ＣＴ", "D"))]}
    )
    assert other.conflicts.examples == ("行ct",)
