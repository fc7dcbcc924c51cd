"""Reading comprehension and fill-mask from a file to scores, for every system."""

import json

import numpy as np
import pytest
import torch
from conftest import tiny_config, tiny_tokenizer
from small_data import tuning
from transformers import AutoModelForMaskedLM, BertForMaskedLM

from kbert_core import Card, InjectionOptions, KnowledgeGraph, Pipeline, ReadConfig, Triple
from kbert_core.checkpoints.checkpoint import load_model, load_tokenizer
from kbert_core.errors import DataError
from kbert_core.explain.case import Case, target_of
from kbert_core.explain.effects import stream_effects
from kbert_core.knowbert.candidates import Base
from kbert_core.knowbert.kar import KarOptions
from kbert_core.knowbert.knowbert import KnowBertConfig
from kbert_core.knowledge import load_graph
from kbert_core.labels import IGNORED
from kbert_core.pipeline import NO_KNOWLEDGE
from kbert_lab.data.labelled import Example, read_examples
from kbert_lab.data.squad import read_comprehension
from kbert_lab.training.evaluate import answer_columns, evaluate, mask_columns
from kbert_lab.training.finetune import train
from kbert_lab.training.rows import RowMaker
from kbert_lab.training.scores import scores_of_masks, word_f1, words_of

NAMES = {"疾病": ["糖尿病", "肺炎", "胃炎", "肝炎"], "检查": ["心电图", "血常规", "彩超", "胸片"]}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1988年", ["1988", "年"]),
        ("《Red  Rose》，", ["red", "rose"]),
        ("ＡＢＣ公司的iPhone4。", ["abc", "公", "司", "的", "iphone4"]),
        ("北 京、天津", ["北", "京", "天", "津"]),
        ("a_b", ["a", "b"]),
        ("％", ["%"]),
        ("", []),
    ],
)
def test_answers_are_compared_by_words_of_latin_and_characters_of_chinese(text, words):
    assert words_of(text) == words


@pytest.mark.parametrize(
    ("predicted", "gold", "f1"),
    [
        ("北京市", "北京", 2 * 2 / 5),
        ("北京", "北京。", 1),
        ("上海", "北京", 0),
        ("在1988年", "1988年5月", 2 * 2 / (3 + 4)),
        ("人人人", "人人", 4 / 5),
        ("the Red Rose", "red rose", 4 / 5),
        ("", "", 0),
    ],
)
def test_f1_of_an_answer_is_that_of_a_hand_computation(predicted, gold, f1):
    assert word_f1(predicted, gold) == pytest.approx(f1)


@pytest.fixture
def folder(tmp_path):
    """Questions after the disease and the test of a sentence, and the graph of both."""
    paragraphs = []
    for number in range(12):
        disease, test = (NAMES[kind][number % 4] for kind in NAMES)
        context = f"患者有{disease}，今查{test}。"
        asked = [(disease, "什么病？"), (test, "查什么？")]
        questions = [
            {
                "id": f"Q{number}.{n}",
                "question": question,
                "answers": [{"text": answer, "answer_start": context.index(answer)}],
            }
            for n, (answer, question) in enumerate(asked)
        ]
        paragraphs.append({"context": context, "qas": questions})
    for split in ("train", "dev", "test"):
        data = {"data": [{"paragraphs": paragraphs}]}
        (tmp_path / f"{split}.json").write_text(json.dumps(data), encoding="utf-8")
    lines = [f"{name}\t类别\t{kind}" for kind, names in NAMES.items() for name in names]
    (tmp_path / "kg.spo").write_text("\n".join(lines) + "\n")
    return tmp_path


def trained(folder, **changes):
    return train(tuning(folder, task="qa", **{"epochs": 1, "dropout": 0.1, **changes}))


@pytest.mark.parametrize("system", ["k-bert", "plain-text", "knowbert"])
def test_every_system_trains_and_is_scored_alike(folder, checkpoints, system):
    encoder = {"encoder": str(checkpoints["encoder"])} if system == "knowbert" else {}
    report = trained(folder, system=system, **encoder)
    scores = report["scores"]["test"]
    assert set(scores) == {"f1", "exact", "read", "count"}
    assert (scores["count"], scores["read"]) == (24, 1)
    pipeline, graph = Pipeline.from_pretrained(folder / "model"), load_graph(folder / "kg.spo")
    examples = read_comprehension(folder / "test.json")
    assert evaluate(pipeline, examples, graph) == pytest.approx(scores, abs=0.05)  # half precision
    assert "| f1 | exact |" in (folder / "model" / "README.md").read_text()


def test_the_task_is_learnt(folder):
    report = trained(folder, epochs=12, batch_tokens=40, hidden_size=128, learning_rate=2e-3)
    assert report["scores"]["test"]["exact"] > 0.9


