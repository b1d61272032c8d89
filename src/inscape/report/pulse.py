"""Progress by the clock, for work whose steps are few and long."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import perf_counter

from inscape._core.progress import Bar, progress


class Pulse:
    """A bar that moves with the time, also while one long instrument keeps everything busy."""

    def __init__(self, bar: Bar, expected: float) -> None:
        self.bar = bar
        self.start = perf_counter()
        self.expected = max(expected, 1.0)

    def beat(self) -> None:
        """Move the bar to the share of the expected time that has passed."""
        share = min(0.99, (perf_counter() - self.start) / self.expected)
        self.bar.advance(max(0, int(100 * share) - self.bar.done))


@contextmanager
def pulse(expected: float, *, quiet: bool | None) -> Iterator[Pulse]:
    """Show how much of so many expected seconds has passed, while the block runs."""
    stop = Event()

    def beating(moved: Pulse) -> None:
        while not stop.wait(0.25):
            moved.beat()

    with progress(100, label="looking", quiet=quiet) as bar:
        moved = Pulse(bar, expected)
        thread = Thread(target=beating, args=(moved,), daemon=True)
        thread.start()
        try:
            yield moved
        finally:
            stop.set()
            thread.join()
            bar.advance(100 - bar.done)
