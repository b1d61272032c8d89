"""Progress by the clock, for work whose steps are few and long."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import perf_counter

from inscape.runtime.progress import Bar, progress, silence


class Pulse:
    """A progress bar that moves with the time, also during one long step of an instrument."""

    def __init__(self, bar: Bar, expected: float) -> None:
        self.bar = bar
        self.start = perf_counter()
        self.expected = expected
        self.ended = 0.0

    def beat(self) -> None:
        """Move the bar to the fraction of the work that has ended, or of the time if that is more.

        Work that ends before its time is over, and time that is over before the work ends, both
        end the whole.
        """
        passed = (perf_counter() - self.start) / max(self.expected, 1.0)
        fraction = min(0.99, max(passed, self.ended))
        self.bar.advance(max(0, int(100 * fraction) - self.bar.done))


@contextmanager
def pulse(expected: float, *, quiet: bool | None) -> Iterator[Pulse]:
    """Show how much of so many expected seconds has passed, while the block runs."""
    stop = Event()

    def beating(moved: Pulse) -> None:
        while not stop.wait(0.25):
            moved.beat()

    with silence(quiet), progress(100, label="looking", quiet=quiet) as bar:
        moved = Pulse(bar, expected)
        thread = Thread(target=beating, args=(moved,), daemon=True)
        thread.start()
        try:
            yield moved
        finally:
            stop.set()
            thread.join()
            bar.advance(100 - bar.done)
