"""What Roof-BERT makes of a text before and after its encoders: configuration, reading, trace."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, get_args

from torch import Tensor

from kbert_core.checkpoints.encoders import encoder_at, encoder_name
from kbert_core.errors import OptionError
from kbert_core.knowledge.mentions import Mention
from kbert_core.knowledge.selection import InjectionOptions, LeftOut, Rule
from kbert_core.knowledge.triple import Triple
from kbert_core.reader import Piece, Reading, Trace
from kbert_core.roof.kb_text import EXPANDS, KbText
from kbert_core.systems import SystemConfig
from kbert_core.text_rows import TextBatch, TextRow
from kbert_core.tokens import Tokens

OWN, SHARED = "own", "shared"
MOST = 1000  # triples of a mention: as good as all
Start = Literal["last", "random"]
Searched = Literal["last", "all"]


@dataclass(frozen=True)
class RoofConfig(SystemConfig):
    """How Roof-BERT reads a text. Where the paper says nothing, the defaults are our choice.

    ``options`` say which triples are read: all of an entity that the text names, or, with the
    strategy ``tail_in_text``, those whose tail is in the text, too.

    Attributes:
        kb_encoder: what reads the triples: "own", a copy of the text's encoder that trains apart,
            as in the paper; "shared", the text's encoder itself; or another encoder of the same
            width: a folder, ``package:NAME`` or a hub name.
        layers: k of the roof; None: a third of the encoder's, the paper's 4 of 12.
        start: what the roof's layers begin as: copies of the text encoder's last ones, or random.
        expand: how triples are worded, see :func:`kbert_core.roof.kb_text.kb_text`.
        segments: 1: token types from the tokenizer; 2: 1 for the text and 0 for the triples,
            which was best in the paper.
        kb_length: the length limit of the triples' side, in tokens.
        searched: in which of two sentences to look for entities; the paper leaves the question
            out.
        rate: the learning rate of the roof divided by that of the encoders: 3e-4 and 3e-5 in
            the paper.
    """

    system: ClassVar[str] = "roof-bert"
    options: InjectionOptions = InjectionOptions(max_triples=MOST)
    kb_encoder: str = OWN
    layers: int | None = None
    start: Start = "last"
    expand: int = 2
    segments: int = 2
    kb_length: int = 512
    searched: Searched = "last"
    rate: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, allowed in (
            ("start", get_args(Start)),
            ("searched", get_args(Searched)),
            ("expand", EXPANDS),
            ("segments", (1, 2)),
        ):
            if getattr(self, name) not in allowed or isinstance(getattr(self, name), bool):
                raise OptionError(
                    f"{name} is {getattr(self, name)!r}, expected one of "
                    f"{', '.join(map(str, allowed))}."
                )
        for name, least in (("kb_length", 8), ("layers", 1)):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < least):
                raise OptionError(f"{name} is {value!r}. Give a number of at least {least}.")
        if type(self.rate) not in (int, float) or not 0 < self.rate < 1e6:
            raise OptionError(
                f"rate is {self.rate!r}, expected a number above 0: the roof's learning rate "
                "divided by the encoders'."
            )
        if not isinstance(self.kb_encoder, str) or not self.kb_encoder:
            raise OptionError(f"kb_encoder is {self.kb_encoder!r}. Say own, shared, or an encoder.")

    @classmethod
    def changes(cls, given: str) -> dict[str, Any]:
        """Read options given as JSON, such as ``{"expand": 0}``.

        Raises:
            OptionError: the text isn't such JSON, or names an unknown option.
        """
        try:
            data = json.loads(given)
        except ValueError as error:
            raise OptionError(
                f"The roof's options are {given}, which isn't JSON ({error})."
            ) from error
        known = {own.name for own in fields(cls)} - {own.name for own in fields(SystemConfig)}
        if not isinstance(data, dict) or not known.issuperset(data):
            raise OptionError(
                f"The roof's options are {given}, expected some of {', '.join(sorted(known))}, "
                'such as {"expand": 0}.'
            )
        return data

    @property
    def another(self) -> str | None:
        """The name of the encoder of triples, if it isn't the text's or a copy of that."""
        return None if self.kb_encoder in (OWN, SHARED) else self.kb_encoder

    def saved_in(self, folder: str | Path) -> Self:
        """See :meth:`SystemConfig.saved_in`; for the encoder of triples."""
        return replace(
            self,
            kb_encoder=encoder_name(self.another, folder) if self.another else self.kb_encoder,
        )

    def loaded_from(self, folder: Path) -> Self:
        """See :meth:`SystemConfig.loaded_from`; for the encoder of triples.

        Raises:
            CheckpointError: it isn't there.
        """
        return replace(
            self,
            kb_encoder=str(encoder_at(folder, self.another)) if self.another else self.kb_encoder,
        )


@dataclass(frozen=True, slots=True)
class RoofNode:
    """An entity that the text names, with the triples selected for it.

    Attributes:
        left_out: its other triples, each with the rule that left it out.
    """

    mention: Mention
    used: tuple[Triple, ...]
    left_out: tuple[LeftOut, ...] = ()

    def edited(self, changes: Mapping[Triple, Triple | None], options: Any = None) -> "RoofNode":
        """Return the node with some triples replaced; one replaced by None is removed."""
        del options
        return replace(self, used=tuple(filter(None, (changes.get(t, t) for t in self.used))))


@dataclass(frozen=True)
class RoofRow(TextRow):
    """One row of a batch: M tokens of the text, and the triples beside it.

    Attributes:
        kb_ids: (N',) of the triples' side; the same for all windows of a text.
    """

    kb_ids: tuple[int, ...] = ()


@dataclass(frozen=True)
class RoofReading(Reading):
    """A text, and the string of its triples that the knowledge encoder reads.

    Attributes:
        nodes: the entities in the text that is read, in reading order.
        kb: the triples' side; None before :meth:`RoofReader.flatten`, when nothing is cut yet.
    """

    sentences: tuple[str, ...] = ()
    tokens: tuple[Tokens, ...] = ()
    nodes: tuple[RoofNode, ...] = ()
    kb: KbText | None = None

    @property
    def mentions(self) -> tuple[Mention, ...]:
        """The entities that the text names, in reading order."""
        return tuple(node.mention for node in self.nodes)

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """The triples that are read, each once, at its entity's first mention."""
        first: dict[Triple, int] = {}
        for number, node in enumerate(self.nodes):
            for triple in node.used:
                first.setdefault(triple, number)
        return tuple(Piece(triple, first[triple]) for triple in self._read)

    @property
    def by_mention(self) -> tuple[tuple[Mention, tuple[Triple, ...]], ...]:
        """Each mention with its entity's triples that are read."""
        read = set(self._read)
        return tuple((n.mention, tuple(t for t in n.used if t in read)) for n in self.nodes)

    @property
    def left_out(self) -> tuple[tuple[int, LeftOut], ...]:
        """Every triple that isn't read, with the number of its mention and its rule."""
        cut = set(self.kb.left_out) if self.kb else set()
        left: dict[tuple[int, LeftOut], None] = {}
        for number, node in enumerate(self.nodes):
            too_long = (LeftOut(t, Rule.LENGTH) for t in node.used if t in cut)
            left.update(dict.fromkeys((number, own) for own in (*node.left_out, *too_long)))
        return tuple(left)

    @property
    def _read(self) -> tuple[Triple, ...]:
        if self.kb:
            return self.kb.triples
        return tuple(dict.fromkeys(triple for node in self.nodes for triple in node.used))

    def with_nodes(self, nodes: Sequence[RoofNode]) -> Self:
        """Return the same text with other nodes; it goes through ``lay`` again."""
        return replace(self, nodes=tuple(nodes), kb=None, prediction=None)

    @staticmethod
    def node(mention: Mention, triple: Triple, options: Any = None) -> RoofNode:
        """Make a node of a triple."""
        del options
        return RoofNode(mention, (triple,))


@dataclass(frozen=True)
class RoofBatch(TextBatch):
    """B rows as tensors: of the text (B, M), of the triples (B, N').

    Attributes:
        kb_embeds: (B, N', H) read instead of ``kb_ids``.
    """

    kb_ids: Tensor
    kb_mask: Tensor
    kb_embeds: Tensor | None = None


@dataclass(frozen=True, repr=False)
class RoofTrace(Trace):
    """A trace with both sides.

    Attributes:
        text_states: (B, M, H) below the roof; they don't depend on the graph.
        kb_states: (B, N', H) below the roof.
        roof_attentions: per layer of the roof (B, A, M + N', M + N'), if asked for.
    """

    reading: RoofReading
    text_states: Tensor = field(kw_only=True)
    kb_states: Tensor = field(kw_only=True)
    roof_attentions: tuple[Tensor, ...] | None = None
