"""`kbert export`: a model's files for a page that reads texts in the browser."""

from pathlib import Path
from typing import Any, Literal

from kbert_lab.cli.commands import command


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
