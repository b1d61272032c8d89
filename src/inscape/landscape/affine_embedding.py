"""Affine embedding: an affine map inside a ReLU network, exact on the data (Lemma 1)."""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn

from inscape._core import Result, Row, Summary, UnsupportedModelError, checks
from inscape._core.result import NONNEGATIVE, Range
from inscape.landscape._dense_network import leaves

#: Singular values below this fraction of the largest do not count for the rank.
NEGLIGIBLE = 1e-12


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AffineEmbedding(Result):
    """How well a network reproduces an affine map: largest deviation, pre-activations by layer.

    Pre-activations are at least the margin, not the constant c of the proof (G1).
    """

    range: ClassVar[Range] = NONNEGATIVE

    least: Float64[Tensor, " layers"]
    deviation: float
    rank: int
    width: int

    def rows(self) -> Iterator[Row]:
        """Yield one row for each hidden layer: its least pre-activation on the data."""
        for layer, value in enumerate(self.least.tolist()):
            yield {"layer": layer, "least": value}

    def summary(self) -> Summary:
        """Return the largest deviation from the affine map on the data."""
        basis = f"rank {self.rank} in width {self.width}, pre-activations from "
        return Summary(
            value=self.deviation, kind="exact", basis=f"{basis}{float(self.least.min()):.3g}"
        )


@torch.no_grad()
def affine_embedding(
    model: nn.Module,
    x: Float[Tensor, "n *d"],
    weight: Float[Tensor, "c d"],
    bias: Float[Tensor, " c"],
    *,
    margin: float = 1.0,
) -> tuple[nn.Module, AffineEmbedding]:
    r"""Return a copy of a ReLU network that computes an affine map on the data.

    .. math:: A = U \Sigma V^T, \quad W_1 = \binom{\Sigma V^T}{0}, \;
              W_l = \binom{I \; 0}{0 \; 0}, \; W_L = (U \; 0)

    Lemma 1 of Goldblum et al.: biases make all pre-activations on the data at least ``margin``, so
    that each ReLU is the identity there; exact up to rounding, for maps of rank up to the smallest
    hidden width.

    Args:
        model: A sequence of linear layers with biases and ReLUs (or identities) between them.
        x: Points on which the map is reproduced.
        weight: The matrix of the map.
        bias: Its constant.
        margin: Least pre-activation on the data.
    """
    checks.points(x)
    if not margin > 0:
        raise ValueError(f"margin must be above 0, found {margin}: raise margin.")
    network = copy.deepcopy(model)
    layers = _linear_layers(network)
    inputs = x.flatten(1).double()
    _check_shapes(layers, inputs, weight, bias)
    width = min(layer.out_features for layer in layers[:-1])
    u, values, v = torch.linalg.svd(weight.double(), full_matrices=False)
    rank = int((values > NEGLIGIBLE * values[0]).sum()) if bool(values[0] > 0) else 0
    if rank > width:
        raise ValueError(
            f"the map must have a rank up to the smallest hidden width, {width}, found {rank}: "
            "pass a map of lower rank, such as reduced_rank_regression(..., rank=...)."
        )
    rows = values[:rank, None] * v[:rank]
    raised = margin - (inputs @ rows.T).min(0).values.clamp(max=0)
    _fill(layers[0], rows, raised, margin)
    for layer in layers[1:-1]:
        _fill(layer, torch.eye(rank, dtype=torch.float64), torch.zeros(rank).double(), margin)
    last = u[:, :rank]
    constant = bias.double() - last @ raised
    layers[-1].weight.zero_()
    layers[-1].weight[:, :rank] = last.to(layers[-1].weight)
    layers[-1].bias.copy_(constant)
    return network, _report(network, layers, x, inputs @ weight.double().T + bias.double(), rank)


def _fill(layer: nn.Linear, rows: Tensor, bias: Tensor, margin: float) -> None:
    """Set the first units of a layer; the others have no incoming weights and a constant bias."""
    layer.weight.zero_()
    layer.weight[: len(rows), : rows.shape[1]] = rows.to(layer.weight)
    layer.bias.fill_(margin)
    layer.bias[: len(bias)] = bias.to(layer.bias)


