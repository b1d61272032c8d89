"""Views: the windows that were cut last, so that a page can ask about their cells."""

import threading
from collections import OrderedDict
from dataclasses import dataclass

from inscape.explorer.planes import ExploredPlane
from inscape.explorer.subject import ExploredNetwork
from inscape.regions import PlaneRegions

#: Windows that are kept, and cells of all of them, at most.
VIEWS, CELLS = 8, 2_000_000


@dataclass(frozen=True, eq=False, kw_only=True)
class View:
    """A window that was cut for a client."""

    client: str
    network: ExploredNetwork
    plane: ExploredPlane
    regions: PlaneRegions


class Views:
    """The last windows, by number; the oldest are forgotten."""

    def __init__(self) -> None:
        self._views: OrderedDict[int, View] = OrderedDict()
        self._next = 0
        self._lock = threading.Lock()

    def keep(self, view: View) -> int:
        """Keep a window and return its number."""
        with self._lock:
            self._next += 1
            self._views[self._next] = view
            while len(self._views) > 1 and (len(self._views) > VIEWS or self._cells() > CELLS):
                self._views.popitem(last=False)
            return self._next

    def get(self, number: int, client: str) -> View:
        """Return a window of a client."""
        with self._lock:
            view = self._views.get(number)
            if view is not None and view.client == client:
                self._views.move_to_end(number)
                return view
        raise LookupError("this window is forgotten by now: move it a little to cut it anew.")

    def _cells(self) -> int:
        return sum(view.regions.cells for view in self._views.values())
