"""What a look shows in the terminal of the training rows that made predictions."""

import shutil
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from inscape.cli.terminal import echo

if TYPE_CHECKING:
    from inscape.report.look.attribution import Attribution, Explained, Like, Nearest, Prediction

#: Training rows that are named on either side: fewer than on the page.
NAMED = 3

#: Residual, relative to the largest change of an output, that rounding in float64 leaves.
ROUNDED = 1e-10


def print_attribution(found: "Attribution") -> None:
    """Print each explained prediction as a sum, or what is alike, or why there is neither."""
    lines = [_equation(found, one) for one in found.explained]
    lines += [_likes(found, one) for one in found.nearest]
    if found.explained:
        what = f"{found.training_rows:,} training rows in {found.training}"
        lines.insert(0, f"What made these predictions: {what}.")
        missed = max(abs(one.total - one.final) for one in found.explained)
        change = max(abs(one.final - one.initial) for one in found.explained)
        why = " by rounding" if found.residual <= ROUNDED * change else ""
        lines.append(
            f"All parts add up to the outputs within {missed:.0e}, with residuals{why} of "
            f"at most {found.residual:.0e}."
        )
    if found.nearest:
        lines.insert(0, f"Which examples have similar gradients, of {found.searched:,} rows:")
    if found.reason:
        lines.append(f"Not split into what training rows added: {found.reason}.")
    if found.advice:
        lines.append(found.advice)
    width = min(100, shutil.get_terminal_size((100, 24)).columns)
    for line in ("", *lines):
        text = textwrap.wrap(line, width, subsequent_indent="    ", break_on_hyphens=False)
        echo("\n".join(text).replace("\N{NO-BREAK SPACE}", " "))
    if found.left_out:
        rows = ", ".join(map(str, found.left_out))
        echo(f"left out for time: {found.rows} {rows}: {found.command}")


def _equation(found: "Attribution", one: "Explained") -> str:
    """Return a prediction as a sum: what is named, and all that is not, makes the output."""
    from inscape.report.look.attribution_page import signed
    from inscape.report.words import number

    named = (*one.up[:NAMED], *one.down[:NAMED])
    unnamed = (*one.up[NAMED:], *one.down[NAMED:])
    count = one.others.rows + len(unnamed)
    rest = one.others.amount + sum(push.amount for push in unnamed)
    parts = [f"{number(one.initial, 3)} before training"]
    parts += [f"{signed(push.amount)} by {_row(push.row, push.label)}" for push in named]
    parts += [f"{signed(rest)} by {count:,} others"] if count else []
    parts += [f"{signed(part)} by {name}" for name, part in one.rest.items() if name != "residual"]
    whole = " ".join(part.replace(" ", "\N{NO-BREAK SPACE}") for part in parts)
    return f"{_said(found, one.prediction)}: {number(one.final)} = {whole}"


def _said(found: "Attribution", one: "Prediction") -> str:
    sure = "" if one.probability is None else f" ({one.probability:.1%} sure)"
    but = {True: " and is", False: " but is", None: ", is"}[one.right]
    truth = "" if one.truth is None else f"{but} {one.truth}"
    return f"{found.row} {one.row} says {one.says}{sure}{truth}"


def _likes(found: "Attribution", one: "Nearest") -> str:
    near, far = _list(one.by_kernel), _list(one.by_distance)
    return f"{_said(found, one.prediction)}: by cosine of gradients {near}; by distance {far}"


def _list(likes: "Sequence[Like]") -> str:
    from inscape.report.words import number

    return ", ".join(
        f"{_row(like.row, like.label)} {number(like.nearness, 3)}" for like in likes[:NAMED]
    )


def _row(row: int, label: str | None) -> str:
    return f"row {row}" if label is None else f"row {row} ({label})"
