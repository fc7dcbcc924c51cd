"""What the app's log says of an error: where it happened, and not what a visitor typed.

An exception's message may quote a sentence. In the log stand its type and the lines
of code that led to it; KBERT_LOG_MESSAGES=1 adds the messages, for a machine where
one works alone.
"""

import logging
import os
import sys
import threading
import traceback
from types import TracebackType

MESSAGES = "KBERT_LOG_MESSAGES"  # the environment's word for messages in the log
HIDDEN = f"(message not logged, it may quote a visitor; {MESSAGES}=1 shows it)"


def begin() -> None:
    """Have every traceback that is logged from now on say no message; twice is once."""
    if os.environ.get(MESSAGES) == "1" or getattr(logging.getLogRecordFactory(), "quiet", False):
        return
    make = logging.getLogRecordFactory()

    def quiet(*args: object, **kwargs: object) -> logging.LogRecord:
        record = make(*args, **kwargs)
        if isinstance(record.exc_info, tuple) and record.exc_info[1] is not None:
            record.exc_text = without_messages(record.exc_info[1])  # formatters take it as it is
        return record

    quiet.quiet = True  # type: ignore[attr-defined]
    logging.setLogRecordFactory(quiet)
    threading.excepthook = _of_thread
    sys.excepthook = _of_program


def without_messages(error: BaseException) -> str:
    """Return an error's traceback, and those of its causes, without what they say."""
    told: list[str] = []
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        lines = traceback.format_tb(following.__traceback__)
        told.append(f"{''.join(lines)}{type(following).__qualname__} {HIDDEN}")
        cause = following.__cause__
        if cause is None and not following.__suppress_context__:
            cause = following.__context__
        following = cause
    return "\n\nwhich came of\n\n".join(told)


def _of_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None and not isinstance(args.exc_value, SystemExit):
        name = args.thread.name if args.thread else "a thread"
        print(f"Error in {name}:\n{without_messages(args.exc_value)}", file=sys.stderr)


def _of_program(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    if isinstance(error, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    print(without_messages(error), file=sys.stderr)
