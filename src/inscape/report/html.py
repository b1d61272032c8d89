"""HTML pages that need no other file: templates, style sheets, tables as CSV, and writing them."""

from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from inscape import escaping
from inscape._core import Row
from inscape.files.atomic import written
from inscape.report.words import first_up, number, plain, seconds, setting, shape

#: Largest size of a page, in bytes.
LIMIT = 2_000_000


def environment() -> Environment:
    """Return the templates with what they need to write numbers and names."""
    templates = Environment(
        loader=PackageLoader("inscape.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for tool in (number, seconds, plain, first_up, shape, setting):
        templates.filters[tool.__name__] = tool
    return templates


def rendered_page(template: str, **context: Any) -> str:
    """Return a page; names in it are escaped, and their control characters escaped."""
    return escaping.visible(environment().get_template(template).render(**context))


def stylesheet(*names: str) -> Markup:
    """Return style sheets of this package, one after the other."""
    sheets = (files("inscape.report").joinpath(name) for name in names)
    return Markup("\n".join(sheet.read_text(encoding="utf-8") for sheet in sheets))


def table(rows: Sequence[Row], most: int) -> tuple[Sequence[Row], str]:
    """Return rows, thinned evenly to at most ``most``, and a note if they were."""
    if len(rows) <= most:
        return rows, ""
    stride = -(-len(rows) // most)
    return rows[::stride], f"one in {stride} of the {len(rows):,} rows, to keep the page small"


def csv_text(rows: Sequence[Row]) -> str:
    """Return rows as CSV; numbers keep nine digits, enough for float32."""
    return escaping.csv_text(rows, digits=9)


def write_by_suffix(path: Path, writers: Mapping[str, Callable[[], bytes]]) -> Path:
    """Write a report in the format that the suffix of ``path`` names, and return the path."""
    if path.suffix not in writers:
        *others, last = writers
        raise ValueError(
            f"the report must be named {', '.join(others)} or {last}, found {path.suffix!r}: "
            f"rename {path}."
        )
    write(path, writers[path.suffix]())
    return path


def write(path: Path, content: bytes) -> None:
    """Write the whole report or none, and say in a sentence what stood in the way."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with written(path) as file:
            file.write(content)
    except OSError as error:
        cause = (error.strerror or str(error)).lower()
        raise type(error)(
            f"the report could not be written to {path} ({cause}): "
            "make room or choose another place, on the command line with --out."
        ) from error
