"""Text → prediction, every stage in order, each kept in a Trace."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.modeling_outputs import ModelOutput

from kbert_core.checkpoints.checkpoint import (
    Card,
    card_of,
    device_named,
    load_model,
    load_model_and_missing,
    load_tokenizer,
)
from kbert_core.errors import CheckpointError, KBertError, OptionError
from kbert_core.kbert.ablation import Ablation
from kbert_core.kbert.flat_tree import Batch, FlatTree, collate
from kbert_core.kbert.interventions import Intervention, intervene
from kbert_core.kbert.mask_transformer import MaskTransformer
from kbert_core.kbert.sentence_tree import SentenceTree, choose, k_inject, mentions_in
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import Mention
from kbert_core.knowledge.selection import InjectionOptions, LeftOut, TripleScorer
from kbert_core.knowledge.surface_forms import NameRules
from kbert_core.knowledge.triple import Triple
from kbert_core.scoring.opening import scorer_of
from kbert_core.scoring.similarity import Similarity
from kbert_core.tasks import TASKS, RankedAnswer, Task
from kbert_core.tasks.rank import ranked

NO_KNOWLEDGE = KnowledgeGraph(name="no knowledge")
DEFAULT_LENGTH = 512
ROWS_AT_ONCE = 16  # windows of one long text
TEXTS_SCORED_AT_ONCE = 64
LOGITS_AT_ONCE = 50_000_000  # kept while texts are read in batches


class _Injected:
    """What of the graph a text was read with."""

    tree: SentenceTree
    rows: tuple[FlatTree, ...]

    @property
    def used(self) -> tuple[Triple, ...]:
        """The triples that stand in a row, in reading order; once for each mention."""
        hung = {(h.node, h.branch.triple) for row in self.rows for h in row.hung}
        return tuple(
            branch.triple
            for number, node in enumerate(self.tree.nodes)
            for branch in node.branches
            if (number, branch.triple) in hung
        )

    @property
    def left_out(self) -> tuple[tuple[int, LeftOut], ...]:
        """Every triple that stands in no row, with the number of its mention."""
        hung = {(h.node, h.branch.triple) for row in self.rows for h in row.hung}
        found = dict.fromkeys(item for row in self.rows for item in row.left_out)
        return tuple(item for item in found if (item[0], item[1].triple) not in hung)


@dataclass(frozen=True)
class Reading(_Injected):
    """A text as it was read, and its prediction; without tensors.

    Attributes:
        tree: mentions, triples used and left out, branches.
        rows: the tree in reading order; several only where a long text was
            read in windows.
        prediction: what the task made of the logits.
    """

    tree: SentenceTree
    rows: tuple[FlatTree, ...]
    prediction: Any


@dataclass(frozen=True)
class Trace(_Injected):
    """Everything between a text and its prediction, stage by stage.

    Attributes:
        tree: mentions, triples used and left out, branches.
        rows: the tree in reading order; several only where a long text was
            read in windows.
        batch: the rows as tensors (B, N).
        ablation: how they were read.
        visible: (B, N, N) bool, that of all layers; where interventions made
            layers differ, the last layer's.
        prediction: what the task made of the logits; None without a head.
        logits: (B, N, K) or (B, K); None without a head.
        attentions: L tensors (B, A, N, N), if asked for.
        hidden_states: L + 1 tensors (B, N, H), if asked for.
        interventions: made to the visible matrix, in order.
        visible_layers: L tensors (B, N, N) bool, the same one where layers
            are equal; None without interventions.
        idle_interventions: those that changed no cell, as what they name
            isn't in the tree or was so already.
    """

    tree: SentenceTree
    rows: tuple[FlatTree, ...]
    batch: Batch
    ablation: Ablation
    visible: Tensor
    prediction: Any = None
    logits: Tensor | None = None
    attentions: tuple[Tensor, ...] | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    interventions: tuple[Intervention, ...] = ()
    visible_layers: tuple[Tensor, ...] | None = None
    idle_interventions: tuple[Intervention, ...] = ()


class Pipeline:
    """A model with its tokenizer and options, from text to prediction.

    Args:
        model: an encoder with the task's head, or a bare encoder.
        tokenizer: the checkpoint's, a fast one.
        card: task and options; None: read from the model's config.

    Raises:
        CheckpointError: the task is unknown, or the encoder unfit.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        card: Card | None = None,
    ) -> None:
        self.card = card or Card.of(model.config)
        if self.card.task is not None and self.card.task not in TASKS:
            raise CheckpointError(
                f"The checkpoint is for the task '{self.card.task}', and only "
                f"{', '.join(TASKS)} are known here. Use a newer version of K-BERT Lab."
            )
        self.task = TASKS[self.card.task] if self.card.task else None
        self.encoder = MaskTransformer(model)
        self.hugging_face_tokenizer = tokenizer
        words = model.config.vocab_size
        if len(tokenizer) > words:
            raise CheckpointError(
                f"The tokenizer has {len(tokenizer)} tokens and the encoder {words}, so they don't "
                f"belong together. Copy the encoder's own tokenizer into its folder."
            )
        reader: Task = self.task or TASKS["classify"]
        self.tokenizer = reader.tokenizer(tokenizer)
        limits = (
            self.card.reading.max_length,
            self.encoder.max_length,
            self.tokenizer.model_max_length(),
        )
        self.max_length = min((n for n in limits if n is not None), default=DEFAULT_LENGTH)
        self._scorers: dict[tuple[str, str | None], TripleScorer | None] = {}

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        task: str | None = None,
        device: str = "auto",
        dtype: torch.dtype = torch.float32,
    ) -> "Pipeline":
        """Load a checkpoint from a folder or the hub.

        Args:
            path: folder or hub name.
            task: which head to load; None: the card's, and the bare encoder
                if there is none.
            device: "auto", "cpu", "cuda" or "cuda:N".
            dtype: of the parameters in memory.

        Raises:
            CheckpointError: see :func:`load_model`; or a task head that the
                checkpoint doesn't have.
        """
        device_named(device)
        card = card_of(path)
        task = task or card.task
        if task is not None and task not in TASKS:
            raise CheckpointError(f"No task '{task}'; expected one of {', '.join(TASKS)}.")
        if task and card.task and task != card.task:
            raise CheckpointError(
                f"{path} was trained for the task '{card.task}', not '{task}'. "
                f"Leave the task out, or choose a model for '{task}'."
            )
        arguments: dict[str, Any] = {"device": device, "dtype": dtype}
        if task:
            model, missing = load_model_and_missing(path, TASKS[task].auto_class, **arguments)
            if missing:
                raise CheckpointError(
                    f"{path} has no head for the task '{task}' ({missing[0]} is missing). "
                    f"Train one with `kbert train --task {task} --encoder {path}`."
                )
        else:
            model = load_model(path, **arguments)
        return cls(model, load_tokenizer(path), replace(card, task=task))

    @cached_property
    def labels(self) -> dict[int, str]:
        """Names of the logits: labels, or for fill-mask the vocabulary."""
        if self.task is TASKS["mask"]:
            vocabulary = self.hugging_face_tokenizer.get_vocab()
            return {i: token for token, i in vocabulary.items()}
        return {int(i): label for i, label in self.encoder.config.id2label.items()}

    def tree(
        self,
        sentences: Sequence[str],
        graph: KnowledgeGraph,
        options: InjectionOptions | None = None,
    ) -> SentenceTree:
        """K-Query and K-Inject with the model's options or others."""
        return self.trees([sentences], graph, options)[0]

    def trees(
        self,
        texts: Sequence[Sequence[str]],
        graph: KnowledgeGraph,
        options: InjectionOptions | None = None,
    ) -> list[SentenceTree]:
        """Grow the trees of many texts; triples that a model scores are scored all at once."""
        options = options or self.card.reading.options
        found = [
            (sentences, self._mentions(sentences, graph, options.names)) for sentences in texts
        ]
        chosen = choose(found, graph, options, scorer=self.scorer(options))
        return [
            k_inject(sentences, queried, options)
            for sentences, queried in zip(texts, chosen, strict=True)
        ]

    def _mentions(
        self, sentences: Sequence[str], graph: KnowledgeGraph, rules: NameRules
    ) -> list[Mention]:
        masks = [self.tokenizer.mask_spans(text) for text in sentences]
        return [
            mention
            for mention in mentions_in(sentences, graph, rules=rules)
            if not _touches(mention, masks[mention.sentence])
        ]

    def scorer(self, options: InjectionOptions) -> TripleScorer | None:
        """Return what scores triples for these options, opened once; None where nothing does.

        Raises:
            CheckpointError: it can't be read.
        """
        if not options.needs_model:
            return None
        key = (options.strategy, options.scorer)
        if key not in self._scorers:
            device = str(self.encoder.device)
            self._scorers[key] = scorer_of(options, self.similarity, device=device)
        return self._scorers[key]

    @cached_property
    def similarity(self) -> Similarity:
        """Texts and triples compared by the model's own encoder, without knowledge."""
        return Similarity(self.encoder, self.tokenizer)

    def flatten(self, tree: SentenceTree, *, max_length: int | None = None) -> list[FlatTree]:
        """Put a tree into reading order within the length limit; see :meth:`limit`."""
        reader = self.task or TASKS["classify"]
        return reader.flatten(tree, self.tokenizer, max_length=self.limit(max_length))

    def limit(self, max_length: int | None) -> int:
        """The length limit in tokens: the one given, else the card's or the encoder's.

        Raises:
            OptionError: the limit is over what the encoder has positions for.
        """
        most = self.encoder.max_length
        if max_length is not None and most is not None and max_length > most:
            raise OptionError(
                f"max_length is {max_length}, and the encoder has {most} positions. "
                f"Give at most {most}."
            )
        return self.max_length if max_length is None else max_length

    def __call__(
        self,
        *sentences: str,
        graph: KnowledgeGraph = NO_KNOWLEDGE,
        options: InjectionOptions | None = None,
        ablation: Ablation | None = None,
        max_length: int | None = None,
        attentions: bool = False,
        hidden_states: bool = False,
        decode: bool = True,
        interventions: Sequence[Intervention] = (),
    ) -> Trace:
        """Read a text with a graph and keep every stage.

        Args:
            sentences: one text, or two for a task on pairs.
            graph: K; the empty graph gives plain BERT.
            options: how much knowledge; None: as the model was trained.
            ablation: soft or hard positions, tree or everything visible; None:
                as the model was trained.
            max_length: in tokens; None: the card's or the encoder's.
            attentions, hidden_states: keep them in the trace.
            decode: whether to make a prediction of the logits.
            interventions: cells of the visible matrix to block and open.

        Raises:
            KBertError: a text, option, length or layer that can't be used.
        """
        ablation = ablation or self.card.reading.ablation
        rows = self.flatten(self._checked_tree(sentences, graph, options), max_length=max_length)
        output: Mapping[str, Any]
        if len(rows) > ROWS_AT_ONCE and not attentions and not hidden_states:
            output = self._in_parts(rows, ablation, interventions)
        else:
            output = self.encode(
                rows,
                ablation=ablation,
                interventions=interventions,
                attentions=attentions,
                hidden_states=hidden_states,
            )
        batch = collate(rows, pad_id=self.tokenizer.pad_id)
        visible = ablation.visible_in(batch)
        made = None
        if interventions:
            made = intervene(visible, rows, interventions, self.encoder.layer_count)
            visible = made.layers[-1]
        logits = output.get("logits")
        prediction = None
        if decode and self.task is not None and logits is not None:
            prediction = self.task.decode(rows, _unpadded(logits, rows), self.labels)
        return Trace(
            rows[0].tree,
            tuple(rows),
            batch,
            ablation,
            visible,
            prediction,
            logits,
            output.get("attentions"),
            output.get("hidden_states"),
            tuple(interventions),
            made.layers if made else None,
            made.idle if made else (),
        )

    def encode(
        self,
        rows: Sequence[FlatTree],
        *,
        ablation: Ablation | None = None,
        interventions: Sequence[Intervention] = (),
        attentions: bool = False,
        hidden_states: bool = False,
    ) -> ModelOutput:
        """Run flat trees through the encoder, all in one batch.

        Args:
            rows: B flat trees, padded to the longest, N tokens.
            other arguments: as for a text.

        Returns:
            As of :class:`MaskTransformer`.
        """
        ablation = ablation or self.card.reading.ablation
        batch = collate(rows, pad_id=self.tokenizer.pad_id)
        visible = None
        if interventions:
            tree = ablation.visible_in(batch)
            visible = intervene(tree, rows, interventions, self.encoder.layer_count).layers
        return self.encoder(
            batch,
            ablation=ablation,
            visible=visible,
            attentions=attentions,
            hidden_states=hidden_states,
        )

    def _in_parts(
        self,
        rows: Sequence[FlatTree],
        ablation: Ablation,
        interventions: Sequence[Intervention],
    ) -> dict[str, Any]:
        """Run many windows a few at a time, so that memory doesn't grow with the text."""
        if self.task is None:
            return {}
        width = max(map(len, rows))
        parts = []
        for start in range(0, len(rows), ROWS_AT_ONCE):
            part = rows[start : start + ROWS_AT_ONCE]
            logits = self.encode(part, ablation=ablation, interventions=interventions)["logits"]
            parts.append(nn.functional.pad(logits, (0, 0, 0, width - logits.shape[1])))
        return {"logits": torch.cat(parts)}

    def read(
        self,
        texts: Iterable[Sequence[str]],
        *,
        graph: KnowledgeGraph = NO_KNOWLEDGE,
        options: InjectionOptions | None = None,
        ablation: Ablation | None = None,
        max_length: int | None = None,
        batch_size: int = 32,
        interventions: Sequence[Intervention] = (),
    ) -> Iterator[Reading]:
        """Read many texts, in order, batched by similar length.

        A text that can't be read raises when those before it have been
        yielded.

        Args:
            texts: each one sentence or two.
            batch_size: rows a batch; up to 64 batches are read ahead and
                sorted, fewer where their logits take much room.
            other arguments: as for a single text.
        """
        trees = self._grown(texts, graph, options or self.card.reading.options)
        yield from self._read(trees, ablation, max_length, batch_size, interventions)

    def predict(self, texts: Iterable[Sequence[str]], **kwargs: Any) -> Iterator[Any]:
        """Predict for many texts, in order.

        Args:
            texts: each one sentence or two.
            kwargs: as for :meth:`read`.
        """
        yield from (reading.prediction for reading in self.read(texts, **kwargs))

    def predict_trees(
        self,
        trees: Iterable[SentenceTree],
        *,
        ablation: Ablation | None = None,
        max_length: int | None = None,
        batch_size: int = 32,
        interventions: Sequence[Intervention] = (),
    ) -> Iterator[Any]:
        """Predict for sentence trees grown elsewhere; see :meth:`read`."""
        readings = self._read(trees, ablation, max_length, batch_size, interventions)
        yield from (reading.prediction for reading in readings)

    def _read(
        self,
        trees: Iterable[SentenceTree],
        ablation: Ablation | None,
        max_length: int | None,
        batch_size: int,
        interventions: Sequence[Intervention],
    ) -> Iterator[Reading]:
        self._needs_head()
        readings = partial(
            self._readings,
            ablation=ablation,
            interventions=interventions,
            batch_size=batch_size,
        )
        waiting: list[list[FlatTree]] = []
        tokens = 0
        unread = iter(trees)
        while True:
            try:
                tree = next(unread, None)
                if tree is not None:
                    waiting.append(self.flatten(tree, max_length=max_length))
            except KBertError:
                yield from readings(waiting)
                raise
            if tree is None:
                break
            tokens += sum(map(len, waiting[-1]))
            if len(waiting) >= 64 * batch_size or tokens * len(self.labels) > LOGITS_AT_ONCE:
                yield from readings(waiting)
                waiting, tokens = [], 0
        yield from readings(waiting)

    def logits_of(
        self,
        inputs: Sequence[Sequence[FlatTree]],
        *,
        ablation: Ablation | None = None,
        interventions: Sequence[Intervention] = (),
        batch_size: int = 32,
    ) -> list[list[Tensor]]:
        """Run flat trees made elsewhere, batched by similar length.

        Args:
            inputs: of each text its rows.
            ablation: how they are read; None: as the model was trained.
            interventions: cells of every visible matrix to block and open.
            batch_size: rows a batch.

        Returns:
            Per text and row (N, K) or (K,), padding removed.
        """
        rows = [(len(row), i, j) for i, made in enumerate(inputs) for j, row in enumerate(made)]
        rows.sort()
        logits: dict[tuple[int, int], Tensor] = {}
        for start in range(0, len(rows), batch_size):
            chosen = rows[start : start + batch_size]
            flats = [inputs[i][j] for _, i, j in chosen]
            output = self.encode(flats, ablation=ablation, interventions=interventions)
            for (_, i, j), one in zip(chosen, _unpadded(output["logits"], flats), strict=True):
                logits[i, j] = one
        return [[logits[i, j] for j in range(len(made))] for i, made in enumerate(inputs)]

    def rank(self, question: str, answers: Sequence[str], **kwargs: Any) -> list[RankedAnswer]:
        """Rank candidate answers by the probability that each answers the question.

        Args:
            kwargs: as for :meth:`predict`.

        Returns:
            All candidates, the most probable first; equal ones as they came.

        Raises:
            CheckpointError: the model takes no pairs, or has no label 1.
        """
        self._needs_head()
        if self.task is None or self.task.sentences != 2:
            raise CheckpointError(
                f"The model is for the task '{self.card.task}', and ranking needs one for 'rank'. "
                "Train one with `kbert train --task rank`."
            )
        return ranked(answers, list(self.predict([(question, a) for a in answers], **kwargs)))

    def _checked_tree(
        self, sentences: Sequence[str], graph: KnowledgeGraph, options: InjectionOptions | None
    ) -> SentenceTree:
        if self.task:
            self.task.check(sentences)
        return self.tree(sentences, graph, options)

    def _grown(
        self, texts: Iterable[Sequence[str]], graph: KnowledgeGraph, options: InjectionOptions
    ) -> Iterator[SentenceTree]:
        """Grow trees in order, several at once where a model scores their triples."""
        unread = iter(texts)
        at_once = TEXTS_SCORED_AT_ONCE if options.needs_model else 1
        while some := list(islice(unread, at_once)):
            try:
                if self.task:
                    for sentences in some:
                        self.task.check(sentences)
                grown = self.trees(some, graph, options)
            except KBertError:
                for sentences in some:  # raises at the text that can't be read
                    yield self._checked_tree(sentences, graph, options)
                raise
            yield from grown

    def _needs_head(self) -> None:
        if self.task is None:
            raise CheckpointError("The model has no task head, so nothing to predict with.")

    def _readings(
        self,
        inputs: list[list[FlatTree]],
        ablation: Ablation | None,
        interventions: Sequence[Intervention],
        batch_size: int,
    ) -> Iterator[Reading]:
        read = self.logits_of(
            inputs, ablation=ablation, interventions=interventions, batch_size=batch_size
        )
        assert self.task is not None
        for made, own in zip(inputs, read, strict=True):
            prediction = self.task.decode(made, own, self.labels)
            yield Reading(made[0].tree, tuple(made), prediction)


def _touches(mention: Mention, spans: Sequence[tuple[int, int]]) -> bool:
    return any(mention.start < end and start < mention.end for start, end in spans)


def _unpadded(logits: Tensor, rows: Sequence[FlatTree]) -> list[Tensor]:
    if logits.dim() == 2:
        return list(logits)
    return [logits[i, : len(row)] for i, row in enumerate(rows)]
