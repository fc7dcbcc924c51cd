"""Text → prediction: every stage kept, batches, windows, checkpoints with their cards."""

import pickle
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch
import transformers
from conftest import BIO, TIM_COOK, tiny_config, tiny_tokenizer
from tiny_knowbert import knowbert_in
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from kbert_core import (
    Ablation,
    Card,
    InjectionOptions,
    Intervention,
    KnowledgeGraph,
    Pipeline,
    ReadConfig,
    Rule,
    Tokens,
    Triple,
    Words,
    collate,
    find_mentions,
    flatten,
    grow_trees,
    k_inject,
    k_query,
    visible_matrix,
)
from kbert_core.checkpoints.checkpoint import card_of
from kbert_core.errors import CheckpointError, GraphFileError, KBertError, OptionError
from kbert_core.kbert.interventions import BRANCHES, CLS, PRESETS, TRUNK
from kbert_core.kbert.visible import ABLATIONS
from kbert_core.knowledge.io.write import write_triples
from kbert_lab.data.labelled import Example, tagged_examples
from kbert_lab.data.tables import Source
from kbert_lab.training.evaluate import evaluate

DIABETES = Triple("糖尿病", "类别", "疾病")
ECG = Triple("心电图", "类别", "检查")
TEXT = "患者有糖尿病史，入院后行心电图检查未见异常"


@pytest.fixture(scope="module")
def medical():
    more = [Triple("糖尿病", "症状", t) for t in ("多饮", "多尿")]
    return KnowledgeGraph([DIABETES, *more, ECG], name="medical")


@pytest.fixture(scope="module")
def ner(checkpoints):
    return Pipeline.from_pretrained(checkpoints["ner"], device="cpu")


@pytest.fixture(scope="module")
def pair(checkpoints):
    return Pipeline.from_pretrained(checkpoints["pair"], device="cpu")


@pytest.fixture(scope="module")
def mask(checkpoints):
    return Pipeline.from_pretrained(checkpoints["mask"], device="cpu")


def same(one, other, places=4):
    """Whether two predictions are the same but for rounding."""
    pattern = r"\d+\.\d+(?:e-?\d+)?"
    numbers = [[float(n) for n in re.findall(pattern, repr(p))] for p in (one, other)]
    words = [re.sub(pattern, "", repr(p)) for p in (one, other)]
    return words[0] == words[1] and numbers[0] == pytest.approx(numbers[1], abs=10**-places)


@pytest.mark.parametrize("task", ["ner", "classify", "knowbert"])
def test_a_pipeline_pickles_before_and_after_its_use(task, checkpoints, medical, tmp_path):
    if task == "knowbert":
        pipeline = knowbert_in(tmp_path, checkpoints)
    else:
        pipeline = Pipeline.from_pretrained(checkpoints[task], device="cpu")
    for _ in range(2):
        again = pickle.loads(pickle.dumps(pipeline))
        before, after = (own(TEXT, graph=medical, hidden_states=True) for own in (pipeline, again))
        assert same(before.prediction, after.prediction)
        assert before.hidden_states[-1].equal(after.hidden_states[-1])
        assert after.used == before.used


PLAIN = {  # class of transformers: the task it is read for, its labels, and a text or two
    "BertForTokenClassification": ("ner", BIO, (TEXT,)),
    "BertForSequenceClassification": ("classify", ("bad", "good"), (TEXT,)),
    "BertForQuestionAnswering": ("qa", ("start", "end"), ("cat", TEXT)),
    "BertForMaskedLM": ("mask", None, ("患者有[MASK]史",)),
}


def plain_folder(folder, kind, labels=None):
    """A folder as transformers saves it, without a card."""
    torch.manual_seed(0)
    named = {"id2label": dict(enumerate(labels))} if labels else {}
    model = getattr(transformers, kind)(tiny_config(**named)).eval()
    model.save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return model


