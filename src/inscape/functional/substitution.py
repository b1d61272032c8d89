"""Parameters put in the place of a module's own, and the proof that its forward reads them.

A module may hold tensors beside its registered parameters: Keras layers read their variables, a
closure those of the module it was made for. Values put into such a module, or into a copy of it, do
not reach its outputs, and everything measured by them would be zero or stale. Each module is
tried once: the gradients by what was put in must be those by the parameters that are its own.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Shaped
from torch import Tensor, nn

from inscape._core import checks
from inscape._core.sampling import generator
from inscape.errors import UnsupportedModelError
from inscape.functional.batch_independence import trial_rows

#: Ways of substitution that each module has been tried in.
_proved: WeakKeyDictionary[nn.Module, set[str]] = WeakKeyDictionary()

#: Values of parameters to the outputs that they give, and the tensors that were put in.
Substituted = Callable[[dict[str, Tensor]], tuple[Tensor, dict[str, Tensor]]]


def outputs_with(
    model: nn.Module, parameters: Mapping[str, Tensor], x: Shaped[Tensor, "n *d"]
) -> Tensor:
    """Return the outputs of a module with other values for the parameters that are named.

    Parameters that several modules share, and modules that have several names, are filled once.
    """
    named = dict(model.named_parameters())
    values = {id(named[name]): value for name, value in parameters.items()}
    given = {
        f"{prefix}.{key}" if prefix else key: values[id(parameter)]
        for prefix, module in model.named_modules()
        for key, parameter in module._parameters.items()
        if id(parameter) in values
    }
    y: Tensor = torch.func.functional_call(model, given, (x.clone(),), tie_weights=False)
    return y


def refuse_unread(model: nn.Module, x: Shaped[Tensor, "n *d"]) -> None:
    """Refuse a module whose outputs are not those of the parameters ``outputs_with`` puts in."""
    rows = trial_rows(x)

    def put_in(values: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        leaves = {name: value.requires_grad_() for name, value in values.items()}
        return outputs_with(model, leaves, rows), leaves

    _prove(model, rows, "put in", put_in)


def copied(model: nn.Module, x: Shaped[Tensor, "n *d"]) -> nn.Module:
    """Return a deep copy that reads the parameters of its own, or refuse the module."""
    refuse_stale_copy(model, x)
    return deep_copy(model)


def refuse_stale_copy(model: nn.Module, x: Shaped[Tensor, "n *d"]) -> None:
    """Refuse a module of which a deep copy does not read the parameters of its own."""
    rows = trial_rows(x)

    def copied_with(values: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        body = deep_copy(model)
        own: dict[str, Tensor] = dict(body.named_parameters())
        with torch.no_grad():
            for name, parameter in own.items():
                parameter.requires_grad_().copy_(values[name])
        return body(rows.clone()), own

    _prove(model, rows, "copied", copied_with)


def deep_copy(model: nn.Module) -> nn.Module:
    """Return ``copy.deepcopy(model)``, or refuse the module with what that raised."""
    try:
        return deepcopy(model)
    except Exception as error:
        raise UnsupportedModelError(
            "the model must be copied before anything in it is changed, but copy.deepcopy raised "
            f"{type(error).__name__}: {str(error).partition(chr(10))[0]}; mend its __deepcopy__, "
            "or build the model anew from its state_dict."
        ) from error


def _prove(model: nn.Module, rows: Tensor, way: str, substituted: Substituted) -> None:
    """Compare gradients by substituted parameters with those by the module's own, once."""
    values = {name: p.detach().clone() for name, p in model.named_parameters()}
    if not values or way in _proved.get(model, ()):
        return
    own = {name: p for name, p in model.named_parameters() if p.requires_grad}
    with torch.enable_grad():
        expected = _gradients(checks.call(model, rows.clone()), own)
        y, tensors = _called(substituted, values)
        found = _gradients(y, tensors)
    for name, gradient in expected.items():
        if not _near(gradient, found[name]):
            raise _unread(way, name)
    silent = [name for name, gradient in found.items() if gradient is None]
    if silent:
        moved, _ = _called(substituted, _moved(values, silent))
        acts = not torch.equal(moved.detach(), y.detach())
        if acts and way == "put in":
            raise _without_gradient(silent[0])
        if not acts and len(silent) == len(values):
            raise _unread(way, silent[0])
    _proved.setdefault(model, set()).add(way)


def _called(
    substituted: Substituted, values: dict[str, Tensor]
) -> tuple[Tensor, dict[str, Tensor]]:
    try:
        return substituted(values)
    except UnsupportedModelError:
        raise
    except Exception as error:
        raise UnsupportedModelError(
            "the model must run with other values for its parameters, but with them it raised "
            f"{type(error).__name__}: {str(error).partition(chr(10))[0]}; use a plain nn.Module "
            "whose forward reads its registered parameters."
        ) from error


def _gradients(y: Tensor, by: Mapping[str, Tensor]) -> dict[str, Tensor | None]:
    """Return the gradients of a random sum of outputs; None where there is no path."""
    if not y.requires_grad or not by:
        return dict.fromkeys(by)
    draws = torch.randn(y.shape, generator=generator(0), dtype=torch.float64).to(y)
    gradients = torch.autograd.grad(y, list(by.values()), draws, allow_unused=True)
    return dict(zip(by, gradients, strict=True))


def _near(expected: Tensor | None, found: Tensor | None) -> bool:
    """Tell whether two gradients agree; nothing is expected where there was none."""
    if expected is None or not bool(expected.any()):
        return True
    if found is None:
        return False
    return bool((found - expected).abs().max() <= 1e-3 * expected.abs().max())


def _moved(values: Mapping[str, Tensor], names: Sequence[str]) -> dict[str, Tensor]:
    """Return values of which those with given names are perturbed by a tenth of their size."""
    rng = generator(0)
    moved = {name: value.detach().clone() for name, value in values.items()}
    for name in names:
        value = moved[name]
        size = value.abs().double().mean() if value.numel() else 0.0
        noise = torch.randn(value.shape, generator=rng, dtype=torch.float64).to(value.device)
        moved[name] = (value + 0.1 * (size + (size == 0)) * noise).to(value.dtype)
    return moved


def _unread(way: str, name: str) -> UnsupportedModelError:
    where = "put into it" if way == "put in" else "given to a copy of it"
    return UnsupportedModelError(
        f"the model must compute with its registered parameters, but values {where} for {name!r} "
        "do not change its outputs as they must: let forward read self's parameters, not a list, "
        "a closure or a layer of another library (Keras) that holds them beside the module."
    )


def _without_gradient(name: str) -> UnsupportedModelError:
    return UnsupportedModelError(
        f"the model must let gradients reach its parameters, but {name!r} changes the outputs and "
        "has none: take torch.no_grad(), .detach() and NumPy out of its forward."
    )
