"""Reader: how a system reads texts with a graph, and gives a state for each token of the text.

A system of the field is a :class:`Reader`: it turns texts and a graph into :class:`Reading` values,
and gives a state and logits for each token *of the text*. Tasks know nothing else of a system.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from pkgutil import resolve_name
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import ModelOutput

from kbert_core.errors import OptionError
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import Mention
from kbert_core.knowledge.selection import InjectionOptions, LeftOut
from kbert_core.knowledge.triple import Triple
from kbert_core.layers import inputs_of, positions_of
from kbert_core.options import check_count
from kbert_core.text import WordPieces
from kbert_core.tokens import Tokens, text_places

DEFAULT_LENGTH = 512
SHOWN = "kbert_lab.lab.widget:show"  # of the lab, found by name
batch_done: ContextVar[Callable[[], None]] = ContextVar("batch_done", default=lambda: None)
"""Called after each batch of the thread that sets it, so that it can say how far it is."""
Named = tuple[Mention, tuple[Triple, ...]]  # a name in a text, and what the graph says of it


@dataclass(frozen=True, slots=True)
class Fact:
    """Knowledge that can be left out: a triple, at all of its mentions or at a single one.

    Attributes:
        node: number of the mention in the reading; None: every mention that has the triple.
    """

    triple: Triple
    node: int | None = None

    def covers(self, node: int, triple: Triple) -> bool:
        """Say whether this fact is the given triple at the given mention."""
        return triple == self.triple and self.node in (None, node)


@dataclass(frozen=True)
class Reading(ABC):
    """A text as a system reads it.

    Attributes:
        rows: what the encoder gets, N tokens each; ``row.trunk_parts`` says where the text's own
            tokens stand. A long text that is read in windows has several rows.
        config: the system's configuration with which the text was read.
        prediction: what the task made of the logits; None before the encoder has run.
    """

    rows: tuple[Any, ...]
    config: Any
    prediction: Any = None

    @property
    @abstractmethod
    def sentences(self) -> tuple[str, ...]:
        """The text: one sentence or two."""

    @property
    @abstractmethod
    def tokens(self) -> tuple[Tokens, ...]:
        """The tokens of each sentence, T in all; the length limit may have cut the last ones."""

    @property
    @abstractmethod
    def mentions(self) -> tuple[Mention, ...]:
        """The entities that the text names, in reading order."""

    @property
    @abstractmethod
    def facts(self) -> tuple[Fact, ...]:
        """The triples that the model reads, in reading order, once for each mention."""

    @property
    def used(self) -> tuple[Triple, ...]:
        """The triples that are in, in reading order, once for each mention."""
        return tuple(fact.triple for fact in self.facts)

    @property
    def by_mention(self) -> tuple[Named, ...]:
        """Each mention with its triples."""
        return tuple(
            (mention, tuple(own.triple for own in self.facts if own.node in (None, number)))
            for number, mention in enumerate(self.mentions)
        )

    @property
    def left_out(self) -> tuple[tuple[int, LeftOut], ...]:
        """Every triple that isn't read: the number of its mention, and the rule for that."""
        return ()

    def on_text(self, values: Sequence[Tensor]) -> Tensor:
        """Pick the values of the text's own tokens; in windows, from the row with most context.

        Args:
            values: one tensor (N, ...) for each row, with padding or without.

        Returns:
            (T, ...), in the order of ``tokens``.
        """
        parts = [row.trunk_parts for row in self.rows]
        row, place = text_places(parts, [len(tokens) for tokens in self.tokens])
        if len(values) == 1:
            return values[0][place]
        offsets = np.cumsum([0, *(len(own) for own in values)])
        return torch.cat(list(values))[torch.from_numpy(offsets[row] + place)]

    def logits_on_text(self, values: Sequence[Tensor]) -> Tensor:
        """Turn the logits of rows into those of the text: (T, K), or (K,) for a whole text."""
        return values[0] if values[0].dim() == 1 else self.on_text(values)


