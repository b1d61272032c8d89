"""Hessian density: how the curvatures of the loss are distributed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn

from inscape._core import NotApplicable, Result, Row, Summary, checks, instrument
from inscape._core.anytime import anytime
from inscape._core.inference import no_grad
from inscape._core.result import ALIKE, PROPORTION, Range, student
from inscape._core.sampling import generator
from inscape.landscape._lanczos import lanczos
from inscape.landscape._loss_function import (
    GRAPHS,
    LossFunction,
    Matrix,
    ModuleLoss,
    loss_function_of,
)
from inscape.training import Loss

#: Curvatures below this fraction of the largest count as flat.
FLAT = 0.01


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class HessianDensity(Result):
    """Quadrature nodes and weights of the distribution of eigenvalues, one row for each probe.

    The weights of a row add up to one; a row with fewer nodes ends in weights that are zero.
    """

    range: ClassVar[Range] = PROPORTION

    nodes: Float64[Tensor, "probes steps"]
    weights: Float64[Tensor, "probes steps"]
    parameters: int
    products: int
    matrix: str
    loss: str
    seed: int

    def rows(self) -> Iterator[Row]:
        """Yield one row for each node."""
        for probe, (nodes, weights) in enumerate(
            zip(self.nodes.tolist(), self.weights.tolist(), strict=True)
        ):
            for node, weight in zip(nodes, weights, strict=True):
                yield {"probe": probe, "eigenvalue": node, "weight": weight}

    def fraction(self, low: float, high: float) -> Float64[Tensor, " probes"]:
        """Return which fraction of the eigenvalues each probe sees between two numbers."""
        inside = (self.nodes >= low) & (self.nodes <= high)
        return (self.weights * inside).sum(1)

    def summary(self) -> Summary:
        """Return the fraction of directions whose curvature is above 1% of the largest, in size."""
        limit = FLAT * float(self.nodes.abs().max())
        curved = (1 - self.fraction(-limit, limit)).clamp(0, 1)
        basis = f"{len(curved)} probes x {self.nodes.shape[1]} steps"
        value = float(curved.mean())
        if len(curved) < 2 or not float(curved.std()) > 0:
            return Summary(value=value, kind="estimate", basis=f"{basis}; {ALIKE}")
        half = student(len(curved)) * float(curved.std()) / len(curved) ** 0.5
        low, high = max(0.0, value - half), min(1.0, value + half)
        return Summary(value=value, kind="estimate", basis=basis, low=low, high=high)


@instrument(
    reads="parameters",
    better="neither",
    larger="fewer flat directions",
    cost="seconds",
    work=lambda n, c: 900 * n,
    samples="probes",
    meaning="The fraction {value} of all directions has a curvature above 1% of the largest.",
    cites="ghorbani2019investigation; ubaru2017fast",
    by_default=False,
    of_training=True,
)
@anytime
@no_grad
def hessian_density(
    model: nn.Module,
    x: Float[Tensor, "n *d"],
    y: Tensor | None = None,
    *,
    loss: str | Loss | None = None,
    module_loss: ModuleLoss | None = None,
    parameters: Sequence[str] | None = None,
    weight_decay: float = 0.0,
    matrix: Matrix = "hessian",
    probes: int = 5,
    steps: int = 30,
    seed: int = 0,
    memory: int = GRAPHS,
) -> Iterator[HessianDensity | NotApplicable]:
    r"""Measure the distribution of the eigenvalues of the Hessian of the loss.

    .. math:: \frac{1}{p} \sum_i \delta(\lambda - \lambda_i) \approx
              \frac{1}{k} \sum_{j=1}^k \sum_m \tau_{jm}^2 \, \delta(\lambda - \vartheta_{jm})

    Stochastic Lanczos quadrature: the Ritz values of each random start with the squared first
    components of their vectors. An estimate, whose moments are exact for each start up to twice
    the steps. Costs ``probes * steps`` double backward passes over the data.

    Args:
        model: A module in eval mode.
        x: Points of the data, all of which count.
        y: Their labels; not needed for a ``module_loss``.
        loss: As in ``fit``, a mean over samples; ``"cross_entropy"`` by default for integer labels.
        module_loss: Instead of a loss of outputs, any scalar function of the module.
        parameters: Names of parameters or modules that count; all by default.
        weight_decay: As in ``fit``; added once.
        matrix: ``"hessian"`` or ``"gauss_newton"``.
        probes: Random starts.
        steps: Nodes of each.
        seed: Seed of the starts.
        memory: Bytes that the graphs may take.
    """
    checks.whole(1, probes=probes)
    checks.whole(2, steps=steps)
    checks.one_of(("hessian", "gauss_newton"), matrix=matrix)
    rng = generator(seed)
    problem = loss_function_of(
        model,
        x,
        y,
        loss=loss,
        module_loss=module_loss,
        parameters=parameters,
        weight_decay=weight_decay,
        memory=memory,
    )
    if problem is None:
        yield NotApplicable(what="hessian_density", reason="the model has no parameters")
        return
    yield from _densities(problem, matrix, (probes, steps), rng, seed)


def _densities(
    problem: LossFunction,
    matrix: Matrix,
    sizes: tuple[int, int],
    rng: torch.Generator,
    seed: int,
) -> Iterator[HessianDensity]:
    """Yield the distribution with ever more probes."""
    product, (probes, steps) = problem.products(matrix), sizes
    nodes = torch.zeros(probes, steps, dtype=torch.float64)
    weights = torch.zeros(probes, steps, dtype=torch.float64)
    for probe in range(probes):
        start = torch.randn(problem.size, generator=rng, dtype=torch.float64)
        *_, pairs = lanczos(product, start.to(problem.tensors[0]), columns=steps, products=steps)
        count = len(pairs.values)
        nodes[probe, :count] = pairs.values
        weights[probe, :count] = pairs.vectors[0].square()
        yield HessianDensity(
            nodes=nodes[: probe + 1].clone(),
            weights=weights[: probe + 1].clone(),
            parameters=problem.size,
            products=product.products,
            matrix=matrix,
            loss=problem.loss_name,
            seed=seed,
        )
