"""A plain Hugging Face trainer whose batches have knowledge."""

import pickle

import pytest
import torch
from explaining import GRAPH, TEXT
from transformers import (
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    RobertaConfig,
    RobertaForSequenceClassification,
    Trainer,
    TrainingArguments,
)

from kbert_core import (
    Ablation,
    InjectionOptions,
    Intervention,
    Pipeline,
    ReadConfig,
    Tokens,
    load_graph,
)
from kbert_core.errors import DataError, OptionError
from kbert_lab.data.labelled import read_examples
from kbert_lab.training.collator import KnowledgeCollator

ENTITIES = AutoModelForTokenClassification
CLASSES = AutoModelForSequenceClassification
HARD = ReadConfig(InjectionOptions(max_triples=1), ablation=Ablation(positions="hard"))


def loaded(folder, auto_class=CLASSES, **options):
    torch.manual_seed(0)  # of a new head
    return auto_class.from_pretrained(folder, **options), AutoTokenizer.from_pretrained(folder)


def test_a_trainer_learns_saves_and_agrees_with_the_pipeline(data, checkpoints, tmp_path):
    names = dict(enumerate(["O", "B-D", "I-D", "B-E", "I-E"]))
    labels = {"id2label": names, "label2id": {name: n for n, name in names.items()}}
    model, tokenizer = loaded(checkpoints["encoder"], ENTITIES, **labels)
    graph = load_graph(data / "kg.spo")
    rows = [
        {"tokens": list(e.sentences[0]), "ner_tags": [labels["label2id"][t] for t in e.tags]}
        for e in read_examples(data / "train.tsv", "ner")
    ]
    arguments = TrainingArguments(
        str(tmp_path / "out"),
        remove_unused_columns=False,
        max_steps=24,
        learning_rate=5e-3,
        logging_steps=4,
        save_strategy="no",
        use_cpu=True,
        disable_tqdm=True,
        report_to=[],
    )
    collator = KnowledgeCollator(model, tokenizer, graph, task="ner")
    trainer = Trainer(model, arguments, collator, rows, processing_class=tokenizer)
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert losses[-1] < 0.8 * losses[0]
    trainer.save_model()
    logits = torch.tensor(trainer.predict(rows).predictions)

    pipeline = Pipeline.from_pretrained(tmp_path / "out", device="cpu")
    assert (pipeline.card.task, pipeline.card.knowledge) == ("ner", ("kg",))
    for own, row in zip(logits, rows, strict=True):
        trace = pipeline("".join(row["tokens"]), graph=graph)
        expected = trace.logits[0]
        assert trace.used
        torch.testing.assert_close(own[: len(expected)], expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("task", "row", "texts", "config"),
    [
        ("classify", {"sentence": TEXT, "label": 2, "more": None}, (TEXT,), None),
        ("classify", {"text": TEXT, "label": "good"}, (TEXT,), HARD),
        ("pair", {"sentence1": TEXT, "sentence2": "糖尿病", "label": 1}, (TEXT, "糖尿病"), None),
    ],
)
def test_a_batch_gives_what_the_pipeline_gives(checkpoints, task, row, texts, config):
    model, tokenizer = loaded(checkpoints[task])
    collate = KnowledgeCollator(model, tokenizer, GRAPH, task=task, config=config)
    batch = collate([row, row])
    labels = batch.pop("labels")
    with torch.inference_mode():
        logits = model(**batch).logits
    expected = Pipeline(model, tokenizer)(*texts, graph=GRAPH)  # by the card in its config
    assert len(expected.used) == (2 if config else 1 + 2 * len(texts))
    torch.testing.assert_close(logits[1:], expected.logits)
    assert labels.tolist() == 2 * [row["label"] if isinstance(row["label"], int) else 2]


def test_a_worker_gets_a_small_copy_that_makes_the_same_batch(checkpoints):
    model, tokenizer = loaded(checkpoints["ner"], ENTITIES)
    collate = KnowledgeCollator(model, tokenizer, GRAPH, task="ner")
    rows = [{"tokens": list(TEXT), "tags": ["O"] * len(TEXT)}] * 2
    mine = collate(rows)
    model(**mine, output_hidden_states=True)  # transformers' recorders, which don't pickle
    weights = sum(own.nbytes for own in model.parameters())
    big = model.resize_token_embeddings(len(tokenizer) + 20_000).weight.nbytes
    small = len(pickle.dumps(KnowledgeCollator(model, tokenizer, GRAPH, task="ner")))
    assert small < len(pickle.dumps(tokenizer)) + weights < big
    batch = pickle.loads(pickle.dumps(collate))(rows)
    assert batch.keys() == mine.keys()
    assert all(batch[name].equal(mine[name]) for name in mine)


def test_positions_begin_where_the_encoder_counts_from(tokenizer):
    config = RobertaConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = RobertaForSequenceClassification(config).train()
    collate = KnowledgeCollator(model, tokenizer, GRAPH, task="classify")
    batch = collate([{"text": TEXT, "label": 0}])
    assert model.training  # looking at the encoder left it as it was
    assert batch["position_ids"].min() == config.pad_token_id + 1
    assert "token_type_ids" not in batch or config.type_vocab_size > 1
    assert batch["attention_mask"].shape == (1, 1, *2 * batch["input_ids"].shape[1:])


def test_a_long_text_stays_one_row(checkpoints):
    model, tokenizer = loaded(checkpoints["ner"], ENTITIES)
    collate = KnowledgeCollator(model, tokenizer, task="ner", config=ReadConfig(max_length=16))
    batch = collate([{"tokens": list(TEXT * 3), "tags": ["O"] * len(TEXT * 3)}])
    assert batch["input_ids"].shape == batch["labels"].shape == (1, 16)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"label": 1}, "has the columns label, expected label, text_a .*remove_unused_columns=F"),
        ({"text": TEXT, "label": 3}, "the batch, row 1: the label '3' .*bad, fair, good"),
        ({"text": " ", "label": 1}, "the batch, row 1: text_a is blank"),
    ],
)
def test_a_row_that_does_not_fit_is_named(checkpoints, row, problem):
    model, tokenizer = loaded(checkpoints["classify"])
    collate = KnowledgeCollator(model, tokenizer, GRAPH, task="classify")
    with pytest.raises(DataError, match=problem):
        collate([row])


def test_what_a_trainer_can_not_do_is_refused(checkpoints):
    model, tokenizer = loaded(checkpoints["classify"])
    with pytest.raises(OptionError, match=r"'mask' has no labels in the rows.*kbert pretrain"):
        KnowledgeCollator(model, tokenizer, task="mask")
    blocked = ReadConfig(
        interventions=(Intervention("block", Tokens("trunk"), Tokens("branches")),)
    )
    with pytest.raises(OptionError, match="Interventions give every layer"):
        KnowledgeCollator(model, tokenizer, task="classify", config=blocked)
    with pytest.raises(OptionError, match=r"half precision.*dtype=torch\.float32"):
        KnowledgeCollator(model.half(), tokenizer, task="classify")
