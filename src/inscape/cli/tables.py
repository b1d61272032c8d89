"""Tables and JSON on stdout: coloured in a terminal, plain aligned text elsewhere."""

import json
import math
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from inscape.cli.console import echo
from inscape.escaping import visible_line

if TYPE_CHECKING:
    from inscape.report.text_table import Block

Row = Mapping[str, object]

#: Columns are this far apart in plain text.
GAP = "  "

#: A column of plain text is not wrapped narrower than this.
NARROWEST = 24


def print_table(rows: Iterable[Row], *, title: str = "", right: Sequence[str] = ()) -> None:
    """Print rows under their keys; a key that a row lacks is an empty cell.

    Numbers, and the columns named in ``right``, stand at the right. The last column takes what
    room is left in a terminal; in a file or a pipe no cell is ever cut or wrapped.
    """
    rows = list(rows)
    if not rows:
        return
    if _coloured():
        _print_rich(rows, title, right)
        return
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    if title:
        echo(title)
    for line in aligned(rows, width=width, right=right):
        echo(line)


def print_blocks(blocks: "Iterable[Block]") -> None:
    """Print the texts and tables that summarise a report."""
    for block in blocks:
        if isinstance(block, str):
            echo(block)
        else:
            print_table(block.rows, title=block.title, right=block.right)


def print_json(value: object) -> None:
    """Print a plain value as JSON that any reader takes: NaN and Inf become null."""
    echo(json.dumps(_finite(value), indent=2, ensure_ascii=False, default=str))


def text(value: object) -> str:
    """Return a cell as text: four digits for a number, nothing for None."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.4g}"
        case list() | tuple():
            return ", ".join(map(text, value))
    return str(value)


def _cell(value: object) -> str:
    """Return a cell of a table, in one line whatever is in it."""
    return visible_line(text(value))


def aligned(
    rows: Sequence[Row], *, width: int | None = None, right: Sequence[str] = ()
) -> list[str]:
    """Return a header and the rows as aligned lines; the last column is wrapped to ``width``."""
    keys = _keys(rows)
    heads = [key.replace("_", " ") for key in keys]
    cells = [[_cell(row.get(key)) for key in keys] for row in rows]
    to_right = [key in right or _numeric(row.get(key) for row in rows) for key in keys]
    sizes = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    if width is not None:
        room = width - sum(sizes[:-1]) - len(GAP) * (len(sizes) - 1)
        sizes[-1] = min(sizes[-1], max(NARROWEST, room))
    rule = ["-" * size for size in sizes]
    return [line for row in (heads, rule, *cells) for line in _lines(row, sizes, to_right)]


def _keys(rows: Sequence[Row]) -> list[str]:
    """Return all keys, in the order in which they first appear."""
    return list(dict.fromkeys(key for row in rows for key in row))


def _lines(row: Sequence[str], sizes: Sequence[int], to_right: Sequence[bool]) -> list[str]:
    wrapped = [[cell] for cell in row[:-1]] + [textwrap.wrap(row[-1], sizes[-1]) or [""]]
    return [
        GAP.join(
            cell.rjust(size) if flush else cell.ljust(size)
            for cell, size, flush in zip(line, sizes, to_right, strict=True)
        ).rstrip()
        for line in zip_longest(*wrapped, fillvalue="")
    ]


def _numeric(values: Iterable[object]) -> bool:
    numbers = [value for value in values if value is not None]
    return bool(numbers) and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in numbers
    )


def _coloured() -> bool:
    """Tell whether stdout is a terminal that wants colours."""
    colourless = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not colourless


def _print_rich(rows: Sequence[Row], title: str, right: Sequence[str]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    fits = max(map(len, aligned(rows))) <= console.width
    table = Table(
        box=box.SIMPLE_HEAD,
        title=title or None,
        title_justify="left",
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for i, key in enumerate(keys := _keys(rows)):
        cells = [_cell(row.get(key)) for row in rows]
        flush = key in right or _numeric(row.get(key) for row in rows)
        table.add_column(
            key.replace("_", " ").replace(" ", " " if fits else "\n"),
            justify="right" if flush else "left",
            style="bold" if i == 0 else None,
            no_wrap=not any(" " in cell for cell in cells),  # a number or a name stays whole
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(Text(_cell(row.get(key))) for key in keys))
    console.print(table)


def _finite(value: object) -> object:
    match value:
        case float() if not math.isfinite(value):
            return None
        case Mapping():
            return {str(key): _finite(item) for key, item in value.items()}
        case list() | tuple():
            return [_finite(item) for item in value]
    return value
