"""Claims as a table: one row for each, from which ``Value`` and ``Trend`` are made.

The key of a row is its name and the condition, and its text the columns, split by ``|``::

    claims({
        "falls: power < -0.5": "The error becomes small. | slope of logarithms | section 2.2",
        "constant: drift between -0.2 and 0.2": "The share stays the same. | t interval",
        "units: units/20 = 40 ± 0": "Twenty rectangles take 40 units. | 20 rectangles | units",
        "tau: tau/GN = 0.15 (0.03), above 0": "Tau of GN is 0.15. | GN | tau | table 4.2",
    }, source="figure 2.3")

A trend has the columns *says*, *test* and *source*; a value has *says*, the *row* and the *column*
of the printed table, and *source*. A number in parentheses is the standard error of the printed
one, a number after ``±`` the tolerance; ``above`` and ``below`` are what is still the same trend.
"""

import re
from collections.abc import Mapping
from typing import Any

from inscape.lab.experiment import Claim, Trend, Value

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_CONDITION = re.compile(
    rf"(?P<name>.+?): (?P<of>.+?) (?:"
    rf"(?P<side>[<>]) (?P<bound>{_NUMBER})|"
    rf"between (?P<low>{_NUMBER}) and (?P<high>{_NUMBER})|"
    rf"= (?P<published>{_NUMBER})(?: ± (?P<tolerance>{_NUMBER})| \((?P<se>{_NUMBER})\))"
    rf"(?:, (?P<trend>above|below) (?P<beyond>{_NUMBER}))?)"
)


def claims(
    table: Mapping[str, str],
    *,
    source: str = "",
    test: str = "",
    extra: Mapping[str, Mapping[str, Any]] | None = None,
    **fields: Any,
) -> tuple[Claim, ...]:
    """Return the claims of a table, in its order.

    Args:
        table: Name and condition, and the columns of each row.
        source: Where the paper says it, for rows that do not say it themselves.
        test: The test behind the intervals of trends, for rows without one.
        extra: Further fields of single claims, by their names.
        fields: Further fields that all rows share, such as ``scales``.
    """
    extra = extra or {}
    listed = tuple(_claim(key, row, source, test, fields, extra) for key, row in table.items())
    if unknown := sorted(set(extra) - {claim.name for claim in listed}):
        raise ValueError(
            f"fields of single claims need claims of their names, found {', '.join(unknown)} "
            "without one: correct the name."
        )
    return listed


def _claim(
    key: str,
    row: str,
    source: str,
    test: str,
    fields: Mapping[str, Any],
    extra: Mapping[str, Mapping[str, Any]],
) -> Claim:
    condition = _CONDITION.fullmatch(key)
    if condition is None:
        raise ValueError(
            f"a claim must be 'name: quantity > 0.5', '... < 0.5', '... between 0 and 1', "
            f"'... = 0.3 ± 0.1' or '... = 0.3 (0.02)', found {key!r}: write it like one of them."
        )
    parts = {name: part for name, part in condition.groupdict().items() if part is not None}
    columns = [column.strip() for column in row.split("|")]
    shared: dict[str, Any] = {"name": parts["name"], "of": parts["of"], "says": columns[0]}
    return (_value if "published" in parts else _trend)(
        parts, columns[1:], {**shared, **fields, **extra.get(parts["name"], {})}, source, test
    )


def _trend(
    parts: Mapping[str, str], columns: list[str], shared: dict[str, Any], source: str, test: str
) -> Trend:
    tested, where, *_ = [*columns, "", ""]
    shared |= {"source": where or source}
    if tested or test:
        shared["test"] = tested or test
    if "low" in parts:
        low, high = _bound(parts["low"]), _number(parts["high"])
        return Trend(side="between", bound=low, upper=high, **shared)
    side = parts["side"]
    return Trend(side="above" if side == ">" else "below", bound=_bound(parts["bound"]), **shared)


def _value(
    parts: Mapping[str, str], columns: list[str], shared: dict[str, Any], source: str, test: str
) -> Value:
    if len(columns) < 2:
        raise ValueError(
            f"the claim {parts['name']!r} of a printed number needs the row and the column of the "
            f"printed table after what it says, found {columns}: write 'says | row | column'."
        )
    row, column, where, *_ = [*columns, ""]
    shared |= {"published": _number(parts["published"]), "at": (row, column)}
    if "se" in parts:
        shared["published_se"] = _number(parts["se"])
    else:
        shared["tolerance"] = _number(parts["tolerance"])
    if "trend" in parts:
        shared |= {"side": parts["trend"], "bound": _bound(parts["beyond"])}
    return Value(source=where or source, **shared)


def _number(text: str) -> float:
    """Return a number as it is written: an integer stays one."""
    return int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)


def _bound(text: str) -> float:
    """Return a bound; 0 is the default one."""
    return _number(text) or 0.0
