"""Tables of text (csv): a header or none, the last column is the label unless said otherwise."""

import csv
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from inscape.errors import DataError, did_you_mean
from inscape.loaders.arrays import Arrays
from inscape.loaders.files import short

if TYPE_CHECKING:
    import pandas as pd

#: Columns that are read one by one; more take minutes.
_COLUMNS = 200_000


def read_table(path: Path, *, target: str | None, with_labels: bool) -> Arrays:
    """Return the columns of a table; all are inputs if there are no labels."""
    table, notes = _read(path)
    if with_labels and target is None and table.shape[1] < 2:
        notes.append("one column only: x, and there is no y")
        with_labels = False
    if not with_labels and target is None:
        return Arrays(x=_numbers(table, path), notes=tuple(notes))
    label = _target(table, target, path)
    notes.append(f"y is the column {label!r}" + ("" if target else ", the last one"))
    y = table[label]
    numeric = y.dtype.kind in "biuf"
    if not numeric and y.isna().any():
        row = int(np.flatnonzero(y.isna())[0])
        raise DataError(f"{path} must have a label in every row, found none in row {row}: fill it.")
    return Arrays(
        x=_numbers(table.drop(columns=[label]), path),
        y=y.to_numpy() if numeric else y.astype(str).to_numpy(dtype=str),
        notes=tuple(notes),
    )


def _read(path: Path) -> tuple["pd.DataFrame", list[str]]:
    import pandas as pd

    try:
        lines = _first_lines(path)
        comma = max(",;\t", key=lines[0].count)
        _check_columns(path, 1 + lines[0].count(comma))
        rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=comma)]
        header = _has_header(rows)
        table = pd.read_csv(path, sep=comma, header=0 if header else None, skipinitialspace=True)
    except (UnicodeDecodeError, pd.errors.ParserError, csv.Error) as error:
        raise DataError(
            f"{path} must be a table of text with rows of one length, found one that cannot be "
            f"read ({short(error)}): save it again as csv."
        ) from error
    table.columns = table.columns.astype(str)
    notes = ["the first line was taken as a header"] if header else []
    if header and rows[0][0] == "":
        table = table.drop(columns=[table.columns[0]])
        notes.append("left out the first column, which has no name (a row number)")
    return table, notes


def _check_columns(path: Path, columns: int) -> None:
    if columns > _COLUMNS:
        raise DataError(
            f"{path} must have at most {_COLUMNS:,} columns, found {columns:,}: save it as .npz, "
            "which is read at once."
        )


def _first_lines(path: Path) -> list[str]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = [line for line in islice(file, 20) if line.strip()][:2]
    if not lines:
        raise DataError(f"{path} must hold rows of numbers, found blank lines only: save it again.")
    return lines


def _has_header(rows: list[list[str]]) -> bool:
    """Tell a first line of names: all text, or text where the second line has a number."""
    first = [_is_number(cell) for cell in rows[0]]
    second = [_is_number(cell) for cell in rows[1]] if len(rows) > 1 else []
    changes = any(below and not above for above, below in zip(first, second, strict=False))
    return changes or not any(first)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _target(table: "pd.DataFrame", target: str | None, path: Path) -> str:
    names = [str(name) for name in table.columns]
    if target is None:
        return names[-1]
    if target not in names:
        others = f"it has {', '.join(names[:8])}."
        near = did_you_mean(target, names, otherwise=others, quoted=True)
        raise DataError(f"{path} must have the column {target!r}, found none: {near}")
    return target


def _numbers(
    table: "pd.DataFrame", path: Path
) -> "np.ndarray[tuple[int, ...], np.dtype[np.float64]]":
    import pandas as pd

    for name in table.columns:
        if len(table) and table[name].dtype.kind not in "biuf":
            bad = pd.to_numeric(table[name], errors="coerce").isna() & table[name].notna()
            row = int(np.flatnonzero(bad)[0]) if bad.any() else 0
            raise DataError(
                f"{path} must hold numbers in its inputs, found {table[name].iloc[row]!r} in row "
                f"{row} of the column {name!r}: encode or drop that column (a label column is "
                "named by target)."
            )
    return table.to_numpy(dtype=np.float64)
