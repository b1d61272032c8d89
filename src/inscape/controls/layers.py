"""Layers whose weights are held at something, and how they become plain layers again."""

import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import Any, TypeVar

from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.nn.utils import parametrize

from inscape.controls._parameters import knobs

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
        own = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        own.pop("training")
        return {"by": type(self).__name__, **own}

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        known = getattr(destination, "_metadata", {})
        if prefix[:-1] in known:
            known[prefix[:-1]]["held"] = self.settings()

    def _load_from_state_dict(self, *args: Any) -> None:
        super()._load_from_state_dict(*args)
        _, prefix, metadata, *_, errors = args
        found = metadata.get("held", self.settings())
        if found != self.settings():
            errors.append(
                f"{prefix[:-1]} must be held as where the state comes from, at {found}, found "
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
    found = [(name, part) for name, part in module.named_modules() if isinstance(part, Layer)]
    if not found:
        raise ValueError(
            "a control of weights needs a Linear or Conv layer (not a transposed one), found none "
            f"in {type(module).__name__}: pass a model that has some."
        )
    for name, layer in found:
        if any(is_lazy(p) for p in layer.parameters()):
            raise ValueError(
                f"a control needs weights that are there, found {_place(name)} "
                f"({type(layer).__name__}) without: evaluate the model once first."
            )
    return found


def fan_in(layer: Layer) -> int:
    """Return how many inputs feed one output of a layer."""
    return prod(layer.weight.shape[1:])


def hold(layer: nn.Module, tensor: str, held: Held, place: str) -> None:
    """Let a tensor of a layer be made by ``held``, unless something else makes it already."""
    if parametrize.is_parametrized(layer, tensor):
        raise ValueError(
            f"the {tensor} of {place} is made from another tensor already: release(model), or "
            "remove that parametrization, before holding it at something else."
        )
    if parametrize.is_parametrized(layer):
        _give_own_class(layer)
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
        (layer, _place(path), made(layer, value, _place(path)))
        for (path, layer), value in zip(found, values, strict=True)
    ]
    for layer, place, tensors in plans:
        for tensor in tensors:
            if parametrize.is_parametrized(layer, tensor):
                hold(layer, tensor, tensors[tensor], place)  # raises
    _refuse_two_targets(plans)
    _say_what_is_free(module, [layer for layer, _, _ in plans])
    _say_what_is_undone(module)
    for layer, place, tensors in plans:
        for tensor, held in tensors.items():
            hold(layer, tensor, held, place)
    return module


def _refuse_two_targets(plans: Sequence[tuple[Layer, str, dict[str, Held]]]) -> None:
    """Refuse one tensor of several layers that is to be held at several things."""
    seen: dict[int, tuple[str, Held]] = {}
    for layer, place, tensors in plans:
        for tensor, held in tensors.items():
            first, other = seen.setdefault(id(getattr(layer, tensor)), (place, held))
            if other.settings() != held.settings():
                raise ValueError(
                    f"a {tensor} that layers share must be held at one thing, found {first} and "
                    f"{place} with {other.settings()} and {held.settings()}: give both the same."
                )


def _say_what_is_free(module: nn.Module, held: Sequence[nn.Module]) -> None:
    """Warn of weights in other layers, which no control holds."""
    ours = {id(p) for layer in held for p in layer.parameters()}
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


def _say_what_is_undone(module: nn.Module) -> None:
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
        ours = [name for name, held in lists.items() if any(isinstance(h, Held) for h in held)]
        if ours:
            _give_own_class(part)
        for name in ours:
            trained = lists[name].original
            shared = id(trained) in done
            parametrize.remove_parametrizations(part, name, leave_parametrized=not shared)
            done[id(trained)] = trained
        if ours and "bias" in part._parameters:  # torch has put the weight behind it
            part._parameters["bias"] = part._parameters.pop("bias")
    return module


def _give_own_class(part: nn.Module) -> None:
    """Part a layer from its copies: they share a class, which torch writes into."""
    own = type(part)
    part.__class__ = type(own.__name__, own.__bases__, dict(vars(own)))


def _place(path: str) -> str:
    return f"layer {path!r}" if path else "the layer"
