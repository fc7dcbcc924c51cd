"""Commands and their options, each declared once, on top of argparse; those that several share.

A command is a function with the arguments that it takes; its docstring is its help::

    @command("convert", argument("source", "a .bin file"), argument("--heads", "how many", 12))
    def convert(args): ...  # with the docstring "Bring in a checkpoint of the released K-BERT."

Where a dataclass has the options anyway, its fields are the declaration (see
:mod:`kbert_core.options`), and ``build`` makes it of what was typed. An option that was not given
is not there at all, so the dataclass's default, or what a model's card says, stays.
"""

import argparse
import logging
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, replace
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin

from kbert_core.checkpoints.encoders import located
from kbert_core.errors import CheckpointError, OptionError
from kbert_core.kbert.visible import Ablation
from kbert_core.knowledge import load_graph
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.io.compression import plain_ending
from kbert_core.knowledge.selection import InjectionOptions, Strategy
from kbert_core.knowledge.triple import AliasRelations
from kbert_core.options import Options, option_fields
from kbert_core.shipped import shipped
from kbert_lab.cli.output import report_text
from kbert_lab.data.sources import DataFiles
from kbert_lab.training.options import KnowledgeOptions

if TYPE_CHECKING:  # not imported to run: it needs PyTorch
    from kbert_core.pipeline import Pipeline

log = logging.getLogger(__name__)
T = TypeVar("T")
Argument = Callable[[Any], object]  # adds itself to a parser, or to a group of one
NUMBERS: dict[Any, dict[str, Any]] = {
    int: {"type": int, "metavar": "N"},
    float: {"type": float, "metavar": "X"},
}


@dataclass(frozen=True)
class Command:
    """One command; what ``run`` returns is printed, unless it is None."""

    help: str
    arguments: tuple[Argument, ...]
    run: Callable[[Namespace], Any]
    text: Callable[[Any], str]


COMMANDS: dict[str, Command] = {}  # by name as it is typed, in the order of `kbert --help`


def command(
    name: str, *arguments: Argument, text: Callable[[Any], str] = report_text, help: str = ""
) -> Callable[[T], T]:
    """Make a function a command; the docstring is its help, if none is given."""

    def add(run: Any) -> Any:
        COMMANDS[name] = Command(help or run.__doc__.strip(), arguments, run, text)
        return run

    return add


def argument(name: str, help: str = "", default: Any = None, **how: Any) -> Argument:
    """An argument, as of ``ArgumentParser.add_argument``; its default says of which kind.

    False makes a switch, a number takes a number, an empty list may be given again and again,
    a tuple takes several words, and anything else takes one. The help says the default.
    """
    if default is False:
        how["action"] = "store_true"
    elif name.startswith("-"):
        several, again = isinstance(default, tuple), isinstance(default, list)
        kind = NUMBERS.get(type(default[0] if several else default), {})
        more = {"nargs": "+"} if several else {"action": "append"} if again else {}
        how = {**kind, "default": default, **how, **more}
    return lambda parser: parser.add_argument(name, help=_with_default(help, default), **how)


def several(*arguments: Argument, title: str = "", one: bool = False) -> Argument:
    """Several arguments, under a title in the help, or of which at most one may be given."""

    def add(parser: Any) -> None:
        parser = parser.add_argument_group(title) if title else parser
        parser = parser.add_mutually_exclusive_group() if one else parser
        for each in arguments:
            each(parser)

    return add


def options_of(kind: type, *, without: Sequence[str] = (), only: Sequence[str] = ()) -> Argument:
    """The options that a dataclass declares, those of its groups too: all, or by field."""

    def add(parser: Any) -> None:
        for field in _options(kind):
            if field.name not in without and (not only or field.name in only):
                flag = field.metadata["flag"] or f"--{field.name.replace('_', '-')}"
                how = {"dest": field.name, "default": argparse.SUPPRESS, **_how(field)}
                parser.add_argument(flag, **how)

    return add


def given(args: Namespace, kind: type) -> dict[str, Any]:
    """What was typed for the options of a dataclass and its groups; nothing for the others."""
    values: dict[str, Any] = {}
    for field in _options(kind):
        if hasattr(args, field.name):
            value, parse = getattr(args, field.name), field.metadata["parse"]
            value = tuple(value) if isinstance(value, list) else value
            values[field.name] = parse(value) if parse else value
    return values


def build(kind: type[T], args: Namespace, **others: Any) -> T:
    """Make a dataclass of what was typed, and of values of its other fields."""
    make: Any = kind.of if issubclass(kind, Options) else kind  # of all its groups
    return make(**{**given(args, kind), **others})


