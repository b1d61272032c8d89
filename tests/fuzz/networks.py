"""Random small networks, each drawn from one integer: layers, activations, shapes and dtypes."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from random import Random

import torch
from torch import Tensor, nn

PIECEWISE = {
    "relu": nn.ReLU,
    "leaky relu": lambda: nn.LeakyReLU(0.2),
    "prelu": lambda: nn.PReLU(init=0.3),
    "relu6": nn.ReLU6,
    "hardtanh": nn.Hardtanh,
}
#: Activations of which every unit has one breakpoint.
ONE_KINK = ("relu", "leaky relu", "prelu")
SMOOTH = {
    "tanh": nn.Tanh,
    "sigmoid": nn.Sigmoid,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "elu": nn.ELU,
    "celu": nn.CELU,
    "selu": nn.SELU,
    "softplus": nn.Softplus,
    "mish": nn.Mish,
    "softsign": nn.Softsign,
    "tanhshrink": nn.Tanhshrink,
}
DTYPES = (torch.float64,) * 6 + (torch.float32,) * 5 + (torch.bfloat16,)


@dataclass(frozen=True, eq=False)
class Network:
    """A network to measure.

    ``module`` holds the weights, and ``wrap(module)`` is what the instrument is given. ``kind``
    names what is odd about it ("plain" if nothing is); ``traits`` are facts that oracles read.
    """

    kind: str
    module: nn.Module
    shape: tuple[int, ...]
    dtype: torch.dtype
    traits: frozenset[str] = frozenset()
    wrap: Callable[[nn.Module], Callable[[Tensor], Tensor]] = lambda module: module

    @property
    def f(self) -> Callable[[Tensor], Tensor]:
        """Return what the instrument is given."""
        return self.wrap(self.module)


class Residual(nn.Module):
    """Adds its input to what the inner module returns."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return x + self.inner(x)


def _activation(draw: Random, smooth: float) -> tuple[str, nn.Module]:
    table = SMOOTH if draw.random() < smooth else PIECEWISE
    name = draw.choice(list(table))
    return name, table[name]()


def dense(
    draw: Random, *, depth: int, inputs: int, outputs: int, smooth: float, narrowest: int = 1
) -> Network:
    """Return a chain of dense layers."""
    name, _ = _activation(draw, smooth)
    table = {**PIECEWISE, **SMOOTH}
    layers: list[nn.Module] = []
    width = inputs
    for _ in range(depth):
        after = draw.randint(narrowest, 5)
        layers += [nn.Linear(width, after, bias=draw.random() < 0.9), table[name]()]
        width = after
    layers.append(nn.Linear(width, outputs))
    traits = {"chain"} | ({"piecewise"} if name in PIECEWISE else set())
    if depth == 1 and name == "relu":
        traits.add("two-layer")
    if name in ONE_KINK:
        traits.add("one kink")
    return _network(nn.Sequential(*layers), (inputs,), traits)


def normalised(draw: Random) -> Network:
    """Return a dense network with batch norm or layer norm."""
    inputs, width = draw.randint(2, 4), draw.randint(2, 5)
    _, act = _activation(draw, 0.3)
    norm = draw.choice([nn.BatchNorm1d(width), nn.LayerNorm(width), nn.GroupNorm(1, width)])
    layers = [nn.Linear(inputs, width), norm, act, nn.Linear(width, draw.randint(1, 3))]
    traits = {"chain"} if isinstance(norm, nn.BatchNorm1d) else set()
    return _network(nn.Sequential(*layers), (inputs,), traits)


def residual(draw: Random) -> Network:
    """Return a dense network with residual connections."""
    inputs = draw.randint(1, 4)
    _, act = _activation(draw, 0.3)
    inner = nn.Sequential(nn.Linear(inputs, 4), act, nn.Linear(4, inputs))
    layers = [Residual(inner), nn.Linear(inputs, draw.randint(1, 3))]
    return _network(nn.Sequential(*layers), (inputs,), set())


def conv1d(draw: Random) -> Network:
    """Return a network with one-dimensional convolutions."""
    channels, width = draw.randint(1, 2), draw.randint(4, 6)
    hidden, outputs = draw.randint(2, 3), draw.randint(1, 3)
    _, act = _activation(draw, 0.2)
    layers = [
        nn.Conv1d(channels, hidden, 3, padding=draw.randint(0, 1), stride=draw.randint(1, 2)),
        act,
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Linear(hidden, outputs),
    ]
    return _network(nn.Sequential(*layers), (channels, width), {"convolution"})


