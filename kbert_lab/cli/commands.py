"""Commands and their options, each declared once, on top of argparse; those that several share.

A command is a function. Its docstring is its help, and its parameters are its arguments: words
where they may be given by position, else options. The docstring says of each what it is, and in
parentheses what stands for its value::

    @command("convert")
    def convert(source: Path, target: Path, *, heads: int | None = None) -> dict[str, Any]:
        '''Bring in a checkpoint of the released K-BERT.

        Args:
            source (FILE.bin): the old model
            target (DIR): folder for the new one
            heads: attention heads; default: width/64
        '''

Options that several commands share are declared so by a dataclass, and a function that has them
takes them all as ``args``. The fields of :mod:`kbert_core.options` are a declaration too, of which
``build`` makes them: there an option that was not given is not there at all, so the default, or
what a model's card says, stays.
"""

import argparse
import inspect
import logging
import re
from argparse import Namespace
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, replace
from enum import Enum
from itertools import islice
from pathlib import Path
from types import FunctionType, NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_args, get_origin

from kbert_core.checkpoints.encoders import located
from kbert_core.errors import CheckpointError, OptionError
from kbert_core.files import shipped
from kbert_core.kbert.visible import Ablation
from kbert_core.knowledge import load_graph
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.io.compression import plain_ending
from kbert_core.knowledge.selection import InjectionOptions, Strategy
from kbert_core.knowledge.triple import ALIAS_RELATIONS, AliasRelations
from kbert_core.options import Options, option_fields
from kbert_lab.cli.output import report_text
from kbert_lab.data.files import DataFiles
from kbert_lab.training.options import KnowledgeOptions

if TYPE_CHECKING:  # not imported to run: it needs PyTorch
    from kbert_core.pipeline import Pipeline

log = logging.getLogger(__name__)
T = TypeVar("T")
Arguments = Callable[[Any], object]  # adds some to a parser
NUMBERS: dict[Any, dict[str, Any]] = {
    int: {"type": int, "metavar": "N"},
    float: {"type": float, "metavar": "X"},
}
SECTION = re.compile(r"\n\n(?:Args|Attributes):\n")
ENTRY = re.compile(r"^    (\w+)(?: \((.+?)\))?: (.+(?:\n {5,}.+)*)", re.MULTILINE)
Repeated = Annotated[Sequence[str], {"action": "append"}]  # --kg A --kg B


@dataclass(frozen=True)
class Command:
    """One command; what ``run`` returns is printed, unless it is None."""

    run: Callable[..., Any]
    shared: tuple[Arguments, ...]
    text: Callable[[Any], str]

    @property
    def help(self) -> str:
        """What it does."""
        return described(self.run)[0]

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """Tell a parser what it does and takes."""
        parser.description = self.help
        parser.add_argument("--json", action="store_true", help="print JSON")
        encoding = "of files that aren't UTF-8, such as gb18030"
        parser.add_argument("--encoding", help=encoding, metavar="NAME")
        for add in (arguments_of(self.run), *self.shared):
            add(parser)
        parser.set_defaults(command=self, parser=parser)


def call(function: Callable[..., T], args: Namespace) -> T:
    """Call a function with what was typed for its arguments."""
    given = {**vars(args), "args": args}
    return function(**{name: given[name] for name in inspect.signature(function).parameters})


COMMANDS: dict[str, Command] = {}  # by name as it is typed, in the order of its module


def command(
    name: str, *shared: Arguments, text: Callable[[Any], str] = report_text
) -> Callable[[T], T]:
    """Make a function a command, with arguments that others have too."""

    def add(run: Any) -> Any:
        COMMANDS[name] = Command(run, shared, text)
        return run

    return add


def described(declared: Any) -> tuple[str, dict[str, tuple[str, str]]]:
    """A docstring: what it says first, and by argument what stands for its value, and its help.

    Of options also those of their groups.
    """
    about, *entries = SECTION.split(inspect.getdoc(declared) or "")
    groups = [
        f.type
        for f in getattr(declared, "__dataclass_fields__", {}).values()
        if f.metadata.get("group")
    ]
    said = {name: part for kind in groups for name, part in described(kind)[1].items()}
    for name, metavar, text in ENTRY.findall("".join(entries)):
        said[name] = metavar, " ".join(text.split())
    return about, said


