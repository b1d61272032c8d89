"""What the lanes can train: reading networks and settings, or saying why not."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from torch import Tensor, nn

from inscape.ensembles.lanes.state import (
    ADAM,
    ADAMW,
    BCE,
    CROSS_ENTROPY,
    IDENTITY,
    LANES,
    LEAKY_RELU,
    MSE,
    RELU,
    SGD,
    SIGMOID,
    TANH,
    Rules,
    Shape,
)
from inscape.training.trajectory import Settings

ACTIVATIONS: dict[type[nn.Module], int] = {
    nn.ReLU: RELU,
    nn.LeakyReLU: LEAKY_RELU,
    nn.Tanh: TANH,
    nn.Sigmoid: SIGMOID,
}
LOSSES = {"mse": MSE, "bce_logits": BCE, "cross_entropy": CROSS_ENTROPY}
OPTIMIZERS = {"sgd": SGD, "adam": ADAM, "adamw": ADAMW}

#: Above this many weights, or numbers that the units give for a batch, lanes outgrow the nearer
#: caches, and matrix products of whole stacks are faster.
LARGEST = 2**14


def reason_not(
    models: Sequence[nn.Module], xs: Sequence[Tensor], ys: Sequence[Tensor], settings: Settings
) -> str | None:
    """Say why these networks cannot be trained in lanes, or return None if they can."""
    reasons = (_settings(settings), *map(_network, models), *map(_data, xs))
    reason = next(filter(None, reasons), None)
    return reason or _together(models, xs, settings)


def shape_of(model: nn.Module) -> Shape:
    """Return the layers of a network that :func:`reason_not` has no word against."""
    layers: list[list[int]] = []
    slopes: list[float] = []
    row = 0
    for _, part in _parts(model):
        if isinstance(part, nn.Linear):
            weights = part.in_features * part.out_features
            biases = part.out_features if "bias" in dict(part.named_parameters()) else 0
            bias = row + weights if biases else -1
            layers.append([part.in_features, part.out_features, row, bias, IDENTITY])
            slopes.append(0.0)
            row += weights + biases
        else:
            layers[-1][-1] = ACTIVATIONS[type(part)]
            slopes[-1] = part.negative_slope if isinstance(part, nn.LeakyReLU) else 0.0
    return Shape(np.array(layers, dtype=np.int64), np.array(slopes, dtype=np.float64))


def rules_of(settings: Settings, points: int) -> Rules:
    """Return the settings in numbers, for data of so many points."""
    shuffled = settings.batch is not None
    return Rules(
        points=points,
        batch=min(settings.batch or points, points),
        shuffled=shuffled,
        loss=LOSSES[settings.loss],
        evaluated=settings.stop_on == "evaluated",
        optimizer=OPTIMIZERS[settings.optimizer],
        nesterov=settings.nesterov,
        lr=float(settings.lr),
        momentum=float(settings.momentum),
        decay=float(settings.weight_decay),
        beta1=float(settings.betas[0]),
        beta2=float(settings.betas[1]),
    )


def is_plain(shape: Shape, rules: Rules) -> bool:
    """Tell whether the kernel for shallow networks and plain gradient descent will do."""
    options = (rules.momentum, rules.decay, rules.shuffled)
    return shape.is_shallow and rules.optimizer == SGD and not any(options)


def _settings(settings: Settings) -> str | None:
    known: list[tuple[str, Callable[[Settings], object], tuple[object, ...]]] = [
        ("the losses", lambda s: s.loss, tuple(LOSSES)),
        ("the optimizers", lambda s: s.optimizer, tuple(OPTIMIZERS)),
    ]
    for what, value, names in known:
        if value(settings) not in names:
            return f"lanes know {what} {', '.join(map(str, names))}, found {value(settings)}"
    for what in ("penalties", "schedule", "record"):
        if getattr(settings, what):
            return f"lanes take no {what}, found {getattr(settings, what)}"
    return None


def _network(model: nn.Module) -> str | None:
    wanted = "lanes take an nn.Sequential of Linear, ReLU, LeakyReLU, Tanh, Sigmoid and Identity"
    if type(model) is not nn.Sequential:
        return f"{wanted}, found {type(model).__name__}"
    before: nn.Module | None = None
    for name, part in _parts(model):
        if type(part) is not nn.Linear and type(part) not in ACTIVATIONS:
            return f"{wanted}, found {type(part).__name__} at {name!r}"
        if type(part) is not nn.Linear and type(before) is not nn.Linear:
            return f"in lanes an activation follows a Linear, found {name!r} elsewhere"
        if isinstance(part, nn.LeakyReLU) and part.negative_slope <= 0:
            return f"lanes take slopes above 0, found {part.negative_slope} at {name!r}"
        before = part
    return _weights(model)


def _weights(model: nn.Module) -> str | None:
    if any(_has_hooks(part) for part in model.modules()):
        return "lanes call no hooks, found a module that has some"
    parameters = dict(model.named_parameters(remove_duplicate=False))
    if not parameters:
        return "lanes train weights, found a network without any"
    if len(set(map(id, parameters.values()))) < len(parameters):
        return "in lanes every weight has one place, found one that is used twice"
    for name, parameter in parameters.items():
        if not parameter.requires_grad:
            return f"lanes train all weights, found {name!r} frozen"
    count = sum(p.numel() for p in parameters.values())
    if count > LARGEST:
        return f"lanes are for small networks, up to {LARGEST} weights, found {count}"
    return None


def _data(x: Tensor) -> str | None:
    if x.ndim != 2:
        return f"lanes take points that are rows of numbers, found shape {tuple(x.shape)}"
    if x.device.type != "cpu" or x.dtype not in LANES:
        return f"lanes compute on the CPU in float32 or float64, found {x.dtype} on {x.device}"
    return None


def _together(models: Sequence[nn.Module], xs: Sequence[Tensor], settings: Settings) -> str | None:
    shapes = [shape_of(model) for model in models]
    marks = {(*shape.layers.flat, *shape.slopes) for shape in shapes}
    if len(marks) > 1 or len({x.dtype for x in xs}) > 1:
        return "lanes hold networks of one shape and one dtype, found several"
    rules = rules_of(settings, max(map(len, xs)))
    if is_plain(shapes[0], rules):
        return None
    points = rules.points if rules.evaluated else rules.batch
    numbers = points * int(shapes[0].layers[:, 1].sum())
    if numbers > LARGEST:
        return (
            f"lanes are for batches at which units give up to {LARGEST} numbers in all, "
            f"found {numbers}"
        )
    return None


def _parts(model: nn.Module, prefix: str = "") -> Iterator[tuple[str, nn.Module]]:
    """Yield the layers in order, with nested sequences opened and identities left out."""
    for name, part in model.named_children():
        if type(part) is nn.Sequential:
            yield from _parts(part, f"{prefix}{name}.")
        elif type(part) is not nn.Identity:
            yield f"{prefix}{name}", part


def _has_hooks(part: nn.Module) -> bool:
    kept = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return any(getattr(part, name) for name in kept)
