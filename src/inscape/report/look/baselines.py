"""Baselines of a number: the network at initialisation, a linear model, a lower bound."""

import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Literal

import torch
from torch import Tensor, nn

from inscape._core import Instrument, NotApplicable, Result, Summary
from inscape._core.result import Kind
from inscape.report.look.linear_model import UnavailableError
from inscape.report.look.parts import Reference
from inscape.report.words import number, one_line

INITIALISATION = "the same network at initialisation"


def at_initialisation(model: nn.Module, *, seed: int) -> nn.Module:
    """Return a copy with all parameters drawn anew by the modules' own ``reset_parameters``.

    The model and the global random state stay as they are. Whether every parameter is drawn is
    found out, not assumed: in the copy all are NaN before the draw.
    """
    try:
        fresh = deepcopy(model).cpu()
    except Exception as error:
        raise UnavailableError(f"the model cannot be copied ({one_line(error)})") from error
    state = torch.default_generator.get_state()
    try:
        with torch.no_grad():
            for parameter in fresh.parameters():
                parameter.fill_(math.nan)
            torch.default_generator.manual_seed(seed)
            fresh.apply(_reset)
    except Exception as error:
        raise UnavailableError(f"reset_parameters raised: {one_line(error)}") from error
    finally:
        torch.default_generator.set_state(state)
    _refuse_undrawn(fresh)
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    return fresh.to(device).eval()


def _reset(module: nn.Module) -> None:
    reset = getattr(module, "reset_parameters", None)
    if callable(reset):
        reset()


def _refuse_undrawn(fresh: nn.Module) -> None:
    for name, parameter in fresh.named_parameters():
        if parameter.numel() == 0 or bool(parameter.isfinite().all()):
            continue
        owner = fresh.get_submodule(name.rpartition(".")[0])
        if hasattr(owner, "reset_parameters"):
            raise UnavailableError(f"reset_parameters does not draw parameter {name!r}")
        raise UnavailableError(f"parameter {name!r} belongs to no module with reset_parameters")


def bound_reference(instrument: Instrument, x: Tensor, y: Tensor | None) -> Reference | None:
    """Return the lower bound that the labels of the measured points set, if one is known."""
    if instrument.bound is None:
        return None
    if y is None:
        return Reference(name="bound", label="lower bound", reason="the data have no labels")
    try:
        bound = instrument.bound(x, y)
    except Exception as error:
        return Reference(name="bound", label="lower bound", reason=one_line(error))
    if bound is None:
        reason = "these labels set no lower bound"
        return Reference(name="bound", label="lower bound", reason=reason)
    return Reference(name="bound", label="lower bound", value=bound.value, note=f"for {bound.text}")


def from_results(
    name: Literal["initialisation", "linear"],
    label: str,
    results: Iterable[Result],
    *,
    note: str,
) -> Reference:
    """Return a reference from one result with its interval, or several with their range."""
    summaries: list[Summary] = []
    for result in results:
        if isinstance(result, NotApplicable):
            return Reference(name=name, label=label, reason=result.status)
        summary = result.summary()
        if summary is None:
            return Reference(name=name, label=label, reason="the result has no single number")
        summaries.append(summary)
    if len(summaries) == 1:
        (only,) = summaries
        return Reference(
            name=name, label=label, value=only.value, low=only.low, high=only.high, kind=only.kind,
            note=note,
        )  # fmt: skip
    values = [summary.value for summary in summaries]
    bounds = {summary.kind for summary in summaries} & {"lower bound", "upper bound"}
    return Reference(
        name=name,
        label=label,
        value=sum(values) / len(values),
        low=min(values),
        high=max(values),
        kind=bounds.pop() if len(bounds) == 1 else "estimate",
        note=note,
    )


def attempted(
    name: Literal["initialisation", "linear"], label: str, make: Callable[[], Reference]
) -> Reference:
    """Return what ``make`` gives, or a reference that says why there is none."""
    try:
        return make()
    except UnavailableError as error:
        return Reference(name=name, label=label, reason=f"not available: {error}")
    except Exception as error:
        return Reference(name=name, label=label, reason=f"not available: {one_line(error)}")


def times_as_large(summary: Summary | None, reference: Reference) -> float | None:
    """Return the ratio of a number to its baseline; None where it is meaningless."""
    if summary is None or reference.value is None or not min(summary.value, reference.value) > 0:
        return None
    times = summary.value / reference.value
    if not 0 < times < math.inf:
        return None
    if times == 1 and summary.kind == reference.kind == "lower bound":
        return None  # both go beyond what can be told
    return times


def ratio(summary: Summary | None, reference: Reference) -> str | None:
    """Say how many times as large as its baseline a number is, to two digits, if meaningful.

    Of a bound and a number only one side of that is known. Two bounds of one kind, found in the
    same way, are compared as they are.
    """
    times = times_as_large(summary, reference)
    if summary is None or times is None:
        return None
    side = _side(summary.kind, reference.kind)
    if 0.95 < times < 1.05:
        return f"{side}about the same"
    if times < 1:
        return f"{side}1/{number(1 / times, 2)} as large"
    return f"{side}{number(times, 2)} times as large"


def _side(own: Kind, other: Kind) -> str:
    """Return which side of a ratio is known, if it is not known itself."""
    if own == other:
        return ""
    most = own == "upper bound" or other == "lower bound"
    least = own == "lower bound" or other == "upper bound"
    return "at most " if most else "at least " if least else ""