@pytest.mark.parametrize("kind", PLAIN)
def test_a_model_of_transformers_is_read_for_the_task_of_its_class(kind, medical, tmp_path):
    task, labels, texts = PLAIN[kind]
    model = plain_folder(tmp_path, kind, None if task == "qa" else labels)
    pipeline = Pipeline.from_pretrained(tmp_path, device="cpu")
    assert pipeline.card.task == task
    assert not labels or pipeline.labels.names == [*labels]
    trace = pipeline(*texts)
    with torch.inference_mode():
        output = model(**tiny_tokenizer()(*texts, return_tensors="pt"))
    given = [output[name] for name in ("start_logits", "end_logits")] if task == "qa" else []
    expected = torch.stack(given, -1) if given else output["logits"]
    torch.testing.assert_close(trace.logits, expected, atol=1e-5, rtol=1e-4)
    assert pipeline(*texts, graph=medical).prediction
    if task == "qa":
        with pytest.raises(CheckpointError, match=r"folder with Pipeline\.from_pretr"):
            Pipeline(model, tiny_tokenizer())
    else:
        by_class = Pipeline(model, tiny_tokenizer())
        assert same(by_class(*texts).prediction, trace.prediction)


def test_where_several_tasks_fit_one_is_named_or_told_of(tmp_path, caplog):
    plain_folder(tmp_path, "BertForSequenceClassification", ("0", "1"))
    assert Pipeline.from_pretrained(tmp_path, task="rank", device="cpu").rank(TEXT, ["cat", "city"])
    assert not caplog.records
    Pipeline.from_pretrained(tmp_path, device="cpu")
    assert "read for the task 'classify'; 'pair' and 'rank' would fit too" in caplog.text
    with pytest.raises(CheckpointError, match="for the task 'classify', not 'ner'"):
        Pipeline.from_pretrained(tmp_path, task="ner", device="cpu")


def test_a_model_of_one_score_is_no_classifier(tmp_path):
    plain_folder(tmp_path, "BertForSequenceClassification", ("score",))
    with pytest.raises(CheckpointError, match="has a single label, so it scores texts"):
        Pipeline.from_pretrained(tmp_path, device="cpu")


# The trace


def test_trace_keeps_every_stage(ner, medical):
    trace = ner(TEXT, graph=medical, attentions=True, hidden_states=True)
    (row,) = trace.rows
    size = len(row)
    assert trace.tree.sentences == (TEXT,)
    assert trace.tree.used == (*medical.triples_of("糖尿病"), ECG)
    assert trace.visible.equal(
        visible_matrix(torch.tensor([row.branch_ids]), torch.tensor([row.anchor_ids]))
    )
    assert trace.logits.shape == (1, size, len(BIO))
    assert [layer.shape for layer in trace.attentions] == [(1, 4, size, size)] * 3
    assert [layer.shape for layer in trace.hidden_states] == [(1, size, 32)] * 4
    assert len(trace.prediction.tokens) == len(TEXT)
    assert trace.left_out == ()


def test_trace_names_what_was_left_out_and_why(ner, medical):
    off = medical.switch_off(ECG)
    trace = ner(TEXT, graph=off, options=InjectionOptions(max_triples=1), max_length=24)
    named = {item.triple.tail: item.rule for _, item in trace.left_out}
    assert named == {"检查": Rule.OFF, "多饮": Rule.LIMIT, "多尿": Rule.LIMIT, "疾病": Rule.LENGTH}


@pytest.mark.parametrize("task", ["ner", "pair"])
def test_empty_graph_gives_the_plain_models_logits(checkpoints, tokenizer, task):
    texts = {"ner": [TEXT], "pair": ["cat apple", "糖尿病"]}[task]
    pipeline = Pipeline.from_pretrained(checkpoints[task], device="cpu")
    with torch.inference_mode():
        plain = pipeline.encoder.model(**tokenizer(*texts, return_tensors="pt")).logits
    assert torch.allclose(pipeline(*texts).logits, plain, atol=1e-5)


def test_ablations_change_the_result_and_not_the_tree(ner, medical):
    full = ner(TEXT, graph=medical)
    for ablation in (Ablation(positions="hard"), Ablation(visible="all")):
        other = ner(TEXT, graph=medical, ablation=ablation)
        assert other.rows == full.rows
        assert not torch.allclose(other.logits, full.logits, atol=1e-4)
    assert ner(TEXT, graph=medical, ablation=Ablation(visible="all")).visible.all()


def test_without_segments_a_pair_is_read_differently_and_a_text_is_not(pair, ner, medical):
    for pipeline, texts in ((pair, (TEXT, "糖尿病")), (ner, (TEXT,))):
        full = pipeline(*texts, graph=medical)
        other = pipeline(*texts, graph=medical, ablation="no-segments")
        assert other.rows == full.rows
        assert other.logits.equal(full.logits) == (len(texts) == 1)
    pairs = [(TEXT, "糖尿病"), ("cat", TEXT)]  # several are read by another path
    several = pair.predict(pairs, graph=medical, ablation="no-segments")
    assert same(next(several), pair(*pairs[0], graph=medical, ablation="no-segments").prediction)


