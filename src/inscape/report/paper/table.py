"""The tables on the page of a paper, in its own form: which claims stand where in them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from inscape.lab.equivalence import with_positive_ends
from inscape.lab.experiment import SCALES, Axes, Estimate, Experiment
from inscape.lab.verdict import FEWEST
from inscape.report.words import listed, number

#: A claim with its verdict in words and numbers.
Shown = Mapping[str, Any]

#: How far a printed number is from the one behind it, at two decimals.
ROUNDING = 0.0051

#: A number of ours beside one that was found under other settings.
NOT_COMPARED = "not compared"


@dataclass(frozen=True, kw_only=True)
class PaperTable:
    """Rows, columns and cells of a paper's table."""

    title: str = ""
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: Mapping[tuple[str, str], Shown] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def tables(
    shown: Sequence[Shown], entry: Mapping[str, Any], runs: Experiment
) -> tuple[tuple[PaperTable, ...], list[Shown]]:
    """Return the table of the paper, that of its numbered columns, and what fits in none.

    A number that shares neither its row nor its column with another is no table. Columns that are
    numbers (sizes, say) are a table of their own: they answer another question.

    Args:
        shown: Claims about numbers, in their order.
        entry: What the paper's list of results says about the table; may be empty.
        runs: The experiment whose records are shown.
    """
    placed = [claim for claim in shown if claim["at"] != ("", "")]
    alone = [claim for claim in placed if not any(_beside(claim, other) for other in placed)]
    rest = [claim for claim in placed if claim not in alone]
    counted = [claim for claim in rest if claim["at"][1].isdecimal()]
    main = [claim for claim in rest if claim not in counted]
    paper_tables = []
    brackets = constants(entry)
    for block in blocks(main):
        paper_tables.append(_table(block, brackets, spread=True))
        brackets = {}
    if counted:
        quantity = counted[0]["of"].partition("/")[0]
        paper_tables.append(
            _table(counted, {}, title=f"{quantity.capitalize()}{_by(counted, runs)}")
        )
    return tuple(paper_tables), alone


def blocks(shown: Sequence[Shown]) -> list[list[Shown]]:
    """Return claims of a table in groups that share neither a row nor a column with each other.

    Each is a table of its own: together they would be one with empty corners.

    Args:
        shown: Claims about numbers, in their order.
    """
    groups: list[list[Shown]] = []
    for claim in shown:
        touching = [group for group in groups if any(_aligned(claim, other) for other in group)]
        merged = [other for group in touching for other in group] + [claim]
        groups = [group for group in groups if group not in touching] + [merged]
    order = {id(claim): place for place, claim in enumerate(shown)}
    groups = [sorted(group, key=lambda claim: order[id(claim)]) for group in groups]
    return sorted(groups, key=lambda group: order[id(group[0])])


def constants(entry: Mapping[str, Any]) -> dict[tuple[str, int], dict[str, str]]:
    """Return the columns of a printed table that are neither means nor how far these scatter.

    The key is the column's name, and how many means are printed to its left.
    """
    columns = entry.get("columns", ())[1:]
    brackets = {}
    for index, column in enumerate(columns, start=1):
        if not column.endswith(("_mean", "_sd", "_se")):
            place = sum(name.endswith("_mean") for name in columns[: index - 1])
            brackets[column.replace("_", " "), place] = {
                str(row[0]): number(row[index])
                for row in entry.get("rows", ())
                if isinstance(row[index], int | float)
            }
    return brackets


def printed(entry: Mapping[str, Any], row: str, published: float) -> tuple[str, str]:
    """Return a number as the paper's table has it, and the standard deviation beside it.

    A claim may hold more digits than were printed; a number that the table does not have is
    returned as it is, without a spread.
    """
    columns = entry.get("columns", ())
    lines = [line for line in entry.get("rows", ()) if line[0] == row]
    places = [
        (abs(value - published), index)
        for line in lines[:1]
        for index, value in enumerate(line)
        if isinstance(value, int | float) and not columns[index].endswith("_sd")
    ]
    off, index = min(places, default=(1.0, 0))
    if off > ROUNDING:
        return number(published), ""
    beside = columns[index].removesuffix("_mean") + "_sd"
    spread = lines[0][columns.index(beside)] if beside in columns else None
    return number(lines[0][index]), "" if spread is None else number(spread, 2)