@dataclass(frozen=True, repr=False)
class Trace:
    """Everything between a text and its prediction, stage by stage.

    Attributes:
        reading: what happened before the encoder.
        prediction: what the task made of the logits; None without a task head.
        logits: (B, N, K) or (B, K) for the B rows; None without a task head.
        attentions: L tensors (B, A, N, N), if asked for.
        hidden_states: L + 1 tensors (B, N, H), if asked for.
    """

    reading: Reading
    prediction: Any = None
    logits: Tensor | None = None
    attentions: tuple[Tensor, ...] | None = None
    hidden_states: tuple[Tensor, ...] | None = None

    @property
    def rows(self) -> tuple[Any, ...]:
        """What the encoder got; several rows where a long text was read in windows."""
        return self.reading.rows

    @property
    def used(self) -> tuple[Triple, ...]:
        """The triples that are in, in reading order, once for each mention."""
        return self.reading.used

    def __repr__(self) -> str:
        tokens = sum(map(len, self.rows))
        text = " ‖ ".join(self.reading.sentences)
        said = f"{tokens} tokens, {len(self.used)} triples, {type(self.prediction).__name__}"
        return f"<{type(self).__name__} of {text!r}: {said}>"

    def _repr_html_(self) -> str:
        return str(resolve_name("kbert_core.markup:trace_html")(self))

    def show(self) -> Any:
        """Draw the trace in a notebook, to be looked at; see ``kbert_lab.lab.widget``."""
        return resolve_name(SHOWN)(self)

    def logits_on_text(self) -> Tensor:
        """(T, K), a row for each token of the text, or (K,)."""
        assert self.logits is not None
        return self.reading.logits_on_text(list(self.logits))


def tokens_of(row: Any) -> int:
    """Count the tokens that the model runs for a row, with those of Roof-BERT's second encoder."""
    return len(row) + len(getattr(row, "kb_ids", ()))


