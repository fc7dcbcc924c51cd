"""Riddles that only a graph answers, and a small BERT that is trained on them in seconds.

*Kinds* (notebooks 6 and 10): "tell me about warfarin and forget Paris" asks for
the kind of a name. The sentence says which name is meant; of what kind it is the
graph says, and for a name that training never showed nothing else does. Names of
several words, and those whose word stands elsewhere, are left out, so that none
gives itself away. A model that has read a name twelve times remembers it and need
not look it up. So a share of training's names are invented, each met once, of
which the graph says what it says of a real one.

*Order* (notebook 7b): "what came third : Bakodu Dumipe Pelazu" needs the order of
the sentence, too. One triple of the asked name says its kind; the others say what
it fears or hunts: animals, too. So a model must know which branch belongs to which
name, and which tail to which relation. All names are invented.

The training is a plain loop from scratch, and nothing is saved. `kbert train` is for
anything else.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from torch import Tensor, nn
from transformers import AutoModelForSequenceClassification, BertConfig, PreTrainedTokenizerFast

from kbert_core import Ablation, InjectionOptions, KnowledgeGraph, Triple, collate
from kbert_core.checkpoints.checkpoint import Card
from kbert_core.errors import DataError, OptionError
from kbert_core.kbert.flat_tree import FlatTree
from kbert_core.kbert.visible import FULL, ReadConfig
from kbert_core.knowledge.mentions import Mention
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.strategies import select_triples
from kbert_core.options import Options, option
from kbert_core.pipeline import NO_KNOWLEDGE, Pipeline
from kbert_lab.data.labelled import Example
from kbert_lab.graphs.controls import with_constant_tail
from kbert_lab.training.vocabulary import SPECIALS, with_specials

SYLLABLES = [first + vowel for first in "bdfgklmnprstvz" for vowel in "aeiou"]
Names = Mapping[str, Sequence[str]]  # kind → its names
Rows = Sequence[FlatTree]


@dataclass(frozen=True)
class Riddles:
    """A set of riddles, and the graph that solves them.

    Attributes:
        kinds: the labels.
        train: to learn from.
        seen: new sentences with the names of training.
        unseen: sentences with names that training never showed.
        graph: what is said of all names, invented ones too.
        names, unseen_names: kind → its names in ``train`` and in ``unseen``, without
            those that stand in for one of another riddle.
        more: to test on; other names, with more triples than in training.
        asked: sentence → the name that it asks for, of riddles about order.
    """

    kinds: tuple[str, ...]
    train: tuple[Example, ...]
    seen: tuple[Example, ...]
    unseen: tuple[Example, ...]
    graph: KnowledgeGraph
    names: Names
    unseen_names: Names
    more: tuple[Example, ...] = ()
    asked: Mapping[str, str] = field(default_factory=dict)

    @property
    def chance(self) -> float:
        """The share of right answers of one who guesses."""
        return 1 / len(self.kinds)

    def ceiling(self, examples: Sequence[Example]) -> float:
        """The share of right answers of one who knows the asked name's tails, not their relations."""
        names = [self.asked[example.sentences[0]] for example in examples]
        return float(np.mean([1 / len(self.graph.triples_of(name)) for name in names]))


# Riddles about kinds

TEMPLATES = (
    "the story is about {asked} and not about {other}",
    "the story is not about {other} but about {asked}",
    "they meant {asked} , though they spoke of {other}",
    "they spoke of {other} , yet they meant {asked}",
    "tell me about {asked} and forget {other}",
    "forget {other} , tell me about {asked}",
)
KIND = "is_a"
KIND_ALONE = InjectionOptions(max_triples=1, relations=(KIND,))
ENOUGH_NAMES = 10  # of a kind, so that some can be held out
HELD_OUT_SHARE = 0.3  # of every kind's names: never in training
ONE_WORD = re.compile(r"\w+")


