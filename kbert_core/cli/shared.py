"""The options that several commands share, and what they mean."""

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbert_core.cli.commands import argument, given, options_of, several
from kbert_core.data.sources import DataFiles
from kbert_core.errors import CheckpointError, OptionError
from kbert_core.kbert.visible import Ablation
from kbert_core.knowledge import load_graph
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.selection import InjectionOptions, Strategy
from kbert_core.knowledge.triple import AliasRelations
from kbert_core.training.options import KnowledgeOptions

if TYPE_CHECKING:  # not imported to run: they need PyTorch
    from kbert_core.pipeline import Pipeline

DEFAULT_MODEL = "models/medical-ner-kbert"
DATA_SETS = (
    "folder of train.tsv, dev.tsv and test.tsv (or .conll, with one token a line), or saved by "
    "Hugging Face's datasets; or a data set of its hub, hf:NAME or hf:NAME/CONFIG"
)
COLUMNS = options_of(DataFiles, only=("columns",))
USUAL = "beside the usual ones (别名, synonym_of, …); repeatable"
ALIASES = several(
    argument("--alias", f"its tail is another name of the head; {USUAL}", [], metavar="RELATION"),
    argument(
        "--alias-of", f"its head is another name of the tail; {USUAL}", [], metavar="RELATION"
    ),
)
GRAPH_FILES = several(
    argument(
        "--kg",
        "graph file (.kg) or text file of triples, packed or not; repeatable",
        [],
        metavar="FILE",
    ),
    argument("--skip-bad", "leave bad lines of a graph out, and list them", False),
    ALIASES,
)
GRAPH = several(GRAPH_FILES, options_of(InjectionOptions))
FORM = several(
    argument("--max-length", "at most so many tokens", type=int, metavar="N"),
    options_of(Ablation),
)
SYSTEM = options_of(KnowledgeOptions, only=("system",))
DEVICE = argument("--device", "auto, cpu, cuda or cuda:N", "auto")
TRAINING_DEVICE = argument("--device", "auto, cpu or cuda", "auto")
READING = several(GRAPH, FORM, SYSTEM, DEVICE)
MODEL = several(argument("--model", f"default: {DEFAULT_MODEL}", metavar="DIR"), READING)


def columns_of(args: Namespace) -> Mapping[str, str]:
    """Our names of columns → those of the data, as typed."""
    return given(args, DataFiles).get("columns", {})


def aliases_of(args: Namespace) -> AliasRelations:
    """The relations that give other names: the usual ones and those named."""
    return AliasRelations.default_and(args.alias, args.alias_of)


def graph_of(args: Namespace, *, needed: bool = False) -> KnowledgeGraph:
    """The graph of every ``--kg``, in order; an empty one without any.

    Raises:
        OptionError: none is named, and one is needed.
    """
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
    """How texts are read: as given, else as a model was trained.

    Args:
        base: the configuration of the model's system.

    Raises:
        OptionError: the system has no such option.
    """
    changes: dict[str, Any] = {"options": injection_of(args, base.options)}
    ablation = given(args, Ablation)
    if ablation:
        if "ablation" not in {field.name for field in fields(base)}:
            raise OptionError(
                f"--{next(iter(ablation))} is given, and the system '{base.system}' has none of "
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
    if args.model:
        return str(args.model)
    for folder in (Path(), Path(__file__).resolve().parents[2]):
        if (folder / DEFAULT_MODEL / "config.json").is_file():
            return str(folder / DEFAULT_MODEL)
    raise CheckpointError(f"No model given and no {DEFAULT_MODEL} here. Name one with --model DIR.")


def loaded(
    args: Namespace, *, why: str = "", device: str = ""
) -> tuple["Pipeline", KnowledgeGraph, Any]:
    """Load the model, with the graph and the configuration that it reads with.

    With ``--system`` the model is read by another system than on its card.

    Args:
        why: said of a model that has no task head, if one is needed.
        device: where it runs; "": as the arguments say.

    Raises:
        CheckpointError: it can't be loaded, or has no head.
    """
    from kbert_core.checkpoints.checkpoint import reading_of
    from kbert_core.pipeline import Pipeline  # seconds to start

    graph = graph_of(args)
    pipeline = Pipeline.load(model_of(args), device=device or args.device)
    if why and pipeline.task is None:
        raise CheckpointError(f"{model_of(args)} is an encoder without a task head, {why}")
    system = system_of(args)
    if system not in (None, pipeline.card.system):
        card = replace(pipeline.card, reading=reading_of(system, pipeline.card.reading))
        pipeline = Pipeline(pipeline.reader.model, pipeline.hugging_face_tokenizer, card)
    return pipeline, graph, config_of(args, pipeline.config)
