"""Checkpoints to go on from: whole ones only, and only of the same run."""

import errno
import hashlib
import json
import logging
import os
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from kbert_core.checkpoints.checkpoint import card_of
from kbert_core.checkpoints.encoders import CONFIG_FILE
from kbert_core.errors import CheckpointError, OptionError
from kbert_core.files import json_object, replaced
from kbert_lab.files import or_refused
from kbert_lab.training.devices import shared
from kbert_lab.training.options import RunOptions

RUN_FILE = "run.json"  # beside the checkpoints: the options they were made with
OF_A_MODEL = ("*.safetensors", "*.safetensors.index.json", "tokenizer*.json", CONFIG_FILE)
TORCH_WRITER = "inline_container"  # named in what torch.save raises on a full disk
log = logging.getLogger(__name__)


def checkpoints_in(output: str | Path) -> Path:
    """Return the folder of the checkpoints from which a run can go on."""
    return Path(output) / "checkpoints"


def last_whole(folder: str | Path) -> Path | None:
    """Find the last checkpoint that was written to its end; None: there is none."""
    found = [path for path in Path(folder).glob(f"{PREFIX_CHECKPOINT_DIR}-*") if path.is_dir()]
    numbered = [path for path in found if path.name.rpartition("-")[2].isdecimal()]
    for checkpoint in sorted(numbered, key=step_of, reverse=True):
        broken = what_is_broken(checkpoint)
        if broken is None:
            return checkpoint
        log.warning("%s is incomplete (%s), so it is not used", checkpoint, broken)
    return None


def step_of(checkpoint: Path) -> int:
    """Return the number of steps after which a checkpoint was made."""
    return int(checkpoint.name.rpartition("-")[2])


def what_is_broken(checkpoint: Path) -> str | None:
    """Name a file that is broken because a process was killed; None: all files are whole."""
    try:
        json.loads((checkpoint / TRAINER_STATE_NAME).read_bytes())  # the last to be written
    except (OSError, ValueError):
        return TRAINER_STATE_NAME
    weights = sorted(checkpoint.glob("*.safetensors"))
    try:
        for file in weights:
            with safe_open(file, framework="pt"):
                pass
    except (OSError, SafetensorError):
        return file.name
    states = [checkpoint / "optimizer.pt", checkpoint / "scheduler.pt", *checkpoint.glob("rng_*")]
    broken = next((file.name for file in states if not zipfile.is_zipfile(file)), None)
    return broken if weights else "no weights"


def last_checkpoint(output: str) -> Path | None:
    """Return the checkpoint to go on from, in every process the same; None: there is none."""
    return shared(lambda: last_whole(checkpoints_in(output)))


def begin(
    options: RunOptions,
    run: Mapping[str, Any],
    changing: Mapping[str, Any],
    *,
    begins: bool,
    replacing: bool = False,
) -> dict[str, Any] | None:
    """Begin a run in its folder or go on with it, unless the folder holds its finished model.

    Args:
        run: what must stay the same, as plain data for JSON.
        changing: what may change when the run goes on; a finished model differs by it, too.
        begins: there is no checkpoint yet, so older notes don't count.
        replacing: a finished model doesn't matter.

    Returns:
        The report of the finished model of this very run; None: it is to be made.

    Raises:
        OptionError: the folder holds another run or its model, naming every option that differs;
            or it can't be written to.
    """

    def entered() -> dict[str, Any] | None:
        there = begins and not replacing and (Path(options.output) / "config.json").is_file()
        report = _finished(options, digests({**run, **changing})) if there else None
        if report is None:
            _note(options.output, run, changing, begins=begins)
        return report

    report = shared(entered)
    if report is None and not checkpoints_in(options.output).is_dir():
        raise OptionError(
            f"{options.output} isn't a folder that all machines share. Name a shared folder."
        )
    return report


