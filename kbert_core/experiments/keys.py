"""Reading a mapping key by key, with errors that name key, value and remedy."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from kbert_core.errors import OptionError


class Keys:
    """A mapping read key by key; what is left over is unknown.

    Args:
        data: as YAML gave it.
        where: what it is, for messages.

    Raises:
        OptionError: by every method, where the mapping doesn't fit.
    """

    def __init__(self, data: Any, where: str) -> None:
        self.where = where
        if not isinstance(data, dict):
            raise OptionError(f"{where} is {shown(data)}, expected keys and values.")
        self._data = {str(key): value for key, value in data.items()}
        self._known: list[str] = []

    def take(self, key: str, kind: type | tuple[type, ...], default: Any = ...) -> Any:
        """A value of a kind; without a default it must be there."""
        self._known.append(key)
        if key not in self._data or (self._data[key] is None and default is not ...):
            if default is ...:
                raise OptionError(f"{self.where} has no '{key}'. Add it.")
            return default
        value = self._data.pop(key)
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if kind is float and isinstance(value, str):
            with suppress(ValueError):  # YAML takes 8e-4, without a point, for a text
                value = float(value)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            kinds = kind if isinstance(kind, tuple) else (kind,)
            wanted = " or ".join(_KIND_NAMES[k] for k in kinds)
            raise OptionError(f"{self.where}: {key} is {shown(value)}, expected {wanted}.")
        return value

    def choice(self, key: str, allowed: Sequence[str], default: Any = ...) -> Any:
        """One of several texts."""
        value = self.take(key, str, default)
        if value not in allowed:
            raise OptionError(
                f"{self.where}: {key} is '{value}', expected one of {', '.join(allowed)}."
            )
        return value

    def texts(self, key: str, default: Any = ...) -> tuple[str, ...]:
        """One text or a list of them."""
        value = self.take(key, (list, str), default)
        if isinstance(value, str):
            return (value,)
        wrong = [v for v in value if not isinstance(v, str)]
        if wrong:
            raise OptionError(f"{self.where}: {key} has {shown(wrong[0])}, expected texts.")
        return tuple(value)

    def seeds(self, default: Any = ...) -> tuple[int, ...]:
        """Different whole numbers under the key ``seeds``."""
        seeds = self.take("seeds", list, default)
        wrong = [s for s in seeds if not isinstance(s, int) or isinstance(s, bool) or s < 0]
        if wrong or not seeds or len(set(seeds)) < len(seeds):
            raise OptionError(
                f"{self.where}: seeds is {shown(seeds)}, expected different whole numbers "
                "from 0, as in [1, 2, 3]."
            )
        return tuple(seeds)

    def keys(self, key: str) -> "Keys":
        """A mapping inside, empty if it isn't there."""
        return Keys(self.take(key, dict, {}), f"{key} of {self.where}")

    def done(self) -> None:
        """Refuse what wasn't asked for."""
        for key in self._data:
            if key in self._known:  # given as nothing
                continue
            raise OptionError(
                f"{self.where} has the unknown key '{key}'. Known: {', '.join(self._known)}."
            )


_KIND_NAMES = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "keys and values",
}


def shown(value: Any) -> str:
    """A value for a message, not too long."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
