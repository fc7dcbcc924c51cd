"""The systems there are, by the name that cards and the command line use.

A system is a reader (see :mod:`kbert_core.reader`); it is imported when it is asked for, so that
what needs none of it starts at once. A system of your own is one more line::

    SYSTEMS["mine"] = "my_package.my_module:MyReader"
"""

from pkgutil import resolve_name
from typing import Any

from kbert_core.errors import CheckpointError

K_BERT = "k-bert"
SYSTEMS = {
    K_BERT: "kbert_core.kbert.reader:KBertReader",
    "plain-text": "kbert_core.kbert.plain_text:PlainTextReader",
}


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
