"""The recipe: how training changes the knowledge in a text; and which tails name a label."""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import Mention
from kbert_core.knowledge.selection import InjectionOptions
from kbert_core.knowledge.triple import Triple
from kbert_lab.data.labelled import Example
from kbert_lab.training.options import Recipe, TrainOptions

MIN_EVIDENCE = 10  # matched gold mentions a tail needs to count as a type
TYPE_SHARE = 0.5  # of a label's matched gold mentions, so that it is no mere fact of some
NEEDED_TYPES = {"counterfactual": 2, "invented": 1}  # tails that name a label
log = logging.getLogger(__name__)
LONGEST_INVENTED = 6  # words, in Chinese characters, of an invented name outside of mentions

GoldSpan = tuple[int, int, str]  # start, end in characters, and label


@dataclass(frozen=True)
class Augmented:
    """A text with the changes of one epoch."""

    text: Any  # as :meth:`Reader.query` returns it, with other triples, or fewer
    spans: list[GoldSpan]  # that go with it
    hidden: list[Mention] = field(default_factory=list)  # whose characters the model doesn't see


@dataclass(frozen=True)
class Augmenter:
    """Applies a recipe to texts as :meth:`Reader.query` returns them."""

    recipe: Recipe
    options: InjectionOptions  # how triples are read
    type_labels: Mapping[str, str] = field(default_factory=dict)  # see ``learn_type_labels``
    relations: Mapping[str, str] = field(default_factory=dict)  # see ``type_relations``
    tagged: bool = False  # whether the examples are labelled for named entities

    def __call__(self, text: Any, example: Example, random: np.random.Generator) -> Augmented:
        """Change a text's nodes and its gold spans, and draw the mentions to hide."""
        recipe, spans = self.recipe, list(example.spans)
        if recipe == Recipe() or not (text.nodes or recipe.invented):
            return Augmented(text, spans)
        if random.random() < recipe.tree_dropout:
            return Augmented(text.with_nodes(()), spans)
        if self.relations and random.random() < recipe.invented:
            text, spans = self._with_invented(text, spans, example, random)
        gold = {(start, end): i for i, (start, end, _) in enumerate(spans)}
        mismatch = max(recipe.branch_dropout, recipe.mismatch_dropout * self.tagged)
        nodes, hidden = [], []
        for node in text.nodes:
            at, changed = gold.get((node.mention.start, node.mention.end)), node
            if at is not None and random.random() < recipe.counterfactual:
                start, end, label = spans[at]
                if edit := another_type(node.used, label, self.type_labels, random):
                    changed = node.edited({node.used[edit[0]]: edit[1]}, self.options)
                    spans[at] = start, end, self.type_labels[edit[1].tail]
            else:
                dropout = mismatch if at is None else recipe.branch_dropout
                if dropped := {t: None for t in node.used if random.random() < dropout}:
                    changed = node.edited(dropped, self.options)
            nodes.append(changed)
            hiding = (
                recipe.mention_dropout if at is not None else recipe.mismatch_hiding * self.tagged
            )
            # no draw at 0 for a mismatch, so that a recipe without it hides the same as ever
            if changed.used and (at is not None or hiding) and random.random() < hiding:
                hidden.append(changed.mention)
        if any(new is not old for new, old in zip(nodes, text.nodes, strict=True)):
            text = text.with_nodes(nodes)
        return Augmented(text, spans, hidden)

    def _with_invented(
        self,
        text: Any,
        spans: list[GoldSpan],
        example: Example,
        random: np.random.Generator,
    ) -> tuple[Any, list[GoldSpan]]:
        """Hang a type on a name that the graph doesn't know, and label it so."""
        known = [(node.mention.start, node.mention.end) for node in text.nodes]
        gold = [(start, end) for start, end, _ in spans]
        if random.random() < 0.5:
            free = [span for span in gold if not overlaps(span, known)]
        else:
            longest = int(random.integers(1, LONGEST_INVENTED + 1))
            words = example.words or ()
            runs = zip(words, words[longest - 1 :], strict=False)
            free = [(first[0], last[1]) for first, last in runs]
            free = [span for span in free if not overlaps(span, [*known, *gold])]
        if not free:
            return text, spans
        start, end = free[random.integers(len(free))]
        tail = list(self.relations)[random.integers(len(self.relations))]
        name = example.sentences[0][start:end]
        triple = Triple(name, self.relations[tail], tail)
        nodes = [*text.nodes, text.node(Mention(start, end, name), triple, self.options)]
        nodes.sort(key=lambda node: node.mention.start)
        others = [span for span in spans if span[:2] != (start, end)]
        return text.with_nodes(nodes), [*others, (start, end, self.type_labels[tail])]


