"""Where the report goes, whether it can go there, and what is said on stderr."""

import re
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from inscape.cli.terminal import echo

#: Seconds after which somebody who waits wants to know for what.
MOMENT = 3.0


def page_path(out: Path, name: str) -> Path:
    """Return the file of the report: ``out`` itself if it is named .html, else in that folder."""
    if out.suffix == ".html" and not out.is_dir():
        return out
    return out / f"{name}.html"


def page_name(model: str, weights: Path | None, data: str) -> str:
    """Return a file name that tells what was measured, from what the user wrote.

    >>> page_name("nets/conv.py:small", Path("best.pt"), "mnist-binary:4-9")
    'conv-small-best-mnist-binary-4-9'
    """
    code, _, factory = model.rpartition(":") if ":" in model else (model, "", "")
    source = code if code.endswith(".py") or not factory else code.rpartition(".")[2]
    parts = [_stem(source), factory, "" if weights is None else weights.stem, _stem(data)]
    return re.sub(r"[^\w.-]+", "-", "-".join(filter(None, parts))).strip(".-") or "report"


def check_writable(path: Path) -> None:
    """Refuse a place that cannot be written, before any work; leave nothing behind."""
    if path.is_dir():
        raise OSError(f"cannot write the report {path}: it is a folder: choose another --out.")
    folder = path.parent
    nearest = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    try:
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise OSError(
            f"cannot write into the folder {nearest}: {why}: choose another with --out, or "
            "--no-page to write none."
        ) from error


class Speech:
    """What is said on stderr, unless the user wants quiet."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet

    def __call__(self, *lines: str) -> None:
        """Say some lines."""
        for line in lines:
            if not self.quiet:
                echo(line, err=True)


@contextmanager
def said_if_slow(say: Speech, line: str) -> Iterator[None]:
    """Say a line where the block takes longer than a moment."""
    timer = threading.Timer(MOMENT, say, [line])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _stem(text: str) -> str:
    """Return the name of a file without folder and suffix; other words stay as they are."""
    path = Path(text)
    return path.stem if re.fullmatch(r"\.[A-Za-z]\w*", path.suffix) else text
