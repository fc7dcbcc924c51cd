"""What the app's log says of an error: where it happened, and not what a visitor typed.

An exception's message may quote a sentence. In the log stand its type and the lines
of code that led to it; KBERT_LOG_MESSAGES=1 adds the messages, for a machine where
one works alone.
"""

import logging
import os
import traceback

MESSAGES = "KBERT_LOG_MESSAGES"  # the environment's word for messages in the log
HIDDEN = f"(message not logged, it may quote a visitor; {MESSAGES}=1 shows it)"


class WithoutMessages(logging.Filter):
    """Has every traceback that is logged say no message."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Put the traceback in its place; nothing is left out of the log."""
        if isinstance(record.exc_info, tuple) and record.exc_info[1] is not None:
            record.exc_text = without_messages(record.exc_info[1])  # formatters take it as it is
        return True


_FILTER = WithoutMessages()


def begin() -> None:
    """Let no logger that there is by now tell an error's message; twice is once."""
    if os.environ.get(MESSAGES) != "1":
        for name in (None, *logging.root.manager.loggerDict):
            logging.getLogger(name).addFilter(_FILTER)


def without_messages(error: BaseException) -> str:
    """Return an error's traceback, and those of its causes, without what they say."""
    told: list[str] = []
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        lines = traceback.format_tb(following.__traceback__)
        told.append(f"{''.join(lines)}{type(following).__qualname__} {HIDDEN}")
        following = following.__cause__ or following.__context__
    return "\n\nwhich came of\n\n".join(told)
