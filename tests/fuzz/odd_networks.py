"""Networks that are odd in one way each: how they are called, what they return, what they change.

Each takes a plain network and wraps it. ``REFUSED`` are those that have no value for each point on
its own, so that every answer would be wrong.
"""

from random import Random

import torch
from torch import Tensor, nn

from fuzz.networks import Network, plain


class Wrapped(nn.Module):
    """Holds a module; subclasses say what is odd about the call."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.inner(x)
        return y


class Overwriting(Wrapped):
    """Scales its input in place."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.mul_(2))


class Counting(Wrapped):
    """Counts its calls in a buffer."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__(inner)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.calls.add_(1)
        return super().forward(x)


class Buffered(Wrapped):
    """Multiplies its output by a buffer."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__(inner)
        self.register_buffer("factor", torch.tensor(-1.5))

    def forward(self, x: Tensor) -> Tensor:
        return self.factor * super().forward(x)


class Flat(Wrapped):
    """Returns one number for each point, of shape (n,)."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).flatten(1).sum(1)


class Empty(Wrapped):
    """Returns no outputs, of shape (n, 0)."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).flatten(1)[:, :0]


class Deep(Wrapped):
    """Returns outputs of shape (n, c, 2)."""

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x).flatten(1)
        return torch.stack([y, 2 * y], dim=2)


class Tuple(Wrapped):
    """Returns a tuple."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        y = super().forward(x)
        return y, y


class Dictionary(Wrapped):
    """Returns a dictionary."""

    def forward(self, x: Tensor) -> dict[str, Tensor]:  # type: ignore[override]
        return {"logits": super().forward(x)}


class Nothing(Wrapped):
    """Returns nothing."""

    def forward(self, x: Tensor) -> None:  # type: ignore[override]
        super().forward(x)


class Detached(Wrapped):
    """Computes without gradients."""

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            return super().forward(x)


class Centred(Wrapped):
    """Subtracts the mean over the batch."""

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        return y - y.mean(0)


class BatchStatistics(Wrapped):
    """Normalises inputs by the statistics of their batch, as batch norm without running ones."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward((x - x.mean(0)) / (x.var(0, correction=0) + 0.1).sqrt())


class BatchSoftmax(Wrapped):
    """Takes a softmax over the batch instead of over the outputs."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).softmax(0)


class Random_(Wrapped):
    """Adds noise at every call."""

    def forward(self, x: Tensor) -> Tensor:
        y = super().forward(x)
        return y * (1 + torch.rand_like(y))


class Drifting(Wrapped):
    """Grows its output with every call."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__(inner)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.calls.add_(1)
        return super().forward(x) * (1 + self.calls.clone())


class Twice(Wrapped):
    """Uses one linear layer at two places."""

    def __init__(self, inner: nn.Module, inputs: int) -> None:
        super().__init__(inner)
        self.shared = nn.Linear(inputs, inputs)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(self.shared(torch.relu(self.shared(x.flatten(1)))).reshape(x.shape))


class Hidden(nn.Module):
    """Registers the parameters of a module that it calls by a reference of its own.

    Parameters that are substituted in it do not reach the call, as in a Keras model on PyTorch.
    """

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.calls = [inner]
        for number, parameter in enumerate(inner.parameters()):
            self.register_parameter(f"weight_{number}", parameter)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.calls[0](x)
        return y


def _scaled_output(module: nn.Module, args: tuple[Tensor, ...], y: Tensor) -> Tensor:
    return 3 * y


def _shifted_input(module: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return (args[0] + 0.25,)


def _with_hook(module: nn.Module, draw: Random) -> nn.Module:
    wrapped = Wrapped(module)
    if draw.random() < 0.5:
        wrapped.inner.register_forward_hook(_scaled_output)
    else:
        wrapped.register_forward_pre_hook(_shifted_input)
    return wrapped


def _odd(kind: str, wrapper: type[nn.Module]) -> object:
    def build(draw: Random) -> Network:
        made = plain(draw)
        return Network(kind, wrapper(made.module), made.shape, made.dtype)

    build.__name__ = f"odd {kind}"
    return build


def hooked(draw: Random) -> Network:
    """Return a network with a forward hook."""
    made = plain(draw)
    return Network("hook", _with_hook(made.module, draw), made.shape, made.dtype)


def shared(draw: Random) -> Network:
    """Return a network that uses one layer twice."""
    made = plain(draw)
    module = Twice(made.module, torch.Size(made.shape).numel())
    return Network("shared module", module, made.shape, made.dtype)


def frozen(draw: Random) -> Network:
    """Return a network, some or all of whose parameters are frozen."""
    made, some = plain(draw), draw.random()
    for parameter in made.module.parameters():
        parameter.requires_grad_(draw.random() < some)
    return Network("frozen", made.module, made.shape, made.dtype, made.traits)


def training(draw: Random) -> Network:
    """Return a network that will be put into training mode."""
    made = plain(draw)
    return Network("training mode", made.module, made.shape, made.dtype, wrap=nn.Module.train)


def function(draw: Random) -> Network:
    """Return a function that calls a module."""
    made = plain(draw)
    return Network(
        "function", made.module, made.shape, made.dtype, wrap=lambda module: lambda x: module(x)
    )


def bare(draw: Random) -> Network:
    """Return a function of PyTorch, without any weights."""
    f = draw.choice([torch.abs, torch.relu, torch.sin, torch.tanh, lambda x: 2 * x, torch.square])
    return Network(
        "no weights", nn.Identity(), (draw.randint(1, 3),), torch.float64, wrap=lambda _: f
    )


ODD = {
    "overwrites its input": Overwriting,
    "counts its calls": Counting,
    "buffer": Buffered,
    "outputs (n,)": Flat,
    "outputs (n, 0)": Empty,
    "outputs (n, c, h)": Deep,
    "tuple": Tuple,
    "dictionary": Dictionary,
    "nothing returned": Nothing,
    "no_grad": Detached,
    "mixes rows: mean": Centred,
    "mixes rows: statistics": BatchStatistics,
    "mixes rows: softmax": BatchSoftmax,
    "random": Random_,
    "drifting": Drifting,
    "parameters out of reach": Hidden,
}
BUILDERS = [
    *(_odd(kind, wrapper) for kind, wrapper in ODD.items()),
    hooked, shared, frozen, training, function, bare,
]  # fmt: skip
#: An answer for these is wrong: they have no value for a point, or none that could be measured.
REFUSED = frozenset({"outputs (n, 0)", "tuple", "dictionary", "nothing returned", "random",
                     "drifting", "training mode"})  # fmt: skip
MIXING = frozenset({"mixes rows: mean", "mixes rows: statistics", "mixes rows: softmax"})
