"""The section of the page that explains predictions: sums as bars, and pictures."""

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from math import fsum
from typing import Any

from markupsafe import Markup

from inscape.report.look.attribution import Attribution, ClassPush, Explained, Nearest
from inscape.report.pictures import thumbnail
from inscape.report.words import number

#: Classes that are shown, at most: beyond that the strongest, and the others together.
CLASSES = 12
#: Amounts in the file of data for each prediction, at most: the strongest.
AMOUNTS = 500


@dataclass(frozen=True, kw_only=True)
class SumLine:
    """One line of a sum: what it is, and its bar in percent of the width; an end is a point."""

    name: str
    amount: float
    side: str
    text: str = ""
    note: str = ""
    picture: str | None = None
    low: float = 0.0
    width: float = 0.0

    def between(self, start: float, end: float) -> "SumLine":
        """Return the line with a bar between two places, and its amount in words."""
        text = self.text or signed(self.amount)
        return replace(self, text=text, low=min(start, end), width=abs(end - start))


def attribution_part(attribution: Attribution, rows: int) -> dict[str, Any]:
    """Return what the template needs to explain predictions.

    Args:
        attribution: The explained predictions, or their similar examples.
        rows: Most amounts in the CSV file.
    """
    pictures = {name: thumbnail(x) for name, x in attribution.pictures.items()}
    data, note = amounts(attribution, rows)
    return {
        "attribution": attribution,
        "pictures": pictures,
        "sums": [
            {
                "explained": explained,
                "bars": bars(explained, pictures),
                "classes": class_bars(explained),
            }
            for explained in attribution.explained
        ],
        "nearest": [
            {"nearest": nearest, "lists": _lists(nearest)} for nearest in attribution.nearest
        ],
        "advice": _with_code(attribution.advice),
        "data": data,
        "note": note,
    }


def signed(amount: float) -> str:
    """Return an amount with its sign, to three digits.

    >>> signed(1.23456), signed(-0.5), signed(0.0)
    ('+1.23', '−0.5', '0')
    """
    return f"{'+' if amount > 0 else ''}{number(amount, 3)}"


def bars(explained: Explained, pictures: Mapping[str, str | None]) -> list[SumLine]:
    """Return a sum line by line; each bar begins where the one before has ended."""
    lines = list(_lines(explained, pictures))
    steps = list(accumulate([line.amount for line in lines], initial=explained.initial))
    places = _places([*steps, explained.final])
    ends = pairwise(places)
    start = SumLine(
        name="before training",
        amount=explained.initial,
        side="end",
        text=number(explained.initial, 3),
    )
    last = SumLine(
        name="the output", amount=explained.final, side="end", text=number(explained.final)
    )
    return [
        start.between(places[0], places[0]),
        *(line.between(*pair) for line, pair in zip(lines, ends, strict=False)),
        last.between(places[-1], places[-1]),
    ]


def _lines(explained: Explained, pictures: Mapping[str, str | None]) -> Iterator[SumLine]:
    for side, pushes in (("up", explained.up), ("down", explained.down)):
        for push in pushes:
            name = f"example {push.row}"
            note, picture = _label(push.label), pictures.get(name)
            yield SumLine(name=name, amount=push.amount, side=side, note=note, picture=picture)
    others = explained.others
    if others.rows:
        name = f"{others.rows:,} other{'s' * (others.rows != 1)}"
        note = f"{signed(others.up)} and {signed(others.down)}"
        yield SumLine(name=name, amount=others.amount, side="rest", note=note)
    for name, amount in explained.rest.items():
        yield SumLine(name=name, amount=amount, side="rest")


def class_bars(explained: Explained) -> list[SumLine]:
    """Return what the training examples of each class have added, as bars from a common zero."""
    classes = list(explained.by_class)
    if len(classes) > CLASSES:
        classes.sort(key=lambda push: -abs(push.amount))
        classes = [*classes[: CLASSES - 1], _together(classes[CLASSES - 1 :])]
    zero, *ends = _places([0.0, *(push.amount for push in classes)])
    return [
        SumLine(
            name=push.label,
            amount=push.amount,
            side="up" if push.amount > 0 else "down",
            note=f"{push.rows:,} examples",
        ).between(zero, end)
        for push, end in zip(classes, ends, strict=True)
    ]


def _together(classes: Sequence[ClassPush]) -> ClassPush:
    rows, amount = sum(push.rows for push in classes), fsum(push.amount for push in classes)
    return ClassPush(label=f"{len(classes)} others", rows=rows, amount=amount)


def _places(values: Sequence[float]) -> list[float]:
    """Return where values lie between the smallest and the largest, in percent."""
    low, high = min(values), max(values)
    return [round(100 * (value - low) / ((high - low) or 1.0), 3) for value in values]


def _label(label: str | None) -> str:
    return "" if label is None else f"label {label}"


def _with_code(text: str) -> Markup:
    """Return a sentence as HTML, with code where it has backticks."""
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False)))


def _lists(nearest: Nearest) -> list[dict[str, Any]]:
    """Return both lists of neighbours with their titles and what their numbers are."""
    return [
        {
            "title": title,
            "unit": unit,
            "examples": [(near, number(near.nearness, 3), _label(near.label)) for near in examples],
        }
        for title, unit, examples in (
            ("Similar gradients", "cosine", nearest.by_kernel),
            ("Nearest by distance", "distance", nearest.by_distance),
        )
    ]


def amounts(attribution: Attribution, rows: int) -> tuple[list[dict[str, Any]], str]:
    """Return the strongest amounts of every prediction, and a note if there are more."""
    most = min(AMOUNTS, max(1, rows // max(1, len(attribution.amounts))))
    data = []
    for row, added in attribution.amounts.items():
        strongest = added.abs().argsort(descending=True, stable=True)[:most].tolist()
        data += [
            {attribution.row: row, "training example": n, "added": float(added[n])}
            for n in strongest
        ]
    note = f"the {most:,} strongest of {attribution.training_rows:,} examples for each prediction"
    return data, note if attribution.training_rows > most else ""
