"""Dense per-sample gradients, for parameters of ops without a structured gradient."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float, Real
from torch import Tensor, nn

from inscape._core.sampling import generator
from inscape.functional.substitution import outputs_with


def dense_gradients(
    model: nn.Module,
    x: Real[Tensor, "n *d"],
    names: Sequence[str],
    cotangents: Float[Tensor, "r n c"],
) -> tuple[Float[Tensor, "r n p"], str]:
    """Return the dense per-sample gradients by the named parameters, and how they were computed."""
    try:
        j = _by_vmap(model, x, names, cotangents)
    except (RuntimeError, ValueError, NotImplementedError):  # not supported by torch.func.vmap
        return _sample_by_sample(model, x, names, cotangents), "dense gradient, sample by sample"
    if not _agrees_with_backward(j, model, x, names, cotangents):  # or wrong, as for PReLU
        return _sample_by_sample(model, x, names, cotangents), "dense gradient, sample by sample"
    return j, "dense gradient"


def _agrees_with_backward(
    j: Tensor, model: nn.Module, x: Tensor, names: Sequence[str], cotangents: Tensor
) -> bool:
    """Return whether a random combination of the gradients agrees with one backward pass."""
    named = dict(model.named_parameters())
    parameters = [named[name] for name in names]
    if j.shape != (*cotangents.shape[:2], sum(p.numel() for p in parameters)):
        return False
    weights = torch.randn(cotangents.shape[:2], generator=generator(0), dtype=torch.float64)
    weights = weights.to(j)
    with torch.enable_grad():
        y = model(x.clone()).reshape(len(x), -1)
    cotangent = torch.einsum("rn,rnc->nc", weights, cotangents)
    gradients = _vjp(y, parameters, cotangent)
    expected = torch.cat([_flattened(g, p) for p, g in zip(parameters, gradients, strict=True)])
    norms, eps = torch.linalg.vector_norm(j, dim=(0, 1)), torch.finfo(j.dtype).eps
    error = (torch.einsum("rn,rnp->p", weights, j) - expected).abs()
    return bool((error <= eps**0.5 * norms + 100 * eps * norms.max()).all())


def _by_vmap(model: nn.Module, x: Tensor, names: Sequence[str], cotangents: Tensor) -> Tensor:
    named = dict(model.named_parameters())
    parameters = {name: named[name].detach() for name in names}

    def jacobian(sample: Tensor, cotangent: Tensor) -> Tensor:
        def outputs(values: dict[str, Tensor]) -> Tensor:
            return outputs_with(model, values, sample[None]).reshape(-1)

        vjp = torch.func.vjp(outputs, parameters)[1]
        (gradients,) = torch.func.vmap(vjp)(cotangent)
        return torch.cat([gradients[name].reshape(len(cotangent), -1) for name in names], dim=1)

    with warnings.catch_warnings(), _attributes_restored(model):
        warnings.filterwarnings("ignore", "There is a performance drop", UserWarning)
        j: Tensor = torch.func.vmap(jacobian, in_dims=(0, 1), out_dims=1)(x, cotangents)
    return j.detach()


@contextmanager
def _attributes_restored(model: nn.Module) -> Iterator[None]:
    """Restore the attributes of all modules after a call that changes them."""
    owners = [owner for module in model.modules() for owner in _attribute_dicts(module)]
    saved = [dict(owner) for owner in owners]
    try:
        yield
    finally:
        for owner, before in zip(owners, saved, strict=True):
            if list(map(id, owner.values())) != list(map(id, before.values())):
                owner.clear()
                owner.update(before)


def _attribute_dicts(module: Any) -> list[dict[str, Any]]:
    all_three = (vars(module), module._parameters, module._buffers)
    return [owner for owner in all_three if isinstance(owner, dict)]  # scripted modules have none


def _sample_by_sample(
    model: nn.Module, x: Tensor, names: Sequence[str], cotangents: Tensor
) -> Float[Tensor, "r n p"]:
    named = dict(model.named_parameters())
    parameters = [named[name] for name in names]
    jacobians = []
    for sample, sample_cotangents in zip(x, cotangents.transpose(0, 1), strict=True):
        with torch.enable_grad():
            y = model(sample[None].clone()).reshape(-1)
        rows = []
        for cotangent in sample_cotangents:
            gradients = _vjp(y, parameters, cotangent)
            rows.append(
                torch.cat([_flattened(g, p) for p, g in zip(parameters, gradients, strict=True)])
            )
        jacobians.append(torch.stack(rows))
    return torch.stack(jacobians, dim=1).detach()


def _vjp(y: Tensor, parameters: Sequence[Tensor], cotangent: Tensor) -> Sequence[Tensor | None]:
    if not y.requires_grad:  # control flow may depend on the input
        return [None] * len(parameters)
    return torch.autograd.grad(y, parameters, cotangent, retain_graph=True, allow_unused=True)


def _flattened(gradient: Tensor | None, parameter: Tensor) -> Tensor:
    return torch.zeros_like(parameter).flatten() if gradient is None else gradient.flatten()