def arguments_of(
    declared: Any, *, without: Sequence[str] = (), only: Sequence[str] = (), title: str = ""
) -> Arguments:
    """The arguments that a function or dataclass declares, all or by name, under a title."""

    def add(parser: Any) -> None:
        place = parser.add_argument_group(title) if title else parser
        fields = isinstance(declared, type) and _options(declared)
        for name, flags, how in (_of_fields if fields else _of_parameters)(declared):
            if name not in without and (not only or name in only):
                place.add_argument(*flags, **how)

    return add


def several(*arguments: Arguments) -> Arguments:
    """The arguments of all."""
    return lambda parser: [add(parser) for add in arguments]


Argument = tuple[str, list[str], dict[str, Any]]  # its name, and what argparse has to know of it


def _of_parameters(declared: Any) -> Iterator[Argument]:
    _, said = described(declared)
    for name, parameter in inspect.signature(declared).parameters.items():
        if name == "args":
            continue
        metavar, help = said.get(name, ("", ""))
        needed, default = parameter.default is parameter.empty, parameter.default
        how: dict[str, Any] = {} if needed else {"default": [] if default == () else default}
        how |= {"help": _with_default(help, default), **_how(parameter.annotation)}
        if parameter.annotation is bool:
            how["action"] = "store_true"
        if metavar:
            how["metavar"] = metavar
        flag = str(how.pop("flag", f"--{name.replace('_', '-')}"))
        if parameter.kind is parameter.KEYWORD_ONLY or not isinstance(declared, FunctionType):
            yield name, [flag], {"dest": name, "required": needed, **how}
        else:
            several = how.get("nargs") == "+"
            nargs = {} if needed else {"nargs": "*" if several else "?"}
            yield name, [name], {**how, **nargs}


def _of_fields(kind: type) -> Iterator[Argument]:
    _, said = described(kind)
    for field in _options(kind):
        about, (metavar, help) = field.metadata, said[field.name]
        how: dict[str, Any] = {"dest": field.name, "default": argparse.SUPPRESS}
        how["required"] = field.default is field.default_factory is MISSING
        how["help"] = _with_default(help, field.default)
        how |= _how(str if about["parse"] else field.type)
        typed = {"metavar": metavar, "nargs": about["nargs"], "choices": about["choices"]}
        how |= {name: value for name, value in typed.items() if value}
        yield field.name, [about["flag"] or f"--{field.name.replace('_', '-')}"], how


def _how(kind: Any) -> dict[str, Any]:
    """What argparse has to know of a type."""
    if get_origin(kind) is Annotated:
        kind, *said = get_args(kind)
        return {**_how(kind), **ChainMap(*reversed(said))}
    if isinstance(kind, UnionType):  # "X or None"
        kind = next(each for each in get_args(kind) if each is not NoneType)
    if kind is bool:
        return {"action": argparse.BooleanOptionalAction}
    how: dict[str, Any] = {}
    if get_origin(kind) is tuple:
        how["nargs"], kind = "+", get_args(kind)[0]
    if get_origin(kind) is Literal:
        how["choices"] = get_args(kind)
    elif isinstance(kind, type) and issubclass(kind, Enum):
        how["choices"] = [each.value for each in kind]
    elif kind is Path:
        how["type"] = Path
    return how | NUMBERS.get(kind, {})


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
    return [f for f in every if f.metadata.get("flag") is not None]


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
NO_GRAPH = "No graph given. Name one or more with --kg FILE."


