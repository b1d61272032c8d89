"""Deep networks under each control, with its knob turned through a sweep; what they learned.

A control holds its quantity at 1, and a factor with the knob comes after it: then networks with
different knobs are of one kind, and :func:`fit_many` trains a whole sweep in one stack.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from inscape._core.sampling import generator
from inscape.controls import (
    ActivationScale,
    activation_scale,
    length_scale,
    release,
    row_scale,
    spectral_scale,
    weight_decay,
)
from inscape.data import Dataset, digits
from inscape.ensembles import LostMembersError, fit_many
from inscape.functional.jacobians import differentiable_jacobians, norm
from inscape.kernels import Rbf, gaussian_process
from inscape.models import mlp
from inscape.papers.klindt._addition import disc_data
from inscape.robustness import Attack, Pgd, Square, robustness
from inscape.smoothness import effective_length_scale
from inscape.smoothness.effective_length_scale import EffectiveLengthScale
from inscape.training import decay

#: Ends of every sweep; a small knob asks for a smooth function.
LEAST, MOST = 0.1, 10.0
#: Variance of the noise of the sums: the paper's for the sine (K9).
NOISE = 0.25
#: Weight decay at knob 1; it falls with the square of the knob, as weights grow with its root.
DECAY = 1e-3
#: Points of a batch of digits at which Jacobians are taken: ten passes for each.
SOME = 16
#: Length of adversarial steps; pixels lie in [0, 1].
BUDGET = 0.5
#: Test images that are attacked, and squares that are tried on each.
ATTACKED, QUERIES = 200, 50
#: Lines along which length scales are measured.
LINES = 100


class Times(nn.Module):
    """A tensor times the knob, which is a buffer: networks with other knobs are alike."""

    knob: Tensor

    def __init__(self, knob: float) -> None:
        super().__init__()
        self.register_buffer("knob", torch.tensor(float(knob)))

    def forward(self, value: Tensor) -> Tensor:
        """Return the product."""
        return value * self.knob

    def right_inverse(self, value: Tensor) -> Tensor:
        """Return the value itself."""
        return value


def knobs(count: int) -> list[float]:
    """Return a sweep, evenly spaced in its logarithm."""
    ratio = math.log(MOST / LEAST) / max(count - 1, 1)
    return [round(LEAST * math.exp(k * ratio), 6) for k in range(count)]


def controlled(control: str, widths: list[int], activation: str, *, knob: float, seed: int) -> Any:
    """Return a network at its start, under a control; its output layer is always free."""
    net = mlp(*widths, activation=activation, seed=seed)
    if control in ("jacobian", "decay"):
        net.register_buffer("knob", torch.tensor(knob))
    elif control == "activation":
        parts = [_turned(part, knob) for part in activation_scale(net, 1.0)]
        net = nn.Sequential(*(part for some in parts for part in some))
    elif control != "none":
        share = knob ** (1 / (len(widths) - 2)) if control == "shared" else knob
        hidden: Any = net[:1] if control == "first" else net[:-1]
        _draw(hidden, seed)
        _hold(hidden, control, share)
    return net


def _turned(part: nn.Module, knob: float) -> list[nn.Module]:
    return [part, Times(knob)] if isinstance(part, ActivationScale) else [part]


@torch.no_grad()
def _draw(net: nn.Module, seed: int) -> None:
    """Draw weights and biases from the standard normal law, as the paper's code does."""
    rng = generator(seed)
    for parameter in net.parameters():
        parameter.normal_(generator=rng)


def _hold(net: nn.Sequential, control: str, knob: float) -> None:
    if control == "spectral":
        spectral_scale(net, 1.0)
    elif control == "row":
        row_scale(net, 1.0)
    else:
        length_scale(net, 1.0, bias="normalised" if control == "hidden" else "free")
    for layer in net:
        for tensor in ("weight", "bias"):
            if isinstance(layer, nn.Linear) and parametrize.is_parametrized(layer, tensor):
                parametrize.register_parametrization(layer, tensor, Times(knob))


def steepness(model: Any, x: Tensor) -> Tensor:
    """Return ``jacobian_penalty`` with the knob as allowance; at some points for many outputs.

    Those are others in every batch, since batches are shuffled.
    """
    rows = len(x) if model[-1].out_features == 1 else SOME
    sizes = norm(differentiable_jacobians(model, x[:rows]).flatten(1), dim=1)
    above: Tensor = (sizes - model.knob).clamp(min=0)
    return above.square().mean()


def size(model: Any, x: Tensor) -> Tensor:
    """Return ``weight_decay``, the larger the smaller the knob."""
    knob: Tensor = model.knob
    return DECAY / knob.square() * weight_decay(model, x)


PENALTIES: dict[str, Callable[[Any, Tensor], Tensor]] = {"jacobian": steepness, "decay": size}


def trained(
    control: str, nets: list[nn.Sequential], data: list[Dataset], **settings: Any
) -> Iterator[tuple[int, Any, float]]:
    """Train networks together; yield place, plain network and loss of those that end finite."""
    penalties = [(1.0, PENALTIES[control])] if control in PENALTIES else []
    small = settings["epochs"] < 10
    backend: Literal["loop", "auto"] = "loop" if small else "auto"
    members = fit_many(
        nets,
        [one.x for one in data],
        [one.y for one in data],
        optimizer="adam",
        penalties=penalties,
        backend=backend,
        progress=False,
        **settings,
    )
    try:
        for member in members:
            yield member.index, plain(member.model), member.loss
    except LostMembersError:
        return


