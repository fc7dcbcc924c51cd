"""What can go wrong because of something a user gave, and nothing else.

The app and the command line show the text of a ``KBertError`` as it is; any
other exception is a bug of ours and surfaces with its traceback. A message
says what was found, where, what was expected and what to do.
"""

import re

LONG_QUOTE = re.compile(r"(?<!\w)('[^'\n]{100})[^'\n]{100,}(?='(?!\w))")
LONG_WORD = re.compile(r"(\S{100})\S{300,}?(?=[:,.;)]{0,3}(?!\S))")  # longer than most paths


class KBertError(Exception):
    """An input can't be used; the message says how to correct it."""

    def __str__(self) -> str:
        """Return the message, its long values shortened and half characters as their codes."""
        text = LONG_WORD.sub(r"\1…", LONG_QUOTE.sub(r"\1…", super().__str__()))
        return text.encode("utf-8", "backslashreplace").decode()


class GraphFileError(KBertError):
    """A file of triples, or a graph of another program, can't be read as it stands."""


class GraphEditError(KBertError):
    """An edit doesn't fit the graph it is applied to."""


class GraphConflict(GraphEditError):
    """What is to be edited, or undone, was edited by someone else or later."""


class TextError(KBertError):
    """A text can't be read."""


class OptionError(KBertError):
    """An option has a value outside its range."""


class ShapeError(KBertError):
    """Two tensors that belong together differ in shape."""


class CheckpointError(KBertError):
    """A model folder is missing, broken, or not of the kind asked for."""


class EncoderError(CheckpointError):
    """An encoder can't be run as a mask-transformer; the probe says why."""


class DataError(KBertError):
    """A labelled data set can't be read or trained on as it stands."""


class SplitError(DataError):
    """A data set lacks the split asked for."""


class ExperimentError(KBertError):
    """Runs of an experiment failed, or its results don't belong together."""


class FetchError(KBertError):
    """A public file can't be fetched, or is not the file expected."""


class MissingPackageError(KBertError):
    """Something asked for needs a package that isn't installed."""
