"""The outputs of a network: several by name or by place, and the one that is measured."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from inscape.errors import UnsupportedModelError, did_you_mean

#: What a classifier of Hugging Face calls the output that everybody means.
LOGITS = "logits"


def taken(output: Any, take: str | int | None) -> Tensor:
    """Return one tensor of what a network returned.

    >>> import torch
    >>> taken({"logits": torch.zeros(2), "loss": torch.ones(1)}, None)
    tensor([0., 0.])
    """
    if isinstance(output, Tensor) and take is None:
        return output
    names = tensors_in(output)
    if take is None:
        return names[only_name(names, output)]
    key = int(take) if isinstance(take, str) and take.isdigit() and take not in names else take
    if isinstance(key, int) and 0 <= key < len(names):
        return list(names.values())[key]
    if key in names and isinstance(key, str):
        return names[key]
    there = ", ".join(f"{name} ({place})" for place, name in enumerate(names)) or "none"
    offer = did_you_mean(str(take), list(names), otherwise="name one of them.", quoted=True)
    raise UnsupportedModelError(
        f"the output to take must be one of those the model returns, found {take!r} where it "
        f"returns {there}: {offer}"
    )


def only_name(names: Mapping[str, Tensor], output: Any) -> str:
    """Return the name of the output that is meant where nobody has said which."""
    if LOGITS in names:
        return LOGITS
    if len(names) == 1:
        return next(iter(names))
    there = ", ".join(names) or "no tensor"
    raise UnsupportedModelError(
        f"the model must return one tensor, found {type(output).__name__} of {there}: say which "
        "to measure, --take NAME or inscape.adapt(model, take=NAME)."
    )


def tensors_in(output: Any) -> dict[str, Tensor]:
    """Return the tensors that a network returned, by name or else by place."""
    if isinstance(output, Tensor):
        return {"0": output}
    if isinstance(output, Mapping):
        values = {str(key): value for key, value in output.items()}
    elif isinstance(output, tuple) and hasattr(output, "_fields"):
        values = dict(zip(output._fields, output, strict=True))
    elif isinstance(output, tuple | list):
        values = {str(place): value for place, value in enumerate(output)}
    else:
        values = dict(vars(output)) if hasattr(output, "__dict__") else {}
    return {key: value for key, value in values.items() if isinstance(value, Tensor)}
