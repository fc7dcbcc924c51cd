"""Labelled example → what a batch is made of, with the counterfactual recipe.

Every example is made anew each epoch, as a function of (seed, epoch, number)
alone: trees grow from O(N) codes in the collator, and the dense matrix
exists only for the batch, on the model's device.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kbert_core.data.labelled import Example
from kbert_core.kbert.flat_tree import Batch, FlatTree, collate
from kbert_core.kbert.reader import KBertReader
from kbert_core.kbert.sentence_tree import (
    Node,
    SentenceTree,
    branch_of,
    choose,
    grow_tree,
    mentions_in,
)
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import Mention
from kbert_core.knowledge.selection import InjectionOptions, TripleScorer
from kbert_core.knowledge.triple import Triple
from kbert_core.labels import IGNORED, OUTSIDE
from kbert_core.tasks import Task
from kbert_core.training.masking import MASKED_SHARE, Masking
from kbert_core.training.options import Recipe

SCORED_AT_ONCE = 256  # examples whose triples are scored together
MIN_EVIDENCE = 10  # matched gold mentions a tail needs to count as a type
LONGEST_INVENTED = 6  # words, in Chinese characters, of an invented name outside of mentions
TYPE_SHARE = 0.5  # of a label's matched gold mentions, so that it is no mere fact of some
NEEDED_TYPES = {"counterfactual": 2, "invented": 1}  # tails that name a label


@dataclass(frozen=True)
class Item:
    """One row of a batch: a flat tree and its target.

    Attributes:
        row: N tokens.
        target: a class, or N labels with ``IGNORED`` where there is none.
        input_ids: N ids where they differ from the row's (masked tokens).
    """

    row: FlatTree
    target: int | list[int]
    input_ids: list[int] | None = None


class ItemMaker:
    """Makes items of examples, augmented by the recipe.

    Args:
        task, reader: of the model.
        labels: label → number.
        graph: knowledge; the empty graph for the twin.
        config: how texts are read.
        recipe: None for none.
        type_labels: tail → label, for the counterfactuals; see
            :func:`learn_type_labels`.
        hiding_graph: for the twin without knowledge: the mentions that a model
            with this graph would have hidden, by the same seed, are hidden
            here too, and nothing of it is injected.
        scorer: for options that score triples with a model.
    """

    def __init__(
        self,
        task: Task,
        reader: KBertReader,
        labels: Mapping[str, int],
        graph: KnowledgeGraph,
        config: Any,
        *,
        recipe: Recipe = Recipe(),
        type_labels: Mapping[str, str] | None = None,
        hiding_graph: KnowledgeGraph | None = None,
        seed: int = 0,
        scorer: TripleScorer | None = None,
    ) -> None:
        self.task, self.reader, self.labels = task, reader, labels
        self.graph, self.config, self.options = graph, config, config.options
        self.tokenizer = tokenizer = reader.tokenizer
        self.recipe, self.type_labels = recipe, dict(type_labels or {})
        self.hiding_graph, self.seed, self.scorer = hiding_graph, seed, scorer
        self._relations: dict[str, str] = {}  # of the tails that name a label
        if recipe.invented:
            self._relations = type_relations(hiding_graph or graph, self.type_labels, self.options)
        self._masking = Masking(tokenizer.hugging_face)

    def items(self, example: Example, *, epoch: int, number: int) -> list[Item]:
        """Make the rows of one example for one epoch; several for a long text."""
        random = np.random.default_rng((self.seed, epoch, number))
        tree = self._grown(example, self.graph)
        spans = list(example.spans)
        if self.hiding_graph is None:
            tree, spans, hidden = self._augmented(tree, spans, example, random)
        else:
            other = self._grown(example, self.hiding_graph)
            hidden = self._augmented(other, list(spans), example, random)[2]
        made = []
        for row in self._rows(tree):
            if self.task.name == "mask":
                made.append(self._masked(row, random))
                continue
            target = self._target(row, example, spans)
            ids = self._with_hidden(row, hidden, random) if hidden else None
            made.append(Item(row, target, ids))
        return made

    def plain_items(self, tree: SentenceTree, example: Example) -> list[Item]:
        """Make the rows of an example with a tree grown elsewhere, nothing augmented."""
        return [Item(row, self._target(row, example, example.spans)) for row in self._rows(tree)]

    def look_ahead(self, examples: Sequence[Example]) -> None:
        """Have the triples of many examples scored together, so that each is found scored."""
        if self.scorer is None:
            return
        graph = self.hiding_graph or self.graph
        for start in range(0, len(examples), SCORED_AT_ONCE):
            some = examples[start : start + SCORED_AT_ONCE]
            found = [
                (e.sentences, list(mentions_in(e.sentences, graph, rules=self.options.names)))
                for e in some
            ]
            choose(found, graph, self.options, scorer=self.scorer)

    def _rows(self, tree: SentenceTree) -> tuple[FlatTree, ...]:
        return self.reader.lay([tree], self.config, windows=self.task.windows)[0].rows

    def _grown(self, example: Example, graph: KnowledgeGraph) -> SentenceTree:
        return grow_tree(example.sentences, graph, self.options, scorer=self.scorer)

    def _augmented(
        self,
        tree: SentenceTree,
        spans: list[tuple[int, int, str]],
        example: Example,
        random: np.random.Generator,
    ) -> tuple[SentenceTree, list[tuple[int, int, str]], list[Mention]]:
        """Apply the recipe: other branches, other labels, mentions to hide."""
        recipe = self.recipe
        if recipe == Recipe() or not (tree.nodes or recipe.invented):
            return tree, spans, []
        if random.random() < recipe.tree_dropout:
            return replace(tree, nodes=()), spans, []
        if self._relations and random.random() < recipe.invented:
            tree, spans = self._with_invented(tree, spans, example, random)
        gold = {(start, end): i for i, (start, end, _) in enumerate(spans)}
        nodes, hidden = [], []
        for node in tree.nodes:
            at = gold.get((node.mention.start, node.mention.end))
            if at is not None and random.random() < recipe.counterfactual:
                node, label = self._counterfactual(node, spans[at][2], random)
                spans[at] = (*spans[at][:2], label)
                nodes.append(node)
            else:
                dropout = recipe.branch_dropout
                if at is None and self.task.name == "ner":
                    dropout = max(dropout, recipe.mismatch_dropout)
                kept = [random.random() >= dropout for _ in node.branches]
                branches = tuple(b for b, k in zip(node.branches, kept, strict=True) if k)
                node = replace(node, branches=branches)
                nodes.append(node)
            if at is not None and node.branches and random.random() < recipe.mention_dropout:
                hidden.append(node.mention)
        return replace(tree, nodes=tuple(nodes)), spans, hidden

    def _with_invented(
        self,
        tree: SentenceTree,
        spans: list[tuple[int, int, str]],
        example: Example,
        random: np.random.Generator,
    ) -> tuple[SentenceTree, list[tuple[int, int, str]]]:
        """Hang a type on a name that the graph doesn't know, and label it so."""
        known = [(node.mention.start, node.mention.end) for node in tree.nodes]
        gold = [(start, end) for start, end, _ in spans]
        if random.random() < 0.5:
            free = [span for span in gold if not overlaps(span, known)]
        else:
            longest = int(random.integers(1, LONGEST_INVENTED + 1))
            words = example.words or ()
            runs = zip(words, words[longest - 1 :], strict=False)
            spans_of_words = [(first[0], last[1]) for first, last in runs]
            free = [span for span in spans_of_words if not overlaps(span, [*known, *gold])]
        if not free:
            return tree, spans
        start, end = free[random.integers(len(free))]
        tail = list(self._relations)[random.integers(len(self._relations))]
        name = example.sentences[0][start:end]
        branch = branch_of(Triple(name, self._relations[tail], tail), self.options)
        node = Node(Mention(start, end, name), (branch,), ())
        nodes = sorted([*tree.nodes, node], key=lambda n: n.mention.start)
        others = [span for span in spans if span[:2] != (start, end)]
        return replace(tree, nodes=tuple(nodes)), [*others, (start, end, self.type_labels[tail])]

    def _counterfactual(
        self, node: Node, label: str, random: np.random.Generator
    ) -> tuple[Node, str]:
        for i, branch in enumerate(node.branches):
            triple = branch.triple
            if self.type_labels.get(triple.tail) == label:
                others = [t for t in self.type_labels if t != triple.tail]
                if not others:
                    return node, label
                tail = others[random.integers(len(others))]
                new = branch_of(Triple(triple.head, triple.relation, tail), self.options)
                branches = (*node.branches[:i], new, *node.branches[i + 1 :])
                return replace(node, branches=branches), self.type_labels[tail]
        return node, label

    def _target(
        self, row: FlatTree, example: Example, spans: Sequence[tuple[int, int, str]]
    ) -> int | list[int]:
        if self.task.name == "ner":
            return self._token_targets(row, example, spans)
        return self.labels[example.label or ""]

    def _token_targets(
        self, row: FlatTree, example: Example, spans: Sequence[tuple[int, int, str]]
    ) -> list[int]:
        """Tags of the trunk's tokens, by character offsets; branches have none."""
        size = len(example.sentences[0])
        tags = [OUTSIDE] * size
        for start, end, label in spans:
            tags[start:end] = [f"B-{label}"] + [f"I-{label}"] * (end - start - 1)
        tokens = row.trunk_tokens[0]
        targets = [IGNORED] * len(row)
        before = -1
        for index, (_, at) in enumerate(row.trunk_places):
            if at < 0:
                continue
            start = tokens.starts[at]
            tag = tags[start] if start < size else OUTSIDE
            if start == before and tag.startswith("B-"):  # a character of several tokens
                tag = f"I-{tag[2:]}"
            before = start
            targets[index] = self.labels[tag]
        return targets

    def _with_hidden(
        self, row: FlatTree, mentions: Sequence[Mention], random: np.random.Generator
    ) -> list[int]:
        ids, mask_id = list(row.input_ids), self._masking.mask_id
        tokens = row.trunk_tokens[0]
        for mention in mentions:
            masked = random.random() < 0.5
            for index, (_, at) in enumerate(row.trunk_places):
                if at >= 0 and mention.start <= tokens.starts[at] < mention.end:
                    ids[index] = mask_id if masked else self._masking.random_token(random)
        return ids

    def _masked(self, row: FlatTree, random: np.random.Generator) -> Item:
        """Hide tokens of the trunk, to be told from the rest; one at least."""
        ids = np.array(row.input_ids)
        on_trunk = np.array([at >= 0 for _, at in row.trunk_places])
        places = np.flatnonzero(on_trunk & ~self._masking.special(ids))
        chosen = np.zeros(len(ids), bool)
        if len(places):
            count = max(1, round(MASKED_SHARE * len(places)))
            chosen[random.permutation(places)[:count]] = True
        read, target = self._masking.hide(ids, chosen, random)
        return Item(row, target.tolist(), read.tolist())