def test_bare_encoder_has_a_trace_and_no_prediction(checkpoints, figure_2):
    pipeline = Pipeline.from_pretrained(checkpoints["encoder"], device="cpu")
    assert pipeline.task is None
    trace = pipeline(TIM_COOK, graph=figure_2, attentions=True)
    assert trace.prediction is None
    assert trace.logits is None
    assert len(trace.attentions) == 3
    assert len(trace.rows[0].branches) == 3
    with pytest.raises(CheckpointError, match="no task head"):
        list(pipeline.predict([[TIM_COOK]]))


# Interventions


def test_interventions_are_in_the_trace_and_change_the_prediction(ner, medical):
    before = ner(TEXT, graph=medical)
    block = Intervention("block", TRUNK, Tokens("branch", 0, TEXT.index("心电图"), ECG))
    nowhere = Intervention("block", TRUNK, Tokens("branch", 0, 0, ECG))
    after = ner(TEXT, graph=medical, interventions=[block, nowhere])
    assert after.rows == before.rows
    assert after.interventions == (block, nowhere)
    assert after.visible.equal(after.visible_layers[0])
    assert len({id(layer) for layer in after.visible_layers}) == 1
    assert not after.visible.equal(before.visible)
    assert not torch.allclose(after.logits, before.logits, atol=1e-4)
    assert before.visible_layers is None


@pytest.mark.parametrize("task", ["ner", "classify", "pair", "mask"])
def test_without_any_link_to_branches_the_prediction_is_plain_berts(checkpoints, medical, task):
    pipeline = Pipeline.from_pretrained(checkpoints[task], device="cpu")
    texts = {"pair": (TEXT, TEXT), "mask": (TEXT + "[MASK]",)}.get(task, (TEXT,))
    options = InjectionOptions(max_triples=1)
    plain = pipeline(*texts)
    given = {"graph": medical, "options": options}
    knowing = pipeline(*texts, **given)
    cut = pipeline(*texts, **given, interventions=PRESETS["no_link"])
    trunk = torch.tensor(cut.rows[0].branch_ids) == 0
    own = cut.logits[:, trunk] if cut.logits.dim() == 3 else cut.logits
    assert len(cut.rows[0].branches) > 0
    assert torch.allclose(own, plain.logits, atol=1e-5)
    assert same(cut.prediction, plain.prediction)
    assert not same(knowing.prediction, plain.prediction)


def test_many_texts_are_read_with_interventions_as_one_is(ner, medical):
    texts = [[TEXT], ["心电图"], [(TEXT + "。") * 40], ["无"]]
    made = [
        Intervention("block", TRUNK, Tokens("hung", 0, 0), layers=(1, 2)),
        Intervention("open", CLS, BRANCHES, layers=(1,)),
    ]
    together = list(ner.read(texts, graph=medical, interventions=made, batch_size=3))
    plain = list(ner.read(texts, graph=medical, batch_size=3))
    for (text,), reading, without in zip(texts, together, plain, strict=True):
        alone = ner(text, graph=medical, interventions=made)
        assert same(reading.prediction, alone.prediction)
        assert same(reading.prediction, without.prediction) == (text == "无")
    assert len(together[2].rows) > 16  # windows are read a few at a time


# Long and strange texts


def test_long_text_is_read_in_windows_that_label_every_token(ner, medical):
    text = (TEXT + "。") * 240  # over 5,000 characters
    trace = ner(text, graph=medical)
    assert len(trace.rows) > 100
    assert max(map(len, trace.rows)) <= 48
    assert [(t.start, t.end) for t in trace.prediction.tokens] == [
        (i, i + 1) for i in range(len(text))
    ]
    mentions = {number for row in trace.rows for number in [h.node for h in row.branches]}
    named = mentions | {number for number, _ in trace.left_out}
    assert named == set(range(len(trace.tree.nodes))) == set(range(480))
    assert {item.rule for _, item in trace.left_out} <= {Rule.LENGTH}
    assert len(set(trace.left_out)) == len(trace.left_out)


