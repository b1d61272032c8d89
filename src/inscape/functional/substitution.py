"""Substitution of parameters, and a check that a module's forward reads its registered ones.

A module may hold tensors beside its registered parameters: Keras layers read their variables, a
closure those of the module it was defined in. Values substituted in such a module, or in a copy of
it, do not reach its outputs, and everything measured with them would be zero or stale. Each module
is checked once: gradients by the substituted values must equal those by its own parameters.
"""

from collections.abc import Callable, Mapping, Sequence
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Shaped
from torch import Tensor, nn

from inscape._core import checks
from inscape._core.copies import module_copy
from inscape._core.sampling import generator
from inscape.errors import UnsupportedModelError
from inscape.functional.batch_independence import trial_samples

#: Methods of substitution that each module has passed.
_checked: WeakKeyDictionary[nn.Module, set[str]] = WeakKeyDictionary()

#: Maps values of parameters to the outputs, and the tensors that were substituted.
Substituted = Callable[[dict[str, Tensor]], tuple[Tensor, dict[str, Tensor]]]


def outputs_with(
    model: nn.Module, parameters: Mapping[str, Tensor], x: Shaped[Tensor, "n *d"]
) -> Tensor:
    """Return the outputs of a module with other values for the named parameters.

    Parameters that modules share, and modules with several names, are substituted once.
    """
    named = dict(model.named_parameters())
    values = {id(named[name]): value for name, value in parameters.items()}
    substitutes = {
        f"{prefix}.{key}" if prefix else key: values[id(parameter)]
        for prefix, module in model.named_modules()
        for key, parameter in module._parameters.items()
        if id(parameter) in values
    }
    y: Tensor = torch.func.functional_call(model, substitutes, (x.clone(),), tie_weights=False)
    return y


def refuse_unread(model: nn.Module, x: Shaped[Tensor, "n *d"]) -> None:
    """Raise if a module does not compute with the parameters that ``outputs_with`` substitutes."""
    samples = trial_samples(x)

    def substituted(values: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        leaves = {name: value.requires_grad_() for name, value in values.items()}
        return outputs_with(model, leaves, samples), leaves

    _check_once(model, samples, "put in", substituted)


def checked_copy(model: nn.Module, x: Shaped[Tensor, "n *d"]) -> nn.Module:
    """Return a deep copy of a module, checked to compute with its own parameters."""
    refuse_stale_copy(model, x)
    return deep_copy(model)


def refuse_stale_copy(model: nn.Module, x: Shaped[Tensor, "n *d"]) -> None:
    """Raise if a deep copy of a module does not compute with its own parameters."""
    samples = trial_samples(x)

    def copied_with(values: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        body = deep_copy(model)
        own: dict[str, Tensor] = dict(body.named_parameters())
        with torch.no_grad():
            for name, parameter in own.items():
                parameter.requires_grad_().copy_(values[name])
        return body(samples.clone()), own

    _check_once(model, samples, "copied", copied_with)


def deep_copy(model: nn.Module) -> nn.Module:
    """Return a deep copy of a module, or raise with the reason why there is none."""
    try:
        return module_copy(model)
    except Exception as error:
        raise UnsupportedModelError(
            "the model must be copied before its parameters change, but copy.deepcopy raised "
            f"{type(error).__name__}: {str(error).partition(chr(10))[0]}; mend its __deepcopy__, "
            "or build the model anew from its state_dict."
        ) from error


def _check_once(model: nn.Module, samples: Tensor, method: str, substituted: Substituted) -> None:
    """Compare gradients by substituted parameters with those by the module's own, once."""
    values = {name: p.detach().clone() for name, p in model.named_parameters()}
    if not values or method in _checked.get(model, ()):
        return
    own = {name: p for name, p in model.named_parameters() if p.requires_grad}
    with torch.enable_grad():
        expected = _gradients(checks.call(model, samples.clone()), own)
        y, leaves = _call(substituted, values)
        gradients = _gradients(y, leaves)
    for name, gradient in expected.items():
        if not _agree(gradient, gradients[name]):
            raise _unread_error(method, name)
    without_gradient = [name for name, gradient in gradients.items() if gradient is None]
    if without_gradient:
        perturbed, _ = _call(substituted, _perturbed(values, without_gradient))
        matters = not torch.equal(perturbed.detach(), y.detach())
        if matters and method == "put in":
            raise _no_gradient_error(without_gradient[0])
        if not matters and len(without_gradient) == len(values):
            raise _unread_error(method, without_gradient[0])
    _checked.setdefault(model, set()).add(method)


def _call(substituted: Substituted, values: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
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
    """Return the gradients of a random combination of outputs; None where there is no path."""
    if not y.requires_grad or not by:
        return dict.fromkeys(by)
    draws = torch.randn(y.shape, generator=generator(0), dtype=torch.float64).to(y)
    gradients = torch.autograd.grad(y, list(by.values()), draws, allow_unused=True)
    return dict(zip(by, gradients, strict=True))


def _agree(expected: Tensor | None, gradient: Tensor | None) -> bool:
    """Return whether two gradients agree; any gradient does where none is expected."""
    if expected is None or not bool(expected.any()):
        return True
    if gradient is None:
        return False
    return bool((gradient - expected).abs().max() <= 1e-3 * expected.abs().max())


def _perturbed(values: Mapping[str, Tensor], names: Sequence[str]) -> dict[str, Tensor]:
    """Return the values, those of the given names perturbed by a tenth of their size."""
    rng = generator(0)
    perturbed = {name: value.detach().clone() for name, value in values.items()}
    for name in names:
        value = perturbed[name]
        size = value.abs().double().mean() if value.numel() else 0.0
        noise = torch.randn(value.shape, generator=rng, dtype=torch.float64).to(value.device)
        perturbed[name] = (value + 0.1 * (size + (size == 0)) * noise).to(value.dtype)
    return perturbed


def _unread_error(method: str, name: str) -> UnsupportedModelError:
    where = "put into it" if method == "put in" else "given to a copy of it"
    return UnsupportedModelError(
        f"the model must compute with its registered parameters, but values {where} for {name!r} "
        "do not change its outputs as they must: let forward read self's parameters, not a list, "
        "a closure or a layer of another library (Keras) that holds them beside the module."
    )


def _no_gradient_error(name: str) -> UnsupportedModelError:
    return UnsupportedModelError(
        f"the model must let gradients reach its parameters, but {name!r} changes the outputs and "
        "has none: take torch.no_grad(), .detach() and NumPy out of its forward."
    )