def make_riddles(
    graph: KnowledgeGraph,
    *,
    kinds: int = 6,
    train: int = 1500,
    held_out: int = 180,
    invented: float = 0.5,
    seed: int = 0,
) -> Riddles:
    """Make riddles about the kinds of a graph's names.

    Args:
        graph: whose names are asked for.
        kinds: how many labels; those with the most names are taken.
        train: sentences to train on.
        held_out: sentences of each of the two sets to test on.
        invented: share of the names of training sentences.
        seed: of which names are held out, and of the sentences.

    Raises:
        DataError: the graph has too few names of too few kinds.
    """
    random = np.random.default_rng(seed)
    names: dict[str, tuple[str, ...]] = {}
    unseen_names: dict[str, tuple[str, ...]] = {}
    for kind, its_names in kinds_of(graph, kinds).items():
        order = [its_names[i] for i in random.permutation(len(its_names))]
        count = max(2, round(HELD_OUT_SHARE * len(order)))
        unseen_names[kind], names[kind] = tuple(order[:count]), tuple(order[count:])
    taken = {word for entity in graph.entities() for word in _words(entity)}
    said: list[Triple] = []

    def rename(name: str) -> str:
        """The name, or an invented one of which the graph says the same."""
        if random.random() >= invented:
            return name
        new = _invented(random, taken)
        said.extend(
            Triple(new, t.relation, t.tail)
            for t in graph.triples_of(name)
            if graph.aliases.aliases_in(t) is None  # which would make the real name mean it too
        )
        return new

    return Riddles(
        tuple(names),
        _about_kinds(names, train, random, rename),
        _about_kinds(names, held_out, random),
        _about_kinds(unseen_names, held_out, random),
        KnowledgeGraph([*graph, *said], name=f"{graph.name}, riddles"),
        names,
        unseen_names,
    )


def kinds_of(graph: KnowledgeGraph, count: int) -> dict[str, list[str]]:
    """Find the kinds with the most names, and the names that nothing but the graph gives away.

    Raises:
        DataError: they are too few.
    """
    words = Counter(word for text in TEMPLATES for word in text.split())
    for entity in graph.entities():
        words.update(dict.fromkeys(_words(entity), 1))
    found: dict[str, list[str]] = {}
    for entity in graph.entities():
        if not ONE_WORD.fullmatch(entity) or words[entity] > 1:
            continue
        alone = [Mention(0, 0, entity)]
        injected = select_triples([("",)], alone, graph, InjectionOptions())[0].used
        kinds = [t.tail for t in injected if t.relation == KIND]
        if len(kinds) == 1:
            found.setdefault(kinds[0], []).append(injected[0].head)
    most = sorted(found, key=lambda kind: -len(found[kind]))[:count]
    enough = [kind for kind in most if len(found[kind]) >= ENOUGH_NAMES]
    if len(enough) < count:
        raise DataError(
            f"The graph '{graph.name}' has {len(enough)} kinds (tails of '{KIND}') with "
            f"{ENOUGH_NAMES} or more names of one word of their own, and {count} were asked for. "
            "Ask for fewer, or give more triples."
        )
    return {kind: found[kind] for kind in sorted(enough)}


def _invented(random: np.random.Generator, taken: set[str]) -> str:
    for _ in range(1000):
        word = "".join(SYLLABLES[i] for i in random.integers(len(SYLLABLES), size=3))
        if word not in taken:
            taken.add(word)
            return word.capitalize()
    raise OptionError("There are no more names to invent. Ask for fewer sentences.")


def _about_kinds(
    names: Names, count: int, random: np.random.Generator, rename: Callable[[str], str] = str
) -> tuple[Example, ...]:
    """Make sentences, each kind asked for as often as the others, in random order."""
    kinds = list(names)

    def drawn(some: Sequence[str]) -> str:
        return some[int(random.integers(len(some)))]

    made = []
    for number in range(count):
        kind = kinds[number % len(kinds)]
        of_other = drawn([other for other in kinds if other != kind])
        asked, other, template = drawn(names[kind]), drawn(names[of_other]), drawn(TEMPLATES)
        text = template.replace("{asked}", rename(asked)).replace("{other}", rename(other))
        made.append(Example((text,), kind))
    return tuple(made[i] for i in random.permutation(count))


