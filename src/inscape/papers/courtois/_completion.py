"""The completion of a row of pixels: its data, and the structure of figure 8 that can solve it.

The structure looks at every window that ends at a pixel, joins neighbours in pairs, takes every
second result, and again, until one number is left. All windows share their pairs: level ``j`` of
every window is level ``j`` of the padded row with taps ``2**j`` apart. So the network here takes
each level once over the row, which is the same function of the same weights at a fraction of the
cost; :func:`by_windows` is the structure as the text writes it down.
"""

import itertools

import torch
from jaxtyping import Float
from torch import Tensor, nn

from inscape._core import checks
from inscape._core.sampling import generator
from inscape.models import he_normal


def rows(count: int, p: int, ones: int, *, seed: int = 0) -> Float[Tensor, "n p"]:
    """Draw rows of ``p`` pixels of which ``ones`` are set, each such row equally likely."""
    checks.at_least(1, count=count, p=p, ones=ones)
    if ones > p:
        raise ValueError(f"ones must be at most p, found {ones} of {p} pixels: set fewer.")
    places = torch.rand(count, p, generator=generator(seed)).topk(ones).indices
    return torch.zeros(count, p).scatter_(1, places, 1.0)


def completed(x: Float[Tensor, "n p"]) -> Float[Tensor, "n p"]:
    """Return eq. (10): the parity of all pixels up to each one."""
    return x.cumsum(-1) % 2


def least_error_of_one_unit() -> float:
    """Return the least error, at its largest, of one channel on the parity of a pair.

    With one channel a level is a monotone function of a linear form of its pair, and later levels,
    whose other pixels are zero, keep it monotone. The order of the form on the four pairs is all
    that matters, and small whole weights make every order.
    """
    pairs = list(itertools.product((0, 1), repeat=2))
    best = 1.0
    for a, b, up in itertools.product(range(-3, 4), range(-3, 4), (1, -1)):
        form = [up * (a * u + b * v) for u, v in pairs]
        parity = [(u + v) % 2 for u, v in pairs]
        falls = [
            parity[i] - parity[j]
            for i, j in itertools.product(range(4), repeat=2)
            if form[i] <= form[j]
        ]
        best = min(best, max(falls) / 2)  # the best monotone fit errs by half of the largest fall
    return best


class Convolution(nn.Linear):
    """A convolution as what it is at each place: a linear map of the taps, or of the channels.

    The places are columns, which for so few channels is twice as fast as rows.
    """

    def forward(self, x: Float[Tensor, "taps m"]) -> Float[Tensor, "channels m"]:
        """Return the channels at each place."""
        if self.bias is None:
            return self.weight @ x
        return torch.addmm(self.bias[:, None], self.weight, x)


class Completion(nn.Module):
    """The structure of figure 8: for each level two convolutions with a ReLU between.

    The first convolution goes from one channel to ``r``, the second back to one.

    Args:
        p: Pixels of a row, a power of two.
        r: Channels.
        extra: Further convolutions of width one with a ReLU each, between the two of a level.
        kernel: Size of the first convolution of the first level; 2 is that of the paper.
        bias: Whether convolutions have biases; the equations of the paper have none.
        seed: Seed of the initial weights, which follow He's normal law.
    """

    def __init__(
        self, p: int, r: int, *, extra: int = 0, kernel: int = 2, bias: bool = False, seed: int = 0
    ) -> None:
        super().__init__()
        checks.at_least(1, r=r)
        checks.at_least(0, extra=extra)
        checks.at_least(2, p=p, kernel=kernel)
        if p & (p - 1):
            raise ValueError(f"p must be a power of two, found {p}: pad the rows with zeros.")
        self.p, self.r, self.kernel = p, r, kernel
        depth = p.bit_length() - 1
        sizes = [kernel, *[2] * (depth - 1)]
        self.levels = nn.ModuleList(_level(size, r, extra, bias) for size in sizes)
        self.to_empty(device="cpu")
        he_normal(self, seed=seed)

    def forward(self, x: Float[Tensor, "n p"]) -> Float[Tensor, "n p"]:
        """Return one number for each pixel."""
        # A larger kernel reaches farther to the left, where there are only zeros.
        row = nn.functional.pad(x, (self.p - 1 + self.kernel - 2, 0))
        for depth, level in enumerate(self.levels):
            taps = self.kernel if depth == 0 else 2
            row = _over(level, row, taps, 2**depth)
        return row


def by_windows(model: Completion, x: Float[Tensor, "n p"]) -> Float[Tensor, "n p"]:
    """Return what :class:`Completion` does as section 6.1.2 writes it, window by window."""
    ends = []
    for k in range(1, model.p + 1):
        window = nn.functional.pad(x[:, :k], (model.p - k, 0))  # the text's Delta(x; k)
        ends.append(levels_of(model, window)[-1][:, 0])
    return torch.stack(ends, 1)


def levels_of(model: Completion, window: Float[Tensor, "n p"]) -> list[Tensor]:
    """Return a window and what each level makes of it: the text's Gamma, once and again."""
    found = [window]
    for depth, level in enumerate(model.levels):
        taps = model.kernel if depth == 0 else 2
        padded = nn.functional.pad(found[-1], (taps - 2, 0))
        found.append(_over(level, padded, taps, 1)[:, ::2])
    return found


@torch.no_grad()
def set_by_hand(model: Completion, *, sigma: float = 0.0, seed: int = 0) -> Completion:
    """Write the exact weights of section 6.1.2 into a model, with noise if asked.

    Two channels make ``ReLU(u - v) + ReLU(v - u)``; all others are zero. Convolutions in between
    pass both on.
    """
    checks.at_least(2, r=model.r)
    for level in model.levels:
        layers = [part for part in level.children() if isinstance(part, nn.Linear)]
        for parameter in level.parameters():
            parameter.zero_()
        first, *middle, last = layers
        first.weight[:2, -2:] = torch.tensor([[1.0, -1.0], [-1.0, 1.0]])
        for layer in middle:
            layer.weight[:2, :2] = torch.eye(2)
        last.weight[0, :2] = 1.0
    rng = generator(seed)
    for parameter in model.parameters():
        parameter.add_(sigma * torch.randn(parameter.shape, generator=rng))
    return model


def _level(kernel: int, r: int, extra: int, bias: bool) -> nn.Sequential:
    widths = [kernel, *[r] * (1 + extra), 1]
    layers: list[nn.Module] = []
    for one, next_one in itertools.pairwise(widths):
        # On the meta device a layer draws no first weights from the global random state.
        layers += [Convolution(one, next_one, bias=bias, device="meta"), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def _over(level: nn.Module, row: Float[Tensor, "n t"], taps: int, apart: int) -> Tensor:
    """Take one level over a row, with so many taps so far apart; the row gets shorter by them."""
    length = row.shape[1] - (taps - 1) * apart
    seen = torch.stack([row[:, k * apart : k * apart + length] for k in range(taps)])
    out: Tensor = level(seen.flatten(1))
    return out.view(len(row), length)
