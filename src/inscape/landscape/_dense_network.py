"""Networks that are a chain of linear layers and elementwise functions, with their derivatives."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float64
from torch import Tensor, nn

from inscape.landscape._loss_function import LossFunction

#: Largest size of the first, second and third derivative of an elementwise function.
SMOOTHNESS: dict[type[nn.Module], tuple[float, float, float]] = {
    nn.Identity: (1.0, 0.0, 0.0),
    nn.Dropout: (1.0, 0.0, 0.0),
    nn.ReLU: (1.0, 0.0, 0.0),  # off its breakpoint
    nn.Tanh: (1.0, 0.7699, 2.0),  # 4 / (3 sqrt 3)
    nn.Sigmoid: (0.25, 0.0963, 0.125),  # 1 / (6 sqrt 3)
}


@dataclass(frozen=True, kw_only=True)
class DenseLayer:
    """A linear layer with the elementwise function after it, and names of its parameters.

    ``inputs`` and ``outputs`` are those of the linear layer at the data.
    """

    weight_name: str
    bias_name: str | None
    weight: Float64[Tensor, "o i"]
    bias: Float64[Tensor, " o"] | None
    kind: type[nn.Module]
    inputs: Float64[Tensor, "n i"]
    outputs: Float64[Tensor, "n o"]

    @property
    def has_kinks(self) -> bool:
        """Tell whether the function after the layer has a breakpoint, at zero."""
        return self.kind is nn.ReLU

    def extended_inputs(self) -> Float64[Tensor, "n i1"]:
        """Return the inputs with a column of ones if there is a bias."""
        if self.bias is None:
            return self.inputs
        return torch.cat([self.inputs, self.inputs.new_ones(len(self.inputs), 1)], dim=1)


@torch.no_grad()
def dense_layers(problem: LossFunction) -> list[DenseLayer] | None:
    """Return the layers of a chain in float64 with their values at the data; None if it is none.

    All parameters must be those of linear layers, each used once, and count.
    """
    chain = _split(problem.model)
    if chain is None:
        return None
    h = problem.x.double().flatten(1)
    layers: list[DenseLayer] = []
    for name, linear, kind in chain:
        prefix = f"{name}." if name else ""
        z, bias = linear(h), linear._parameters["bias"]
        layers.append(
            DenseLayer(
                weight_name=f"{prefix}weight",
                bias_name=f"{prefix}bias" if bias is not None else None,
                weight=linear.weight.detach(),
                bias=bias.detach() if bias is not None else None,
                kind=kind,
                inputs=h,
                outputs=z,
            )
        )
        h = kind()(z) if kind is not nn.Dropout else z
    names = {n for layer in layers for n in (layer.weight_name, layer.bias_name) if n}
    if names != set(problem.names) or not torch.equal(h, problem.outputs(slice(None)).flatten(1)):
        return None
    return layers


def _split(model: nn.Module) -> list[tuple[str, nn.Linear, type[nn.Module]]] | None:
    """Return linear layers with the elementwise function after each."""
    chain: list[tuple[str, nn.Linear, type[nn.Module]]] = []
    for name, module in leaves(model):
        if type(module) is nn.Linear and {"weight", "bias"} <= set(module._parameters):
            chain.append((name, module, nn.Identity))
        elif isinstance(module, nn.Flatten) and not chain:
            continue
        elif type(module) in SMOOTHNESS and chain and chain[-1][2] in (nn.Identity, nn.Dropout):
            chain[-1] = (*chain[-1][:2], type(module))
        elif type(module) not in (nn.Identity, nn.Dropout):
            return None
    modules = [id(linear) for _, linear, _ in chain]
    return chain if chain and len(set(modules)) == len(modules) else None


def leaves(model: nn.Module, prefix: str = "") -> Iterator[tuple[str, nn.Module]]:
    """Yield the modules of nested sequential models in order, with their names."""
    if type(model) is not nn.Sequential:
        yield prefix, model
        return
    for name, module in model.named_children():
        yield from leaves(module, f"{prefix}.{name}" if prefix else name)


def kink_margin(layers: list[DenseLayer]) -> float:
    """Return the smallest distance of a pre-activation at the data from a breakpoint."""
    sizes = [float(layer.outputs.abs().min()) for layer in layers if layer.has_kinks]
    return min(sizes, default=float("inf"))


@dataclass(frozen=True)
class BallBounds:
    """What holds in a ball around the parameters: no kink is met, and how fast H changes.

    ``lipschitz`` bounds the Hessian's change over the distance, ``gradient`` the mean length of
    the gradients of single samples.
    """

    free_of_kinks: bool
    lipschitz: float
    gradient: float


def ball_bounds(problem: LossFunction, layers: list[DenseLayer], radius: float) -> BallBounds:
    r"""Return bounds over all parameters within ``radius``, layer by layer.

    .. math:: a^k_{l} \le \lVert W_l \rVert a^k_{l-1} + k \, a^{k-1}_{l-1}, \quad
              a^1_l \le \lVert W_l \rVert a^1_{l-1} + \lVert (h_{l-1}, 1) \rVert

    where :math:`a^k` bounds the k-th derivative of a layer's values by the parameters at each
    sample; elementwise functions follow the chain rule with bounds of their derivatives.
    """
    n = len(problem.x)
    zeros = torch.zeros(n, dtype=torch.float64)
    shift, first, second, third, free = zeros, zeros, zeros, zeros, True
    for layer in layers:
        rows = layer.weight.norm(dim=1)
        size = float(torch.linalg.matrix_norm(layer.weight, 2)) + radius
        extended = (layer.inputs.square().sum(1) + (layer.bias is not None)).sqrt() + shift
        if layer.has_kinks:
            moved = rows * shift[:, None] + radius * extended[:, None]
            free = free and bool((layer.outputs.abs() > moved).all())
        third = size * third + 3 * second
        second = size * second + 2 * first
        first, shift = size * first + extended, size * shift + radius * extended
        s1, s2, s3 = SMOOTHNESS[layer.kind]
        third = s1 * third + 3 * s2 * first * second + s3 * first**3
        second = s1 * second + s2 * first.square()
        first, shift = s1 * first, s1 * shift
    slope, curve, twist = _loss_bounds(problem, layers, shift)
    return BallBounds(
        free_of_kinks=free,
        lipschitz=float((twist * first**3 + 3 * curve * first * second + slope * third).mean()),
        gradient=float((slope * first).mean()),
    )


def _loss_bounds(
    problem: LossFunction, layers: list[DenseLayer], shift: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return bounds of the loss's derivatives by the outputs of each sample, moved by ``shift``."""
    slopes = output_slopes(problem, layers).norm(dim=1)
    if problem.loss == "mse":
        curve = torch.full_like(shift, 2 / layers[-1].outputs.shape[1])
        return slopes + curve * shift, curve, torch.zeros_like(shift)
    mass = label_mass(problem, layers)
    # a variable of range sqrt 2 has variance at most 1/2, third moment at most 2 sqrt 2 / 6 sqrt 3
    return slopes + mass / 2 * shift, mass / 2, 0.2723 * mass


def final_values(layers: list[DenseLayer]) -> Float64[Tensor, "n c"]:
    """Return the outputs of the chain."""
    kind = layers[-1].kind
    return layers[-1].outputs if kind is nn.Dropout else kind()(layers[-1].outputs)


def label_mass(problem: LossFunction, layers: list[DenseLayer]) -> Float64[Tensor, " n"]:
    """Return the sum of the target probabilities of each sample."""
    y = problem.labels(slice(None), layers[-1].outputs)
    ones = torch.ones(len(problem.x), dtype=torch.float64)
    return y.reshape(len(y), -1).sum(1) if y.is_floating_point() else ones


def output_slopes(problem: LossFunction, layers: list[DenseLayer]) -> Float64[Tensor, "n c"]:
    """Return the gradient of each sample's loss by the outputs, for the two losses we know."""
    f = final_values(layers)
    y = problem.labels(slice(None), f)
    if problem.loss == "mse":
        return 2 / f.shape[1] * (f - y.reshape(f.shape))
    if not y.is_floating_point():
        y = nn.functional.one_hot(y.long(), f.shape[1]).double()
    slopes: Tensor = f.softmax(1) * y.sum(1, keepdim=True) - y
    return slopes