def test_answers_cut_off_or_not_given_are_not_found(folder):
    trained(folder, windows=False, max_length=12)
    pipeline, examples = (
        Pipeline.from_pretrained(folder / "model"),
        read_comprehension(folder / "test.json"),
    )
    assert pipeline.config.windows is False
    columns = answer_columns(pipeline, examples, load_graph(folder / "kg.spo"))
    assert columns["read"][:2] == [0.0, 0.0]
    assert all(len(row) <= 12 for row in pipeline.readings([examples[0].sentences])[0].rows)


def test_questions_are_answered_on_the_command_line(folder, kbert):
    trained(folder)
    model = ("--model", folder / "model", "--kg", folder / "kg.spo", "--device", "cpu")
    asked = ("患者有肺炎，今查彩超。", "--question", "什么病？")
    data = kbert("predict", *asked, "--json", *model)
    assert data["text"] == ["什么病？", asked[0]]
    assert len(data["prediction"]["answers"]) == 5
    best = data["prediction"]["answers"][0]
    assert asked[0][best["start"] : best["end"]] == best["text"]
    assert kbert("predict", "什么病？", asked[0], "--json", *model) == data
    assert f" {best['text']} " in kbert("predict", *asked, *model).out
    lines = kbert("predict", "--file", folder / "dev.json", *model).out.splitlines()
    assert len(lines) == 24
    assert json.loads(lines[0])["text"] == ["什么病？", "患者有糖尿病，今查心电图。"]
    (folder / "pairs.tsv").write_text(f"什么病？\t{asked[0]}\n")
    pairs = kbert("predict", "--file", folder / "pairs.tsv", "--pair", *model).out
    assert json.loads(pairs) == data
    assert "exact" in kbert("evaluate", "--data", folder, *model).out
    said = kbert("rank", "什么病？", "肺炎", *model, code=2).err
    assert "for the task 'qa', and ranking needs" in said
    found = kbert("explain", "effects", *asked, "--json", *model)
    assert found["target"]["label"] == best["text"]


def test_effects_are_on_the_log_probability_of_the_answer(folder):
    trained(folder)
    pipeline, graph = Pipeline.from_pretrained(folder / "model"), load_graph(folder / "kg.spo")
    case = Case.of(pipeline, "什么病？", "患者有肺炎，今查彩超。", graph=graph)
    best = case.trace.prediction.answers[0]
    score = case.base.score
    assert case.target.probability(score, pipeline.labels) == pytest.approx(best.probability)
    *_, effects = stream_effects(case)
    assert len(effects.each) == 2
    without = case.without(case.facts[:1])
    (scored,) = case.run([without])
    assert effects.each[0].effect == pytest.approx(score - scored.score, abs=1e-5)
    other = target_of(case.trace.prediction, case.reading, label="彩超")
    assert (other.start, other.end, other.label) == (8, 10, "彩超")


# Fill-mask

ASKED = Example(("糖尿病的类别是[MASK][MASK]。",), "疾病")
GRAPH = KnowledgeGraph([Triple("糖尿病", "类别", "疾病"), Triple("心电图", "类别", "检查")])
KAR = {"size": 12, "heads": 3, "inner": 16}


def pipeline_of(checkpoints, system="k-bert", max_length=None):
    if system == "knowbert":
        base = Base(vectors=str(checkpoints["encoder"]), kar=KarOptions(**KAR))
        card = Card("mask", KnowBertConfig(InjectionOptions(), max_length, (base,)))
    else:
        card = Card("mask", ReadConfig(max_length=max_length))
    model = load_model(checkpoints["mask"], AutoModelForMaskedLM, device="cpu")
    return Pipeline(model, load_tokenizer(checkpoints["mask"]), card)


def rows_of(pipeline, example=ASKED, graph=GRAPH, **how):
    made = RowMaker([example], pipeline.task, pipeline.reader, {}, graph, **how)
    return made.rows([0], 0)[0]


def test_a_column_of_fillings_labels_the_masks_and_no_other_does(tmp_path):
    (tmp_path / "a.tsv").write_text("text_a\tfilling\n糖尿病是[MASK][MASK]\t疾病\n")
    (example,) = read_examples(tmp_path / "a.tsv", "mask")
    assert (example.sentences, example.label) == (("糖尿病是[MASK][MASK]",), "疾病")
    (tmp_path / "b.tsv").write_text("label\ttext_a\n1\t糖尿病是[MASK]\n")
    assert read_examples(tmp_path / "b.tsv", "mask")[0].label is None
    (given,) = read_examples(tmp_path / "b.tsv", "mask", {"label": "label"})
    assert given.label == "1"
    (tmp_path / "c.tsv").write_text("text_a\tfilling\n糖尿病是[MASK]\t \n")
    with pytest.raises(DataError, match="line 2: label is blank"):
        read_examples(tmp_path / "c.tsv", "mask")


