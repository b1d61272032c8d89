"""Names from outside, such as those of layers, as text that is shown and not obeyed.

One place for all outputs: terminal, HTML, JSON, CSV and figures. Loads nothing heavy.
"""

import csv
import io
import re
from collections.abc import Mapping, Sequence

#: Control characters but tab and line feed; marks, embeddings and isolates that turn the direction
#: of writing; separators of lines; characters of no width; halves of surrogate pairs.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
#: Beginnings that make a spreadsheet read a cell as a formula, their wide forms among them.
_FORMULA = re.compile("[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|nan)")


def visible(text: str) -> str:
    r"""Return a text with its control characters escaped; tabs and line feeds stay.

    The form is that of JSON, so it also serves for a text that is JSON already.

    >>> visible("fc\u202e1\x1b[31m")
    'fc\\u202e1\\u001b[31m'
    """
    return _CONTROL.sub(_escaped, text)


def visible_block(text: str) -> str:
    r"""Return a text with its control characters escaped, tabs too; line feeds stay.

    >>> visible_block("two\nlines\t")
    'two\nlines\\t'
    """
    return visible(text).replace("\t", "\\t")


def visible_line(text: str) -> str:
    r"""Return a text with its control characters escaped, tabs and line feeds too.

    >>> visible_line("two\nlines")
    'two\\nlines'
    """
    return visible_block(text).replace("\n", "\\n")


def figure_label(text: str) -> str:
    r"""Return a text that matplotlib draws as it stands: dollars begin no formula.

    >>> figure_label("cost_$")
    'cost_\\$'
    """
    return re.sub(r"\\*\$", r"\\$", visible_block(text))


def csv_cell(value: object) -> object:
    """Return a cell of a CSV that no spreadsheet reads as a formula; numbers stay numbers.

    >>> csv_cell("=1+1"), csv_cell("-fc"), csv_cell(-1.5), csv_cell("-1.5")
    ("'=1+1", "'-fc", -1.5, '-1.5')
    """
    if isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def csv_text(rows: Sequence[Mapping[str, object]], digits: int | None = None) -> str:
    """Return rows as CSV under the names of the first, control characters escaped.

    Args:
        rows: Rows of a table.
        digits: Significant digits of floats; all of them where it is None.
    """
    out = io.StringIO()
    names = list(rows[0]) if rows else []
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writerow({name: csv_cell(name) for name in names})
    for row in rows:
        writer.writerow({name: _cell(value, digits) for name, value in row.items()})
    return visible(out.getvalue())


def _cell(value: object, digits: int | None) -> object:
    return f"{value:.{digits}g}" if digits and isinstance(value, float) else csv_cell(value)


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
