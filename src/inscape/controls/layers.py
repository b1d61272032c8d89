"""Layers whose weights are held at something, and how they become plain layers again."""

import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import Any, TypeVar

from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.nn.utils import parametrize

from inscape.controls._checks import per_layer

Layer = nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d
#: Modules that undo the scale of each unit before them.
Norm = nn.modules.batchnorm._BatchNorm | nn.modules.instancenorm._InstanceNorm
M = TypeVar("M", bound=nn.Module)


class Control(nn.Module):
    """A module that holds something at its settings.

    They go with the metadata of a ``state_dict``, so that a state is not loaded into a model that
    makes another function of it.
    """

    def settings(self) -> dict[str, Any]:
        """Return at what it is held."""
        attributes = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        attributes.pop("training")
        return {"by": type(self).__name__, **attributes}

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        known = getattr(destination, "_metadata", {})
        if prefix[:-1] in known:
            known[prefix[:-1]]["held"] = self.settings()

    def _load_from_state_dict(self, *args: Any) -> None:
        super()._load_from_state_dict(*args)
        _, prefix, metadata, *_, errors = args
        settings = metadata.get("held", self.settings())
        if settings != self.settings():
            errors.append(
                f"{prefix[:-1]} must be held as where the state comes from, at {settings}, found "
                f"{self.settings()}: build the model with that, or load dict(state) to scale anew."
            )


class Held(Control):
    """A parametrization of ours: what a layer computes with is made from what is trained.

    Assigning to a held tensor sets what is trained.
    """

    def right_inverse(self, value: Tensor) -> Tensor:
        """Return what to train so as to start from ``value``: itself."""
        return value


def layers_of(module: nn.Module) -> list[tuple[str, Layer]]:
    """Return the linear and convolutional layers of a module, by name; itself if it is one."""
    layers = [(name, part) for name, part in module.named_modules() if isinstance(part, Layer)]
    if not layers:
        raise ValueError(
            "a control of weights needs a Linear or Conv layer (not a transposed one), found none "
            f"in {type(module).__name__}: pass a model that has some."
        )
    for name, layer in layers:
        if any(is_lazy(p) for p in layer.parameters()):
            raise ValueError(
                f"a control needs weights that are there, found {_place(name)} "
                f"({type(layer).__name__}) without: evaluate the model once first."
            )
    return layers


def fan_in(layer: Layer) -> int:
    """Return how many inputs feed one output of a layer."""
    return prod(layer.weight.shape[1:])


def hold(layer: nn.Module, tensor: str, parametrization: Held, place: str) -> None:
    """Parametrize a tensor of a layer, unless something else makes it already."""
    if parametrize.is_parametrized(layer, tensor):
        raise ValueError(
            f"the {tensor} of {place} is made from another tensor already: release(model), or "
            "remove that parametrization, before holding it at something else."
        )
    if parametrize.is_parametrized(layer):
        _separate_class(layer)
    parametrize.register_parametrization(layer, tensor, parametrization)
    layer.train(layer.training)  # what torch has put in is in training mode


def held_everywhere(
    module: M,
    value: float | Sequence[float],
    name: str,
    parametrizations_of: Callable[[Layer, float, str], dict[str, Held]],
) -> M:
    """Hold all layers of a module; nothing is changed if one of them cannot be held."""
    layers = layers_of(module)
    values = per_layer(value, len(layers), name)
    assignments = [
        (layer, _place(path), parametrizations_of(layer, value, _place(path)))
        for (path, layer), value in zip(layers, values, strict=True)
    ]
    for layer, place, tensors in assignments:
        for tensor in tensors:
            if parametrize.is_parametrized(layer, tensor):
                hold(layer, tensor, tensors[tensor], place)  # raises
    _check_shared_tensors(assignments)
    _warn_uncontrolled(module, [layer for layer, _, _ in assignments])
    _warn_normalised(module)
    for layer, place, tensors in assignments:
        for tensor, parametrization in tensors.items():
            hold(layer, tensor, parametrization, place)
    return module


def _check_shared_tensors(assignments: Sequence[tuple[Layer, str, dict[str, Held]]]) -> None:
    """Refuse one tensor of several layers that is to be held at several things."""
    targets: dict[int, tuple[str, Held]] = {}
    for layer, place, tensors in assignments:
        for tensor, parametrization in tensors.items():
            first, other = targets.setdefault(id(getattr(layer, tensor)), (place, parametrization))
            if other.settings() != parametrization.settings():
                raise ValueError(
                    f"a {tensor} that layers share must be held at one thing, found {first} and "
                    f"{place} with {other.settings()} and {parametrization.settings()}: "
                    "give both the same."
                )


def _warn_uncontrolled(module: nn.Module, controlled: Sequence[nn.Module]) -> None:
    """Warn of weights in other layers, which no control holds."""
    ours = {id(p) for layer in controlled for p in layer.parameters()}
    free = {
        f"{type(part).__name__} {path!r}": None
        for path, part in module.named_modules()
        for p in part.parameters(recurse=False)
        if not is_lazy(p) and p.ndim > 1 and id(p) not in ours
    }
    if free:
        warnings.warn(
            f"a control holds Linear and Conv layers, found others that stay free: "
            f"{', '.join(free)}.",
            stacklevel=4,
        )


def _warn_normalised(module: nn.Module) -> None:
    """Warn of layers right before a norm of each unit, which scales them back.

    Modules are taken to be called in the order in which they are registered.
    """
    leaves = [
        (path, part)
        for path, part in module.named_modules(remove_duplicate=False)
        if isinstance(part, Layer) or next(part.children(), None) is None
        if "parametrizations" not in path.split(".")
    ]
    undone = [
        f"{type(part).__name__} {path!r}"
        for (path, part), (_, after) in pairwise(leaves)
        if isinstance(part, Layer)
        and isinstance(after, Norm)
        and after.num_features == len(part.weight)
    ]
    if undone:
        warnings.warn(
            "a batch norm or instance norm scales back what is right before it, so that the "
            f"control's number does nothing there, found one behind {', '.join(undone)}: hold "
            "other layers, or leave these norms out.",
            stacklevel=4,
        )


def release(module: M) -> M:
    """Make plain layers of all that is held, with the weights that they compute with now.

    Parametrizations that are not ours stay, and copies of the model stay as they are. So do
    modules that are no property of a weight: ``ActivationScale`` and ``Symmetric``.

    Args:
        module: Model that controls were put on; it is changed in place, and returned.
    """
    done: dict[int, Tensor] = {}  # tensors that layers share are scaled once
    for part in list(module.modules()):
        if not parametrize.is_parametrized(part):
            continue
        lists = getattr(part, "parametrizations")  # noqa: B009 (torch adds it to the class)
        ours = [
            name
            for name, parametrization in lists.items()
            if any(isinstance(h, Held) for h in parametrization)
        ]
        if ours:
            _separate_class(part)
        for name in ours:
            trained = lists[name].original
            shared = id(trained) in done
            parametrize.remove_parametrizations(part, name, leave_parametrized=not shared)
            done[id(trained)] = trained
        if ours and "bias" in part._parameters:  # torch has put the weight behind it
            part._parameters["bias"] = part._parameters.pop("bias")
    return module


def _separate_class(part: nn.Module) -> None:
    """Part a layer from its copies: they share a class, which torch writes into."""
    own = type(part)
    part.__class__ = type(own.__name__, own.__bases__, dict(vars(own)))


def _place(path: str) -> str:
    return f"layer {path!r}" if path else "the layer"