def _options(kind: type) -> list[Field[Any]]:
    """The fields that have a flag."""
    every = option_fields(kind).values()
    return [f for f in every if f.metadata.get("help") and f.metadata["flag"] is not None]


def _how(field: Field[Any]) -> dict[str, Any]:
    """What argparse has to know of a field."""
    about, kind = field.metadata, field.type
    if isinstance(kind, UnionType):  # "X or None"
        kind = next(each for each in get_args(kind) if each is not NoneType)
    how: dict[str, Any] = {"required": field.default is field.default_factory is MISSING}
    if kind is bool:
        return {**how, "help": about["help"], "action": argparse.BooleanOptionalAction}
    how["help"] = _with_default(about["help"], field.default)
    if get_origin(kind) is tuple and not about["parse"]:
        how["nargs"], kind = "+", get_args(kind)[0]
    if get_origin(kind) is Literal:
        how["choices"] = get_args(kind)
    elif isinstance(kind, type) and issubclass(kind, Enum):
        how["choices"] = [each.value for each in kind]
    named = {name: about[name] for name in ("metavar", "nargs", "choices") if about[name]}
    return {**how, **NUMBERS.get(kind, {}), **named}


def _with_default(help: str, default: Any) -> str:
    default = " ".join(map(str, default)) if isinstance(default, tuple) else default
    if "default" in help or default in (False, "") or not isinstance(default, int | float | str):
        return help
    return "; ".join(filter(None, [help, f"default: {default}"]))


# Options that several commands share, and what they mean

GRAPH_ENDINGS = (".kg", ".spo", ".tsv", ".ttl", ".nt")  # of a graph beside a model
DEFAULT_MODEL = "models/medical-ner-kbert"
NO_HEAD = (
    "so it predicts nothing. Train a head with `kbert train`, or look at the tree with "
    "`kbert tree`."
)
COLUMNS = options_of(DataFiles, only=("columns",))
ALIAS = "is another name of the {}, beside the usual ones (别名, synonym_of, …); repeatable"
ALIASES = several(
    argument("--alias", f"its tail {ALIAS.format('head')}", [], metavar="RELATION"),
    argument("--alias-of", f"its head {ALIAS.format('tail')}", [], metavar="RELATION"),
)
KG = "graph file (.kg), text file of triples, packed or not, or postgresql://…; repeatable"
GRAPH_FILES = several(
    argument("--kg", KG, [], metavar="FILE"),
    argument("--skip-bad", "load the good lines of a graph, and list the bad ones", False),
    ALIASES,
)
GRAPH = several(GRAPH_FILES, options_of(InjectionOptions))
LENGTH = argument("--max-length", "length limit in tokens", type=int, metavar="N")
FORM = several(LENGTH, options_of(Ablation))
SYSTEM = options_of(KnowledgeOptions, only=("system",))
TRAINING_DEVICE = argument("--device", "auto, cpu or cuda", "auto")
DEVICE = argument("--device", "auto, cpu, cuda or cuda:N", "auto")
BF16 = argument(
    "--bf16",
    "compute in bfloat16: faster where the processor is made for it, but the second "
    "digit of a probability may differ",
    False,
)
AS_TASK = argument(
    "--task",
    "what a model without a card is for: ner, classify, multilabel, pair, rank, mask or qa; "
    "default: by its class",
)
READING = several(AS_TASK, GRAPH, FORM, SYSTEM, DEVICE, BF16)
GATE = argument(
    "--gate",
    "write the names of the graph that a gate lets through over the prediction: the gate beside "
    "the model, as `kbert gate` saves it, or of FILE (write a text before this option)",
    nargs="?",
    const="",
    metavar="FILE",
)
MODEL = several(argument("--model", f"default: {DEFAULT_MODEL}", metavar="DIR"), READING)
LABEL_THRESHOLD = argument(
    "--label-threshold",
    "where a text may have several labels: give it those of this probability or more; default: 0.5",
    type=float,
    metavar="P",
)


def columns_of(args: Namespace) -> Mapping[str, str]:
    """Our names of columns → those of the data, as typed."""
    return given(args, DataFiles).get("columns", {})


def aliases_of(args: Namespace) -> AliasRelations:
    """The relations that give other names: the usual ones and those named."""
    return AliasRelations.default_and(args.alias, args.alias_of)


