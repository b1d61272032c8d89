"""Small seeded networks for the tests of pruning."""

from collections import OrderedDict

import torch
from torch import Tensor, nn
from torch.nn import functional


def seeded(model: nn.Module, seed: int = 0) -> nn.Module:
    """Give every parameter and statistic a value from a private generator, in float64."""
    model = model.double().eval()
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for tensor in model.state_dict().values():
            if tensor.is_floating_point():
                tensor.copy_(torch.rand(tensor.shape, generator=draw, dtype=tensor.dtype) - 0.4)
        for module in model.modules():
            if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
                assert module.running_var is not None
                module.running_var.abs_().add_(0.5)
    return model


def conv() -> nn.Module:
    """Return a chain of all that a chain may hold."""
    return seeded(
        nn.Sequential(
            OrderedDict(
                first=nn.Conv2d(2, 5, 3, padding=1, bias=False),
                norm=nn.BatchNorm2d(5),
                relu=nn.ReLU(inplace=True),
                pool=nn.MaxPool2d(2),
                second=nn.Conv2d(5, 4, 3, stride=1, padding=1, padding_mode="circular"),
                leaky=nn.LeakyReLU(0.1),
                mean=nn.AvgPool2d(2),
                flat=nn.Flatten(),
                drop=nn.Dropout(),
                dense=nn.Linear(16, 6),
                norm1=nn.BatchNorm1d(6),
                tanh=nn.Tanh(),
                last=nn.Linear(6, 3),
            )
        )
    )


class Functional(nn.Module):
    """The same with functions instead of modules."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(2, 4, 3, padding=1)
        self.second = nn.Conv2d(4, 3, 3, padding=1)
        self.dense = nn.Linear(12, 5)
        self.last = nn.Linear(5, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.max_pool2d(functional.relu(self.first(x)), 2)
        x = torch.tanh(self.second(x) * 2.0)
        x = functional.avg_pool2d(x, 2).view(x.size(0), -1)
        out: Tensor = self.last(self.dense(x).relu_())
        return out


class Residual(nn.Module):
    """Two blocks with shortcuts, and one that changes the number of channels."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(2, 4, 3, padding=1)
        self.a1 = nn.Conv2d(4, 3, 3, padding=1)
        self.a2 = nn.Conv2d(3, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.b1 = nn.Conv2d(4, 5, 3, padding=1)
        self.b2 = nn.Conv2d(5, 6, 3, padding=1)
        self.side = nn.Conv2d(4, 6, 1)
        self.head = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.relu(self.stem(x))
        x = functional.relu(x + self.norm(self.a2(functional.relu(self.a1(x)))))
        x = functional.relu(self.b2(functional.relu(self.b1(x))) + self.side(x))
        out: Tensor = self.head(functional.adaptive_avg_pool2d(x, 1).flatten(1))
        return out


def functional_net() -> nn.Module:
    """Return ``Functional`` with seeded weights."""
    return seeded(Functional())


def residual() -> nn.Module:
    """Return ``Residual`` with seeded weights."""
    return seeded(Residual())


def images(n: int = 7, seed: int = 3) -> Tensor:
    """Return images of two channels and 8 x 8 pixels."""
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(n, 2, 8, 8, generator=draw, dtype=torch.float64)


NETS = {"chain": conv, "functions": functional_net, "shortcuts": residual}
