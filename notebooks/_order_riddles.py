"""Riddles that need both the sentence and the graph: to take parts of K-BERT away, and train.

"What came third : Bakodu Dumipe Pelazu" asks for the kind of the third name.
The order of the words says which name is meant. One of its triples says the
kind (Pelazu *is* cat). Its other triples say what it fears or hunts: animals,
too. So a model must keep the order of the sentence, and know which branch
belongs to which name, and which tail to which relation.

All names are invented, and the small model knows none: each is one unknown
token. So it can't learn names by heart and has to read the graph.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from _riddle_trial import Trial, TrialOptions, accuracy, read, trial
from _riddles import SYLLABLES, Riddles
from kbert_core import Ablation, InjectionOptions, KnowledgeGraph, Triple
from kbert_core.pipeline import NO_KNOWLEDGE
from kbert_lab.data.labelled import Example
from kbert_lab.graphs.controls import with_constant_tail

PLACES = ("first", "second", "third")
ASKED = "is"
OTHERS = ("fears", "hunts", "likes", "eats", "meets")
KINDS = tuple(
    "ant bear bee bird cat cow crab crow deer dog duck eel "
    "fish fly fox frog goat goose hare hawk hen horse lion mouse".split()
)
FEW, MANY = (1, 3), (4, 6)  # triples of a name: in training, and in a test with more of them
ALL_TRIPLES = InjectionOptions(max_triples=MANY[1])
TRAINING = TrialOptions(
    steps=300,
    batch=64,
    hidden_size=64,
    num_hidden_layers=3,
    num_attention_heads=4,
    every=50,
)


@dataclass(frozen=True)
class OrderRiddles:
    """A set of riddles about the order of names.

    Attributes:
        riddles: to learn from, and to test on with names of training and others;
            every name has as many triples as ``FEW`` says.
        more: to test on; other names, with as many triples as ``MANY`` says.
        asked: sentence → the name that it asks for.
    """

    riddles: Riddles
    more: tuple[Example, ...]
    asked: Mapping[str, str]

    def ceiling(self, examples: Sequence[Example]) -> float:
        """The share of right answers of one who knows the asked name's tails, not their relations."""
        graph, asked = self.riddles.graph, self.asked
        return float(np.mean([1 / len(graph.triples_of(asked[e.sentences[0]])) for e in examples]))


def order_riddles(
    *, seed: int = 0, train: int = 2000, held_out: int = 300, place_said: bool = True
) -> OrderRiddles:
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
    return OrderRiddles(
        Riddles(
            KINDS,
            sentences(groups[0]),
            sentences(again),
            sentences(groups[1]),
            KnowledgeGraph(triples, name="riddles"),
            *by_kind,
        ),
        sentences(groups[2]),
        asked,
    )


@dataclass(frozen=True)
class Row:
    """What is taken away, in training and in the tests.

    Attributes:
        ablation: how trees are read.
        graph: "true", "none" or "constant", where every triple says the same.
        place_said: whether the sentence says which name is meant.
        layers: of the model.
    """

    ablation: Ablation = Ablation()
    graph: str = "true"
    place_said: bool = True
    layers: int = TRAINING.num_hidden_layers


ROWS = {
    "K-BERT": Row(),
    "hard positions": Row(Ablation(positions="hard")),
    "everything visible": Row(Ablation(visible="all")),
    "both": Row(Ablation(positions="hard", visible="all")),
    "no graph (BERT)": Row(graph="none"),
    "constant tail": Row(graph="constant"),
    "no place in the sentence": Row(place_said=False),
    "K-BERT, two layers": Row(layers=2),
}


@dataclass(frozen=True, eq=False)
class OrderTrial:
    """A model trained on riddles about the order of names.

    Attributes:
        trial: the model, and how it got there.
        more: share of right answers where names have more triples than in training.
        ceilings: :meth:`OrderRiddles.ceiling` of the last two tests.
    """

    trial: Trial
    more: float
    ceilings: tuple[float, float]


def train_row(
    name: str, *, seed: int, options: TrialOptions = TRAINING, **sizes: int
) -> OrderTrial:
    """Train a small BERT from scratch with one part of K-BERT taken away.

    Args:
        name: of the row, one of ``ROWS``.
        seed: of the riddles, the weights and the order of sentences.
        options: of the training; the row says how many layers.
        sizes: ``train`` and ``held_out``, as in :func:`order_riddles`.
    """
    row = ROWS[name]
    made = order_riddles(seed=seed, place_said=row.place_said, **sizes)
    graph = made.riddles.graph
    if row.graph != "true":
        graph = NO_KNOWLEDGE if row.graph == "none" else with_constant_tail(graph)
    trained = trial(
        made.riddles,
        graph,
        injection=ALL_TRIPLES,
        ablation=row.ablation,
        seed=seed,
        options=replace(options, num_hidden_layers=row.layers),
        known_names=False,
    )
    more = accuracy(trained.pipeline, read(trained.pipeline, made.more, graph), made.more)
    return OrderTrial(trained, more, (made.ceiling(made.riddles.unseen), made.ceiling(made.more)))


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