def _finished(options: RunOptions, made: Mapping[str, str]) -> dict[str, Any] | None:
    """The report of a run's finished model; None: it is to be made again."""
    output = options.output
    notes = card_of(output).notes or {}
    before, remedy = notes.get("run"), ""
    if isinstance(before, Mapping) and before.get("kind") == made["kind"]:
        other = [name for name, digest in made.items() if before.get(name, digest) != digest]
        if not other and options.again:
            return None
        if not other:
            log.info(
                "%s holds the finished model of this very run, and nothing is trained. Give "
                "--again to train it again.",
                output,
            )
            return {name: value for name, value in notes.items() if name != "run"}
        found = f"a finished model of a run with another {', another '.join(other)}"
        remedy = ", or delete that folder"
    else:
        found = f"another model ({notes.get('command') or 'its card names no command'})"
    raise OptionError(
        f"{output}: holds {found}, which would be lost. Name another --output{remedy}."
    )


def _note(
    output: str, run: Mapping[str, Any], changing: Mapping[str, Any], *, begins: bool
) -> None:
    """Compare a run with the notes beside its checkpoints, and add what is new to the notes."""
    folder, before = checkpoints_in(output), {} if begins else noted(output)
    if not begins and not before:
        log.warning("%s has no %s, so it is treated as a checkpoint of this run", folder, RUN_FILE)
    run = json.loads(json.dumps(run))
    differing = [name for name in run if name in before and before[name] != run[name]]
    other = [f"{n} {_shown(before[n])}, now {_shown(run[n])}" for n in differing]
    if other:
        raise OptionError(
            f"{folder}: holds checkpoints of a run with other options ({'; '.join(other)}). "
            "Give the options of that run to go on with it, name another --output, or delete "
            "that folder."
        )
    remedy = "Name a folder for the model with --output that you may write to and that has room."
    with or_refused(output, OptionError, remedy, doing="written to"):
        folder.mkdir(parents=True, exist_ok=True)
        with replaced(folder / RUN_FILE) as file:
            noting = {**before, **run, **changing}
            file.write(json.dumps(noting, ensure_ascii=False, indent=1).encode())


def digests(run: Mapping[str, Any]) -> dict[str, str]:
    """Return hashes by which a run is recognised; they hold no values, so no folder names.

    Each group of options has its own hash, so that a new group doesn't change old runs.
    """
    single: dict[str, Any] = {}
    for name, value in run.items():
        options = value.items() if isinstance(value, Mapping) else [("", value)]
        single |= {f"{name} {option}".rstrip(): v for option, v in options}
    return {
        name: hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:8]
        for name, value in single.items()
    }


def noted(output: str | Path) -> dict[str, Any]:
    """Read the options with which a run's checkpoints were made; {} if there are no notes."""
    file = checkpoints_in(output) / RUN_FILE
    remedy = f"Delete {file.parent} to start anew."
    return json_object(file, CheckpointError, remedy) if file.is_file() else {}


@contextmanager
def saving(what: str | Path) -> Iterator[None]:
    """Raise a CheckpointError with a remedy if the disk is full or a folder is read-only."""
    try:
        yield
    except (OSError, SafetensorError, RuntimeError) as error:
        # torch's writer says that a disk is full by a RuntimeError of its own
        if isinstance(error, RuntimeError) and TORCH_WRITER not in str(error):
            raise
        full = getattr(error, "errno", None) == errno.ENOSPC or "No space" in str(error)
        reason = "no space left on the disk" if full else str(error).splitlines()[0]
        raise CheckpointError(
            f"{what}: can't be saved ({reason}). Free some space and run the same command again: "
            "it goes on from the last checkpoint."
        ) from error


@contextmanager
def replacing(output: str | Path) -> Iterator[Path]:
    """Write a model; an earlier one in its folder is kept until the new one is complete.

    Yields:
        A new folder of the same name, among the checkpoints. When all went well
        its files take the place of those of ``output``, ``config.json`` last, and
        other files of a model there are removed. A process killed in that moment leaves
        both models' files mixed, and the checkpoints to go on from.
    """
    output = Path(output)
    new = checkpoints_in(output) / "model" / output.resolve().name
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    try:
        yield new
        names = sorted((file.name for file in new.iterdir()), key="config.json".__eq__)
        for name in names:
            os.replace(new / name, output / name)
        for file in [file for pattern in OF_A_MODEL for file in output.glob(pattern)]:
            if file.name not in names:
                file.unlink()
    finally:
        shutil.rmtree(new.parent, ignore_errors=True)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}..."