def test_text_over_the_limit_is_cut_for_the_other_tasks_and_says_so(checkpoints, figure_2):
    pipeline = Pipeline.from_pretrained(checkpoints["classify"], device="cpu")
    trace = pipeline("cat " * 25_000 + TIM_COOK, graph=figure_2)
    assert len(trace.rows[0]) == 64
    (cut,) = trace.rows[0].trunk_cuts
    assert cut.kept == 62
    assert cut.total > 25_000
    assert {item.rule for _, item in trace.left_out} == {Rule.TRUNK_CUT}


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \t\n\u3000 ",
        "😀👩🏽‍💻🇨🇳 emoji 𠮷野家",
        "Tim Cook去了BEIJING，ｔｉｍ　ｃｏｏｋ?",
        "e\u0301\u0301\u0301 ﷺ \u200b\u00ad\ufeff\x00\x07",
        "עברית و العربية עם Beijing",
        "[CLS] [SEP] [MASK] [PAD] Beijing [SEP]",
        "糖" * 300,
        "a" * 3000,
    ],
)
def test_strange_text_gives_a_prediction_that_points_into_it(ner, figure_2, text):
    prediction = ner(text, graph=figure_2).prediction
    for token in prediction.tokens:
        assert 0 <= token.start <= token.end <= len(text)
    for span in prediction.spans:
        assert span.text == text[span.start : span.end]


# Fill-mask


def test_every_mask_in_a_text_is_filled(mask, figure_2):
    text = "Tim Cook is in [MASK], the [MASK] of"
    trace = mask(text, graph=figure_2)
    first, second = trace.prediction.fillings
    assert text[first.start : first.end] == text[second.start : second.end] == "[MASK]"
    assert (first.start, second.start) == (15, 27)
    probabilities = [p for _, p in first.candidates]
    assert len(probabilities) == 10
    assert probabilities == sorted(probabilities, reverse=True)
    assert all(0 < p < 1 for p in probabilities)


# Many texts


MANY = {
    "ner": [TEXT, "", "cat", TEXT * 4, "糖尿病", "有糖尿病" * 3, "心电图"],
    "pair": [(TEXT, "糖尿病"), ("a", "b"), ("cat " * 40, "糖尿病 " * 40)],
}


@pytest.mark.parametrize("task", MANY)
def test_predictions_in_batches_equal_single_calls(task, checkpoints, medical):
    pipeline = Pipeline.from_pretrained(checkpoints[task], device="cpu")
    texts = [(own,) if isinstance(own, str) else own for own in MANY[task]]
    single = [pipeline(*own, graph=medical).prediction for own in texts]
    for size in (1, 2, 32):
        many = pipeline.predict(iter(texts), graph=medical, batch_size=size)
        assert all(same(one, other) for one, other in zip(many, single, strict=True))
    assert list(pipeline.predict([])) == []


def test_predictions_stream(ner):
    asked = []

    def texts():
        for number in range(150):
            asked.append(number)
            yield [f"cat {number}"]

    predictions = ner.predict(texts(), batch_size=1)
    next(predictions)
    assert len(asked) == 64
    assert len(list(predictions)) == 149


@pytest.mark.parametrize("size", [0, -1, 1.5, True, "8", None])
def test_a_batch_size_that_is_no_count_is_refused(ner, mask, size):
    refused = f"batch_size is {size!r}, expected a whole number of at least 1"
    examples = [Example(("a [MASK]",), "cat")]
    for asked in (
        lambda: list(ner.predict(["cat"], batch_size=size)),
        lambda: list(ner.predicted(ner.readings(["cat"]), batch_size=size)),
        lambda: evaluate(mask, examples, KnowledgeGraph(), batch_size=size),
    ):
        with pytest.raises(OptionError, match=re.escape(refused)):
            asked()