def graph_of(args: Namespace, *, needed: bool = False) -> KnowledgeGraph:
    """The graph of every ``--kg``, in order; an empty one without any, unless one is needed."""
    if needed and not args.kg:
        raise OptionError("No graph given. Name one or more with --kg FILE.")
    return load_graph(*args.kg, skip_bad=args.skip_bad, aliases=aliases_of(args))


def injection_of(args: Namespace, base: InjectionOptions) -> InjectionOptions:
    """The injection options: those given, else those of a card."""
    options = given(args, InjectionOptions)
    if options.get("strategy", base.strategy) != base.strategy:  # what belongs to the card's goes
        base = replace(base, threshold=None, one_sense=False, scorer=None, strategy=Strategy.FIRST)
    return replace(base, **options)


def config_of(args: Namespace, base: Any) -> Any:
    """How texts are read: as given, else as in the configuration of a model."""
    changes: dict[str, Any] = {"options": injection_of(args, base.options)}
    if ablation := given(args, Ablation):
        if "ablation" not in {field.name for field in fields(base)}:
            raise OptionError(
                f"--{next(iter(ablation))} is given, but the system '{base.system}' doesn't use "
                "K-BERT's positions and visible matrix. Leave it out."
            )
        changes["ablation"] = replace(base.ablation, **ablation)
    if args.max_length is not None:
        changes["max_length"] = args.max_length
    return replace(base, **changes)


def system_of(args: Namespace) -> str | None:
    """The system named; None: the one on the model's card."""
    return given(args, KnowledgeOptions).get("system")


def model_of(args: Namespace) -> str:
    """The model named, else the one that comes with the program."""
    if args.model is not None:
        return str(args.model)
    if ((folder := shipped(DEFAULT_MODEL)) / "config.json").is_file():
        return str(folder)
    raise CheckpointError(f"No model given and no {DEFAULT_MODEL} here. Name one with --model DIR.")


def graph_beside(model: str) -> str:
    """The graph in the folder of a model that links names to entities, and does nothing without."""
    files = sorted(Path(located(model)).glob("*"))
    found = [str(file) for file in files if plain_ending(file) in GRAPH_ENDINGS]
    if len(found) != 1:
        beside = f"{len(found)} lie" if found else "none lies"
        raise OptionError(
            f"{model} links names to entities of a graph, and no graph is given ({beside} in its "
            "folder). Name it with --kg FILE."
        )
    log.info("reading the graph beside the model, %s", found[0])
    return found[0]


def loaded(
    args: Namespace, *, why: str = "", device: str = "", likely: str = ""
) -> tuple["Pipeline", Any, Any]:
    """Load the model, read as ``--system`` says, with its graph and configuration.

    ``why`` is said of a model without a task head, where one is needed; ``likely`` is its task
    where its card says none and its head fits.
    """
    from torch import autocast, bfloat16  # seconds to start

    from kbert_core.checkpoints.checkpoint import card_of
    from kbert_core.pipeline import Pipeline

    if args.model is None and "".join(texts := getattr(args, "text", ())).isascii() and texts:
        log.warning(f"{DEFAULT_MODEL} reads Chinese. Name a model for this text with --model DIR.")
    card = card_of(model_of(args))
    if card.task == "link" and not args.kg:
        args.kg = [graph_beside(model_of(args))]
    graph = graph_of(args)
    task = getattr(args, "task", None)
    if likely and not task and likely in card.others:
        task = likely
    pipeline = Pipeline.load(model_of(args), task=task, device=device or args.device)
    if getattr(args, "bf16", False):  # `kbert tree` computes nothing
        from kbert_lab.training.bfloat16 import check_bf16

        check_bf16(pipeline.reader.device)
        args.until_its_end.enter_context(autocast(pipeline.reader.device.type, bfloat16))
    if why and pipeline.task is None:
        raise CheckpointError(f"{model_of(args)} is an encoder without a task head, {why}")
    pipeline = pipeline.read_as(system_of(args))
    if (least := getattr(args, "label_threshold", None)) is not None:
        from kbert_core.tasks import MultiLabel

        if not isinstance(pipeline.task, MultiLabel):
            raise OptionError(
                f"--label-threshold is for models of the task '{MultiLabel.name}', and this one is "
                f"for '{pipeline.card.task}'. Leave it out."
            )
        pipeline.task = MultiLabel(least)
    if getattr(args, "gate", None) is not None:
        from kbert_lab.study.gated import Gate, Gated

        if not len(graph):
            raise OptionError(
                "--gate writes names of a graph, and there is none. Name it with --kg FILE."
            )
        pipeline = Gated(pipeline, Gate.load(model_of(args), args.gate or None))
    return pipeline, graph, config_of(args, pipeline.config)
