"""What is written to the terminal, with control characters made visible."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from inscape.escaping import visible

#: Seconds after which somebody who waits wants to know for what.
MOMENT = 3.0


def echo(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text with its control characters escaped."""
    typer.echo(visible(str(text)), err=err, nl=nl)


class Speech:
    """Prints lines on stderr, unless the user wants quiet."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet

    def __call__(self, *lines: str) -> None:
        """Print lines."""
        for line in lines:
            if not self.quiet:
                echo(line, err=True)


@contextmanager
def said_if_slow(say: Speech, line: str) -> Iterator[None]:
    """Print a line on stderr if the block takes longer than a moment."""
    timer = threading.Timer(MOMENT, say, [line])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
