"""Why a model or its tokenizer can't be read, and what to do; whether the hub answers.

Read only where something is wrong, or a model is no folder here.
"""

from difflib import get_close_matches
from pathlib import Path

from huggingface_hub import constants, get_session, try_to_load_from_cache
from huggingface_hub.errors import HFValidationError

LONGEST_WAIT = 5  # seconds for the hub's first answer

COPY_TOKENIZER = "Copy tokenizer.json (or vocab.txt) and tokenizer_config.json into the folder."
SAVED_ANEW = (
    "If the tensors have Hugging Face's names or older ones, load and save the model once with "
    "transformers: AutoModel.from_pretrained(FOLDER).save_pretrained(FOLDER, "
    "safe_serialization=True). To keep its task head, use AutoModelForTokenClassification or a "
    "similar class instead of AutoModel."
)


def why(folder: Path, reason: str, *, tokenizer: bool) -> str:
    """Say why a model can't be read, or its tokenizer; ``reason`` is a library's."""
    if not folder.exists():
        return no_model_at(folder, reason)
    if tokenizer:
        return f"{folder}: the tokenizer can't be read ({reason}). {COPY_TOKENIZER}"
    if not (folder / "config.json").is_file():
        return (
            f"{folder}: found no config.json, so this isn't a Hugging Face model. Name the "
            "folder that has a config.json."
        )
    if not list(folder.glob("*.safetensors")):
        other = ", ".join(sorted(p.name for p in folder.glob("*.bin"))) or "no weights"
        return (
            f"{folder}: found {other}, expected model.safetensors. Bring a checkpoint of the "
            f"released K-BERT in with `kbert convert`. {SAVED_ANEW}"
        )
    if "ignore_mismatched_sizes" in reason:
        reason = "its weights have other sizes than its config.json states"
    return f"{folder}: the checkpoint can't be read ({reason}). Copy or download it again."


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
