"""How fast tangent kernels are.

    python benchmarks/kernels.py                 # all modules, about two minutes on a quiet machine
    python benchmarks/kernels.py --only ViT      # those whose name has that in it

The peer is the recipe of PyTorch's tutorial on neural tangent kernels (contraction of Jacobians by
``vmap(jacrev(functional_call))``), in blocks of points where its Jacobians would not fit. CPU time
on one thread, float32, the full kernel of N points; both sides in turn in one process, medians;
every ratio is the peer's time over ours.

Bars: at least 1.3 on ResNet-8 with batch normalisation, ResNet9 of width 8 and 64, a small ViT and
a token transformer, N=32; at least 1.0 on all others. Both agree to 1e-5 of the largest entry.
784-512-512-512-10 on 256 points: at most 0.9 of the time of the matrix products that the structured
form needs without symmetry (23.6 GFLOP at the rate measured here).
"""

import argparse
import itertools
import statistics
import time
import warnings
from collections.abc import Callable

import bars
import torch
from torch import Tensor, nn
from torch.nn import functional

from inscape.kernels import TangentKernel, tangent_kernel
from inscape.models import resnet9

GFLOP = 23.6  # gram matrices and backward passes of 784-512-512-512-10, 256 points, 10 outputs


class Block(nn.Module):
    """Two convolutions with batch normalisation and a shortcut."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.one = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.two = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(after), nn.BatchNorm2d(after)])
        self.short = nn.Sequential()
        if before != after:
            self.short = nn.Sequential(
                nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after)
            )

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs."""
        y = self.norms[0](self.one(x)).relu()
        out: Tensor = (self.norms[1](self.two(y)) + self.short(x)).relu()
        return out


