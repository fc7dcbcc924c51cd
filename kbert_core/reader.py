"""Reader: how one system reads texts with a graph; its states stand on the text's own tokens.

A system of the field is a :class:`Reader`: it turns texts and a graph into :class:`Reading` values,
and gives a state and logits for each token *of the text*. Tasks know nothing else of a system.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import ModelOutput

from kbert_core.errors import OptionError
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.mentions import Mention
from kbert_core.knowledge.selection import LeftOut
from kbert_core.knowledge.triple import Triple
from kbert_core.text import WordPieces
from kbert_core.tokens import Tokens, text_places

DEFAULT_LENGTH = 512
Named = tuple[Mention, tuple[Triple, ...]]  # a name in a text, and what the graph says of it


@dataclass(frozen=True, slots=True)
class Piece:
    """Knowledge that can be left out: a triple, at all its mentions or at one.

    Attributes:
        node: number of its mention in the reading; None: every mention that has the triple.
    """

    triple: Triple
    node: int | None = None

    def covers(self, node: int, triple: Triple) -> bool:
        """Whether a triple at a mention is this piece."""
        return triple == self.triple and self.node in (None, node)


@dataclass(frozen=True)
class Reading(ABC):
    """A text as a system reads it.

    Attributes:
        rows: what the encoder gets: N tokens each, with ``trunk_parts``, the places of the
            text's own tokens; several if a long text is read in windows.
        config: the system's, as the text was read.
        prediction: what a task made of the logits; None before.
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
        """Per sentence its tokens that are read: T in all; a length limit may cut the last."""

    @property
    @abstractmethod
    def mentions(self) -> tuple[Mention, ...]:
        """The entities that the text names, in reading order."""

    @property
    @abstractmethod
    def pieces(self) -> tuple[Piece, ...]:
        """The triples that are in, in reading order, each once for each of its mentions."""

    @property
    def used(self) -> tuple[Triple, ...]:
        """The triples that are in, in reading order, once for each mention."""
        return tuple(piece.triple for piece in self.pieces)

    @property
    def by_mention(self) -> tuple[Named, ...]:
        """Each mention with its triples."""
        return tuple(
            (mention, tuple(own.triple for own in self.pieces if own.node in (None, number)))
            for number, mention in enumerate(self.mentions)
        )

    @property
    def left_out(self) -> tuple[tuple[int, LeftOut], ...]:
        """Every triple that isn't in, with the number of its mention and its rule."""
        return ()

    def on_text(self, values: Sequence[Tensor]) -> Tensor:
        """Take the text's own tokens out of the rows, each from the row with most context.

        Args:
            values: per row (N, ...), padding removed.

        Returns:
            (T, ...), in the order of ``tokens``.
        """
        parts = [row.trunk_parts for row in self.rows]
        row, place = text_places(parts, [len(tokens) for tokens in self.tokens])
        if len(values) == 1:
            return values[0][place]
        offsets = np.cumsum([0, *(len(own) for own in values)])
        return torch.cat(list(values))[torch.from_numpy(offsets[row] + place)]


