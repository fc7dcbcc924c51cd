"""Text → prediction: any system's reader with any task, every stage kept in a Trace."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from kbert_core.checkpoints.checkpoint import (
    QUESTIONS,
    Card,
    card_of,
    device_named,
    load_model,
    load_model_and_missing,
    load_tokenizer,
    no_progress_bars,
)
from kbert_core.checkpoints.encoders import encoder_name, located
from kbert_core.errors import CheckpointError, KBertError, TextError
from kbert_core.kbert.kbert import KBertReader
from kbert_core.kbert.mask_transformer import MaskTransformer
from kbert_core.kbert.sentence_tree import SentenceTree
from kbert_core.knowledge import load_graph
from kbert_core.knowledge.graph import KnowledgeGraph, refuse_no_graph
from kbert_core.labels import Labels
from kbert_core.layers import check_architecture, load_inserted, without_recorders
from kbert_core.options import check_count
from kbert_core.reader import Reading
from kbert_core.systems import SYSTEMS, reader_class, reading_of
from kbert_core.tasks import TASKS, Task
from kbert_core.text import Text, WordPieces, refuse_half_characters, refuse_single, sentences_of

if TYPE_CHECKING:
    from kbert_core.tasks import RankedAnswer

log = logging.getLogger(__name__)
NO_KNOWLEDGE = KnowledgeGraph(name="no knowledge")
GraphOrPath = KnowledgeGraph | str | Path
BATCHES_AHEAD = 64  # of texts, read and sorted by length
GROUP = 8  # batches of texts that are read at once
LOGITS_AT_ONCE = 50_000_000  # numbers kept meanwhile


class Pipeline:
    """A model with its tokenizer and configuration, from text to prediction.

    Every method that reads texts takes ``config``, the system's own frozen configuration, and
    single fields of it by name: ``pipeline(text, graph=graph, max_length=64)``.

    Args:
        model: an encoder with the task's head, or a bare encoder.
        tokenizer: the checkpoint's, a fast one.
        card: system, task and configuration; None: read from the model's config.

    Attributes:
        reader: the system.
        config: how texts are read by default.

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
        if card is None and model.base_model is model:
            self.card = replace(self.card, task=None)  # a bare encoder from a folder with a head
        elif card is None and type(model).__name__.endswith(QUESTIONS):
            raise CheckpointError(
                f"{type(model).__name__} gives start and end apart. Read its folder with "
                "Pipeline.from_pretrained, or load it with AutoModelForTokenClassification."
            )
        self.task = _task_named(self.card.task)
        self.hugging_face_tokenizer = tokenizer
        check_architecture(model.config)
        words = model.config.vocab_size
        count = max(tokenizer.get_vocab().values(), default=-1) + 1
        if count > words:
            raise CheckpointError(
                f"The tokenizer has {count} tokens and the encoder {words}, so they don't "
                f"belong together. Copy the encoder's own tokenizer into its folder."
            )
        self.reader = self._reader_of(model)
        self.config = self.reader.config

    def _reader_of(self, model: PreTrainedModel) -> Any:
        wrapped = (self.task or TASKS["classify"]).tokenizer(self.hugging_face_tokenizer)
        return reader_class(self.card.system)(model, wrapped, self.card.reading)

    def __getstate__(self) -> dict[str, Any]:
        """Keep of the reader its model alone, since twins and caches are soon made again."""
        return {**vars(self), "reader": without_recorders(self.reader.model)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.task = _task_named(self.card.task)
        self.reader = self._reader_of(state["reader"])

    @classmethod
    def from_pretrained(
        cls,
        path: str | Path,
        *,
        task: str | None = None,
        device: str = "auto",
        dtype: torch.dtype = torch.float32,
    ) -> "Pipeline":
        """Load a checkpoint from a folder or the hub.

        Args:
            task: the head to load; None: the card's, or the one that the model's class tells, or
                the bare encoder if it has none.
            device: "auto", "cpu", "cuda" or "cuda:N".
            dtype: of the parameters in memory.

        Raises:
            CheckpointError: see :func:`load_model`; or there is no such head.
        """
        device_named(device)
        card = card_of(path)
        asked, task = task, task or card.task
        if task is not None and task not in TASKS:
            raise CheckpointError(f"No task '{task}'; expected one of {', '.join(TASKS)}.")
        if card.others and asked is None:
            log.warning(
                "%s doesn't say what its head is for. It is read for the task '%s'; %s would fit "
                "too, if you name it.",
                *(path, card.task, " and ".join(f"'{other}'" for other in card.others)),
            )
        if task and card.task and task not in (card.task, *card.others):
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
        if card.others and model.config.num_labels == 1 and task != "rank":
            raise CheckpointError(
                f"{path} has a single label, so it scores texts and has no classes to choose from. "
                "Choose a model with two labels or more."
            )
        pipeline = cls(model, load_tokenizer(path), replace(card, task=task, others=()))
        load_inserted(model, located(path))
        return pipeline

    def __repr__(self) -> str:
        task = self.card.task or "no task"
        return (
            f"<Pipeline of {self.hugging_face_tokenizer.name_or_path}: {self.card.system}, {task}>"
        )

    def read_as(self, system: str | None) -> "Pipeline":
        """Use another system with the same model; None: its own system.

        Raises:
            CheckpointError: the system is unknown, or one of the two has its own layers.
        """
        if system in (None, self.card.system):
            return self
        if system not in SYSTEMS:
            raise CheckpointError(f"No system '{system}'; expected one of {', '.join(SYSTEMS)}.")
        if reader_class(system).inserts:
            raise CheckpointError(
                f"The system '{system}' has layers of its own, and this model was trained without "
                f"them. Train one with `kbert train --system {system}`."
            )
        if self.reader.inserts:
            raise CheckpointError(
                f"The model has extra layers of the system '{self.card.system}', and the system "
                f"'{system}' can't use them. Choose a model without such layers."
            )
        card = replace(self.card, reading=reading_of(str(system), self.card.reading))
        return Pipeline(self.reader.model, self.hugging_face_tokenizer, card)

    @property
    def tokenizer(self) -> WordPieces:
        """The checkpoint's, as the task reads texts."""
        return self.reader.tokenizer

    @property
    def kbert(self) -> KBertReader:
        """The reader of a system with sentence trees: K-BERT, or triples as plain text.

        Raises:
            CheckpointError: the system has no sentence trees.
        """
        if not isinstance(self.reader, KBertReader):
            raise CheckpointError(
                f"This needs sentence trees, and the model's system, '{self.card.system}', has "
                "none. Choose a model of the system k-bert."
            )
        return self.reader

    @property
    def encoder(self) -> MaskTransformer:
        """K-BERT's mask-transformer."""
        return self.kbert.encoder

    @cached_property
    def labels(self) -> Labels:
        """Names of the logits: labels, or for fill-mask the vocabulary."""
        if self.card.task == "mask":
            words = {i: t for t, i in self.hugging_face_tokenizer.get_vocab().items()}
            count = self.reader.model.config.vocab_size  # may have more numbers than tokens
            return Labels({i: words.get(i, f"[{i}]") for i in range(count)})
        return Labels({int(i): label for i, label in self.reader.model.config.id2label.items()})

    @property
    def known_labels(self) -> list[str]:
        """The labels that data to be scored may have."""
        return self.labels.known_tags if self.card.task == "ner" else [*self.labels.values()]

    def save_pretrained(self, folder: str | Path) -> None:
        """Write model, tokenizer and card, as :meth:`from_pretrained` reads them.

        Raises:
            CheckpointError: the folder can't be written.
        """
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
            with no_progress_bars():
                self._with_card(folder).save_pretrained(folder)
                self.hugging_face_tokenizer.save_pretrained(folder)
        except OSError as error:
            raise CheckpointError(
                f"{folder}: can't be written ({error.strerror or error}). Name another folder."
            ) from error

    def push_to_hub(self, name: str, **how: Any) -> None:
        """Put model, tokenizer and card on the Hugging Face hub; ``how`` as transformers has it."""
        self._with_card(name).push_to_hub(repo_id=name, **how)
        self.hugging_face_tokenizer.push_to_hub(repo_id=name, **how)

    def _with_card(self, folder: str | Path) -> PreTrainedModel:
        """Return the model, whose configuration says how this pipeline reads."""
        reading = self.config.with_encoders(lambda name: encoder_name(name, folder))
        card = replace(self.card, reading=reading)
        card.write_to(self.reader.model.config)
        return self.reader.model

    def __call__(
        self,
        *sentences: Any,
        graph: GraphOrPath = NO_KNOWLEDGE,
        config: Any | None = None,
        attentions: bool = False,
        hidden_states: bool = False,
        decode: bool = True,
        **changes: Any,
    ) -> Any:
        """Read a text with a graph and keep every stage.

        Args:
            sentences: one text, or two for a task on pairs; or a list of texts.
            graph: K, or the path of its file; the empty graph gives plain BERT.
            config: how to read the text; None: as the model was trained.
            attentions, hidden_states: whether to keep them in the trace.
            decode: whether to make a prediction from the logits.
            changes: fields of the configuration.

        Returns:
            The system's :class:`Trace`; of a list of texts a list of them.

        Raises:
            KBertError: a text, option, length or layer that can't be used.
        """
        if len(sentences) == 1 and isinstance(sentences[0], list):
            how: dict[str, Any] = {"attentions": attentions, "hidden_states": hidden_states}
            how |= {"graph": as_graph(graph), "config": config, "decode": decode, **changes}
            return [self(*text, **how) for text in sentences_of(sentences[0])]
        several = next((one for one in sentences if not isinstance(one, str)), None)
        if several is not None:
            raise TextError(
                f"Got {several!r:.60}, expected a text (str). Put several texts into one list, "
                "and give a graph by its name: graph=…."
            )
        (reading,) = self.readings([sentences], graph=graph, config=config, **changes)
        trace = self.reader.trace(reading, attentions=attentions, hidden_states=hidden_states)
        if not decode or self.task is None or trace.logits is None:
            return trace
        prediction = self.task.decode(reading, trace.logits_on_text(), self.labels)
        return replace(trace, prediction=prediction)

    def readings(
        self,
        texts: Sequence[Text],
        *,
        graph: GraphOrPath = NO_KNOWLEDGE,
        config: Any | None = None,
        **changes: Any,
    ) -> Sequence[Reading]:
        """Read texts without running the encoder; the arguments are those of a call.

        A text is a sentence, or a pair of them.
        """
        graph, read = as_graph(graph), list(sentences_of(texts))
        config = self.reader.configured(config or self.config, **changes)
        if self.task is not None:
            for sentences in read:
                check_sentences(self.task, sentences)
        refuse_half_characters([*chain.from_iterable(read)])
        return self.reader.read(read, graph, config, windows=self._in_windows(config))

    def flatten(self, trees: Sequence[SentenceTree], config: Any = None) -> Sequence[Reading]:
        """Turn sentence trees into readings; only K-BERT and triples as plain text have trees."""
        config = self.reader.configured(config or self.config)
        return self.kbert.flatten(trees, config, windows=self._in_windows(config))

    def _in_windows(self, config: Any) -> bool:
        """Say whether a long text is read in windows for this task."""
        return self.task is not None and self.task.windows and bool(config.windows)

    def read(
        self,
        texts: Iterable[Text],
        *,
        graph: GraphOrPath = NO_KNOWLEDGE,
        batch_size: int = 32,
        **reading: Any,
    ) -> Iterator[Reading]:
        """Read many texts, batched by similar length, and yield each with its prediction, in order.

        If a text can't be read, the error is raised after all texts before it were yielded.

        Args:
            texts: each a sentence, or a pair of them.
            batch_size: rows in a batch. Up to 64 batches are read ahead and sorted by length;
                fewer if their logits are large.
            reading: ``config`` and its fields, as in a call.
        """
        refuse_single(texts)
        check_count("batch_size", batch_size)
        reading["graph"] = as_graph(graph)
        unread, waiting = iter(texts), list[Reading]()
        while True:
            some: list[Text] = []
            try:
                some.extend(islice(unread, GROUP * batch_size))
                waiting += self.readings(some, **reading) if some else []
            except KBertError:  # of one of these texts, or of what gives them
                for sentences in some:
                    try:
                        waiting += self.readings([sentences], **reading)
                    except KBertError:
                        break
                yield from self.predicted(waiting, batch_size=batch_size)
                raise
            tokens = sum(len(row) for own in waiting for row in own.rows)
            full = tokens * len(self.labels) > LOGITS_AT_ONCE
            if full or not some or len(waiting) >= BATCHES_AHEAD * batch_size:
                yield from self.predicted(waiting, batch_size=batch_size)
                waiting = []
            if not some:
                return

    def predicted(self, readings: Sequence[Reading], *, batch_size: int = 32) -> Iterator[Reading]:
        """Run the given readings and yield each with its prediction, in order."""
        if self.task is None:
            raise CheckpointError("The model has no task head, so it can't predict anything.")
        for reading, logits in zip(
            readings, self.reader.logits(readings, batch_size=batch_size), strict=True
        ):
            yield replace(reading, prediction=self.task.decode(reading, logits, self.labels))

    def predict(self, texts: Iterable[Text], **reading: Any) -> Iterator[Any]:
        """Yield the predictions for many texts, in order; arguments as in :meth:`read`."""
        yield from (own.prediction for own in self.read(texts, **reading))

    def rank(self, question: str, answers: Sequence[str], **reading: Any) -> "list[RankedAnswer]":
        """Rank all candidate answers by the probability that each answers the question.

        Answers of equal probability keep their order. ``reading`` is the same as in :meth:`read`.

        Raises:
            CheckpointError: the model takes no pairs, or has no label 1.
        """
        from kbert_core.tasks.classify import Pair, ranked

        if not isinstance(self.task, Pair):
            raise CheckpointError(
                f"The model is for the task '{self.card.task}', and ranking needs one for 'rank'. "
                "Train one with `kbert train --task rank`."
            )
        refuse_single(answers, "answers")
        return ranked(answers, list(self.predict([(question, a) for a in answers], **reading)))


def as_graph(graph: Any) -> KnowledgeGraph:
    """Open a graph that is given by its path, as ``"cook.tsv"``; a graph is returned as it is.

    Raises:
        GraphFileError: it can't be read, or something else is given.
    """
    if isinstance(graph, str | Path):
        return load_graph(graph)
    refuse_no_graph(graph)
    assert isinstance(graph, KnowledgeGraph)
    return graph


def _task_named(name: str | None) -> Task | None:
    if name is not None and name not in TASKS:
        raise CheckpointError(
            f"The checkpoint is for the task '{name}', and only {', '.join(TASKS)} are known here. "
            "Use a newer version of K-BERT Lab."
        )
    return TASKS[name] if name else None


def check_sentences(task: Task, sentences: Sequence[str]) -> None:
    """Refuse an input of the wrong number of sentences for a task.

    Raises:
        TextError: see above.
    """
    if len(sentences) != task.sentences:
        wanted = "one sentence" if task.sentences == 1 else "two sentences"
        raise TextError(f"{task.title} takes {wanted}, got {len(sentences)}.")