def test_what_cannot_be_read_is_refused(ner, pair, mask, medical):
    single = "Put a single one into a list"
    for asked, wrong in {
        **{
            lambda own=own: ner(*own): f"Named entities takes one sentence, got {len(own)}"
            for own in ([], ["a", "b"], ["a", "b", "c"])
        },
        **{
            lambda own=own: ner(TEXT, graph=own): "as a graph. Open a file with load_graph"
            for own in (None, 1, [("糖尿病", "类别", "疾病")], {"a": "b"})
        },
        **{
            lambda own=own: ner(TEXT, interventions=[own]): r"as an intervention. Give Interv"
            for own in (1, "block", DIABETES)
        },
        lambda: ner(TEXT, max_length=65): "max_length is 65, and the encoder has 64 positions",
        lambda: mask("cat"): r"No \[MASK\] to fill in 'cat'. Write \[MASK\]",
        lambda: ner.read_as("nope"): "No system 'nope'; expected one of k-bert, ",
        lambda: list(ner.predict([["a", "b"]])): "takes one sentence, got 2",
        lambda: grow_trees([TEXT], None): "as a graph. Open a file with load_graph",
        lambda: list(ner.predict(TEXT)): single,
        lambda: list(ner.predict(None)): single,
        lambda: list(ner.predict([None])): single,
        lambda: list(ner.predict([("cat", None)])): "takes one sentence, got 2",
        lambda: list(ner.predict([[None]])): r"Got None, expected a text \(str\)",
        lambda: Pipeline.from_pretrained(None): "Got None as a model. Give its folder or its name.",
        lambda: ner((TEXT, TEXT)): "Put several texts into one list",
        lambda: ner(["cat", None]): "expected a list of sentences",
        lambda: ner(TEXT, KnowledgeGraph()): "give a graph by its name: graph=",
        lambda: pair("你好"): "Sentence-pair classification takes two sentences, got 1",
        lambda: list(pair.predict(("你好", "再见"))): "takes two sentences, got 1",
        lambda: grow_trees("ab", medical): single,
        lambda: k_inject(None, []): "Got None, expected a list of sentences",
        lambda: find_mentions("ab", medical): single,
        lambda: flatten(k_query(["ab"], medical), Words()): "expected a sentence tree",
        lambda: evaluate(ner, TEXT, medical): "Got '患', expected a labelled example",
        lambda: evaluate(ner, [TEXT], medical): "expected a labelled example",
        lambda: collate([]): "A batch of no rows",
    }.items():
        with pytest.raises(KBertError, match=wrong):
            asked()


def test_options_of_injection_are_given_by_their_names(ner, medical):
    assert len(ner(TEXT, graph=medical, max_triples=1).used) == 2
    assert ner(TEXT, graph=medical, relations=["症状"], max_triples=1).used[0].tail == "多饮"
    with pytest.raises(OptionError, match="has no option 'max_triple', only options, max_length"):
        ner(TEXT, graph=medical, max_triple=1)


def test_a_graph_is_given_by_its_path(ner, medical, tmp_path):
    write_triples(medical, path := tmp_path / "medical.spo")
    known = ner(TEXT, graph=medical).prediction
    for given in (path, str(path)):
        assert same(ner(TEXT, graph=given).prediction, known)
        assert same(*ner.predict([TEXT], graph=given), known)
    with pytest.raises(GraphFileError, match=r"gone\.spo: can't be read"):
        ner(TEXT, graph=tmp_path / "gone.spo")


def test_a_list_of_texts_gives_a_list_of_traces(ner, medical):
    traces = ner([TEXT, ("cat",)], graph=medical, hidden_states=True)
    assert [trace.reading.sentences for trace in traces] == [(TEXT,), ("cat",)]
    assert same(traces[0].prediction, ner(TEXT, graph=medical).prediction)
    assert traces[1].hidden_states is not None
    assert ner([]) == []


@pytest.mark.parametrize("option", ["ablation", "interventions"])
def test_ablations_and_interventions_are_given_by_their_names(ner, medical, option):
    for name, value in {"ablation": ABLATIONS, "interventions": PRESETS}[option].items():
        by_name = ner(TEXT, graph=medical, **{option: name}).reading.config
        assert by_name == ner(TEXT, graph=medical, **{option: value}).reading.config
        with pytest.raises(OptionError, match=f"{option} is 'off', expected one of .*{name}"):
            ner(TEXT, graph=medical, **{option: "off"})


def test_a_pipeline_is_pushed_to_the_hub_with_its_card(ner, monkeypatch):
    pushed = []
    for kind in (PreTrainedModel, PreTrainedTokenizerBase):
        monkeypatch.setattr(kind, "push_to_hub", lambda *a, **how: pushed.append((a, how)))
    ner.push_to_hub("me/mine", private=True)
    assert [how for _, how in pushed] == [{"repo_id": "me/mine", "private": True}] * 2
    assert Card.of(pushed[0][0][0].config) == ner.card


