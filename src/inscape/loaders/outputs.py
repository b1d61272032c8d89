"""The outputs of a network: several by name or by place, and the one that is measured."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from torch import Tensor

from inscape.errors import UnsupportedModelError, did_you_mean

#: What a classifier of Hugging Face calls the output that everybody means.
LOGITS = "logits"
#: Names of outputs that an error lists.
LISTED = 12


def selected(output: Any, take: str | int | None) -> Tensor:
    """Return one tensor of what a network returned.

    >>> import torch
    >>> selected({"logits": torch.zeros(2), "loss": torch.ones(1)}, None)
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
    choices = _listed([f"{name} ({place})" for place, name in enumerate(names)], "none")
    offer = did_you_mean(str(take), list(names), otherwise="name one of them.", quoted=True)
    raise UnsupportedModelError(
        f"the output to take must be one of those the model returns, found {take!r} where it "
        f"returns {choices}: {offer}"
    )


def only_name(names: Mapping[str, Tensor], output: Any) -> str:
    """Return the name of the output that is meant where nobody has said which."""
    if LOGITS in names:
        return LOGITS
    at_top = [name for name, part in _parts(output).items() if isinstance(part, Tensor)]
    for candidates in (at_top, list(names)):
        if len(candidates) == 1:
            return candidates[0]
    choices = _listed(list(names), "no tensor")
    raise UnsupportedModelError(
        f"the model must return one tensor, found {type(output).__name__} of {choices}: say which "
        "to measure, --take NAME or inscape.adapt(model, take=NAME)."
    )


def tensors_in(output: Any) -> dict[str, Tensor]:
    """Return the tensors that a network returned, by name or else by place.

    Those of nested outputs follow the others, with dots in their names.

    >>> import torch
    >>> list(tensors_in({"states": [torch.zeros(2), torch.zeros(2)], "loss": torch.ones(1)}))
    ['loss', 'states.0', 'states.1']
    """
    if isinstance(output, Tensor):
        return {"0": output}
    parts = _parts(output)
    tensors = {name: part for name, part in parts.items() if isinstance(part, Tensor)}
    for name, part in parts.items():
        if isinstance(part, Mapping | tuple | list):
            tensors |= {f"{name}.{inner}": tensor for inner, tensor in tensors_in(part).items()}
    return tensors


def _parts(output: Any) -> dict[str, Any]:
    """Return what an output consists of, by name or else by place."""
    if isinstance(output, Mapping):
        return {str(key): value for key, value in output.items()}
    if isinstance(output, tuple) and hasattr(output, "_fields"):
        return dict(zip(output._fields, output, strict=True))
    if isinstance(output, tuple | list):
        return {str(place): value for place, value in enumerate(output)}
    if is_dataclass(output) and not isinstance(output, type):
        return {field.name: getattr(output, field.name, None) for field in fields(output)}
    return dict(vars(output)) if hasattr(output, "__dict__") else {}


def _listed(names: list[str], otherwise: str) -> str:
    """Return names in a row, the first of many."""
    rest = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + rest if names else otherwise
