"""Tiny seeded networks with data, float64: what the contract and many tests run on."""

import itertools
from collections.abc import Callable

import torch
from torch import Tensor, nn

Case = tuple[nn.Module, Tensor, Tensor]


def dense(*widths: int, act: type[nn.Module] = nn.ReLU, seed: int = 0) -> nn.Sequential:
    """Return a dense network with all its weights and biases drawn from a private generator."""
    layers: list[nn.Module] = []
    for d, c in itertools.pairwise(widths):
        layers += [nn.Linear(d, c), act()]
    model = nn.Sequential(*layers[:-1]).double()
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=draw, dtype=p.dtype) / 1.5)
    return model.eval()


def points(n: int, *shape: int, seed: int = 1) -> Tensor:
    """Return Gaussian points."""
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(n, *shape, generator=draw, dtype=torch.float64)


def _case(model: nn.Module, x: Tensor) -> Case:
    with torch.no_grad():
        y = model(x)
    return model, x, y + 0.1


CASES: dict[str, Callable[[], Case]] = {
    "two-layer": lambda: _case(dense(3, 8, 1), points(12, 3)),
    "two-layer, three outputs": lambda: _case(dense(2, 6, 3), points(10, 2)),
    "one input": lambda: _case(dense(1, 7, 1), points(9, 1)),
    "deep relu": lambda: _case(dense(2, 6, 6, 1), points(11, 2)),
    "deep, one input": lambda: _case(dense(1, 6, 6, 1), points(9, 1)),
    "tanh": lambda: _case(dense(2, 5, 2, act=nn.Tanh), points(8, 2)),
    "tanh, one input": lambda: _case(dense(1, 5, 1, act=nn.Tanh), points(8, 1)),
}