@pytest.mark.parametrize("system", ["k-bert", "knowbert"])
def test_the_masks_are_told_and_nothing_else_is_hidden(checkpoints, system):
    pipeline = pipeline_of(checkpoints, system)
    (made,) = rows_of(pipeline)
    ids, mask = np.array(made.row.input_ids), pipeline.hugging_face_tokenizer.mask_token_id
    assert made.input_ids is None
    gold = pipeline.hugging_face_tokenizer.convert_tokens_to_ids(["疾", "病"])
    assert made.target[ids == mask].tolist() == gold
    assert (made.target[ids != mask] == IGNORED).all()


def test_the_heads_entity_may_tell_the_tail_that_is_masked(checkpoints):
    (made,) = rows_of(pipeline_of(checkpoints, "knowbert"), held_out=True)
    (span,) = made.row.spans
    assert [own.entity for own in span.span.candidates] == ["糖尿病"]
    assert span.span.candidates[0].triples == (Triple("糖尿病", "类别", "疾病"),)


def test_masks_past_the_length_limit_are_not_told(checkpoints):
    pipeline = pipeline_of(checkpoints, max_length=10)  # [CLS] 糖尿病的类别是[MASK] [SEP]
    (made,) = rows_of(pipeline, graph=NO_KNOWLEDGE)
    (gold,) = pipeline.hugging_face_tokenizer.convert_tokens_to_ids(["疾"])
    assert [own for own in made.target if own != IGNORED] == [gold]


@pytest.mark.parametrize(
    ("filling", "words"), [("病", "text: 2, tokens of '病': 1"), ("疾病史", "'疾病史': 3")]
)
def test_fillings_that_do_not_fit_the_masks_are_said(checkpoints, filling, words):
    with pytest.raises(DataError, match=words):
        rows_of(pipeline_of(checkpoints), Example(ASKED.sentences, filling))


def test_ranks_are_those_of_the_whole_vocabulary_by_hand(checkpoints):
    pipeline = pipeline_of(checkpoints)
    other = Example(("心电图的类别是[MASK][MASK]。",), "检查")
    columns = mask_columns(pipeline, [ASKED, other], GRAPH, [ASKED], batch_size=1)
    vocabulary = pipeline.hugging_face_tokenizer.get_vocab()
    for number, example in enumerate((ASKED, other)):
        (reading,) = pipeline.readings([example.sentences], graph=GRAPH)
        logits = pipeline.reader.logits([reading])[0]
        masks = [7, 8]  # the text's own tokens, from 0
        ranks = [
            [int(i) for i in logits[place].argsort(descending=True)].index(vocabulary[piece]) + 1
            for place, piece in zip(masks, example.label, strict=True)
        ]
        assert columns["reciprocal"][number] == pytest.approx(sum(1 / rank for rank in ranks))
        assert columns["right"][number] == ranks.count(1)
        assert columns["count"][number] == 2
    assert columns["new"] == [0, 2]  # no training text has 检查
    assert columns["new_reciprocal"] == [0, columns["reciprocal"][1]]
    scores = scores_of_masks(columns)
    assert scores["mrr"] == pytest.approx(sum(columns["reciprocal"]) / 4)
    assert scores["new_mrr"] == pytest.approx(columns["reciprocal"][1] / 2)
    together = mask_columns(pipeline, [ASKED, other], GRAPH, [ASKED])
    assert together["reciprocal"] == pytest.approx(columns["reciprocal"])


@pytest.fixture
def facts(tmp_path, checkpoints):
    """A folder of facts as sentences, a graph of them, and an encoder with its head."""
    names = {"疾病": ("糖尿病", "口病", "多饮"), "检查": ("心电图", "图检", "行电")}
    triples = [Triple(head, "类别", tail) for tail, heads in names.items() for head in heads]
    rows = [f"{t.head}的类别是[MASK][MASK]\t{t.tail}" for t in triples]
    for split, times in {"train": 8, "dev": 1, "test": 1}.items():
        (tmp_path / f"{split}.tsv").write_text("\n".join(["text_a\tfilling", *rows * times]) + "\n")
    lines = (f"{t.head}\t{t.relation}\t{t.tail}\n" for t in triples)
    (tmp_path / "kg.spo").write_text("".join(lines))
    torch.manual_seed(0)
    BertForMaskedLM(tiny_config()).save_pretrained(tmp_path / "encoder")
    tiny_tokenizer().save_pretrained(tmp_path / "encoder")
    return tmp_path


@pytest.mark.parametrize("system", ["k-bert", "knowbert"])
def test_facts_are_learned_and_scored_by_mean_reciprocal_rank(facts, system):
    how = {"task": "mask", "system": system, "epochs": 5, "batch_tokens": 64, "dropout": 0.1}
    base = (json.dumps({"kar": KAR}),) if system == "knowbert" else ()
    encoder = str(facts / "encoder")
    report = train(tuning(facts, encoder=encoder, base=base, **how))
    scores = report["scores"]["test"]
    assert scores["count"] == 12
    assert scores["mrr"] > 0.5 > report["learning_curve"][0]["mrr"]
    assert report["without_knowledge"]["test"].keys() == scores.keys()
    assert "| accuracy | mrr |" in (facts / "model" / "README.md").read_text(encoding="utf-8")
