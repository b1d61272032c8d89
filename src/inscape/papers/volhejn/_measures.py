"""What is measured on a trained network, and the thesis' names for it."""

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

#: The thesis' four measures, by its abbreviations.
THESIS = {
    "GN": "gradient_norm",
    "PL0": "path_length",
    "PL1": "gradient_path_length",
    "WP": "weights_product",
}
FIRST_ORDER = ("GN", "PL0")
SECOND_ORDER = ("PL1", "WP")

#: Cheap measures that the thesis names but does not run.
NAMED = (
    "spectral_norm",
    "distance_from_init",
    "fisher_rao_norm",
    "gradient_deflection",
    "rugosity",
)

#: How many test points the thesis takes for the gradient norm: the first ones, in their order.
POINTS = 1000


def label(measure: str) -> str:
    """Return the thesis' abbreviation of an instrument, or its own name."""
    return {name: short for short, name in THESIS.items()}.get(measure, measure)


def check(measures: Sequence[str]) -> None:
    """Refuse names that are no instruments; cells do so before they train."""
    from inscape.index import entries

    known = [entry.name for entry in entries()]
    if unknown := [name for name in measures if name not in known]:
        raise ValueError(
            f"measures must be instruments, found {', '.join(unknown)}: "
            f"choose among {', '.join(known)}."
        )


def measured(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    measures: Sequence[str],
    start: nn.Module,
    seed: int = 0,
) -> dict[str, float | None]:
    """Measure a network on test data, by the thesis' abbreviations; None where not applicable.

    Instruments that average over points get the first 1000, as in the thesis' code; those that
    walk between points choose 1000 pairs of all of them, and take 100 knots.
    """
    from inscape._core.instrument import instruments

    check(measures)
    known = instruments()
    values: dict[str, float | None] = {}
    for name in measures:
        tool = known[name]
        wanted = inspect.signature(tool.function).parameters
        offered: dict[str, Any] = {"seed": seed, "start": start, "pairs": 1000, "knots": 100}
        offered["labels"] = "model"  # by the data's labels a network that fits has no Fisher norm
        settings = {key: value for key, value in offered.items() if key in wanted}
        few = POINTS if tool.samples == "points" else len(x)
        summary = tool.measure(model, x[:few], y[:few], **settings).summary()
        values[label(name)] = None if summary is None else float(summary.value)
    return values


def squared_error(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """Return the mean squared error on data."""
    with torch.no_grad():
        return float((model(x) - y).square().mean())