class Reader(ABC):
    """A system: a model, its tokenizer, and how texts are read for it.

    Args:
        model: a Hugging Face encoder, with or without a task's head.
        tokenizer: the checkpoint's, wrapped as the task reads texts.
        config: how texts are read by default; None: the system's defaults.

    Attributes:
        config_class: the class of its frozen configuration. ``system`` is its name on cards and on
            the command line; the fields are ``max_length`` and what else the system needs.
        trace_class: the class of its traces; what the output of ``forward`` calls as a field of it
            is kept in a trace.
        inserts: whether the system adds layers to the encoder; they are saved with the model.
    """

    config_class: ClassVar[Any]
    trace_class: ClassVar[type[Trace]] = Trace
    inserts: ClassVar[bool] = False

    def __init__(self, model: PreTrainedModel, tokenizer: WordPieces, config: Any = None) -> None:
        self.model, self.tokenizer = model.eval(), tokenizer
        config = self._own(config or self.config_class())
        self.positions = positions_of(model)  # the most tokens that a row can have; None: no limit
        limits = (config.max_length, self.positions, tokenizer.model_max_length())
        longest = min((limit for limit in limits if limit is not None), default=DEFAULT_LENGTH)
        self.config = replace(config, max_length=longest)

    @property
    def system(self) -> str:
        """Its name."""
        return str(self.config_class.system)

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return self.model.device

    @property
    def has_head(self) -> bool:
        """Whether the model has a task head."""
        return self.model.base_model is not self.model

    def has(self, option: str) -> bool:
        """Whether the system's configuration has an option."""
        return option in {field.name for field in fields(self.config_class)}

    def _own(self, config: Any) -> Any:
        if not isinstance(config, self.config_class):
            raise OptionError(
                f"The system '{self.system}' needs a {self.config_class.__name__} as its "
                f"configuration, got a {type(config).__name__}. Give the right class."
            )
        return config

    def configured(self, config: Any = None, **changes: Any) -> Any:
        """Return a configuration with some fields changed and the length limit filled in.

        Args:
            config: the one to change; None: the reader's own.
            changes: new values of fields, or of fields of its ``options``; a field given as None
                stays as it is.

        Raises:
            OptionError: the system has no such option, or the length limit is larger than the
                number of positions of the encoder.
        """
        config = self._own(self.config if config is None else config)
        known = [field.name for field in fields(config)]
        chosen = [field.name for field in fields(InjectionOptions) if field.name not in known]
        for name in changes:
            if name not in (*known, *chosen):
                raise OptionError(
                    f"The system '{self.system}' has no option '{name}', only "
                    f"{', '.join((*known, *chosen))}."
                )
        given = {name: value for name, value in changes.items() if value is not None}
        of_options = {name: given.pop(name) for name in chosen if name in given}
        if of_options:
            given["options"] = replace(given.get("options", config.options), **of_options)
        if given.get("max_length", config.max_length) is None:
            given["max_length"] = self.config.max_length
        config = replace(config, **given) if given else config
        length, most = config.max_length, self.positions
        if most is not None and length > most:
            raise OptionError(
                f"max_length is {length}, and the encoder has {most} positions. "
                f"Give at most {most}."
            )
        return config

    def read(
        self,
        texts: Sequence[Sequence[str]],
        graph: KnowledgeGraph,
        config: Any = None,
        *,
        windows: bool = False,
    ) -> Sequence[Reading]:
        """Read texts with a graph: everything that happens before the encoder.

        Args:
            texts: each one sentence or two.
            config: how to read them, from :meth:`configured`; None: the reader's own.
            windows: read a text over the length limit in overlapping windows, so that no
                token is lost; False: cut its end.

        Raises:
            KBertError: a text or an option that can't be used.
        """
        config = config or self.config
        queried = self.query(texts, graph, config, windows=windows)
        return self.flatten(queried, config, windows=windows)

    @abstractmethod
    def without(self, reading: Reading, facts: Collection[Fact]) -> Reading:
        """Return the reading without some facts; everything else stays the same."""

    def query(
        self,
        texts: Sequence[Sequence[str]],
        graph: KnowledgeGraph,
        config: Any,
        *,
        windows: bool = False,
    ) -> Sequence[Any]:
        """Find the mentions and triples of texts, so that a training recipe can change them.

        Returns:
            For each text a value whose ``nodes`` have a ``mention`` and its triples, ``used``, and
            whose ``with_nodes`` replaces them; the reader's ``flatten`` turns it into a reading.

        Raises:
            OptionError: a recipe can't change anything in this system.
        """
        raise OptionError(
            f"The system '{self.system}' can't be trained with a recipe. Leave its options out."
        )

    def flatten(self, queried: Sequence[Any], config: Any, *, windows: bool) -> Sequence[Reading]:
        """Turn what :meth:`query` returned, or a recipe made of it, into readings."""
        del config, windows
        return queried

    def hide_knowledge(self, row: Any, hidden: Any, random: Any = None) -> Any:
        """Hide knowledge that gives the masked tokens ``hidden``, (N,) bool, away.

        Args:
            random: a generator, with which some of it stays; None: all is hidden.
        """
        del hidden, random
        return row

    def begin_training(self, task: str, start: str | None) -> None:  # noqa: B027
        """Prepare the model for training; ``start`` is the model to begin from, None: no model."""

    def collate(self, rows: Sequence[Any], config: Any) -> Any:
        """Make a batch of rows that were read with one configuration, padded to the longest.

        Returns:
            A frozen dataclass of tensors, ``input_ids`` (B, N) among them; here a ``TextBatch``.
        """
        from kbert_core.text_rows import TextBatch

        del config
        return TextBatch.of(rows, self.tokenizer.pad_id)

    def forward(
        self, batch: Any, config: Any, *, model: Callable[..., Any] | None = None, **kept: bool
    ) -> ModelOutput:
        """Run a batch through the model; gradients flow where the caller lets them.

        Args:
            batch: from :meth:`collate`; it may be on another device than the model.
            config: the configuration with which its rows were read.
            model: what to run instead of the reader's model, such as a wrapper used in training.
            kept: ``attentions`` and ``hidden_states``, whether to return them.

        Returns:
            What the Hugging Face model returns: ``logits`` (B, N, K) or (B, K); a bare encoder
            returns ``last_hidden_state`` (B, N, H).
        """
        del config
        texts = batch.to(self.device)
        inputs = inputs_of(self.model, texts.input_ids, texts.attention_mask, texts.token_type_ids)
        output: ModelOutput = (model or self.model)(
            **inputs, **{f"output_{name}": True for name, asked in kept.items() if asked}
        )
        return output

    def encode(self, rows: Sequence[Any], config: Any, **kept: Any) -> ModelOutput:
        """Run rows through the model in one batch, without gradients; see :meth:`forward`."""
        with torch.inference_mode():
            return self.forward(self.collate(rows, config), config, **kept)

    def trace(self, reading: Reading, **kept: bool) -> Any:
        """Run one reading and keep every stage; ``kept`` is the same as in :meth:`forward`."""
        return self.traced(reading, self.encode(reading.rows, reading.config, **kept))

    def traced(self, reading: Reading, output: Mapping[str, Any]) -> Any:
        """Make a trace of what the output calls as a field of the trace."""
        names = [field.name for field in fields(self.trace_class) if field.name in output]
        return self.trace_class(reading, **{name: output[name] for name in names})

    def batch_key(self, config: Any) -> Hashable:
        """Return what the forward pass needs of a configuration; equal values share batches."""
        return config

    def cache_key(self, reading: Reading) -> Hashable:
        """Return a key; readings with equal keys give the encoder equal inputs and need one run."""
        return id(reading)

    def logits(self, readings: Sequence[Reading], *, batch_size: int = 32) -> list[Tensor]:
        """Run readings, batched by similar length; return (T, K) or (K,) logits for each text."""
        outputs = self.outputs(readings, "logits", batch_size)
        return [own.logits_on_text(rows) for own, rows in zip(readings, outputs, strict=True)]

    def states(self, readings: Sequence[Reading], *, batch_size: int = 32) -> list[Tensor]:
        """Run readings; return the last layer's states (T, H) for each text."""
        outputs = self.outputs(readings, "hidden_states", batch_size)
        return [own.on_text(rows) for own, rows in zip(readings, outputs, strict=True)]

    def embeds(self) -> dict[str, tuple[nn.Module, WordPieces]]:
        """Return, for each tensor of ids in a batch, its embedding layer and its tokenizer."""
        return {"input_ids": (self.model.get_input_embeddings(), self.tokenizer)}

    def rate_of(self, parameter: str) -> float:
        """Return the factor by which a parameter's learning rate is multiplied, by its name."""
        del parameter
        return 1.0

    def to(self, device: torch.device | str) -> Self:
        """Move the model to a device."""
        nn.Module.to(self.model, device)
        return self

    def outputs(
        self, readings: Sequence[Reading], name: str = "logits", batch_size: int = 32
    ) -> list[list[Tensor]]:
        """Run readings and return the output for every token of every row, branches included.

        Args:
            name: "logits", or "hidden_states" for the states of the last layer.

        Returns:
            For each text a list with one tensor (N, ...) for each row, with padding.
        """
        values: list[list[Any]] = [[None] * len(reading.rows) for reading in readings]
        for config, rows, places in self.batches(readings, batch_size):
            output = self.encode(rows, config, hidden_states=name == "hidden_states")
            batch = output[name][-1] if name == "hidden_states" else output[name]
            for (text, row), own in zip(places, batch, strict=True):
                values[text][row] = own
        return values

    def batches(
        self, readings: Sequence[Reading], batch_size: int = 32
    ) -> Iterator[tuple[Any, Sequence[Any], Iterable[tuple[int, int]]]]:
        """Yield batches of similar length: configuration, rows, and each row's (text, number).

        Raises:
            OptionError: ``batch_size`` isn't a whole number of at least 1.
        """
        check_count("batch_size", batch_size)
        ways: dict[Hashable, tuple[Any, list[tuple[int, int, int]]]] = {}
        for text, reading in enumerate(readings):
            _, own = ways.setdefault(self.batch_key(reading.config), (reading.config, []))
            own += [(tokens_of(made), text, row) for row, made in enumerate(reading.rows)]
        for config, own in ways.values():
            own.sort()
            for start in range(0, len(own), batch_size):
                places = [(text, row) for _, text, row in own[start : start + batch_size]]
                yield config, [readings[text].rows[row] for text, row in places], places
                batch_done.get()()
