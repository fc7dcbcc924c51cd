"""Which triples of a mention are injected, and why the others are not.

First, triples are left out that are switched off, whose relation isn't allowed, or that only repeat
the mention's own name. Then a strategy keeps or ranks the rest, and triples of ``first_relations``
move to the front. The first ``max_triples`` of the result are used.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from enum import StrEnum
from typing import Any, Protocol

from kbert_core.errors import OptionError
from kbert_core.knowledge.mentions import Mention
from kbert_core.knowledge.surface_forms import ALL_RULES, AS_WRITTEN, NameRules
from kbert_core.knowledge.triple import Triple
from kbert_core.options import Options, option


class Rule(StrEnum):
    """Why a triple of a mention is not in the sentence tree."""

    OFF = "switched off"
    RELATION = "its relation is not among those used"
    OWN_NAME = "it only says the name that stands in the text"
    TAIL = "its tail does not occur in the text"
    SENSE = "another sense of the name fits better"
    SCORE = "its score is below the threshold"
    LIMIT = "over the limit of triples per mention"
    LENGTH = "does not fit the length limit"
    TRUNK_CUT = "its mention was cut by the length limit"
    NO_TOKENS = "the tokenizer makes no token of it"
    SHARED_TOKEN = "its mention shares a token with the mention before"


class Strategy(StrEnum):
    """How to choose among the triples that may be used."""

    FIRST = "first"  # in graph order, as in the paper
    TAIL_IN_TEXT = "tail_in_text"  # those whose tail the text has too (Roof-BERT)
    CONTEXT = "context"  # those most similar to the sentence
    RARE = "rare"  # those of the graph's rarest relations

    @classmethod
    def _missing_(cls, value: object) -> None:
        raise OptionError(f"strategy is '{value}', expected one of {', '.join(cls)}.")


WHAT = {Strategy.CONTEXT: "similarity", Strategy.RARE: "rarity"}  # that a score says
SCORED = tuple(WHAT)


@dataclass(frozen=True)
class InjectionOptions(Options):
    """How many triples a mention gets, and which.

    Attributes:
        max_triples (N): the most triples per mention, 0 for no knowledge; default: the model's
            card, else 2
        tail_only: inject tails without their relations
        relations (R): use only these relations
        not_relations (R): use none of these relations
        first_relations (R): use triples of these first, in this order; the strategy orders only the
            triples of one relation
        strategy: how triples are chosen: first in graph order (default), tail_in_text, context
            (similar to the sentence), rare relations
        threshold (X): leave out triples that score less: cosine similarity for context, information
            in nats for rare
        one_sense: of a name with several entities, use the one whose best triple scores highest
        keep_places: leave the place of a switched-off triple empty: no other moves up
        scorer (DIR|NAME): the encoder that compares, for the strategy context: a folder, hub name
            or package:NAME; default: the model's own
        names (RULE): how a name may differ from the graph's: all (default), basic, as-written, or
            some of width, case, script, dashes, spaces, plural, sense, alias, underscores, html,
            greek, numerals, possessive, latin, acronyms, whole
    """

    max_triples: int = option(2)
    tail_only: bool = option(False)
    relations: tuple[str, ...] | None = option(None)
    _: KW_ONLY
    not_relations: tuple[str, ...] = option(())
    first_relations: tuple[str, ...] = option(())
    strategy: Strategy = option(Strategy.FIRST)
    threshold: float | None = option(None)
    one_sense: bool = option(False)
    keep_places: bool = option(False)
    scorer: str | None = option(None)
    names: NameRules = option(ALL_RULES, nargs="+", parse=NameRules.of)

    def __post_init__(self) -> None:
        object.__setattr__(self, "strategy", Strategy(self.strategy))
        super().__post_init__()
        if not 0 <= self.max_triples <= 1000:
            raise OptionError(
                f"max_triples is {self.max_triples}, expected 0 to 1000. "
                "Give how many triples a mention may have."
            )
        given = "threshold" if self.threshold is not None else "one_sense" if self.one_sense else ""
        if given and self.strategy not in SCORED:
            raise OptionError(
                f"{given} is given, and the strategy '{self.strategy}' has no scores. "
                f"Choose one of {', '.join(SCORED)}, or leave it out."
            )
        if self.scorer is not None and not self.needs_model:
            raise OptionError(
                f"A scorer is given, and the strategy '{self.strategy}' needs none. "
                f"Choose {Strategy.CONTEXT}, or leave it out."
            )

    @property
    def needs_model(self) -> bool:
        """Whether a model has to be loaded to score triples."""
        return self.strategy is Strategy.CONTEXT

    @property
    def by_text(self) -> bool:
        """Whether the triples of a mention depend on the text."""
        return self.strategy in (Strategy.CONTEXT, Strategy.TAIL_IN_TEXT)

    def allows(self, relation: str) -> bool:
        """Say whether triples of a relation may be used."""
        wanted = self.relations is None or relation in self.relations
        return wanted and relation not in self.not_relations

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for a card; options of the strategy only if they were changed."""
        data = {
            f.name: list(value) if isinstance(value, tuple) else value
            for f in fields(self)
            if (value := getattr(self, f.name)) != f.default or f.name in _ALWAYS
        }
        return {**data, "names": self.names.as_list()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "InjectionOptions":
        """Read what :meth:`as_dict` wrote; options that an old card lacks get a default.

        A card without rules for names is of a model that was trained with names
        as they are written, except for width and case.
        """
        names = NameRules.of(data["names"]) if "names" in data else AS_WRITTEN
        return cls(**{**data, "names": names})


_ALWAYS = ("max_triples", "tail_only", "relations")


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a triple was used, or its rank and score among the others."""

    strategy: Strategy = Strategy.FIRST  # that had the say
    score: float | None = None  # None where it gives none
    rank: int = 0  # from 1, among the mention's triples that were ranked
    among: int = 0  # how many these are
    preferred: bool = False  # its relation is one of those that come first
    sense: str = ""  # the entity it is of, where the name means several
    threshold: float | None = None  # that scores had to reach, if any

    def __str__(self) -> str:
        if self.score is not None:
            said = f"{WHAT[self.strategy]} {self.score:.2f}, rank {self.rank} of {self.among}"
        elif self.strategy is Strategy.TAIL_IN_TEXT:
            said = "tail occurs in the text"
        else:
            said = "first in graph order"
        if self.preferred:
            said = f"its relation comes first; {said}"
        return f"{said}; sense {self.sense}" if self.sense else said


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A triple that is in the graph but not in the tree, and the rule that left it out."""

    triple: Triple
    rule: Rule
    reason: Reason | None = field(default=None, compare=False)  # its score, if it got that far

    @property
    def score(self) -> float | None:
        """The score that the strategy gave; None if it gave none."""
        return self.reason.score if self.reason else None

    @property
    def why(self) -> str:
        """The rule in words, with the score if there is one."""
        if self.reason is None or self.reason.score is None:
            return str(self.rule)
        rule = f"below {self.reason.threshold:.2f}" if self.rule is Rule.SCORE else self.rule
        return f"{rule}; {self.reason}"


@dataclass(frozen=True, slots=True)
class Candidates:
    """A mention with the triples that may be used for it."""

    sentences: tuple[str, ...]  # the text, one or two
    mention: Mention  # in one of them
    triples: tuple[Triple, ...]  # in graph order, of every entity that the name may mean


class TripleScorer(Protocol):
    """Scores how well a triple fits a mention in its text; a higher score is better."""

    def score(self, asked: Sequence[Candidates]) -> list[list[float]]:
        """Score the triples of many mentions at once; a list of scores for each mention."""
        ...


@dataclass(frozen=True, slots=True)
class Selection:
    """A mention's triples, divided into those used and those left out."""

    used: tuple[Triple, ...]  # to inject, the best first; in graph order where none is better
    reasons: tuple[Reason, ...]  # of each that is used
    left_out: tuple[LeftOut, ...]  # the others, in graph order