def _words(name: str) -> list[str]:
    return normalise_name(name).replace("-", " ").split()


# Riddles about the order of names

PLACES = ("first", "second", "third")
ASKED = "is"
OTHERS = ("fears", "hunts", "likes", "eats", "meets")
KINDS = tuple(
    "ant bear bee bird cat cow crab crow deer dog duck eel "
    "fish fly fox frog goat goose hare hawk hen horse lion mouse".split()
)
FEW, MANY = (1, 3), (4, 6)  # triples of a name: in training, and in a test with more of them
ALL_TRIPLES = InjectionOptions(max_triples=MANY[1])


def order_riddles(
    *, seed: int = 0, train: int = 2000, held_out: int = 300, place_said: bool = True
) -> Riddles:
    """Make riddles about the order of three names.

    Args:
        seed: of all that is drawn.
        train: sentences to train on.
        held_out: sentences of each set to test on.
        place_said: False leaves "third" out, so that the sentence doesn't say which name is meant.
    """
    random = np.random.default_rng(seed)
    counts = (train, held_out, held_out)  # training, unseen names, unseen names with more triples
    numbers = random.choice(len(SYLLABLES) ** 3, size=3 * sum(counts), replace=False)
    names = iter(map(_name, numbers.tolist()))
    groups = [[next(names) for _ in range(3 * count)] for count in counts]
    triples: list[Triple] = []
    for group, (least, most) in zip(groups, (FEW, FEW, MANY), strict=True):
        for name in group:
            triples += _said_of(name, int(random.integers(least, most + 1)), random)
    kind = {t.head: t.tail for t in triples if t.relation == ASKED}
    asked: dict[str, str] = {}

    def sentences(names: Sequence[str]) -> tuple[Example, ...]:
        made = []
        for i in range(0, len(names), 3):
            place = int(random.integers(3))
            words = ["what", "came", PLACES[place], ":", *names[i : i + 3]]
            if not place_said:
                words.remove(PLACES[place])
            text = " ".join(words)
            asked[text] = names[i + place]
            made.append(Example((text,), kind[asked[text]]))
        return tuple(made)

    again = [groups[0][i] for i in random.permutation(len(groups[0]))[: 3 * held_out]]
    by_kind = [{k: tuple(n for n in g if kind[n] == k) for k in KINDS} for g in groups[:2]]
    graph = KnowledgeGraph(triples, name="riddles")
    parts = [sentences(group) for group in (groups[0], again, groups[1])]
    return Riddles(KINDS, *parts, graph, *by_kind, sentences(groups[2]), asked)