def another_type(
    triples: Sequence[Triple],
    label: str,
    type_labels: Mapping[str, str],
    random: np.random.Generator,
) -> tuple[int, Triple] | None:
    """Draw another tail that names a label, for the first of some triples that says this one.

    Returns:
        The triple's place, and the triple with the other tail; None where there is none.
    """
    tails = [triple.tail for triple in triples]
    at = next((i for i, tail in enumerate(tails) if type_labels.get(tail) == label), None)
    others = [tail for tail in type_labels if at is not None and tail != tails[at]]
    if at is None or not others:
        return None
    triple, tail = triples[at], others[random.integers(len(others))]
    return at, Triple(triple.head, triple.relation, tail)


def overlaps(span: tuple[int, int], others: Sequence[tuple[int, int]]) -> bool:
    """Say whether a span shares a character with one of the others."""
    return any(span[0] < end and start < span[1] for start, end in others)


def learn_type_labels(examples: Iterable[Example], texts: Iterable[Any]) -> dict[str, str]:
    """Find the tails that name a label, from the training set and its readings with a graph.

    A tail belongs to the label that most gold mentions with this tail have, if
    at least half of the label's mentions that the graph knows have the tail. If two
    tails have one label, the more frequent one stays. A graph of facts has none.

    Returns:
        tail → label, one tail for each label, in the order of the labels.
    """
    counts: Counter[tuple[str, str]] = Counter()
    matched: Counter[str] = Counter()
    for example, text in zip(examples, texts, strict=True):
        gold = {(start, end): label for start, end, label in example.spans}
        for mention, triples in text.by_mention:
            label = gold.get((mention.start, mention.end))
            if label is not None:
                matched[label] += 1
                counts.update({(triple.tail, label): 1 for triple in triples})
    labels: dict[str, str] = {}
    tails: set[str] = set()
    for (tail, label), count in counts.most_common():
        enough = count >= MIN_EVIDENCE and count >= TYPE_SHARE * matched[label]
        if enough and tail not in tails and label not in labels.values():
            labels[tail] = label
        tails.add(tail)
    return dict(sorted(labels.items(), key=lambda item: item[1]))


def without_effect(recipe: Mapping[str, float], type_labels: Mapping[str, str]) -> list[str]:
    """Return the names of a recipe's shares that do nothing, as too few tails name a label."""
    needed = NEEDED_TYPES.items()
    return [n for n, least in needed if recipe.get(n, 0.0) > 0 and len(type_labels) < least]


def warn_of_no_effect(options: TrainOptions, type_labels: Mapping[str, str]) -> None:
    """Warn of options that should teach a model to trust its graph but can't, and say why."""
    recipe = asdict(options.recipe)
    idle = without_effect(recipe, type_labels)
    idle += ["new_names"] * bool(recipe["new_names"] and options.task != "ner")
    for name in idle:
        if options.task != "ner":
            why = f"it needs named entities, and the task is '{options.task}'. Leave it out"
        elif not (options.knowledge.kg or options.knowledge.hiding_kg):
            why = "there is no graph. Give a graph with the types of its names, or leave it out"
        else:
            known = ", ".join(type_labels) or "none"
            why = (
                f"it needs {NEEDED_TYPES[name]} or more tails that name a label, and the graph "
                f"has these: {known}. A tail names a label if at least {MIN_EVIDENCE} of the "
                f"label's training mentions have it, and at least {TYPE_SHARE:.0%} of those that "
                "the graph knows. Give a graph with the types of its names, or leave the option "
                "out"
            )
        log.warning("--%s %g has no effect: %s.", name.replace("_", "-"), recipe[name], why)


def type_relations(
    graph: KnowledgeGraph, type_labels: Mapping[str, str], options: InjectionOptions
) -> dict[str, str]:
    """Find the relation by which a graph names a type: tail → relation of its first triple.

    Only relations that the options inject count; tails without such a triple are left out.
    """
    relations: dict[str, str] = {}
    for triple in graph.active_triples():
        if triple.tail in type_labels and options.allows(triple.relation):
            relations.setdefault(triple.tail, triple.relation)
            if len(relations) == len(type_labels):
                break
    return relations
