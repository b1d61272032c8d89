"""Numbers of the user's own for each model, which instruments are correlated with."""

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inscape.report.sweeps.models import ListedModel
from inscape.report.words import listed

#: Names of the column of a table that says which model a row is about.
KEYS = ("model", "name", "checkpoint", "file", "path")


@dataclass(frozen=True, kw_only=True)
class UserColumns:
    """Columns by name: a number for each model that has one; and what there is to say of them."""

    values: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def read_columns(source: object, entries: Sequence[ListedModel]) -> UserColumns:
    """Return the user's columns: from a CSV, a data frame, or a dictionary.

    Args:
        source: A path; a data frame; or, by the name of the column, a list in the order of the
            models or a dictionary by model. None for none.
        entries: The models.
    """
    if source is None:
        return UserColumns()
    if isinstance(source, str | Path):
        return _from_rows(_csv_rows(Path(source).expanduser()), str(source), entries)
    if hasattr(source, "to_dict") and hasattr(source, "columns"):  # a data frame
        frame: Any = source
        rows = frame.reset_index().to_dict("records")
        return _from_rows(rows, "the data frame", entries)
    if isinstance(source, Mapping):
        return UserColumns(values={str(k): _by_model(k, v, entries) for k, v in source.items()})
    raise TypeError(
        f"columns must be the path of a CSV, a data frame or a dictionary, found "
        f"{type(source).__name__}: pass for example columns={{'accuracy': [0.9, 0.95]}}."
    )


def _csv_rows(path: Path) -> list[dict[str, Any]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ValueError(
            f"the columns must be a CSV file, found {path}, which cannot be read ({why.lower()}): "
            "check the path."
        ) from error
    if not rows:
        raise ValueError(
            f"{path} must have a header and a row for each model, found no rows: write for example "
            "model,accuracy and below it epoch-1,0.93."
        )
    return rows


def _from_rows(
    rows: Sequence[Mapping[str, Any]], name: str, entries: Sequence[ListedModel]
) -> UserColumns:
    heads = [str(head) for head in rows[0]]
    key = next((head for head in heads if head.strip().lower() in KEYS), heads[0])
    known = _aliases(entries)
    models = [known.get(str(row[key]).strip()) for row in rows]
    if not any(models):
        seen = listed([repr(str(row[key])) for row in rows[:3]])
        names = listed([repr(entry.name) for entry in entries[:3]])
        raise ValueError(
            f"the column {key!r} of {name} must name the models, found {seen}, none of which is "
            f"one of them: write their names, such as {names}, or their file names."
        )
    values: dict[str, dict[str, float]] = {}
    texts = []
    for head in (head for head in heads if head not in (key, "index")):
        pairs = {m: row[head] for m, row in zip(models, rows, strict=True) if m is not None}
        numbers = {model: _number(value) for model, value in pairs.items()}
        kept = {model: number for model, number in numbers.items() if number is not None}
        if kept:
            values[head] = kept
        else:
            texts.append(head)
    return UserColumns(values=values, notes=tuple(_notes(name, models, texts, entries)))


def _notes(
    name: str, models: Sequence[str | None], texts: Sequence[str], entries: Sequence[ListedModel]
) -> Iterable[str]:
    without = [entry.name for entry in entries if entry.name not in models]
    if without:
        yield f"{name} has no row for {listed(without[:5])}: left out of its correlations"
    if unknown := models.count(None):
        yield f"{name} has {unknown} rows about models that are not in this sweep: left out"
    if texts:
        yield f"{name} has no numbers in {listed(texts)}: left out"


def _aliases(entries: Sequence[ListedModel]) -> dict[str, str]:
    """Return the names under which a table may speak of each model."""
    known: dict[str, str] = {}
    for entry in entries:
        path = Path(entry.source)
        for alias in (entry.source, path.name, path.stem, entry.name):
            known[alias] = entry.name
    return known


def _by_model(name: object, given: object, entries: Sequence[ListedModel]) -> dict[str, float]:
    known = _aliases(entries)
    if isinstance(given, Mapping):
        unknown = [str(model) for model in given if str(model) not in known]
        if unknown:
            raise ValueError(
                f"the column {name!r} must name models of the sweep, found {listed(unknown[:3])}: "
                f"they are called {listed([entry.name for entry in entries[:5]])}."
            )
        pairs = {known[str(model)]: value for model, value in given.items()}
    else:
        values = list(given) if isinstance(given, Iterable) else [given]
        if len(values) != len(entries):
            raise ValueError(
                f"the column {name!r} must have a number for each of the {len(entries)} models, "
                f"found {len(values)}: add what is missing, or pass a dictionary by model."
            )
        pairs = {entry.name: value for entry, value in zip(entries, values, strict=True)}
    return {
        model: number for model, value in pairs.items() if (number := _number(value)) is not None
    }


def _number(value: object) -> float | None:
    """Return a finite number, or None; percentages count as fractions."""
    text = str(value).strip()
    try:
        number = float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
