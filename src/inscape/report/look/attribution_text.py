"""What a terminal shows of the training examples that made predictions."""

from collections.abc import Sequence

from inscape.report.look.attribution import (
    Attribution,
    Explained,
    Nearest,
    Prediction,
    SimilarExample,
)
from inscape.report.look.attribution_page import signed
from inscape.report.text_table import wrapped
from inscape.report.words import number

#: Training examples that are named on either side: fewer than on the page.
NAMED = 3

#: Residual, relative to the largest change of an output, that rounding in float64 leaves.
ROUNDED = 1e-10


def attribution_text(attribution: Attribution) -> str:
    """Return each explained prediction as a sum, or similar examples, or why there is neither."""
    lines = [_equation(attribution, explained) for explained in attribution.explained]
    lines += [_similar(attribution, nearest) for nearest in attribution.nearest]
    if attribution.explained:
        trained = f"{attribution.training_rows:,} training examples in {attribution.training}"
        lines.insert(0, f"What made these predictions: {trained}.")
        lines.append(_accuracy(attribution))
    if attribution.nearest:
        lines.insert(
            0, f"Of {attribution.searched:,} examples, those with the most similar gradients:"
        )
    if attribution.reason:
        lines.append(f"Not attributed to training examples: {attribution.reason}.")
    if attribution.advice:
        lines.append(attribution.advice)
    text = [_lines(line) for line in lines]
    if attribution.left_out:
        rows = ", ".join(map(str, attribution.left_out))
        text.append(f"left out for time: {attribution.rows} {rows}: {attribution.command}")
    return "\n".join(["", *text])


def _lines(text: str) -> str:
    return wrapped(text, later="    ", hyphens=False).replace("\N{NO-BREAK SPACE}", " ")


def _accuracy(attribution: Attribution) -> str:
    """Say how well the parts add up to the outputs."""
    explained = attribution.explained
    missed = max(abs(sum_.total - sum_.final) for sum_ in explained)
    change = max(abs(sum_.final - sum_.initial) for sum_ in explained)
    why = " by rounding" if attribution.residual <= ROUNDED * change else ""
    return (
        f"All parts add up to the outputs within {missed:.0e}, with residuals{why} of "
        f"at most {attribution.residual:.0e}."
    )


def _equation(attribution: Attribution, explained: Explained) -> str:
    """Return a prediction as a sum: what is named, and all that is not, makes the output."""
    named = (*explained.up[:NAMED], *explained.down[:NAMED])
    unnamed = (*explained.up[NAMED:], *explained.down[NAMED:])
    count = explained.others.rows + len(unnamed)
    rest = explained.others.amount + sum(push.amount for push in unnamed)
    parts = [f"{number(explained.initial, 3)} before training"]
    parts += [f"{signed(push.amount)} by {_example(push.row, push.label)}" for push in named]
    parts += [f"{signed(rest)} by {count:,} others"] if count else []
    parts += [
        f"{signed(part)} by {name}" for name, part in explained.rest.items() if name != "residual"
    ]
    total = " ".join(part.replace(" ", "\N{NO-BREAK SPACE}") for part in parts)
    return f"{_prediction(attribution, explained.prediction)}: {number(explained.final)} = {total}"


def _prediction(attribution: Attribution, prediction: Prediction) -> str:
    sure = "" if prediction.probability is None else f" ({prediction.probability:.1%} sure)"
    but = {True: " and is", False: " but is", None: ", is"}[prediction.right]
    truth = "" if prediction.truth is None else f"{but} {prediction.truth}"
    return f"{attribution.row} {prediction.row} says {prediction.says}{sure}{truth}"


def _similar(attribution: Attribution, nearest: Nearest) -> str:
    near, far = _list(nearest.by_kernel), _list(nearest.by_distance)
    says = _prediction(attribution, nearest.prediction)
    return f"{says}: by cosine of gradients {near}; by distance {far}"


def _list(examples: Sequence[SimilarExample]) -> str:
    return ", ".join(
        f"{_example(near.row, near.label)} {number(near.nearness, 3)}" for near in examples[:NAMED]
    )


def _example(row: int, label: str | None) -> str:
    return f"example {row}" if label is None else f"example {row} ({label})"
