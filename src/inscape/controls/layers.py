"""Layers whose weights are held at something, and how they become plain layers again."""

from collections.abc import Callable, Sequence
from math import inf, prod
from typing import TypeVar

from torch import Tensor, nn
from torch.nn.utils import parametrize

Layer = nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d
M = TypeVar("M", bound=nn.Module)


class Held(nn.Module):
    """A parametrization of ours: what a layer computes with is made from what is trained.

    Assigning to a held tensor sets what is trained.
    """

    def right_inverse(self, value: Tensor) -> Tensor:
        """Return what to train so as to start from ``value``: itself."""
        return value


def layers_of(module: nn.Module) -> list[tuple[str, Layer]]:
    """Return the linear and convolutional layers of a module, by name; itself if it is one."""
    found = [(name, part) for name, part in module.named_modules() if isinstance(part, Layer)]
    if not found:
        raise ValueError(
            "a control of weights needs a Linear or Conv layer (not a transposed one), found none "
            f"in {type(module).__name__}: pass a model that has some."
        )
    return found


def fan_in(layer: Layer) -> int:
    """Return how many inputs feed one output of a layer."""
    return prod(layer.weight.shape[1:])


def knobs(value: float | Sequence[float], count: int, name: str) -> list[float]:
    """Return a positive number for each layer, from one for all or one for each."""
    values = [value] * count if isinstance(value, int | float) else list(value)
    if len(values) != count:
        raise ValueError(
            f"{name} must be one number or one for each of the {count} layers, found "
            f"{len(values)}: pass as many as there are layers."
        )
    for one in values:
        if not 0 < one < inf:
            raise ValueError(f"{name} must be a finite number above 0, found {one}: raise {name}.")
    return values


def hold(layer: nn.Module, tensor: str, held: Held, place: str) -> None:
    """Let a tensor of a layer be made by ``held``, unless something else makes it already."""
    if parametrize.is_parametrized(layer, tensor):
        raise ValueError(
            f"the {tensor} of {place} is made from another tensor already: release(model), or "
            "remove that parametrization, before holding it at something else."
        )
    parametrize.register_parametrization(layer, tensor, held)
    layer.train(layer.training)  # what torch has put in is in training mode


def held_everywhere(
    module: M,
    value: float | Sequence[float],
    name: str,
    made: Callable[[Layer, float, str], dict[str, Held]],
) -> M:
    """Hold all layers of a module; nothing is changed if one of them cannot be held."""
    found = layers_of(module)
    values = knobs(value, len(found), name)
    plans = [
        (layer, _place(path), made(layer, one, _place(path)))
        for (path, layer), one in zip(found, values, strict=True)
    ]
    for layer, place, tensors in plans:
        for tensor in tensors:
            if parametrize.is_parametrized(layer, tensor):
                hold(layer, tensor, tensors[tensor], place)  # raises
    for layer, place, tensors in plans:
        for tensor, held in tensors.items():
            hold(layer, tensor, held, place)
    return module


def release(module: M) -> M:
    """Make plain layers of all that is held, with the weights that they compute with now.

    Parametrizations that are not ours stay.

    Args:
        module: Model that controls were put on; it is changed in place, and returned.
    """
    for part in list(module.modules()):
        if not parametrize.is_parametrized(part):
            continue
        lists = getattr(part, "parametrizations")  # noqa: B009 (torch adds it to the class)
        ours = [name for name, held in lists.items() if any(isinstance(h, Held) for h in held)]
        for name in ours:
            parametrize.remove_parametrizations(part, name, leave_parametrized=True)
        if ours and "bias" in part._parameters:  # torch has put the weight behind it
            part._parameters["bias"] = part._parameters.pop("bias")
    return module


def _place(path: str) -> str:
    return f"layer {path!r}" if path else "the layer"
