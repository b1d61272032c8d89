r"""Training inside the span of the data: the same network from fewer parameters.

A gradient of the first layer's weights is a combination of the inputs, so gradient descent changes
these weights only within the span of the training points. With an orthonormal basis :math:`Q` of
that span (one row each), training :math:`V` in

.. math:: f(x) = g(V Q x + b), \qquad V_0 = W_0 Q^\top, \qquad W = W_0 + (V - V_0) Q

is training :math:`W` in :math:`g(W x + b)`, up to rounding: 64 images of 784 pixels need a first
layer of at most 64 inputs.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn

from inscape._core import checks
from inscape.errors import UnsupportedModelError
from inscape.training.function_names import name_of, own_name
from inscape.training.loop import Fit, fit
from inscape.training.optimizers import OptimizerFactory
from inscape.training.penalties import Penalty


@dataclass(frozen=True, eq=False, kw_only=True)
class Span:
    """A network in a basis of its training points.

    Attributes:
        model: The smaller network, to be trained on ``x``.
        x: Coordinates of the training points.
        basis: Orthonormal basis of the span of the training points.
        original: The network that was passed; :func:`out_of_span` writes the trained weights to it.
        start: Initial weights of the first layer of ``model``.
    """

    model: nn.Sequential
    x: Float[Tensor, "n r"]
    basis: Float64[Tensor, "r d"]
    original: nn.Sequential
    start: Float[Tensor, "units r"]


def in_span(model: nn.Module, x: Float[Tensor, "n *d"]) -> Span:
    r"""Return ``model`` and ``x`` in an orthonormal basis of the span of the points.

    Exact up to rounding for any loss of the predictions and for SGD with any momentum, without
    weight decay and penalties; see :func:`reason_not_in_span`. The weights of inputs that are zero
    at all points do not change.

    >>> span = in_span(nn.Sequential(nn.Flatten(), nn.Linear(784, 1)), torch.rand(9, 28, 28))
    >>> span.model[0].in_features, tuple(span.x.shape)
    (9, (9, 9))

    Args:
        model: An ``nn.Sequential`` that begins with a linear layer, after ``nn.Flatten`` if need
            be; it stays as it is.
        x: Training points.
    """
    checks.points(x)
    checks.weights(model, x)
    original, first, rest = _opened(model)
    flat = x.detach().flatten(1)
    if first.in_features != flat.shape[1]:
        raise UnsupportedModelError(
            f"the first linear layer must read points of {flat.shape[1]} numbers, found one for "
            f"{first.in_features}: put nn.Flatten before it, or reshape x."
        )
    basis = orthonormal_basis(flat)
    small = nn.Linear(len(basis), 1, device="meta", dtype=x.dtype)
    small.out_features, small.bias = first.out_features, deepcopy(first.bias)
    start = (first.weight.detach().double() @ basis.T).to(x.dtype)
    small.weight = nn.Parameter(start.clone(), requires_grad=first.weight.requires_grad)
    return Span(
        model=nn.Sequential(small, *deepcopy(rest)).train(model.training),
        x=(flat.double() @ basis.T).to(x.dtype),
        basis=basis,
        original=original,
        start=start,
    )


@torch.no_grad()
def out_of_span(span: Span) -> nn.Sequential:
    """Write the weights of the trained ``span.model`` to ``span.original``, and return it."""
    _, first, rest = _opened(span.original)
    _, small, trained = _opened(span.model)
    moved = (small.weight.double() - span.start.double()) @ span.basis
    first.weight.copy_((first.weight.double() + moved).to(first.weight.dtype))
    if first.bias is not None:
        first.bias.copy_(small.bias)
    for part, trained_part in zip(rest, trained, strict=True):
        part.load_state_dict(trained_part.state_dict())
    return span.original.train(span.model.training)


def fit_in_span(model: nn.Module, x: Float[Tensor, "n *d"], y: Tensor, **options: Any) -> Fit:
    """Train ``model`` in place as :func:`fit` does, in a basis of the span of ``x``.

    Args:
        model: As in :func:`in_span`.
        x: Training points.
        y: Targets.
        **options: As in :func:`fit`; other optimizers than SGD, weight decay, penalties and a
            recording raise an error, since the network would not be the same.
    """
    names = ("optimizer", "weight_decay", "penalties", "record")
    reason = reason_not_in_span(**{name: options[name] for name in names if name in options})
    if reason is not None:
        raise ValueError(f"a training in the span must equal one outside, but {reason}: use fit.")
    span = in_span(model, x)
    run = fit(span.model, span.x, y, **options)
    return replace(run, model=out_of_span(span))


def reason_not_in_span(
    *,
    optimizer: str | OptimizerFactory = "sgd",
    weight_decay: float = 0.0,
    penalties: Sequence[tuple[float, Penalty]] = (),
    record: int | None = None,
) -> str | None:
    """Return why a training in the span would not equal one outside, or None if it would."""
    if optimizer != "sgd":
        return f"the steps of {own_name(optimizer)!r} depend on the axes, found no 'sgd'"
    if weight_decay:
        return f"weight decay ({weight_decay}) also moves weights outside of the span"
    if penalties:
        return f"the penalty {name_of(penalties[0][1])} may look outside of the span"
    if record is not None:
        return "the recorded trajectory would be that of the smaller network"
    return None


def orthonormal_basis(x: Float[Tensor, "n d"]) -> Float64[Tensor, "r d"]:
    """Return orthonormal rows that span the rows of ``x``: at least one, and zero where all are.

    The rank counts singular values above the rounding of float64. If all inputs that are not always
    zero are needed, the axes themselves are the basis.
    """
    live = (x != 0).any(0).nonzero().flatten()
    if len(live) == 0:
        live = live.new_zeros(1)
    axes = torch.eye(len(live), dtype=torch.float64, device=x.device)
    points = x[:, live].double()
    _, sizes, directions = torch.linalg.svd(points, full_matrices=False)
    least = sizes[0] * max(points.shape) * torch.finfo(torch.float64).eps
    rank = max(1, int((sizes > least).sum()))
    basis = x.new_zeros(min(rank, len(live)), x.shape[1], dtype=torch.float64)
    basis[:, live] = axes if rank == len(live) else directions[:rank]
    return basis


def _opened(model: nn.Module) -> tuple[nn.Sequential, nn.Linear, list[nn.Module]]:
    """Return the model, its first linear layer and the layers after it; raise an error if none."""
    if not isinstance(model, nn.Sequential):
        raise UnsupportedModelError(
            "a training in the span needs an nn.Sequential that begins with a linear layer, found "
            f"{type(model).__name__}: use fit."
        )
    parts = list(model)
    for place, part in enumerate(parts):
        if type(part) is nn.Linear:
            _refuse_sharing(part, parts[place + 1 :])
            return model, part, parts[place + 1 :]
        flattens = isinstance(part, nn.Flatten) and (part.start_dim, part.end_dim) == (1, -1)
        if not flattens and type(part) is not nn.Identity:
            raise UnsupportedModelError(
                "a training in the span needs a linear layer first, or nn.Flatten and then one, "
                f"found {type(part).__name__} at {place}: use fit."
            )
    raise UnsupportedModelError(
        "a training in the span needs a linear layer, found none in the model: use fit."
    )


def _refuse_sharing(first: nn.Linear, rest: Sequence[nn.Module]) -> None:
    later = [p for part in rest for p in part.parameters()]
    if any(p is own for p in later for own in first.parameters()):
        raise UnsupportedModelError(
            "the first linear layer must stand alone, found its weights in use again further on: "
            "use fit."
        )
