"""Ranges of training options, each refused with its name and what was expected."""

from pathlib import Path

from kbert_core.errors import OptionError

LARGEST_SEED = 2**32 - 1  # that NumPy takes


def at_least(least: float, name: str, value: float, *, above: bool = False) -> None:
    """Refuse a number that is smaller, or with ``above`` one that isn't larger.

    Raises:
        OptionError: naming the option.
    """
    if value > least or (value == least and not above):
        return
    wanted = f"more than {least}" if above else f"at least {least}"
    raise OptionError(f"{name} is {value}, expected {wanted}.")


def share(name: str, value: float) -> None:
    """Refuse what isn't a share.

    Raises:
        OptionError: naming the option.
    """
    if not 0 <= value <= 1:
        raise OptionError(f"{name} is {value}, expected a share from 0 to 1.")


def usable_seed(seed: int) -> None:
    """Refuse a seed that random generators don't take.

    Raises:
        OptionError: it is negative or too large.
    """
    if not 0 <= seed <= LARGEST_SEED:
        raise OptionError(f"seed is {seed}, expected a whole number from 0 to {LARGEST_SEED}.")


def usable_folder(output: str | Path) -> None:
    """Refuse a file where a folder for the model is wanted.

    Raises:
        OptionError: the path, or one above it, is a file.
    """
    for path in (Path(output), *Path(output).parents):
        if path.is_file():
            raise OptionError(f"{path} is a file. Name a folder for the model.")