def test_scores_are_the_same_in_several_threads_and_each_tells_its_own_progress(
    ner, medical, monkeypatch, caplog
):
    monkeypatch.setattr("kbert_lab.training.evaluate.TOLD_EVERY", 0.0)
    caplog.set_level("INFO")
    text = "患 者 有 糖 尿 病"
    examples = tagged_examples([(1, text.split(), ["O"] * 6)] * 12, Source("here", "row"))
    alone = evaluate(ner, examples, medical, batch_size=2)
    with ThreadPoolExecutor(3) as threads:
        scored = [threads.submit(evaluate, ner, examples, medical, batch_size=2) for _ in range(6)]
        assert [own.result() for own in scored] == [alone] * 6
    assert sum(": 6 of about 1 batches" in line for line in caplog.messages) == 7
    assert "batches" not in vars(ner.reader)


# Checkpoints and cards


def test_saved_and_loaded_checkpoint_keeps_labels_card_and_predictions(
    ner, medical, tmp_path, capfd
):
    ner.save_pretrained(tmp_path)
    assert "it/s" not in capfd.readouterr().err
    with pytest.raises(CheckpointError, match=r"config.json: can't be written .*another folder"):
        ner.save_pretrained(tmp_path / "config.json")
    again = Pipeline.from_pretrained(tmp_path, device="cpu")
    assert again.labels == dict(enumerate(BIO))
    assert again.card == ner.card
    assert again.card == card_of(tmp_path)
    assert same(again(TEXT, graph=medical).prediction, ner(TEXT, graph=medical).prediction)


@pytest.mark.parametrize(
    ("folder", "task", "said"),
    [
        ("ner", "mask", "was trained for the task 'ner', not 'mask'"),
        ("ner", "poetry", "No task 'poetry'; expected one of ner, classify"),
        ("encoder", "ner", r"has no head for the task 'ner' \(classifier"),  # none made at random
    ],
)
def test_a_task_that_a_checkpoint_was_not_trained_for_is_refused(checkpoints, folder, task, said):
    with pytest.raises(CheckpointError, match=said):
        Pipeline.from_pretrained(checkpoints[folder], task=task, device="cpu")


def test_device_is_checked_before_anything_is_loaded(tmp_path):
    with pytest.raises(OptionError, match="There is no device 'toaster'"):
        Pipeline.from_pretrained(tmp_path / "none", device="toaster")


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (None, r"found no tokenizer\. Copy tokenizer\.json"),
        ('{"version": "1.0"', "the tokenizer can't be read"),
    ],
)
def test_a_tokenizer_that_is_gone_or_broken_is_refused(checkpoints, tmp_path, written, said):
    folder = shutil.copytree(checkpoints["ner"], tmp_path / "copy")
    (folder / "tokenizer_config.json").unlink()
    (folder / "tokenizer.json").unlink()
    if written:
        (folder / "tokenizer.json").write_text(written)
    with pytest.raises(CheckpointError, match=said):
        Pipeline.from_pretrained(folder, device="cpu")


def test_tokenizer_with_more_words_than_the_encoder_is_refused(checkpoints, tmp_path):
    folder = shutil.copytree(checkpoints["ner"], tmp_path / "copy")
    tokenizer = tiny_tokenizer()
    tokenizer.add_tokens(["longword", "otherword"])
    tokenizer.save_pretrained(folder)
    with pytest.raises(CheckpointError, match=r"The tokenizer has 152 tokens and the encoder 150"):
        Pipeline.from_pretrained(folder, device="cpu")


def test_many_windows_are_read_in_parts_with_the_same_result(ner, monkeypatch):
    pipeline = ner
    text = "患者有糖尿病史，给予布洛芬口服好转。" * 30
    whole = pipeline(text, max_length=32).prediction
    monkeypatch.setattr("kbert_core.kbert.kbert.ROWS_AT_ONCE", 4)
    parts = pipeline(text, max_length=32).prediction
    assert [t.tag for t in parts.tokens] == [t.tag for t in whole.tokens]
    assert len(parts.tokens) == len(text)


def test_no_mention_is_found_inside_a_mask(mask):
    graph = KnowledgeGraph([Triple("mask", "类别", "疾病")])
    assert not mask("患者有[MASK]病史", graph=graph).tree.nodes
    assert mask("患者有 mask [MASK]", graph=graph).tree.nodes


def test_a_model_is_read_as_it_was_trained_unless_asked_otherwise(ner):
    card = replace(ner.card, reading=ReadConfig(ablation=Ablation("hard", "all")))
    trained = Pipeline(ner.encoder.model, ner.hugging_face_tokenizer, card)
    assert trained("患者有糖尿病史").ablation == Ablation("hard", "all")
    assert trained("患者有糖尿病史", ablation=Ablation()).ablation == Ablation()