def plain(net: nn.Module) -> nn.Module:
    """Return the network without what held it, in eval mode."""
    held = any(parametrize.is_parametrized(part) for part in net.modules())
    return (release(net) if held else net).eval()


def noisy_sums(n: int, seed: int) -> Dataset:
    """Return points of the disc and their sums, with noise."""
    from dataclasses import replace

    data = disc_data(n, seed)
    noise = torch.randn(data.y.shape, generator=generator(seed), dtype=torch.float64)
    return replace(data, y=data.y + NOISE**0.5 * noise.to(data.y))


def scale_of(f: Any, x: Tensor) -> float:
    """Return the effective length scale; that of a constant is infinite."""
    found = effective_length_scale(f, x, lines=LINES, process=False, resamples=1)
    return found.value if isinstance(found, EffectiveLengthScale) else math.inf


def at_start(net: nn.Module, data: Dataset) -> float:
    """Return the length scale before training; means of units are those of the data."""
    from copy import deepcopy

    net = deepcopy(net).double()  # not to be released: torch would take the hold off both
    with torch.no_grad():
        net.train()(data.x.double())
    return scale_of(net.eval(), data.x.double())


def learned_sums(
    control: str, activation: str, depth: int, width: int, sweep: list[float], networks: int,
    steps: int, n: int,
) -> dict[str, Any]:  # fmt: skip
    """Train a sweep on noisy sums; return length scales before and after, and losses."""
    data = [noisy_sums(n, seed) for seed in range(networks)]
    if control == "process":
        scales = [_process(one, knob) for knob in sweep for one in data]
        return _table({"scale": scales}, networks)
    widths = [2, *[width] * depth, 1]
    nets, each = _all(control, widths, activation, sweep, data)
    start = [at_start(net, one) for net, one in zip(nets, each, strict=True)]
    found: dict[str, list[Any]] = {"scale": [None] * len(nets), "loss": [None] * len(nets)}
    every = max(1, steps // 24)
    settings = {"epochs": steps, "lr": 5e-3, "schedule": decay(0.9, every)}
    for place, net, loss in trained(control, nets, each, **settings):
        found["loss"][place] = loss
        found["scale"][place] = scale_of(net.double(), each[place].x.double())
    return _table({"start": start, **found}, networks)


def _all(
    control: str, widths: list[int], activation: str, sweep: list[float], data: list[Dataset]
) -> tuple[list[nn.Sequential], list[Dataset]]:
    """Return the networks of a sweep, knob after knob, and the data of each."""
    nets = [
        controlled(control, widths, activation, knob=knob, seed=seed)
        for knob in sweep
        for seed in range(len(data))
    ]
    return nets, data * len(sweep)


def _table(found: dict[str, list[Any]], networks: int) -> dict[str, Any]:
    """Return rows of networks for each knob; what is not finite is None."""
    tables = {}
    for name, values in found.items():
        known = [None if v is None or not math.isfinite(v) else round(v, 6) for v in values]
        tables[name] = [known[k : k + networks] for k in range(0, len(known), networks)]
    return tables


def _process(data: Dataset, knob: float) -> float:
    """Return the measured length scale of the mean of a Gaussian process with scale 1 / knob."""
    x = data.x.double()
    kernel = Rbf(length_scale=1 / knob)
    found = gaussian_process(x, data.y.double(), kernel=kernel, noise=NOISE)

    def mean(z: Tensor) -> Tensor:  # the kernel itself keeps no gradients
        apart = (z[:, None] - x[None]).square().sum(2)
        return torch.exp(-apart * (knob**2 / 2)) @ found.weights

    return scale_of(mean, x)


def learned_digits(
    control: str, activation: str, depth: int, width: int, sweep: list[float], networks: int,
    epochs: int, n: int,
) -> dict[str, Any]:  # fmt: skip
    """Train a sweep on digits; return length scales, and accuracies without and under attack."""
    data = digits(n=n)
    assert data.x_test is not None
    assert data.y_test is not None
    widths = [64, *[width] * depth, 10]
    nets, each = _all(control, widths, activation, sweep, [data] * networks)
    names = ("scale", "loss", "clean", "robust")
    found: dict[str, list[Any]] = {name: [None] * len(nets) for name in names}
    settings = {"epochs": epochs, "lr": 3e-3, "batch": 64, "loss": "cross_entropy"}
    seeds = list(range(networks)) * len(sweep)
    for place, net, loss in trained(control, nets, each, seeds=seeds, **settings):
        clean, robust = under_attack(net, data.x_test, data.y_test)
        found["clean"][place], found["robust"][place] = clean, robust
        found["loss"][place] = loss
        found["scale"][place] = scale_of(net, data.x_test)
    return _table(found, networks)


def under_attack(net: nn.Module, x: Tensor, y: Tensor) -> tuple[float, float]:
    """Return the accuracy without and under attack: by gradients, and by random squares.

    Scores are divided by their spread, which changes no answer; with scores in the thousands a
    softmax has no gradient left. Squares need none, and break what is rough but hides its slopes.
    """
    with torch.no_grad():
        spread = net(x).std().clamp(min=1e-30)
    attacks: list[Attack] = [Pgd(steps=20), Square(queries=QUERIES)]
    settings: dict[str, Any] = {"bounds": (0.0, 1.0), "sanity": False, "examples": 0}
    lengths = []
    for attack in attacks:
        found: Any = robustness(
            lambda z: net(z) / spread,
            x,
            y,
            attack=attack,
            budgets=[BUDGET],
            points=ATTACKED,
            **settings,
        )
        lengths.append(found.lengths)
    least = torch.stack(lengths).amin(0)
    return float((least > 0).double().mean()), float(least.isinf().double().mean())
