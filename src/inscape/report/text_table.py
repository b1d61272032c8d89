"""What a terminal shows of a report: paragraphs that are wrapped already, and tables."""

import shutil
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

#: No line of a paragraph is longer.
WIDEST = 100


@dataclass(frozen=True)
class TextTable:
    """Rows under their keys, to be printed as a table.

    Attributes:
        rows: The rows; a key that one lacks is an empty cell.
        right: Columns that stand at the right beside those of numbers.
        title: A line above it.
    """

    rows: Sequence[Mapping[str, object]]
    right: tuple[str, ...] = ()
    title: str = ""


#: A text to be printed as it is, or a table.
Block = str | TextTable


def terminal_width() -> int:
    """Return how wide a paragraph may be: as the terminal, and no wider than is read with ease."""
    return min(WIDEST, shutil.get_terminal_size((WIDEST, 24)).columns)


def wrapped(text: str, *, first: str = "", later: str = "", hyphens: bool = True) -> str:
    """Return a text in lines that fit the terminal, each indented, broken at hyphens or not."""
    lines = textwrap.wrap(
        text,
        terminal_width(),
        initial_indent=first,
        subsequent_indent=later,
        break_on_hyphens=hyphens,
    )
    return "\n".join(lines)
