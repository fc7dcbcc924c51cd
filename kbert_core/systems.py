"""The systems there are, by the name that cards and the command line use.

A system is a reader (:mod:`kbert_core.reader`), imported when asked for. Yours is one line more::

    SYSTEMS["mine"] = "my_package.my_module:MyReader"
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pkgutil import resolve_name
from typing import Any, ClassVar, Self

from kbert_core.errors import CheckpointError, OptionError
from kbert_core.knowledge.selection import InjectionOptions, Strategy
from kbert_core.options import Options

K_BERT = "k-bert"
SYSTEMS = {
    K_BERT: "kbert_core.kbert.kbert:KBertReader",
    "plain-text": "kbert_core.plain_text:PlainTextReader",
    "lexicon": "kbert_lab.lexicon:LexiconReader",
    "knowbert": "kbert_core.knowbert.knowbert:KnowBertReader",
    "roof-bert": "kbert_core.roof.roof_bert:RoofReader",
}


@dataclass(frozen=True)
class SystemConfig(Options):
    """How a system reads a text; what a model's card keeps of its training.

    A system's own configuration adds fields to these.

    Attributes:
        system: its name on cards and on the command line.
        options: how names are found, how many triples a mention gets, and which.
        max_length: in tokens, special tokens included; None: as many as the encoder takes.
        windows: read a text over the limit in overlapping windows, where the task can; else its
            end is cut.
    """

    system: ClassVar[str]
    options: InjectionOptions = InjectionOptions()
    max_length: int | None = None
    windows: bool = field(default=True, kw_only=True)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what :meth:`as_dict` wrote; what is missing has its default.

        Raises:
            OptionError, TypeError, ValueError, AttributeError: it is something else.
        """
        given = dict(data)
        return cls(options=InjectionOptions.from_dict(given.pop("injection", {})), **given)

    def as_dict(self) -> dict[str, Any]:
        """The configuration as plain data, for JSON."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        if plain["windows"]:  # as ever
            del plain["windows"]
        return {"injection": plain.pop("options").as_dict(), **plain}

    def with_encoders(self, named: Callable[[str], str]) -> Self:
        """Return the configuration with other names of the encoders that it needs, if any.

        Args:
            named: gives a name in place of each.
        """
        del named
        return self

    def trained_from(self, encoder: str | None) -> Self:
        """Return the configuration that scores triples with the encoder at the start of training.

        The model's own encoder changes while it is trained; the scores must not change with it.

        Args:
            encoder: the folder or name of that encoder; None: training starts from scratch.

        Raises:
            OptionError: triples are scored, but there is no pretrained encoder to score them.
        """
        options = self.options
        if options.strategy is not Strategy.CONTEXT or options.scorer is not None:
            return self
        if encoder is None:
            raise OptionError(
                "The strategy 'context' needs a pretrained encoder, but this training starts "
                "from scratch. Name one with --scorer (in a suite: scorer)."
            )
        return replace(self, options=replace(options, scorer=encoder))


def reader_class(system: Any) -> Any:
    """Find a system's reader.

    Raises:
        CheckpointError: no such system is known here.
    """
    if system not in list(SYSTEMS):
        raise CheckpointError(
            f"The model is for the system {system!r}, and only {', '.join(SYSTEMS)} are known "
            "here. Use a newer version of K-BERT Lab, or another model."
        )
    return resolve_name(SYSTEMS[system])


def reading_of(system: str, base: Any) -> Any:
    """Return the configuration of one system with the options of another system's.

    An option that is at its default in ``base`` gets the default of the new system.

    Args:
        system: the system whose configuration is made.
        base: the configuration whose options are taken over.

    Raises:
        CheckpointError: no such system is known here.
    """
    kind = reader_class(system).config_class
    if isinstance(base, kind):
        return base
    given = {f.name: getattr(base, f.name) for f in fields(base)}
    said = {f.name for f in fields(base) if f.default != given[f.name]}
    return kind(**{f.name: given[f.name] for f in fields(kind) if f.name in said})
