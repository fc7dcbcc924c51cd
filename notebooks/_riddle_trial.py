"""A small BERT trained on knowledge riddles in seconds, and followed on the way.

For teaching and quick trials: a model from scratch, a plain loop, nothing
saved. `kbert train` is for anything else.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from torch import Tensor, nn
from transformers import AutoModelForSequenceClassification, BertConfig, PreTrainedTokenizerFast

from _riddles import Riddles
from kbert_core.checkpoints.checkpoint import Card
from kbert_core.errors import DataError
from kbert_core.kbert.flat_tree import FlatTree, collate
from kbert_core.kbert.visible import FULL, Ablation, ReadConfig
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.options import Options, option
from kbert_core.pipeline import NO_KNOWLEDGE, Pipeline
from kbert_lab.data.labelled import Example
from kbert_lab.training.vocabulary import SPECIALS, with_specials

KIND_ALONE = InjectionOptions(max_triples=1, relations=("is_a",))


@dataclass(frozen=True)
class TrialOptions(Options):
    """How to train.

    Attributes:
        steps: of the optimiser; the rate rises over a tenth of them and then falls.
        batch: sentences a step.
        learning_rate: at its highest.
        hidden_size, num_hidden_layers, num_attention_heads: of the BERT.
        initializer_range: of its random weights; a small model learns sooner
            from wider ones than BERT's 0.02.
        dropout: of hidden states and attention; so short a training has no
            time for it.
        every: steps between two points of the curve.
    """

    steps: int = option(140, least=1)
    batch: int = option(32, least=1)
    learning_rate: float = 3e-3
    hidden_size: int = 128
    num_hidden_layers: int = 2
    num_attention_heads: int = 2
    initializer_range: float = 0.05
    dropout: float = 0.0
    every: int = option(20, least=1)

    def rate(self, step: int) -> float:
        """The share of the learning rate at a step, from 0."""
        return min(1.0, 10 * (step + 1) / self.steps) * max(0.02, 1 - step / self.steps)


@dataclass(frozen=True, slots=True)
class TrialPoint:
    """Where a training stands.

    Attributes:
        step: how many steps were made.
        loss: of the last batch, in nats.
        seen, unseen: share of right answers, names of training and others.
    """

    step: int
    loss: float
    seen: float
    unseen: float


@dataclass(frozen=True, eq=False)
class Trial:
    """A trained model, and how it got there.

    Attributes:
        pipeline: the model after the last step.
        curve: a point every so many steps.
    """

    pipeline: Pipeline
    curve: tuple[TrialPoint, ...]

    @property
    def last(self) -> TrialPoint:
        """Where it ended."""
        return self.curve[-1]


def trial(
    riddles: Riddles,
    graph: KnowledgeGraph = NO_KNOWLEDGE,
    *,
    injection: InjectionOptions = KIND_ALONE,
    ablation: Ablation = FULL,
    seed: int = 0,
    options: TrialOptions = TrialOptions(),
    known_names: bool = True,
) -> Trial:
    """Train a small BERT from scratch on riddles, with a graph or without.

    Args:
        riddles: what to learn and to test on.
        graph: read in training and in the tests; the empty graph for BERT.
        injection: how much of it.
        ablation: how trees are read, in training and in the tests.
        seed: of weights and the order of sentences.
        options: the rest.
        known_names: False makes every name one unknown token, so that none can be remembered.
    """
    torch.manual_seed(seed)
    pipeline = new_pipeline(riddles, injection, ablation, options, known_names=known_names)
    model = pipeline.encoder.model
    train = read(pipeline, riddles.train, graph)
    held_out = [(read(pipeline, some, graph), some) for some in (riddles.seen, riddles.unseen)]
    labels = torch.tensor([riddles.kinds.index(str(e.label)) for e in riddles.train])
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.learning_rate)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, options.rate)
    curve = []
    for step, chosen in enumerate(batches(len(train), options, seed), start=1):
        model.train()
        loss = loss_of(pipeline, [train[i] for i in chosen], labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % options.every == 0 or step == options.steps:
            model.eval()
            scores = [accuracy(pipeline, rows, examples) for rows, examples in held_out]
            curve.append(TrialPoint(step, loss.item(), *scores))
    model.eval()
    return Trial(pipeline, tuple(curve))


def new_pipeline(
    riddles: Riddles,
    injection: InjectionOptions,
    ablation: Ablation,
    options: TrialOptions,
    *,
    known_names: bool = True,
) -> Pipeline:
    """Make an untrained BERT with a vocabulary of all words of the riddles and their graph."""
    texts = [e.sentences[0] for e in (*riddles.train, *riddles.seen, *riddles.unseen)]
    if not known_names:
        names = {triple.head for triple in riddles.graph}
        texts = [" ".join(w for w in text.split() if w not in names) for text in texts]
    texts += [text for triple in riddles.graph for text in (triple.relation, triple.tail)]
    tokenizer = word_tokenizer(texts, max_length=256)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=options.hidden_size,
        num_hidden_layers=options.num_hidden_layers,
        num_attention_heads=options.num_attention_heads,
        intermediate_size=options.hidden_size,
        max_position_embeddings=256,
        initializer_range=options.initializer_range,
        hidden_dropout_prob=options.dropout,
        attention_probs_dropout_prob=options.dropout,
        pad_token_id=tokenizer.pad_token_id,
        id2label=dict(enumerate(riddles.kinds)),
        label2id={kind: i for i, kind in enumerate(riddles.kinds)},
    )
    Card("classify", ReadConfig(injection, ablation=ablation)).write_to(config)
    return Pipeline(AutoModelForSequenceClassification.from_config(config), tokenizer)


def word_tokenizer(texts: Iterable[str], *, max_length: int = 512) -> PreTrainedTokenizerFast:
    """Build a tokenizer that makes every word, number or run of punctuation a token.

    A word that isn't among the texts is unknown. Texts are normalised on the
    way in (NFKC and lower case).

    Args:
        texts: whose words are the vocabulary, in the order in which they come.
        max_length: written into the tokenizer's config, in tokens.

    Raises:
        DataError: the texts hold no word.
    """
    normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    split = pre_tokenizers.Whitespace()
    words: dict[str, None] = {}
    for text in texts:
        for word, _ in split.pre_tokenize_str(normalizer.normalize_str(text)):
            words[word] = None
    if not words:
        raise DataError("The texts hold no word to build a vocabulary from. Give some text.")
    vocabulary = {token: i for i, token in enumerate(dict.fromkeys((*SPECIALS, *words)))}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    backend.normalizer, backend.pre_tokenizer = normalizer, split
    return with_specials(backend, vocabulary, max_length)


def read(pipeline: Pipeline, examples: Sequence[Example], graph: KnowledgeGraph) -> list[FlatTree]:
    """K-Query, K-Inject and flattening of many sentences."""
    readings = pipeline.readings([e.sentences for e in examples], graph=graph)
    return [reading.rows[0] for reading in readings]


def batches(count: int, options: TrialOptions, seed: int) -> list[list[int]]:
    """Which sentences each step reads: all of them in random order, then again in another."""
    random = np.random.default_rng(seed)
    order: list[int] = []
    while len(order) < options.steps * options.batch:
        order += random.permutation(count).tolist()
    size = options.batch
    return [order[size * step : size * (step + 1)] for step in range(options.steps)]


def loss_of(pipeline: Pipeline, rows: Sequence[FlatTree], labels: Tensor) -> Tensor:
    """Cross entropy of a batch, in nats."""
    encoder = pipeline.encoder
    batch = collate(rows, pad_id=pipeline.tokenizer.pad_id)
    output = encoder.model(**encoder.inputs(batch, ablation=pipeline.card.reading.ablation))
    return nn.functional.cross_entropy(output.logits, labels)


def accuracy(pipeline: Pipeline, rows: Sequence[FlatTree], examples: Sequence[Example]) -> float:
    """The share of sentences whose kind the model gives."""
    logits = pipeline.reader.encode(rows, pipeline.config)["logits"]
    named = [pipeline.labels[number] for number in logits.argmax(-1).tolist()]
    right = [name == example.label for name, example in zip(named, examples, strict=True)]
    return sum(right) / len(right)