def overlaps(span: tuple[int, int], others: Sequence[tuple[int, int]]) -> bool:
    """Say whether a span shares a character with one of the others."""
    return any(span[0] < end and start < span[1] for start, end in others)


def batch_of(items: Sequence[Item], *, pad_id: int) -> tuple[Batch, Tensor]:
    """Pad items to the longest of them.

    Returns:
        The batch, and labels (B, N) or (B,) int64.
    """
    batch = collate([item.row for item in items], pad_id=pad_id)
    width = batch.input_ids.shape[1]
    for i, item in enumerate(items):
        if item.input_ids is not None:
            batch.input_ids[i, : len(item.input_ids)] = torch.tensor(item.input_ids)
    targets = [item.target for item in items]
    if isinstance(targets[0], int):
        return batch, torch.tensor(targets)
    padded = [t + [IGNORED] * (width - len(t)) for t in targets]  # type: ignore[operator, arg-type]
    return batch, torch.tensor(padded)


def learn_type_labels(
    examples: Sequence[Example],
    graph: KnowledgeGraph,
    options: InjectionOptions,
    *,
    scorer: TripleScorer | None = None,
) -> dict[str, str]:
    """Find the tails that name a label, from the training set.

    A tail belongs to the label that most gold mentions with it carry, if at
    least half of the label's mentions that the graph knows have it; of two
    tails with one label the more frequent stays. A graph of facts has none.

    Returns:
        tail → label, one tail a label, in order of the labels.
    """
    counts: Counter[tuple[str, str]] = Counter()
    matched: Counter[str] = Counter()
    for example in examples:
        gold = {(start, end): label for start, end, label in example.spans}
        for node in grow_tree(example.sentences, graph, options, scorer=scorer).nodes:
            label = gold.get((node.mention.start, node.mention.end))
            if label is not None:
                matched[label] += 1
                counts.update({(branch.triple.tail, label): 1 for branch in node.branches})
    found: dict[str, str] = {}
    tails: set[str] = set()
    for (tail, label), count in counts.most_common():
        enough = count >= MIN_EVIDENCE and count >= TYPE_SHARE * matched[label]
        if enough and tail not in tails and label not in found.values():
            found[tail] = label
        tails.add(tail)
    return dict(sorted(found.items(), key=lambda item: item[1]))


def without_effect(recipe: Mapping[str, float], type_labels: Mapping[str, str]) -> list[str]:
    """Name the shares of a recipe that do nothing, for too few tails name a label.

    Args:
        recipe: as ``asdict`` of a :class:`Recipe` gives it.
        type_labels: tail → label, see :func:`learn_type_labels`.
    """
    return [
        name
        for name, needed in NEEDED_TYPES.items()
        if recipe.get(name, 0.0) > 0 and len(type_labels) < needed
    ]


def type_relations(
    graph: KnowledgeGraph, type_labels: Mapping[str, str], options: InjectionOptions
) -> dict[str, str]:
    """Find how a graph says a type: tail → the relation of the first triple with it.

    Args:
        type_labels: tail → label, see :func:`learn_type_labels`.
        options: only relations that they inject count.

    Returns:
        In the graph's order; tails that it has no such triple of aren't there.
    """
    found: dict[str, str] = {}
    for triple in graph.active_triples():
        if triple.tail in type_labels and options.allows(triple.relation):
            found.setdefault(triple.tail, triple.relation)
            if len(found) == len(type_labels):
                break
    return found
