"""Turns: what many threads may do at once, and what one must do alone."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Turns:
    """Lets threads share, or one of them be alone; whoever waits to be alone goes first.

    >>> turns = Turns()
    >>> with turns.shared():
    ...     with turns.alone():  # this thread's share is given back meanwhile
    ...         print("nobody shares")
    nobody shares
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._shares: dict[int, int] = {}
        self._waiting = 0
        self._owner: int | None = None
        self._depth = 0

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Share within the block; wait first until nobody is alone or waits to be."""
        me = threading.get_ident()
        with self._changed:
            self._changed.wait_for(lambda: self._is_free(me) and not self._must_wait(me))
            self._add(me, 1)
        try:
            yield
        finally:
            with self._changed:
                self._add(me, -1)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Be alone within the block; this thread's own shares are given back meanwhile."""
        me = threading.get_ident()
        with self._changed:
            borrowed = self._shares.get(me, 0)
            self._add(me, -borrowed)
            self._waiting += 1
            try:
                self._changed.wait_for(lambda: self._is_free(me) and not self._shares)
                self._owner, self._depth = me, self._depth + 1
            finally:
                self._waiting -= 1
        try:
            yield
        finally:
            with self._changed:
                self._depth -= 1
                self._owner = me if self._depth else None
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._is_free(me))
                self._add(me, borrowed)

    def _is_free(self, me: int) -> bool:
        return self._owner in (None, me)

    def _must_wait(self, me: int) -> bool:
        """Tell whether another waits to be alone, which whoever shares already does not mind."""
        return self._waiting > 0 and me not in self._shares and self._owner != me

    def _add(self, me: int, count: int) -> None:
        total = self._shares.get(me, 0) + count
        if total:
            self._shares[me] = total
        else:
            self._shares.pop(me, None)
        self._changed.notify_all()
