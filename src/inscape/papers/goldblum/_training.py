"""SGD as the paper has it: drops of the rate, crops and flips, attacks while training."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pad

Optimizer = torch.optim.Optimizer
#: Images that are handled at once outside of training.
CHUNK = 500
#: Pixels by which images are padded before they are cropped.
MARGIN = 4


class Bfloat16WhileTraining(nn.Module):
    """A network of images that trains in bfloat16 with channels last, and is evaluated in float32.

    Its parameters stay in float32.
    """

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b k"]:
        """Return the outputs of the network in float32."""
        with torch.autocast("cpu", torch.bfloat16) if self.training else nullcontext():
            outputs: Tensor = self.net(x)
        return outputs.float()


@dataclass(frozen=True, kw_only=True)
class Attack:
    """Projected gradient ascent in the largest pixel, for adversarial training."""

    budget: float = 8 / 255
    step: float = 2 / 255
    steps: int = 7


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a network is trained.

    Attributes:
        epochs: Passes over the data.
        lr: Learning rate of SGD.
        drops: At which fractions of the epochs the rate falls.
        factor: By which it does.
        momentum: Momentum of SGD.
        weight_decay: Weight decay of all parameters.
        batch: Size of batches; what is left over of the data waits for the next epoch.
        augmented: Whether images are cropped at random and flipped.
        bfloat16: Whether layers compute in it, on images with channels last.
        attack: What images are replaced by.
        clip: Largest entry of a gradient.
    """

    epochs: int
    lr: float
    drops: tuple[float, ...] = ()
    factor: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 0.0
    batch: int = 128
    augmented: bool = False
    bfloat16: bool = False
    attack: Attack | None = None
    clip: float | None = None
    change: Callable[[Optimizer], Optimizer] = field(default=lambda optimizer: optimizer)


def train(
    net: nn.Module,
    x: Float[Tensor, "n *d"],
    y: Int[Tensor, " n"] | Float[Tensor, "n c"],
    recipe: Recipe,
    *,
    seed: int,
    after_epoch: Callable[[int], None] | None = None,
) -> nn.Module:
    """Train a network in place and return it in eval mode.

    Args:
        net: The network.
        x: Images.
        y: Their classes, or the probabilities of all.
        recipe: How it is trained.
        seed: Seed of the batches, crops, flips and attacks.
        after_epoch: Called after each epoch with its number, from 1.
    """
    rng = torch.Generator().manual_seed(seed)
    images = x.ndim == 4
    if images:
        net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    rates: Any = {"lr": recipe.lr, "momentum": recipe.momentum, "weight_decay": recipe.weight_decay}
    optimizer = recipe.change(torch.optim.SGD(net.parameters(), **rates))
    for epoch in range(recipe.epochs):
        falls = sum(epoch >= drop * recipe.epochs for drop in recipe.drops)
        for group in optimizer.param_groups:
            group["lr"] = recipe.lr * recipe.factor**falls
        for rows in batches(len(y), recipe.batch, rng):
            _step(net, optimizer, x[rows], y[rows], recipe, rng)
        if after_epoch is not None:
            after_epoch(epoch + 1)
    if images:
        net.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
    return net.eval()


def batches(n: int, size: int, rng: torch.Generator) -> Iterator[Int[Tensor, " b"]]:
    """Yield the shuffled rows of each whole batch of an epoch; fewer than a batch are one."""
    order = torch.randperm(n, generator=rng)
    yield from torch.split(order[: n - n % size], size) if n >= size else [order]


def _step(
    net: nn.Module, optimizer: Optimizer, x: Tensor, y: Tensor, recipe: Recipe, rng: torch.Generator
) -> None:
    """Make one step on one batch."""
    if recipe.augmented:
        x = cropped_and_flipped(x, rng)
    if x.ndim == 4:
        x = x.contiguous(memory_format=torch.channels_last)
    if recipe.attack is not None:
        x = attacked(net.eval(), x, y, recipe.attack, rng)
    net.train()
    optimizer.zero_grad()
    loss = _loss(net, x, y, bfloat16=recipe.bfloat16)
    loss.backward()  # type: ignore[no-untyped-call]
    if recipe.clip is not None:
        nn.utils.clip_grad_value_(net.parameters(), recipe.clip)
    optimizer.step()


def _loss(net: nn.Module, x: Tensor, y: Tensor, *, bfloat16: bool = False) -> Tensor:
    """Return the mean cross-entropy, which is computed in single precision."""
    with torch.autocast("cpu", torch.bfloat16) if bfloat16 else nullcontext():
        outputs = net(x)
    return cross_entropy(outputs.float(), y)


def cropped_and_flipped(
    x: Float[Tensor, "b c h w"], rng: torch.Generator
) -> Float[Tensor, "b c h w"]:
    """Return each image moved by up to four pixels each way, every second one mirrored."""
    b, _, h, w = x.shape
    wide = pad(x, (MARGIN,) * 4)
    shifts = torch.randint(2 * MARGIN + 1, (2, b, 1), generator=rng)
    rows, columns = shifts[0] + torch.arange(h), shifts[1] + torch.arange(w)
    mirrored = torch.rand(b, 1, generator=rng) < 0.5
    columns = torch.where(mirrored, columns.flip(1), columns)
    picked = wide.movedim(1, -1)[torch.arange(b)[:, None, None], rows[:, :, None], columns[:, None]]
    return picked.movedim(-1, 1)


def attacked(
    net: nn.Module, x: Tensor, y: Tensor, attack: Attack, rng: torch.Generator
) -> Float[Tensor, "b c h w"]:
    """Return images within the budget on which the loss is larger, from a random start."""
    noise = torch.rand(x.shape, generator=rng).mul_(2).sub_(1)
    at = (x + attack.budget * noise).clamp_(0, 1)
    for _ in range(attack.steps):
        at.requires_grad_()
        (slope,) = torch.autograd.grad(_loss(net, at, y), at)
        at = at.detach() + attack.step * slope.sign()
        at = torch.minimum(torch.maximum(at, x - attack.budget), x + attack.budget).clamp_(0, 1)
    return at


@torch.no_grad()
def accuracy(net: nn.Module, x: Float[Tensor, "n *d"], y: Int[Tensor, " n"]) -> float:
    """Return the percentage of images whose largest output is their class."""
    right = [
        int((net(rows).argmax(1) == classes).sum())
        for rows, classes in zip(torch.split(x, CHUNK), torch.split(y, CHUNK), strict=True)
    ]
    return 100 * sum(right) / len(x)


@torch.no_grad()
def mean_loss(net: nn.Module, x: Float[Tensor, "n *d"], y: Int[Tensor, " n"]) -> float:
    """Return the mean cross-entropy over all images, summed in float64."""
    total = sum(
        float(cross_entropy(net(rows).double(), classes, reduction="sum"))
        for rows, classes in zip(torch.split(x, CHUNK), torch.split(y, CHUNK), strict=True)
    )
    return total / len(x)


def norm_of(net: nn.Module) -> float:
    """Return the norm of all parameters."""
    return float(torch.cat([p.detach().flatten() for p in net.parameters()]).double().norm())