def beyond(
    main: Sequence[PaperTable], quantities: Mapping[str, Estimate], claimed: set[str]
) -> dict[str, list[tuple[str, Estimate]]]:
    """Return the quantities of the judged kinds that no claim is about, kind by kind.

    Those of a kind whose printed numbers have a heavy tail are positive, and so is their interval.

    Args:
        main: The tables of the paper.
        quantities: What the analysis gave.
        claimed: Quantities that claims are about.
    """
    cells = [cell for table in main for cell in table.cells.values()]
    judged = [claim for claim in cells if claim.get("verdict", NOT_COMPARED) != NOT_COMPARED]
    by_kind = {}
    for kind in dict.fromkeys(claim["of"].partition("/")[0] for claim in judged):
        of_kind = [name for name in quantities if name.startswith(f"{kind}/")]
        positive = any(
            claim["kind"] == "heavy-tailed" for claim in judged if claim["of"] in of_kind
        )
        if names := [name for name in of_kind if name not in claimed]:
            by_kind[kind] = [
                (_after(name, kind), _shown(quantities[name], positive=positive)) for name in names
            ]
    return by_kind


def _shown(ours: Estimate, *, positive: bool) -> Estimate:
    """Return an estimate with the interval that claims about its kind are shown with."""
    enough = len(ours.units) >= FEWEST["studentised"] and min(ours.units, default=0.0) > 0
    return with_positive_ends(ours) if positive and enough else ours


def _after(name: str, kind: str) -> str:
    """Return the rest of a quantity's name as words: ``GN, 1e-05`` for ``left/GN/1e-05``."""
    return name.removeprefix(f"{kind}/").replace("/", ", ").replace("_", " ")


def _beside(claim: Shown, other: Shown) -> bool:
    """Tell whether two different numbers share a row or a column."""
    return claim is not other and _aligned(claim, other)


def _aligned(claim: Shown, other: Shown) -> bool:
    return any(a == b for a, b in zip(claim["at"], other["at"], strict=True))


def _by(cells: Sequence[Shown], runs: Experiment) -> str:
    """Return by which setting the columns differ: the one that takes their numbers."""
    columns = {claim["at"][1] for claim in cells}
    axes_by_scale: list[Axes] = [runs.axes(scale) for scale in SCALES]
    for axes in axes_by_scale:
        for name, values in axes.items():
            if columns & set(map(str, values)):
                return f" by {name}"
    return ""


def _table(
    cells: Sequence[Shown],
    brackets: Mapping[tuple[str, int], Mapping[str, str]],
    *,
    title: str = "",
    spread: bool = False,
) -> PaperTable:
    rows = tuple(dict.fromkeys(claim["at"][0] for claim in cells))
    columns = list(dict.fromkeys(claim["at"][1] for claim in cells))
    filled: dict[tuple[str, str], Shown] = {
        claim["at"]: claim if spread else {**claim, "spread": "", "printed_spread": "", "there": ""}
        for claim in cells
    }
    claimed = {column.replace("_", " ") for column in columns}
    for (column, place), values in brackets.items():
        if column in claimed or not any(row in values for row in rows):  # it tells nothing new
            continue
        columns.insert(place, column)
        filled |= {(row, column): {"given": values[row]} for row in rows if row in values}
    notes = _notes([claim for claim in filled.values() if "given" not in claim])
    return PaperTable(title=title, rows=rows, columns=tuple(columns), cells=filled, notes=notes)


def _notes(cells: Sequence[Shown]) -> tuple[str, ...]:
    """Say what stands in a cell, where the numbers are from, and why some are not compared."""
    kinds = {claim.get("deviation") for claim in cells if claim["spread"]}
    ours = "our number"
    if len(kinds) == 1:
        ours = f"our mean ± its standard {'deviation' if kinds.pop() else 'error'} over data sets"
    sentences = [
        f"Each cell: {ours} with its mark, its 95% interval, and the published one with the same."
        if ours != "our number"
        else "Each cell: our number with its mark, its 95% interval, and the published one."
    ]
    for label in dict.fromkeys(claim["label"] for claim in cells):
        unique = {o["source"]: None for o in cells if o["label"] == label and o["source"]}
        sources = [s for s in unique if not any(o != s and o.startswith(f"{s};") for o in unique)]
        if sources:
            sentences.append(f"{label.capitalize()}: {'; '.join(sources)}.")
    if scales := [claim["scales"] for claim in cells if claim["verdict"] == NOT_COMPARED]:
        fits = listed(list(dict.fromkeys(scales)))
        sentences.append(f"Not compared: the published number is of the settings of scale {fits}.")
    return tuple(sentences)
