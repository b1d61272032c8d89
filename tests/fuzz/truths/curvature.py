"""Curvature of the loss: by whole matrices, one sample and one column at a time."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from fuzz.calls import Call
from fuzz.claims import Claim, Unverifiable, at_least, at_most, equal, holds
from fuzz.reference import Reference
from fuzz.truths.common import labels, points

#: Parameters of the largest matrix that is written out.
MOST = 120


def sample_losses(call: Call, f: Reference, name: str) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield outputs and loss of each sample, with their graphs."""
    y = labels(call)
    for point, label in zip(points(call), y, strict=True):
        outputs = f.f(f.rounded(point.to(f.compute))[None].clone()).double()
        if name == "mse":
            yield outputs, (outputs.flatten() - label.double().flatten()).square().mean()
        elif name == "cross_entropy":
            yield outputs, functional.cross_entropy(outputs, label[None].long())
        else:
            raise Unverifiable(name)


@torch.enable_grad()
def matrix(call: Call, f: Reference, kind: str, name: str) -> Tensor:
    """Return the whole Hessian or Gauss-Newton matrix of the mean loss."""
    tensors = [p.requires_grad_() for p in f.module.parameters()]
    if sum(p.numel() for p in tensors) > MOST:
        raise Unverifiable("too many parameters for a whole matrix")
    total: Any = 0.0
    for outputs, loss in sample_losses(call, f, name):
        whole = loss if kind == "hessian" else _linearised(outputs, loss, tensors)
        total = total + (_rows(whole, tensors) if kind == "hessian" else whole)
    return total / len(points(call))


def _rows(value: Tensor, tensors: list[Tensor]) -> Tensor:
    gradient = flat(value, tensors, graph=True)
    return torch.stack([flat(entry, tensors, graph=False) for entry in gradient])


def _linearised(outputs: Tensor, loss: Tensor, tensors: list[Tensor]) -> Tensor:
    jacobian = torch.stack([flat(output, tensors, graph=False) for output in outputs.flatten()])
    (first,) = torch.autograd.grad(loss, outputs, create_graph=True)
    curved = torch.stack(
        [
            torch.autograd.grad(entry, outputs, retain_graph=True)[0].flatten()
            for entry in first.flatten()
        ]
    )
    return jacobian.T @ curved.double() @ jacobian


def flat(value: Tensor, tensors: list[Tensor], *, graph: bool) -> Tensor:
    """Return the gradient of a number by all tensors as one vector."""
    if not value.requires_grad:
        return torch.zeros(sum(p.numel() for p in tensors), dtype=torch.float64)
    parts = torch.autograd.grad(
        value,
        tensors,
        create_graph=graph,
        retain_graph=True,
        allow_unused=True,
        materialize_grads=True,
    )
    return torch.cat([part.flatten().double() for part in parts])