@dataclass(frozen=True, repr=False)
class Trace:
    """Everything between a text and its prediction, stage by stage.

    Attributes:
        reading: what happened before the encoder.
        prediction: what the task made of the logits; None without a head.
        logits: of B rows, (B, N, K) or (B, K); None without a head.
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
        drawn = getattr(self.prediction, "_repr_html_", None)
        return str(drawn()) if drawn else ""

    def logits_on_text(self) -> Tensor:
        """(T, K), a row for each token of the text, or (K,)."""
        assert self.logits is not None
        return _on_text(self.reading, list(self.logits))


def tokens_of(row: Any) -> int:
    """How many tokens a row takes to run, those that stand beside it included."""
    return len(row) + len(getattr(row, "kb_ids", ()))


def _on_text(reading: Reading, values: Sequence[Tensor]) -> Tensor:
    """Take logits of rows, padding or not, to the text: (T, K) or (K,)."""
    return values[0] if values[0].dim() == 1 else reading.on_text(values)


class Reader(ABC):
    """A system: a model, its tokenizer, and how texts are read for it.

    Args:
        model: a Hugging Face encoder, with or without a task's head.
        tokenizer: as the task reads texts.
        config: how texts are read by default; None: the system's defaults.

    Attributes:
        config_class: its frozen configuration: ``system``, its name on cards and on the command
            line, ``max_length``, and what else it needs.
        inserts: whether it adds its own layers to the encoder, saved with the model.
    """

    config_class: ClassVar[Any]
    inserts: ClassVar[bool] = False

    def __init__(self, model: PreTrainedModel, tokenizer: WordPieces, config: Any = None) -> None:
        self.model, self.tokenizer = model.eval(), tokenizer
        config = config or self.config_class()
        if not isinstance(config, self.config_class):
            raise OptionError(
                f"The system '{self.system}' needs a {self.config_class.__name__} as its "
                f"configuration, got a {type(config).__name__}. Give the right class."
            )
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

    @property
    def positions(self) -> int | None:
        """The most tokens that a row can have; None: no limit."""
        count = getattr(self.model.config, "max_position_embeddings", None)
        return count if isinstance(count, int) and count > 0 else None

    def has(self, option: str) -> bool:
        """Whether the system's configuration has an option."""
        return option in {field.name for field in fields(self.config_class)}

    def configured(self, config: Any = None, **changes: Any) -> Any:
        """Return the configuration, or another one, with changes and a length limit.

        Args:
            config: None: the reader's own.
            changes: fields of the configuration; those that are None stay.

        Raises:
            OptionError: the system has no such option; the limit is over what the encoder
                has positions for.
        """
        config = self.config if config is None else config
        known = [field.name for field in fields(config)]
        for name in changes:
            if name not in known:
                raise OptionError(
                    f"The system '{self.system}' has no option '{name}', only {', '.join(known)}."
                )
        given = {name: value for name, value in changes.items() if value is not None}
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

    @abstractmethod
    def read(
        self,
        texts: Sequence[Sequence[str]],
        graph: KnowledgeGraph,
        config: Any | None = None,
        *,
        windows: bool = False,
    ) -> Sequence[Reading]:
        """Read texts with a graph: everything that happens before the encoder.

        Args:
            texts: each one sentence or two.
            config: how; None: the reader's own.
            windows: read a text over the length limit in overlapping windows, so that no
                token is lost; else its end is cut.

        Raises:
            KBertError: a text or an option that can't be used.
        """

    @abstractmethod
    def without(self, reading: Reading, pieces: Collection[Piece]) -> Reading:
        """Leave knowledge out of a reading, the rest held fixed."""

    def grown(
        self,
        texts: Sequence[Sequence[str]],
        graph: KnowledgeGraph,
        config: Any,
        *,
        windows: bool = False,
    ) -> Sequence[Any]:
        """Read texts as far as a recipe of training changes them.

        Returns:
            Per text a value with ``nodes``, each of a ``mention`` and the triples ``used`` there,
            and with ``with_nodes``; a method ``lay`` makes readings of them.

        Raises:
            OptionError: the system has nothing that a recipe could change.
        """
        raise OptionError(
            f"The system '{self.system}' can't be trained with a recipe. Leave its options out."
        )

    def guarded(self, row: Any, hidden: Any, random: Any = None) -> Any:
        """Keep knowledge from telling the tokens ``hidden``, (N,) bool; ``random``: not always."""
        del hidden, random
        return row

    def begin_training(self, task: str, start: str | None) -> None:  # noqa: B027
        """Prepare the model to be trained for a task, from another model (None: from scratch)."""

    @abstractmethod
    def collate(self, rows: Sequence[Any], config: Any) -> Any:
        """Put rows of one configuration into a batch, padded to the longest.

        Returns:
            A frozen dataclass of tensors, ``input_ids`` (B, N) among them.
        """

    @abstractmethod
    def forward(
        self, batch: Any, config: Any, *, model: Callable[..., Any] | None = None, **kept: bool
    ) -> ModelOutput:
        """Run a batch through the model; gradients flow where the caller lets them.

        Args:
            batch: made by :meth:`collate`; it may be on another device than the model.
            config: how its rows were read.
            model: run in place of the reader's, such as a wrapper of it that trains.
            kept: ``attentions`` and ``hidden_states``: whether to return them.

        Returns:
            What the Hugging Face model returns: ``logits`` (B, N, K) or (B, K), or of a bare
            encoder ``last_hidden_state`` (B, N, H).
        """

    def encode(self, rows: Sequence[Any], config: Any, **kept: Any) -> ModelOutput:
        """Run rows through the model in one batch, without gradients; see :meth:`forward`."""
        with torch.inference_mode():
            return self.forward(self.collate(rows, config), config, **kept)

    def trace(self, reading: Reading, **kept: bool) -> Trace:
        """Run one reading, and keep every stage; ``kept`` is as for :meth:`forward`."""
        output = self.encode(reading.rows, reading.config, **kept)
        kinds = ("logits", "attentions", "hidden_states")
        return Trace(reading, None, *map(output.get, kinds))

    def way(self, config: Any) -> Hashable:
        """What of a configuration the forward pass depends on: equal ones share batches."""
        return config

    def key(self, reading: Reading) -> Hashable:
        """Two readings with equal keys give the encoder the same input, so one run is enough."""
        return id(reading)

    def logits(self, readings: Sequence[Reading], *, batch_size: int = 32) -> list[Tensor]:
        """Run readings, batched by similar length: per text (T, K), a row a token, or (K,)."""
        outputs = self.outputs(readings, "logits", batch_size)
        return [_on_text(*text) for text in zip(readings, outputs, strict=True)]

    def states(self, readings: Sequence[Reading], *, batch_size: int = 32) -> list[Tensor]:
        """Give the last layer's state of every token of the text: per text (T, H)."""
        outputs = self.outputs(readings, "hidden_states", batch_size)
        return [reading.on_text(own) for reading, own in zip(readings, outputs, strict=True)]

    def embeds(self) -> dict[str, tuple[nn.Module, WordPieces]]:
        """By the ids' name in a batch, what embeds them and what they are tokens of."""
        return {"input_ids": (self.model.get_input_embeddings(), self.tokenizer)}

    def rate_of(self, parameter: str) -> float:
        """Give the factor on the learning rate for a parameter of the model, by its name."""
        del parameter
        return 1.0

    def to(self, device: torch.device | str) -> Self:
        """Move the model to a device."""
        nn.Module.to(self.model, device)
        return self

    def outputs(
        self, readings: Sequence[Reading], name: str = "logits", batch_size: int = 32
    ) -> list[list[Tensor]]:
        """Run readings; what a system makes of every row, branches included, comes back.

        Args:
            name: "logits" or "hidden_states", of which the last layer's.

        Returns:
            Per text and row (N, ...), padding removed.
        """
        values: list[list[Any]] = [[None] * len(reading.rows) for reading in readings]
        for config, rows, places in self.batches(readings, batch_size):
            output = self.encode(rows, config, hidden_states=name == "hidden_states")
            batch = output[name][-1] if name == "hidden_states" else output[name]
            for (text, row), own in zip(places, batch, strict=True):
                values[text][row] = own if own.dim() == 1 else own[: len(readings[text].rows[row])]
        return values

    def batches(
        self, readings: Sequence[Reading], batch_size: int = 32
    ) -> Iterator[tuple[Any, Sequence[Any], Iterable[tuple[int, int]]]]:
        """Group rows of one configuration and similar length; of each its text and number there."""
        ways: dict[Hashable, tuple[Any, list[tuple[int, int, int]]]] = {}
        for text, reading in enumerate(readings):
            _, own = ways.setdefault(self.way(reading.config), (reading.config, []))
            own += [(tokens_of(made), text, row) for row, made in enumerate(reading.rows)]
        for config, own in ways.values():
            own.sort()
            for start in range(0, len(own), batch_size):
                places = [(text, row) for _, text, row in own[start : start + batch_size]]
                yield config, [readings[text].rows[row] for text, row in places], places