def _linear_layers(network: nn.Module) -> list[nn.Linear]:
    """Return the linear layers of a network of linear layers and ReLUs, or raise."""
    layers: list[nn.Linear] = []
    for name, module in leaves(network):
        if isinstance(module, nn.Linear) and module.bias is not None:
            layers.append(module)
        elif not isinstance(module, nn.ReLU | nn.Identity | nn.Flatten):
            raise UnsupportedModelError(
                "an affine embedding needs linear layers with biases and ReLUs between them, found "
                f"{type(module).__name__} at {name or 'the top'!r}: build an nn.Sequential."
            )
    if len(layers) < 2:
        raise UnsupportedModelError(
            f"an affine embedding needs a hidden layer, found {len(layers)} linear layers: add one."
        )
    return layers


def _check_shapes(layers: list[nn.Linear], x: Tensor, weight: Tensor, bias: Tensor) -> None:
    expected = (layers[-1].out_features, layers[0].in_features)
    if tuple(weight.shape) != expected or tuple(bias.shape) != expected[:1]:
        raise ValueError(
            f"the map must have the shapes {expected} and {expected[:1]}, found "
            f"{tuple(weight.shape)} and {tuple(bias.shape)}: one row for each output."
        )
    if x.shape[1] != expected[1]:
        raise ValueError(
            f"x must have {expected[1]} numbers per point, found {x.shape[1]}: reshape it."
        )


def _report(
    network: nn.Module, layers: list[nn.Linear], x: Tensor, expected: Tensor, rank: int
) -> AffineEmbedding:
    least: list[float] = []
    hooks = [
        layer.register_forward_hook(lambda module, inputs, z: least.append(float(z.min())))
        for layer in layers[:-1]
    ]
    outputs = network(x.to(layers[0].weight))
    for hook in hooks:
        hook.remove()
    return AffineEmbedding(
        least=torch.tensor(least, dtype=torch.float64),
        deviation=float((outputs.double() - expected).abs().max()),
        rank=rank,
        width=min(layer.out_features for layer in layers[:-1]),
    )


@torch.no_grad()
def dead_network(model: nn.Module, x: Float[Tensor, "n *d"], output: Tensor) -> nn.Module:
    """Return a copy whose first hidden layer is off on all data, so that it is constant there."""
    network = copy.deepcopy(model)
    layers = _linear_layers(network)
    z = x.flatten(1).to(layers[0].weight) @ layers[0].weight.T
    layers[0].bias.copy_(-1 - z.max(0).values.clamp(min=0))
    h = torch.zeros(layers[0].out_features).to(z)
    for layer in layers[1:-1]:
        h = layer(h).relu()
    layers[-1].bias.copy_(output.to(z) - layers[-1].weight @ h)
    return network


@torch.no_grad()
def deepened(model: nn.Sequential, layers: int = 1) -> nn.Sequential:
    """Return a deeper network with the same function: identities before the last linear layer.

    The last hidden layer must end in a ReLU, which a further ReLU does not change.
    """
    parts = [copy.deepcopy(module) for module in model]
    last = parts.pop()
    if not isinstance(last, nn.Linear) or not parts or not isinstance(parts[-1], nn.ReLU):
        raise UnsupportedModelError(
            "a network is deepened before its last linear layer, after a ReLU, found others: build "
            "an nn.Sequential that ends in nn.ReLU(), nn.Linear(...)."
        )
    for _ in range(layers):
        identity = nn.Linear(last.in_features, last.in_features, device="meta")
        identity = identity.to_empty(device=last.weight.device).to(last.weight.dtype)
        nn.init.eye_(identity.weight)
        nn.init.zeros_(identity.bias)
        parts += [identity, nn.ReLU()]
    return nn.Sequential(*parts, last).train(model.training)
