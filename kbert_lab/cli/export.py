"""`kbert export` and `kbert page`: what is seen in a browser without a server."""

import logging
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from kbert_core.errors import CheckpointError, TextError
from kbert_core.knowledge.edit import Edit
from kbert_core.knowledge.graph import KnowledgeGraph
from kbert_core.knowledge.triple import Triple
from kbert_lab.cli import commands as options
from kbert_lab.cli.commands import command, loaded, model_of

log = logging.getLogger(__name__)


@command("export")
def export(model: str, *, output: Path, bits: Literal["8", "16", "32"] = "8") -> dict[str, Any]:
    """Write a model's files for a web page without a server.

    The scripts of kbert_lab/lab/page read them; `make docs` makes such pages.

    Args:
        model (DIR|NAME): a BERT for named entities
        output (DIR): folder for the files
        bits: of each weight; default: 8
    """
    from kbert_core.pipeline import Pipeline
    from kbert_lab.lab.page.export import export_model

    card = export_model(Pipeline.from_pretrained(model, device="cpu"), output, int(bits))
    return {"folder": str(output), "bytes of the layers": card["bytes"], "words": card["count"]}


@command("page", options.MODEL)
def page(
    args: Namespace,
    text: tuple[str, ...],
    *,
    output: Path,
    language: Literal["en", "zh"] = "en",
) -> dict[str, Any]:
    """Write a page of one text as a file, its triples to be switched.

    It needs no server and no network, as a supplement of a paper does.

    Args:
        text: a sentence, or two for a pair
        output (FILE.html): the page
        language: of the page
    """
    from torch import stack  # seconds to start

    from kbert_core.pipeline import NO_KNOWLEDGE
    from kbert_lab.lab.models import read_model
    from kbert_lab.lab.page.file import Page, Side, page_html
    from kbert_lab.lab.scene import GraphRef, Scene, is_blank
    from kbert_lab.lab.texts import speaking, t
    from kbert_lab.lab.views.heads import map_name
    from kbert_lab.lab.words import COMPARE_NAME, TASK_TEXTS

    if is_blank("".join(text)):
        raise TextError("The text holds nothing that can be seen. Give a sentence.")
    pipeline, graph, config = loaded(args, why=options.NO_HEAD)
    info = read_model(model_of(args))
    if not info.has_trees or pipeline.reader.inserts:
        raise CheckpointError(
            f"The model's system, '{pipeline.card.system}', grows no tree to be drawn. Name a "
            "model of k-bert."
        )
    config = replace(config, options=replace(config.options, keep_places=True))
    named = GraphRef(graph.fingerprint, graph.name)
    how = {"options": config.options, "ablation": config.ablation}
    scene = Scene(text, model_of(args), named, **how)

    def side(name: str, graph: KnowledgeGraph) -> Side:
        trace = pipeline(*text, graph=graph, config=config, attentions=True)
        size, layers = len(trace.rows[0]), stack([layer[0] for layer in trace.attentions])
        shown = layers[:, :, :size, :size].mean((0, 1)).float().cpu().numpy()
        return Side(name, scene, graph, replace(trace, attentions=None), lambda: shown)

    def without(off: Sequence[Triple]) -> Side:
        return side(after, graph.apply(*(Edit("switch_off", triple) for triple in off)))

    with speaking(language):
        after = t("with the graph")
        now, before = side(after, graph), side(t(COMPARE_NAME["bert"]), NO_KNOWLEDGE)
        if (windows := len(now.trace.rows)) > 1:
            log.warning("The text is read in %d windows; the page shows the first.", windows)
        task = t(TASK_TEXTS[info.task or ""])
        made = page_html(Page(now, without, before, info, task, 0, map_name(0, 0), hung=False))
    try:
        output.write_bytes(made)
    except OSError as error:
        raise TextError(
            f"{output}: can't be written ({error.strerror or error}). Name another file."
        ) from error
    return {"page": str(output), "bytes": len(made)}