def _name(number: int) -> str:
    syllables = len(SYLLABLES)
    parts = (number // syllables**2, number // syllables % syllables, number % syllables)
    return "".join(SYLLABLES[part] for part in parts).capitalize()


def _said_of(name: str, count: int, random: np.random.Generator) -> list[Triple]:
    """What a name is, and what it fears, hunts, …: each another animal, in random order."""
    others = random.permutation(len(OTHERS))[: count - 1]
    relations = [ASKED, *(OTHERS[i] for i in others)]
    tails = [KINDS[i] for i in random.permutation(len(KINDS))[:count]]
    triples = [Triple(name, r, t) for r, t in zip(relations, tails, strict=True)]
    return [triples[i] for i in random.permutation(count)]


# The small model


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
        riddles: what it was trained and tested on.
        pipeline: the model after the last step.
        curve: a point every so many steps.
        more: share of right answers where names have more triples, of riddles about order.
    """

    riddles: Riddles
    pipeline: Pipeline
    curve: tuple[TrialPoint, ...]
    more: float | None

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
) -> Trial:
    """Train a small BERT from scratch on riddles, with a graph or without.

    Args:
        riddles: what to learn and to test on.
        graph: read in training and in the tests; the empty graph for BERT.
        injection: how much of it.
        ablation: how trees are read, in training and in the tests.
        seed: of weights and the order of sentences.
        options: the rest.
    """
    torch.manual_seed(seed)
    pipeline = new_pipeline(riddles, injection, ablation, options)
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
    more = None
    if riddles.more:
        more = accuracy(pipeline, read(pipeline, riddles.more, graph), riddles.more)
    return Trial(riddles, pipeline, tuple(curve), more)


def new_pipeline(
    riddles: Riddles, injection: InjectionOptions, ablation: Ablation, options: TrialOptions
) -> Pipeline:
    """Make an untrained BERT that knows the words of the riddles and their graph.

    In riddles about order each name is the unknown token, so that none can be remembered.
    """
    texts = [e.sentences[0] for e in (*riddles.train, *riddles.seen, *riddles.unseen)]
    if riddles.asked:
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


def word_tokenizer(texts: Iterable[str], *, max_length: int) -> PreTrainedTokenizerFast:
    """Build a tokenizer of whole words, numbers and runs of punctuation; others are unknown.

    Texts are normalised on the way in (NFKC and lower case).
    """
    normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    split = pre_tokenizers.Whitespace()
    pairs = (pair for t in texts for pair in split.pre_tokenize_str(normalizer.normalize_str(t)))
    words = dict.fromkeys((*SPECIALS, *(word for word, _ in pairs)))
    vocabulary = {token: i for i, token in enumerate(words)}
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


def loss_of(pipeline: Pipeline, rows: Rows, labels: Tensor) -> Tensor:
    """Cross entropy of a batch, in nats."""
    encoder = pipeline.encoder
    batch = collate(rows, pad_id=pipeline.tokenizer.pad_id)
    output = encoder.model(**encoder.inputs(batch, ablation=pipeline.card.reading.ablation))
    return nn.functional.cross_entropy(output.logits, labels)


def accuracy(pipeline: Pipeline, rows: Rows, examples: Sequence[Example]) -> float:
    """The share of sentences whose kind the model gives."""
    logits = pipeline.reader.encode(rows, pipeline.config)["logits"]
    named = [pipeline.labels[number] for number in logits.argmax(-1).tolist()]
    right = [name == example.label for name, example in zip(named, examples, strict=True)]
    return sum(right) / len(right)


# What is taken away from K-BERT in riddles about order

TRAINING = TrialOptions(
    steps=300, batch=64, hidden_size=64, num_hidden_layers=3, num_attention_heads=4, every=50
)


# row → what is other than in K-BERT, in training and in the tests: how trees are read, "none" of
# the graph or one whose every triple says the same, a sentence that doesn't say which name, layers
ROWS: dict[str, dict[str, Any]] = {
    "K-BERT": {},
    "hard positions": {"ablation": Ablation(positions="hard")},
    "everything visible": {"ablation": Ablation(visible="all")},
    "both": {"ablation": Ablation(positions="hard", visible="all")},
    "no graph (BERT)": {"graph": "none"},
    "constant tail": {"graph": "constant"},
    "no place in the sentence": {"place_said": False},
    "K-BERT, two layers": {"layers": 2},
}


def train_row(name: str, *, seed: int, options: TrialOptions = TRAINING, **sizes: int) -> Trial:
    """Train a small BERT on riddles about order with one part of K-BERT taken away.

    Args:
        name: of the row, one of ``ROWS``.
        seed: of the riddles, the weights and the order of sentences.
        options: of the training; the row says how many layers.
        sizes: ``train`` and ``held_out``, as in :func:`order_riddles`.
    """
    row = ROWS[name]
    riddles = order_riddles(seed=seed, place_said=row.get("place_said", True), **sizes)
    graph = riddles.graph
    if "graph" in row:
        graph = NO_KNOWLEDGE if row["graph"] == "none" else with_constant_tail(graph)
    return trial(
        riddles,
        graph,
        injection=ALL_TRIPLES,
        ablation=row.get("ablation", FULL),
        seed=seed,
        options=replace(options, num_hidden_layers=row.get("layers", options.num_hidden_layers)),
    )