def conv2d(draw: Random) -> Network:
    """Return a network with two-dimensional convolutions, batch norm and pooling."""
    channels, side = draw.randint(1, 2), 4
    hidden, outputs = draw.randint(2, 3), draw.randint(1, 3)
    _, act = _activation(draw, 0.2)
    pool = draw.choice([nn.MaxPool2d(2), nn.AvgPool2d(2)])
    layers: list[nn.Module] = [nn.Conv2d(channels, hidden, 3, padding=1)]
    if draw.random() < 0.5:
        layers.append(nn.BatchNorm2d(hidden))
    layers += [act, pool, nn.Flatten(), nn.Linear(hidden * (side // 2) ** 2, outputs)]
    return _network(nn.Sequential(*layers), (channels, side, side), {"convolution"})


def plain(draw: Random) -> Network:
    """Return a network that is odd in nothing."""
    builder = draw.choice([_any_dense, _any_dense, normalised, residual, conv1d, conv2d])
    return builder(draw)


def _any_dense(draw: Random) -> Network:
    return dense(
        draw,
        depth=draw.randint(0, 2),
        inputs=draw.randint(1, 4),
        outputs=draw.randint(1, 3),
        smooth=0.35,
    )


def one_input(draw: Random) -> Network:
    """Return a network of one input."""
    return dense(draw, depth=draw.randint(1, 2), inputs=1, outputs=draw.randint(1, 2), smooth=0.3)


def planar(draw: Random) -> Network:
    """Return a piecewise-linear network of two or more inputs."""
    return dense(
        draw,
        depth=draw.randint(1, 2),
        inputs=draw.randint(2, 3),
        outputs=draw.randint(1, 3),
        smooth=0.0,
    )


def kinked(draw: Random) -> Network:
    """Return a chain of units of one kink each, with any number of inputs."""
    while True:
        network = dense(
            draw,
            depth=draw.randint(1, 2),
            inputs=draw.randint(1, 3),
            outputs=draw.randint(1, 2),
            smooth=0.0,
        )
        if "one kink" in network.traits:
            return network


def two_layer(draw: Random) -> Network:
    """Return a network with one hidden layer of ReLUs."""
    while True:
        network = dense(
            draw, depth=1, inputs=draw.randint(1, 3), outputs=draw.randint(1, 2), smooth=0.0
        )
        if "two-layer" in network.traits:
            return network


def simplex(draw: Random) -> Network:
    """Return one hidden layer of one unit more than there are inputs, and one output."""
    inputs = draw.randint(1, 3)
    slope = draw.choice([0.0, 0.0, 0.25])
    act = nn.LeakyReLU(slope) if slope else nn.ReLU()
    units = inputs + draw.choice([0, 1, 1, 1])
    layers = [nn.Linear(inputs, units), act, nn.Linear(units, 1)]
    return _network(
        nn.Sequential(*layers), (inputs,), {"chain", "piecewise", "one kink", "simplex"}
    )


def boolean(draw: Random) -> Network:
    """Return a network of a few inputs and one or two outputs."""
    return dense(
        draw,
        depth=draw.randint(1, 2),
        inputs=draw.randint(1, 4),
        outputs=draw.randint(1, 2),
        smooth=0.5,
    )


def classifier(draw: Random) -> Network:
    """Return a network of one to three scores."""
    return dense(
        draw,
        depth=draw.randint(0, 1),
        inputs=draw.randint(1, 3),
        outputs=draw.randint(1, 3),
        smooth=0.5,
    )


def prunable(draw: Random) -> Network:
    """Return a dense network with hidden layers, mostly of several units, that act alone."""
    return hidden(draw, narrowest=draw.choice([1, 2, 2, 2]))


def hidden(draw: Random, narrowest: int = 1) -> Network:
    """Return a dense network with at least one hidden layer, of units that act alone."""
    return _without(
        (nn.PReLU,),
        lambda: dense(
            draw,
            depth=draw.randint(1, 2),
            inputs=draw.randint(1, 3),
            outputs=draw.randint(1, 3),
            smooth=0.5,
            narrowest=narrowest,
        ),
    )


def convolution(draw: Random) -> Network:
    """Return a network with convolutions."""
    builder = draw.choice([conv1d, conv2d])
    return _without((nn.PReLU,), lambda: builder(draw))


def chain(draw: Random) -> Network:
    """Return a chain of dense or convolutional layers with 1-Lipschitz activations."""
    builder = draw.choice([hidden, kinked, conv2d])
    expanding = (nn.PReLU, nn.SELU, nn.SiLU, nn.GELU, nn.Mish)
    return _without(expanding, lambda: builder(draw))


def _without(layers: tuple[type[nn.Module], ...], build: Callable[[], Network]) -> Network:
    """Draw networks until one has none of some layers."""
    while True:
        network = build()
        if not any(isinstance(module, layers) for module in network.module.modules()):
            return network


def _network(module: nn.Module, shape: tuple[int, ...], traits: set[str]) -> Network:
    return Network("plain", module, shape, torch.float64, frozenset(traits))


def filled(module: nn.Module, draw: Random, dtype: torch.dtype) -> nn.Module:
    """Draw all parameters and statistics from a private generator, in eval mode."""
    generator = torch.Generator().manual_seed(draw.getrandbits(40))
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / 1.5)
        for name, buffer in module.named_buffers():
            if name.endswith("running_mean"):
                buffer.copy_(torch.randn(buffer.shape, generator=generator) / 2)
            if name.endswith("running_var"):
                buffer.copy_(torch.rand(buffer.shape, generator=generator) + 0.5)
    return module.to(dtype).eval()


Builder = Callable[[Random], Network]


@lru_cache(maxsize=4096)
def network(builder: Builder, number: int) -> Network:
    """Return the network that one integer stands for; the same object at every call."""
    draw = Random(f"{builder.__name__} {number}")
    with torch.random.fork_rng(devices=[]):
        made = builder(draw)
        dtype = draw.choice(DTYPES)
        module = filled(made.module, draw, dtype)
    return Network(made.kind, module, made.shape, dtype, made.traits, made.wrap)
