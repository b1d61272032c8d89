"""Gradient descent on small tasks, and both sides of eq 9 for it."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float64
from torch import Tensor, nn

from inscape._core.sampling import generator
from inscape.kernels import PathKernel, TangentKernel, path_kernel, tangent_kernel
from inscape.models import mlp
from inscape.training import Fit, fit
from inscape.training.schedules import ScheduleFunction

#: Checkpoints are so many steps apart at least; the steps between are made anew.
APART = 100


def network(inputs: int = 2, *, width: int = 10, outputs: int = 1, seed: int) -> nn.Sequential:
    """Return the network of section 5.1, in float64."""
    return mlp(inputs, width, width, outputs, activation="gelu", seed=seed, dtype=torch.float64)


def ball(n: int, seed: int) -> tuple[Float64[Tensor, "n 2"], Float64[Tensor, "n 1"]]:
    """Draw the points of section 5.1, labelled +1 and -1."""
    from inscape.data import load

    drawn = load(f"ball-versus-sphere:n={n},n_test=1,seed={seed}")
    return drawn.x.double(), drawn.y.double()


def queries(count: int, seed: int, inputs: int = 2) -> Float64[Tensor, "q d"]:
    """Draw points of the cube at which predictions are taken apart."""
    drawn = torch.rand(count, inputs, generator=generator(10_000 + seed), dtype=torch.float64)
    return 2 * drawn - 1


def descent(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    eta: float,
    steps: int,
    loss: str = "mse",
    optimizer: str = "sgd",
    schedule: ScheduleFunction | None = None,
) -> Fit:
    """Train on all data at each step, and record the way."""
    return fit(
        model,
        x,
        y,
        loss=loss,
        optimizer=optimizer,
        lr=eta,
        epochs=steps,
        schedule=schedule,
        progress=False,
        record=max(1, min(APART, steps)),
    )


def taken_apart(
    run: Fit, x: Tensor, y: Tensor, at: Tensor, mode: Any = "first-order"
) -> PathKernel:
    """Return the predictions at some queries as sums over samples."""
    found = path_kernel(run.model, x, y, trajectory=run.trajectory, queries=at, mode=mode)
    assert isinstance(found, PathKernel)  # the training was recorded
    return found


def root_mean_square(values: Tensor) -> float:
    """Return the root of the mean square."""
    return float(values.square().mean().sqrt())


def kernel_between(model: nn.Module, x: Tensor, others: Tensor) -> Float64[Tensor, "n m c c"]:
    """Return the tangent kernel in full."""
    found = tangent_kernel(model, x, others=others)
    assert isinstance(found, TangentKernel)  # there are trainable parameters
    return found.kernel


def speed(
    model: nn.Module, x: Tensor, y: Tensor, at: Tensor, loss: Callable[[Tensor, Tensor], Tensor]
) -> Float64[Tensor, "q c"]:
    """Return how fast predictions move under gradient flow: along minus the loss's gradient."""
    weights = {name: p.detach() for name, p in model.named_parameters()}

    def outputs(values: dict[str, Tensor], points: Tensor) -> Tensor:
        found: Tensor = torch.func.functional_call(model, values, (points,))
        return found

    uphill = torch.func.grad(lambda values: loss(outputs(values, x), y))(weights)
    slopes = torch.func.jacrev(lambda values: outputs(values, at))(weights)
    found: Tensor = -sum(slopes[name].flatten(2) @ uphill[name].flatten() for name in weights)
    return found.detach()


def machine(
    model: nn.Module, x: Tensor, y: Tensor, at: Tensor, loss: Callable[[Tensor, Tensor], Tensor]
) -> Float64[Tensor, "q c"]:
    """Return the kernel machine of eq 5: minus the sum of loss derivatives times the kernel."""
    outputs = model(x).detach().requires_grad_()
    (slopes,) = torch.autograd.grad(loss(outputs, y), outputs)
    return -torch.einsum("qnij,nj->qi", kernel_between(model, at, x), slopes)
