"""Sentences whose label only a graph can tell: a small set to study knowledge on.

"Tell me about warfarin and forget Paris" asks for the kind of the name that it
asks about. Which one that is the sentence says; of what kind it is the graph
says, and for a name that was never seen in training nothing else does: names
of several words (most of these are diseases), and those whose word is another's
too or the sentences', are left out, so that none gives itself away.

A model that has read a name twelve times with the same label remembers it and
has no need to look it up. So in training a share of the names are invented
ones, each met once, of which the graph says what it says of a real one.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kbert_core.errors import DataError, OptionError
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import Mention
from kbert_core.knowledge.names import normalise_name
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.knowledge.strategies import select_triples
from kbert_core.knowledge.triple import Triple
from kbert_core.options import Options, option
from kbert_lab.data.labelled import Example

ASKED, OTHER = "{asked}", "{other}"
TEMPLATES = (
    "the story is about {asked} and not about {other}",
    "the story is not about {other} but about {asked}",
    "they meant {asked} , though they spoke of {other}",
    "they spoke of {other} , yet they meant {asked}",
    "tell me about {asked} and forget {other}",
    "forget {other} , tell me about {asked}",
)
ENOUGH_NAMES = 10  # of a kind, so that some can be held out
ONE_WORD = re.compile(r"\w+")
SYLLABLES = [first + vowel for first in "bdfgklmnprstvz" for vowel in "aeiou"]


@dataclass(frozen=True)
class RiddleOptions(Options):
    """How riddles are made.

    Attributes:
        kinds: how many labels; the kinds with the most names are taken.
        relation: that says a name's kind.
        train: sentences to train on.
        held_out: sentences of each of the two sets to test on.
        unseen_share: of every kind's names: never in training.
        invented_share: of the names of training sentences: invented ones.
        injection: a name counts if these options inject what says its kind.
    """

    kinds: int = option(6, least=2)
    relation: str = "is_a"
    train: int = option(1500, least=1)
    held_out: int = option(180, least=1)
    unseen_share: float = option(0.3, share=True)
    invented_share: float = option(0.5, share=True)
    injection: InjectionOptions = InjectionOptions()


@dataclass(frozen=True)
class Riddles:
    """A set of riddles, and the graph that solves them.

    Attributes:
        kinds: the labels; each as often as the others.
        train: to learn from.
        seen: new sentences with the names of training.
        unseen: sentences with names that training never showed.
        graph: what there was, and the same of the invented names.
        names: kind → its names in training, without the invented ones.
        unseen_names: kind → its names in ``unseen``.
    """

    kinds: tuple[str, ...]
    train: tuple[Example, ...]
    seen: tuple[Example, ...]
    unseen: tuple[Example, ...]
    graph: KnowledgeGraph
    names: Mapping[str, tuple[str, ...]]
    unseen_names: Mapping[str, tuple[str, ...]]

    @property
    def chance(self) -> float:
        """The share of right answers of one who guesses."""
        return 1 / len(self.kinds)


def make_riddles(
    graph: KnowledgeGraph, options: RiddleOptions = RiddleOptions(), *, seed: int = 0
) -> Riddles:
    """Make riddles from a graph.

    Args:
        graph: whose names are asked for.
        options: how many, and of what.
        seed: of which names are held out, and of the sentences.

    Raises:
        DataError: the graph has too few names of too few kinds.
    """
    random = np.random.default_rng(seed)
    found = kinds_of(graph, options)
    names: dict[str, tuple[str, ...]] = {}
    unseen_names: dict[str, tuple[str, ...]] = {}
    for kind, its_names in found.items():
        order = [its_names[i] for i in random.permutation(len(its_names))]
        count = max(2, round(options.unseen_share * len(order)))
        unseen_names[kind], names[kind] = tuple(order[:count]), tuple(order[count:])
    invented = _Inventor(graph, random, options.invented_share)
    return Riddles(
        tuple(found),
        _sentences(names, options.train, random, invented),
        _sentences(names, options.held_out, random),
        _sentences(unseen_names, options.held_out, random),
        invented.graph(),
        names,
        unseen_names,
    )


def kinds_of(graph: KnowledgeGraph, options: RiddleOptions) -> dict[str, list[str]]:
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
        injected = select_triples([("",)], alone, graph, options.injection)[0].used
        kinds = [t.tail for t in injected if t.relation == options.relation]
        if len(kinds) == 1:
            found.setdefault(kinds[0], []).append(injected[0].head)
    most = sorted(found, key=lambda kind: -len(found[kind]))[: options.kinds]
    enough = [kind for kind in most if len(found[kind]) >= ENOUGH_NAMES]
    if len(enough) < options.kinds:
        raise DataError(
            f"The graph '{graph.name}' has {len(enough)} kinds (tails of '{options.relation}') "
            f"with {ENOUGH_NAMES} or more names of one word of their own, and {options.kinds} were "
            "asked for. Ask for fewer, or give more triples."
        )
    return {kind: found[kind] for kind in sorted(enough)}


class _Inventor:
    """Invents names, and what the graph says of them.

    Args:
        graph: as it was.
        random: shared with what asks.
        share: of the names asked for that are invented.
    """

    def __init__(self, graph: KnowledgeGraph, random: np.random.Generator, share: float) -> None:
        self.before, self.random, self.share = graph, random, share
        self.triples: list[Triple] = []
        self.taken = {word for entity in graph.entities() for word in _words(entity)}

    def __call__(self, name: str) -> str:
        """Return the name, or an invented one in its place."""
        if self.random.random() >= self.share:
            return name
        new, aliases = self._word(), self.before.aliases
        self.triples += [
            Triple(new, t.relation, t.tail)
            for t in self.before.triples_of(name)
            if aliases.aliases_in(t) is None  # which would make the real name mean this one too
        ]
        return new

    def graph(self) -> KnowledgeGraph:
        """The graph with all that was invented."""
        return KnowledgeGraph([*self.before, *self.triples], name=f"{self.before.name}, riddles")

    def _word(self) -> str:
        for _ in range(1000):
            word = "".join(SYLLABLES[i] for i in self.random.integers(len(SYLLABLES), size=3))
            if word not in self.taken:
                self.taken.add(word)
                return word.capitalize()
        raise OptionError("There are no more names to invent. Ask for fewer sentences.")


def _sentences(
    names: Mapping[str, Sequence[str]],
    count: int,
    random: np.random.Generator,
    rename: Callable[[str], str] = str,
) -> tuple[Example, ...]:
    """Make sentences, each kind asked for as often as the others, in random order."""
    kinds = list(names)
    made = []
    for number in range(count):
        kind = kinds[number % len(kinds)]
        others = [other for other in kinds if other != kind]
        of_other = others[int(random.integers(len(others)))]
        asked = names[kind][int(random.integers(len(names[kind])))]
        other = names[of_other][int(random.integers(len(names[of_other])))]
        template = TEMPLATES[int(random.integers(len(TEMPLATES)))]
        text = template.replace(ASKED, rename(asked)).replace(OTHER, rename(other))
        made.append(Example((text,), kind))
    return tuple(made[i] for i in random.permutation(count))


def _words(name: str) -> list[str]:
    return normalise_name(name).replace("-", " ").split()
