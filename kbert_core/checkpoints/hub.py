"""A model that is no folder here: whether the hub answers, and what its name may have meant."""

from difflib import get_close_matches
from pathlib import Path

from huggingface_hub import constants, get_session, try_to_load_from_cache
from huggingface_hub.errors import HFValidationError

LONGEST_WAIT = 5  # seconds for its first answer


def check_hub(name: str) -> None:
    """Ask once, and for a few seconds, whether the hub can be reached; else loading asks for long.

    Nothing is asked for a model that is kept here, and where HF_HUB_OFFLINE is set.

    Raises:
        ConnectionError: it can't be reached.
    """
    if constants.HF_HUB_OFFLINE:
        return
    try:
        if not isinstance(try_to_load_from_cache(name, "config.json"), str):
            get_session().head(constants.ENDPOINT, timeout=LONGEST_WAIT)
    except HFValidationError:
        return  # no name of the hub: loading says so
    except Exception as error:  # whatever its client raises
        raise ConnectionError(f"{constants.ENDPOINT} can't be reached") from error


def no_model_at(folder: Path, reason: str) -> str:
    """Say that there is no model of a name, with the model beside it whose name is alike."""
    beside = folder.parent.iterdir() if folder.parent.is_dir() else ()
    models = [path.name for path in beside if (path / "config.json").is_file()]
    alike = get_close_matches(folder.name, models, n=1)
    meant = f"Did you mean '{folder.with_name(alike[0])}'? " if alike else ""
    return (
        f"Found no model '{folder}': there is no such folder, and the hub can't give one "
        f"({reason}). {meant}Check the name, or download the model to a folder first."
    )
