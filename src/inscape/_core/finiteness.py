"""Finiteness: no NaN and no infinity leaves an instrument as a number."""

import math
from dataclasses import Field
from typing import Any

import torch
from torch import Tensor


def all_finite(tensor: Tensor) -> bool:
    """Tell whether all numbers are finite; their sum is, nearly always, and is quick to take."""
    return math.isfinite(float(tensor.detach().sum())) or bool(tensor.isfinite().all())


def refuse_nonfinite(owner: str, field: "Field[Any]", value: object) -> None:
    """Refuse NaN or infinity in a field of a result: a number, a tensor or a tuple of them."""
    if isinstance(value, Tensor):
        if value.is_floating_point() and not all_finite(value):
            raise ValueError(f"{owner}.{field.name}: {refusal(value, _axis(field.type))}")
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{owner}.{field.name}: {refusal(torch.tensor(value), '')}")
    elif isinstance(value, tuple | list):
        for item in value:
            refuse_nonfinite(owner, field, item)


def refusal(values: Tensor, axis: str) -> str:
    """Return where numbers are not finite, first of all, and what to do."""
    rule = "the model must be finite with finite slopes at the data and between them"
    remedy = "scale the data, use float64 or smooth the model."
    if values.ndim == 0:
        return f"{rule}, found {float(values)}: {remedy}"
    bad = (~values.isfinite()).reshape(len(values), -1).any(1)
    return (
        f"{rule}, found NaN or Inf at {int(bad.sum())} of {len(values)} {axis}: leave those "
        f"{axis} out (the first is {int(bad.nonzero()[0])}, counted from 0), {remedy}"
    )


def _axis(annotation: object) -> str:
    """Return the name of the first axis of an annotated tensor if it is a word."""
    name = getattr(annotation, "dim_str", "").split()[:1]
    return name[0] if name and name[0].isalpha() and len(name[0]) > 1 else "rows"