def hessian_extremes(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    whole = matrix(call, f, result.matrix, result.loss)
    if not bool(whole.isfinite().all()):
        raise Unverifiable("overflow")
    values = torch.linalg.eigvalsh((whole + whole.T) / 2)
    size = float(values.abs().max())
    if result.proof == "inertia":
        yield equal("ends", [result.smallest, result.largest], values[[0, -1]], scale=size)
    for end, residual in zip(
        (result.smallest, result.largest), result.residuals.tolist(), strict=True
    ):
        nearest = (values - end).abs().min()
        yield at_most("an eigenvalue within the residual", nearest, residual, scale=size)
    yield at_most("smallest is no less", values[0], result.smallest, scale=size)
    yield at_most("largest is no more", result.largest, values[-1], scale=size)


@torch.enable_grad()
def _loss_and_gradient(call: Call, f: Reference, name: str) -> tuple[Tensor, Tensor]:
    """Return the mean loss and its gradient by all parameters."""
    tensors = [p.requires_grad_() for p in f.module.parameters()]
    losses, total = [], 0.0
    for _, loss in sample_losses(call, f, name):
        losses.append(loss.detach().double())
        total = total + flat(loss, tensors, graph=False)
    return torch.stack(losses).mean(), torch.as_tensor(total) / len(losses)


def stationarity(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    loss, gradient = _loss_and_gradient(call, f, result.loss)
    sizes = [p.numel() for p in f.module.parameters()]
    yield equal("loss", result.value, loss)
    yield equal("gradient", result.total, gradient.norm())
    norms = torch.stack([part.norm() for part in torch.split(gradient, sizes)])
    yield equal("gradient of each tensor", result.norms, norms, scale=float(gradient.norm()))


def local_minimum(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    loss, gradient = _loss_and_gradient(call, f, result.loss)
    yield equal("loss", result.losses[0], loss)
    yield equal("gradient", result.gradients[0], gradient.norm())
    lowered = result.verdict in ("not stationary", "saddle")
    yield holds("a step is shown", lowered == bool(result.lowered[0] > 0))
    yield at_most("the loss is not negative", result.lowered[0], loss)
    if result.is_proved:
        values = torch.linalg.eigvalsh(matrix(call, f, "hessian", result.loss))
        size = float(values.abs().max())
        yield at_least("no negative curvature", values[0], -1e-9 * size, scale=size)


def loss_surface(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    loss, _ = _loss_and_gradient(call, f, result.loss)
    if result.statistics != "recomputed":
        yield equal("loss of the model", result.loss_at_model, loss)
    lowest = result.losses.min()
    yield at_most("minimum", result.minimum_loss, lowest, scale=float(lowest.abs()))
    values = torch.linalg.eigvalsh(_symmetric(call, f, "hessian", result.loss))
    size = float(values.abs().max())
    yield at_least("curvature of the plane", result.plane_curvatures[0], values[0], scale=size)
    yield at_most("curvature of the plane", result.plane_curvatures[1], values[-1], scale=size)


def _symmetric(call: Call, f: Reference, kind: str, loss: str) -> Tensor:
    values = matrix(call, f, kind, loss)
    if not bool(values.isfinite().all()):
        raise Unverifiable("overflow")
    return (values + values.T) / 2


def hessian_trace(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    values = torch.linalg.eigvalsh(_symmetric(call, f, result.matrix, result.loss))
    size, summary = float(values.abs().sum()), result.summary()
    if summary.kind == "exact":
        yield equal("trace", summary.value, values.sum(), scale=size)
    elif summary.low is not None:  # six times half a 95% interval
        far = 6 * (summary.high - summary.low)
        yield at_most("trace", abs(summary.value - values.sum()), far, scale=size)


def hessian_density(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    values = torch.linalg.eigvalsh(_symmetric(call, f, result.matrix, result.loss))
    size = float(values.abs().max())
    yield equal("weights", result.weights.sum(1), torch.ones(len(result.weights)))
    yield at_least("nodes", result.nodes.min(), values[0].clamp(max=0), scale=size)
    yield at_most("nodes", result.nodes.max(), values[-1].clamp(min=0), scale=size)


def sharpness(call: Call, f: Reference, result: Any) -> Iterator[Claim]:
    hessian = _symmetric(call, f, "hessian", result.loss)
    tensors = [p.detach().double() for p in f.module.parameters()]
    norms = [p.flatten(1).norm(dim=1) if p.ndim > 1 else p.abs() for p in tensors]
    scales = [
        torch.ones(len(hessian), dtype=torch.float64),
        torch.cat([p.abs().flatten() for p in tensors]),
        torch.cat(
            [n.repeat_interleave(p.numel() // len(n)) for n, p in zip(norms, tensors, strict=True)]
        ),
    ]
    for k, scale in enumerate(scales):
        values = torch.linalg.eigvalsh(scale[:, None] * hessian * scale)
        size = float(values.abs().max())
        yield at_most("largest", result.values[k], values[-1], scale=size)
        nearest = (values - result.values[k]).abs().min()
        yield at_most("residual", nearest, result.residuals[k], scale=size)
