"""Results kept in memory, by content, up to a number of bytes.

``st.cache_resource`` bounds how many results it keeps, not how large they are: 64
traces of short sentences are five megabytes, of the longest texts eight hundred.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Kept(Generic[T]):
    """The results used last, of all visitors; nothing changes them.

    Args:
        most: bytes in all. A result larger than that is made and given, but not kept.
        size: of a result, in bytes; an estimate will do.
    """

    def __init__(self, most: int, size: Callable[[T], int]) -> None:
        self.most = most
        self._size = size
        self._found: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._lock = threading.Lock()
        self._making: dict[Hashable, threading.Lock] = {}
        self._bytes = 0

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what is kept under a key, or make it; whoever asks meanwhile waits for it."""
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
                return self._found[key][0]
            making = self._making.setdefault(key, threading.Lock())
        with making:
            with self._lock:
                if key in self._found:
                    return self._found[key][0]
            try:
                made = make()
                self._keep(key, made)
            finally:
                with self._lock:
                    self._making.pop(key, None)
        return made

    def bytes(self) -> int:
        """How much is kept now."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._found)

    def clear(self) -> None:
        """Let go of everything."""
        with self._lock:
            self._found.clear()
            self._bytes = 0

    def _keep(self, key: Hashable, made: T) -> None:
        size = self._size(made)
        if size > self.most:
            return
        with self._lock:
            _, before = self._found.pop(key, (None, 0))
            self._found[key] = (made, size)
            self._bytes += size - before
            while self._bytes > self.most:
                _, (_, gone) = self._found.popitem(last=False)
                self._bytes -= gone
