"""Gradients by parameters that act in no form known: written out, point by point."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float, Real
from torch import Tensor, nn

from inscape._core.sampling import generator
from inscape.functional.substitution import outputs_with


def written_out(
    model: nn.Module,
    x: Real[Tensor, "n *d"],
    names: Sequence[str],
    cotangents: Float[Tensor, "r n c"],
) -> tuple[Float[Tensor, "r n p"], str]:
    """Return gradients by the named parameters as they are, by all uses together."""
    try:
        j = _mapped(model, x, names, cotangents)
    except (RuntimeError, ValueError, NotImplementedError):  # what torch.func.vmap cannot do
        return _one_by_one(model, x, names, cotangents), "written out, one by one"
    if not _adds_up(j, model, x, names, cotangents):  # or does wrongly, as for slopes of PReLU
        return _one_by_one(model, x, names, cotangents), "written out, one by one"
    return j, "written out"


def _adds_up(
    j: Tensor, model: nn.Module, x: Tensor, names: Sequence[str], cotangents: Tensor
) -> bool:
    """Say whether a random sum of the gradients is what one plain pass back gives."""
    named = dict(model.named_parameters())
    chosen = [named[name] for name in names]
    if j.shape != (*cotangents.shape[:2], sum(p.numel() for p in chosen)):
        return False
    weights = torch.randn(cotangents.shape[:2], generator=generator(0), dtype=torch.float64)
    weights = weights.to(j)
    with torch.enable_grad():
        y = model(x.clone()).reshape(len(x), -1)
    pulled = torch.einsum("rn,rnc->nc", weights, cotangents)
    found = _pulled(y, chosen, pulled)
    whole = torch.cat([_flat(g, p) for p, g in zip(chosen, found, strict=True)])
    size, eps = torch.linalg.vector_norm(j, dim=(0, 1)), torch.finfo(j.dtype).eps
    missed = (torch.einsum("rn,rnp->p", weights, j) - whole).abs()
    return bool((missed <= eps**0.5 * size + 100 * eps * size.max()).all())


def _mapped(model: nn.Module, x: Tensor, names: Sequence[str], cotangents: Tensor) -> Tensor:
    named = dict(model.named_parameters())
    chosen = {name: named[name].detach() for name in names}

    def rows(point: Tensor, weights: Tensor) -> Tensor:
        def outputs(values: dict[str, Tensor]) -> Tensor:
            return outputs_with(model, values, point[None]).reshape(-1)

        back = torch.func.vjp(outputs, chosen)[1]
        (found,) = torch.func.vmap(back)(weights)
        return torch.cat([found[name].reshape(len(weights), -1) for name in names], dim=1)

    with warnings.catch_warnings(), _left_alone(model):
        warnings.filterwarnings("ignore", "There is a performance drop", UserWarning)
        j: Tensor = torch.func.vmap(rows, in_dims=(0, 1), out_dims=1)(x, cotangents)
    return j.detach()


@contextmanager
def _left_alone(model: nn.Module) -> Iterator[None]:
    """Give modules back what they hold, whatever a call of them puts there."""
    owners = [owner for module in model.modules() for owner in _dicts(module)]
    held = [dict(owner) for owner in owners]
    try:
        yield
    finally:
        for owner, before in zip(owners, held, strict=True):
            if list(map(id, owner.values())) != list(map(id, before.values())):
                owner.clear()
                owner.update(before)


def _dicts(module: Any) -> list[dict[str, Any]]:
    all_three = (vars(module), module._parameters, module._buffers)
    return [owner for owner in all_three if isinstance(owner, dict)]  # scripted ones have others


def _one_by_one(
    model: nn.Module, x: Tensor, names: Sequence[str], cotangents: Tensor
) -> Float[Tensor, "r n p"]:
    named = dict(model.named_parameters())
    chosen = [named[name] for name in names]
    columns = []
    for point, weights in zip(x, cotangents.transpose(0, 1), strict=True):
        with torch.enable_grad():
            y = model(point[None].clone()).reshape(-1)
        rows = []
        for row in weights:
            found = _pulled(y, chosen, row)
            rows.append(torch.cat([_flat(g, p) for p, g in zip(chosen, found, strict=True)]))
        columns.append(torch.stack(rows))
    return torch.stack(columns, dim=1).detach()


def _pulled(y: Tensor, chosen: Sequence[Tensor], row: Tensor) -> Sequence[Tensor | None]:
    if not y.requires_grad:  # what a module does may depend on the points
        return [None] * len(chosen)
    return torch.autograd.grad(y, chosen, row, retain_graph=True, allow_unused=True)


def _flat(gradient: Tensor | None, parameter: Tensor) -> Tensor:
    return torch.zeros_like(parameter).flatten() if gradient is None else gradient.flatten()