class Attention(nn.Module):
    """A transformer block, normalised first."""

    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.heads, self.norm1, self.norm2 = heads, nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs."""
        n, t, d = x.shape
        qkv = self.qkv(self.norm1(x)).view(n, t, 3, self.heads, d // self.heads)
        y = functional.scaled_dot_product_attention(*qkv.permute(2, 0, 3, 1, 4))
        x = x + self.out(y.transpose(1, 2).reshape(n, t, d))
        out: Tensor = x + self.mlp(self.norm2(x))
        return out


class ViT(nn.Module):
    """A vision transformer of 32 x 32 images in patches of 4 x 4."""

    def __init__(self, d: int = 64, depth: int = 4) -> None:
        super().__init__()
        self.embed, self.head = nn.Conv2d(3, d, 4, 4), nn.Linear(d, 10)
        self.token = nn.Parameter(torch.randn(1, 1, d))
        self.places = nn.Parameter(torch.randn(1, 65, d))
        self.blocks = nn.Sequential(*[Attention(d, 4) for _ in range(depth)])
        self.norm = nn.LayerNorm(d)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs."""
        x = self.embed(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.places
        out: Tensor = self.head(self.norm(self.blocks(x))[:, 0])
        return out


class Tokens(nn.Module):
    """PyTorch's own transformer encoder of 32 token ids."""

    def __init__(self, d: int = 64) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(d, 4, 128, dropout=0.0, batch_first=True)
        self.embed, self.places = nn.Embedding(1000, d), nn.Parameter(torch.randn(32, d))
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(d, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs."""
        out: Tensor = self.head(self.body(self.embed(x) + self.places).mean(1))
        return out


class Residual(nn.Module):
    """A dense layer of two maps, and its input."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(d, d), nn.Linear(d, d)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs."""
        out: Tensor = x + self.two(self.one(x).relu())
        return out


class Recurrent(nn.Module):
    """A recurrent network written out: two maps shared by ten steps."""

    def __init__(self) -> None:
        super().__init__()
        self.into, self.again, self.head = nn.Linear(16, 64), nn.Linear(64, 64), nn.Linear(64, 5)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs."""
        h = x.new_zeros(len(x), 64)
        for step in x.unbind(1):
            h = (self.into(step) + self.again(h)).tanh()
        out: Tensor = self.head(h)
        return out


class Shared(nn.Module):
    """A map that is used four times."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.again, self.last = (
            nn.Linear(64, 128),
            nn.Linear(128, 128),
            nn.Linear(128, 10),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs."""
        x = self.first(x).relu()
        for _ in range(4):
            x = self.again(x).relu()
        out: Tensor = self.last(x)
        return out


def dense(*widths: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for d, c in itertools.pairwise(widths):
        layers += [nn.Linear(d, c), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def residual() -> nn.Sequential:
    return nn.Sequential(nn.Linear(64, 128), Residual(128), Residual(128), nn.Linear(128, 10))


def normalised(norm: Callable[[int], nn.Module]) -> nn.Sequential:
    parts = [nn.Linear(64, 128), norm(128), nn.ReLU(), nn.Linear(128, 128), norm(128), nn.ReLU()]
    return nn.Sequential(*parts, nn.Linear(128, 10))


def resnet8() -> nn.Sequential:
    blocks = [Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2)]
    first = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    last = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)]
    return nn.Sequential(*first, *blocks, *last)


def strided() -> nn.Sequential:
    first = [nn.Conv2d(1, 16, 5, 2, 2), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU()]
    return nn.Sequential(*first, nn.Flatten(), nn.Linear(32 * 49, 10))


def grouped() -> nn.Sequential:
    first = [nn.Conv2d(3, 32, 3, 1, 1), nn.ReLU(), nn.Conv2d(32, 32, 3, 1, 1, groups=32)]
    then = [nn.Conv2d(32, 64, 1), nn.ReLU(), nn.AvgPool2d(4), nn.Conv2d(64, 64, 3, 1, 1, groups=4)]
    return nn.Sequential(*first, *then, nn.ReLU(), nn.Flatten(), nn.Linear(64 * 16, 10))


def signals() -> nn.Sequential:
    first = [nn.Conv1d(4, 32, 7, 2, 3), nn.ReLU(), nn.Conv1d(32, 64, 5, 2, 2), nn.ReLU()]
    return nn.Sequential(*first, nn.Flatten(), nn.Linear(64 * 32, 5))


def group_normalised() -> nn.Sequential:
    first = [nn.Conv2d(3, 16, 3, 1, 1), nn.GroupNorm(4, 16), nn.ReLU(), nn.MaxPool2d(2)]
    then = [nn.Conv2d(16, 32, 3, 1, 1), nn.GroupNorm(4, 32), nn.ReLU(), nn.AdaptiveAvgPool2d(1)]
    return nn.Sequential(*first, *then, nn.Flatten(), nn.Linear(32, 10))


def embedded() -> nn.Sequential:
    first = [nn.Embedding(1000, 32), nn.Flatten(), nn.Linear(32 * 8, 64), nn.ReLU()]
    return nn.Sequential(*first, nn.Linear(64, 10))


IMAGES, ROWS = (32, 3, 32, 32), (64, 64)

#: By name: the module, the shape of its points or token ids, the bar, points of a peer's block.
MODULES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], float, int | None]] = {
    "ResNet-8": (resnet8, IMAGES, 1.3, None),
    "ResNet9, width 8": (lambda: resnet9(width=8), IMAGES, 1.3, None),
    "ViT": (ViT, IMAGES, 1.3, None),
    "token transformer": (Tokens, (32, 32), 1.3, None),
    "MLP, shallow": (lambda: dense(64, 256, 10), ROWS, 1.0, None),
    "MLP, deep": (lambda: dense(64, *[64] * 8, 10), ROWS, 1.0, None),
    "MLP, wide": (lambda: dense(784, 512, 10), (64, 784), 1.0, None),
    "MLP, 100 outputs": (lambda: dense(64, 64, 100), (32, 64), 1.0, None),
    "residual MLP": (residual, ROWS, 1.0, None),
    "batch normalisation": (lambda: normalised(nn.BatchNorm1d), ROWS, 1.0, None),
    "layer normalisation": (lambda: normalised(nn.LayerNorm), ROWS, 1.0, None),
    "group normalisation": (group_normalised, (32, 3, 16, 16), 1.0, None),
    "convolutions with strides": (strided, (32, 1, 28, 28), 1.0, None),
    "convolutions in groups": (grouped, (32, 3, 16, 16), 1.0, None),
    "convolutions of signals": (signals, (32, 4, 128), 1.0, None),
    "recurrent": (Recurrent, (32, 10, 16), 1.0, None),
    "shared weights": (Shared, (32, 64), 1.0, None),
    "embedding": (embedded, (64, 8), 1.0, None),
    "ResNet9, width 64": (resnet9, IMAGES, 1.3, 8),
}  # fmt: skip


def recipe(model: nn.Module, x: Tensor, block: int | None = None) -> Tensor:
    """Return the kernel by contraction of Jacobians, as the tutorial of torch.func does."""
    weights = {name: p.detach() for name, p in model.named_parameters()}

    def outputs(weights: dict[str, Tensor], point: Tensor) -> Tensor:
        return torch.func.functional_call(model, weights, (point[None],))[0]

    def jacobians(some: Tensor) -> list[Tensor]:
        rows = torch.func.vmap(torch.func.jacrev(outputs), (None, 0))(weights, some)
        return [j.flatten(2) for j in rows.values()]

    parts = x.split(block or len(x))
    tiles = {}
    for a, one in enumerate(parts):
        left = jacobians(one)
        for b in range(a, len(parts)):
            right = left if a == b else jacobians(parts[b])
            pairs = zip(left, right, strict=True)
            tile = sum((torch.einsum("nip,mjp->nmij", *pair) for pair in pairs), torch.zeros(()))
            tiles[a, b], tiles[b, a] = tile, tile.permute(1, 0, 3, 2)
    count = range(len(parts))
    return torch.cat([torch.cat([tiles[a, b] for b in count], 1) for a in count])


def taken(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def ours(model: nn.Module, x: Tensor) -> Tensor:
    found = tangent_kernel(model, x)
    assert isinstance(found, TangentKernel)
    return found.kernel


def against_the_products(rounds: int) -> None:
    model, x = dense(784, 512, 512, 512, 10).eval(), torch.randn(256, 784)
    a = torch.randn(1024, 1024)
    ours(model, x)
    times, limits = [], []
    for _ in range(3 * rounds):
        limits.append(taken(lambda: a @ a) / (2 * 1024**3) * GFLOP * 1e9)
        times.append(taken(lambda: ours(model, x)))
    mine, limit = statistics.median(times), statistics.median(limits)
    print(f"784-512-512-512-10, 256 points: {mine * 1e3:.0f} ms, its products {limit * 1e3:.0f} ms")
    bars.bar("tangent_kernel, 784-512x3-10 over its products", mine / limit, at_most=0.9)


def against_the_recipe(name: str, rounds: int) -> None:
    build, shape, bar, block = MODULES[name]
    torch.manual_seed(0)
    model = build().eval()
    ids = any(isinstance(part, nn.Embedding) for part in model.modules())
    x = torch.randint(1000, shape) if ids else torch.randn(shape)
    rounds = 1 if block else rounds
    kernel = expected = torch.zeros(1)
    mine, theirs = [], []

    def run() -> None:
        nonlocal kernel
        kernel = ours(model, x)

    def peer() -> None:
        nonlocal expected
        expected = recipe(model, x, block)

    for k in range(rounds + (block is None)):
        times = taken(run), taken(peer)
        if k or block:  # the first is for what happens once in a process
            mine.append(times[0])
            theirs.append(times[1])
    ratio = statistics.median(theirs) / statistics.median(mine)
    gap = float((kernel - expected).abs().max() / expected.abs().max())
    assert gap < 1e-5, f"{name}: both must agree to 1e-5 of the largest entry, found {gap:.0e}"
    print(
        f"{name:26} {statistics.median(mine) * 1e3:8.1f} ms, recipe "
        f"{statistics.median(theirs) * 1e3:8.1f} ms, difference {gap:.0e}"
    )
    bars.bar(f"tangent_kernel, {name}, {len(x)} points", ratio, at_least=bar)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="modules whose name has this in it")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", "There is a performance drop", UserWarning)
    if not options.only:
        against_the_products(options.rounds)
    for name in MODULES:
        if options.only in name:
            against_the_recipe(name, options.rounds)