@dataclass(frozen=True)
class Shared:
    """What several commands take, each some of it.

    Args:
        kg (FILE): graph file (.kg), text file of triples, packed or not, or postgresql://…;
            repeatable
        skip_bad: load the good lines of a graph, and list the bad ones
        alias (RELATION): its tail is another name of the head, beside the usual ones (别名,
            synonym_of, …); repeatable
        alias_of (RELATION): its head is another name of the tail, beside the usual ones (别名,
            synonym_of, …); repeatable
        max_length (N): length limit in tokens
        task: what a model without a card is for: ner, classify, multilabel, pair, rank, mask or qa;
            default: by its class
        device: auto, cpu, cuda or cuda:N
        bf16: compute in bfloat16: faster where the processor is made for it, but the second digit
            of a probability may differ
        model (DIR): default: models/medical-ner-kbert
        gate (FILE): write the names of the graph that a gate lets through over the prediction: the
            gate beside the model, as `kbert gate` saves it, or of FILE (write a text before this
            option)
        label_threshold (P): where a text may have several labels: give it those of this
            probability or more; default: 0.5
    """

    kg: Repeated = ()
    skip_bad: bool = False
    alias: Repeated = ()
    alias_of: Repeated = ()
    max_length: int | None = None
    task: str | None = None
    device: str = "auto"
    bf16: bool = False
    model: str | None = None
    gate: Annotated[str | None, {"nargs": "?", "const": ""}] = None
    label_threshold: float | None = None


COLUMNS = arguments_of(DataFiles, only=("columns",))
ALIASES = arguments_of(Shared, only=("alias", "alias_of"))
GRAPH_FILES = arguments_of(Shared, only=("kg", "skip_bad", "alias", "alias_of"))
GRAPH = several(GRAPH_FILES, arguments_of(InjectionOptions))
FORM = several(arguments_of(Shared, only=("max_length",)), arguments_of(Ablation))
SYSTEM = arguments_of(KnowledgeOptions, only=("system",))
DEVICE = arguments_of(Shared, only=("device",))
AS_TASK = arguments_of(Shared, only=("task",))
READING = several(AS_TASK, GRAPH, FORM, SYSTEM, arguments_of(Shared, only=("device", "bf16")))
GATE = arguments_of(Shared, only=("gate",))
MODEL = several(arguments_of(Shared, only=("model",)), READING)
LABEL_THRESHOLD = arguments_of(Shared, only=("label_threshold",))


def columns_of(args: Namespace) -> Mapping[str, str]:
    """Our names of columns → those of the data, as typed."""
    return given(args, DataFiles).get("columns", {})


def aliases_of(args: Namespace) -> AliasRelations:
    """The relations that give other names: the usual ones and those named."""
    others = AliasRelations(frozenset(args.alias), frozenset(args.alias_of))
    return ALIAS_RELATIONS.joined(others)


def graph_of(args: Namespace, *, needed: bool = False) -> KnowledgeGraph:
    """The graph of every ``--kg``, in order; an empty one without any, unless one is needed."""
    if needed and not args.kg:
        raise OptionError(NO_GRAPH)
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

    card = card_of(model_of(args))
    if card.task == "link" and not args.kg:
        args.kg = [graph_beside(model_of(args))]
    graph = graph_of(args)
    task = getattr(args, "task", None)
    if likely and not task and likely in card.others:
        task = likely
    pipeline = Pipeline.from_pretrained(model_of(args), task=task, device=device or args.device)
    if getattr(args, "bf16", False):  # `kbert tree` computes nothing
        from kbert_lab.training.devices import check_bf16

        check_bf16(pipeline.reader.device)
        args.until_its_end.enter_context(autocast(pipeline.reader.device.type, bfloat16))
    if why and pipeline.task is None:
        raise CheckpointError(f"{model_of(args)} is an encoder without a task head, {why}")
    pipeline = pipeline.read_as(system_of(args))
    _match(model_of(args), getattr(args, "text", ()), graph)
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


def _match(model: str, texts: Sequence[str], graph: Any) -> None:
    """Say which model that comes with the program reads a text, or a graph, that this one can't."""
    from kbert_lab.lab.models import knows, read_model, reader_of

    info = read_model(str(located(model)))
    names = [triple.head for triple in islice(graph, 200)]
    for read, what in (
        (["".join(texts)], "most of this text is in another script. Read it with"),
        (names, f"most names in the graph '{graph.name}' are in another script. Read them with"),
    ):
        if info.problem is None and not knows(info, read):
            folders = sorted(file.parent for file in shipped("models").glob("*/config.json"))
            other = reader_of(map(read_model, map(str, folders)), read, info.task)
            named = f"models/{other.folder}" if other else "DIR"
            log.warning("%s reads %s, and %s --model %s.", model, info.language, what, named)
            return
