"""Results kept in memory, by content, up to a number of bytes.

``st.cache_resource`` bounds how many results it keeps, not how large they are: 64
traces of short sentences are five megabytes, of the longest texts eight hundred.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")


class Kept(Generic[T]):
    """The results used last, of all visitors; nothing changes them.

    Args:
        most: bytes in all. A result larger than that is made and given, but not kept.
        size: of a result, in bytes; an estimate will do.
    """

    def __init__(self, most: int, size: Callable[[T], int]) -> None:
        self.most, self.bytes = most, 0
        self._size = size
        self._found: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._lock = Lock()
        self._making: WeakValueDictionary[Hashable, Lock] = WeakValueDictionary()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what is kept under a key, or make it; whoever asks meanwhile waits for it."""
        with self._lock:
            making = self._making.setdefault(key, Lock())
        with making:
            with self._lock:
                if key in self._found:
                    self._found.move_to_end(key)
                    return self._found[key][0]
            made = make()
            size = self._size(made)
            with self._lock:
                if size <= self.most:
                    self._found[key] = (made, size)
                    self.bytes += size
                while self.bytes > self.most:
                    _, (_, gone) = self._found.popitem(last=False)
                    self.bytes -= gone
        return made
