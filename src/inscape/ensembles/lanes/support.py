"""Which networks and options the lanes support, and their translation for the kernels."""

from collections.abc import Iterator, Sequence

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
    LaneRules,
    Shape,
)
from inscape.training.function_names import own_name
from inscape.training.options import FitOptions

ACTIVATIONS: dict[type[nn.Module], int] = {
    nn.ReLU: RELU,
    nn.LeakyReLU: LEAKY_RELU,
    nn.Tanh: TANH,
    nn.Sigmoid: SIGMOID,
}
LOSSES = {"mse": MSE, "bce_logits": BCE, "cross_entropy": CROSS_ENTROPY}
OPTIMIZERS = {"sgd": SGD, "adam": ADAM, "adamw": ADAMW}

#: Above this many weights, or activations of a batch, lanes outgrow the first caches, and the
#: matrix products of stacks are faster.
LARGEST = 2**14


def reason_not(
    models: Sequence[nn.Module], xs: Sequence[Tensor], ys: Sequence[Tensor], options: FitOptions
) -> str | None:
    """Return why these networks cannot be trained in lanes, or None if they can."""
    reasons = (_options(options), *map(_network, models), *map(_data, xs))
    reason = next(filter(None, reasons), None)
    return reason or _as_group(models, xs, options)


def shape_of(model: nn.Module) -> Shape:
    """Return the layers of a network that :func:`reason_not` allows."""
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


def rules_of(options: FitOptions, points: int) -> LaneRules:
    """Return the options as numbers, for data of so many points."""
    shuffled = options.batch is not None
    return LaneRules(
        points=points,
        batch=min(options.batch or points, points),
        shuffled=shuffled,
        loss=LOSSES[own_name(options.loss)],
        evaluated=options.stop_on == "evaluated",
        optimizer=OPTIMIZERS[own_name(options.optimizer)],
        nesterov=options.nesterov,
        lr=float(options.lr),
        momentum=float(options.momentum),
        decay=float(options.weight_decay),
        beta1=float(options.betas[0]),
        beta2=float(options.betas[1]),
    )


def is_plain(shape: Shape, rules: LaneRules) -> bool:
    """Return whether the kernel for shallow networks and full-batch gradient descent suffices."""
    options = (rules.momentum, rules.decay, rules.shuffled)
    return shape.is_shallow and rules.optimizer == SGD and not any(options)


def _options(options: FitOptions) -> str | None:
    settings = options.settings()
    if settings.loss not in LOSSES:
        return f"lanes know the losses {', '.join(LOSSES)}, found {settings.loss}"
    if settings.optimizer not in OPTIMIZERS:
        return f"lanes know the optimizers {', '.join(OPTIMIZERS)}, found {settings.optimizer}"
    if settings.penalties:
        return f"lanes support no penalties, found {settings.penalties}"
    if settings.schedule:
        return f"lanes support no schedule, found {settings.schedule}"
    return None


def _network(model: nn.Module) -> str | None:
    wanted = "lanes require an nn.Sequential of Linear, ReLU, LeakyReLU, Tanh, Sigmoid and Identity"
    if type(model) is not nn.Sequential:
        return f"{wanted}, found {type(model).__name__}"
    before: nn.Module | None = None
    for name, part in _parts(model):
        if type(part) is not nn.Linear and type(part) not in ACTIVATIONS:
            return f"{wanted}, found {type(part).__name__} at {name!r}"
        if type(part) is not nn.Linear and type(before) is not nn.Linear:
            return f"in lanes an activation follows a Linear, found {name!r} elsewhere"
        if isinstance(part, nn.LeakyReLU) and part.negative_slope <= 0:
            return f"lanes require slopes above 0, found {part.negative_slope} at {name!r}"
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
        return f"lanes require points that are vectors, found shape {tuple(x.shape)}"
    if x.device.type != "cpu" or x.dtype not in LANES:
        return f"lanes compute on the CPU in float32 or float64, found {x.dtype} on {x.device}"
    return None


def _as_group(models: Sequence[nn.Module], xs: Sequence[Tensor], options: FitOptions) -> str | None:
    shapes = [shape_of(model) for model in models]
    marks = {(*shape.layers.flat, *shape.slopes) for shape in shapes}
    if len(marks) > 1 or len({x.dtype for x in xs}) > 1:
        return "lanes hold networks of one shape and one dtype, found several"
    rules = rules_of(options, max(map(len, xs)))
    if is_plain(shapes[0], rules):
        return None
    points = rules.points if rules.evaluated else rules.batch
    numbers = points * int(shapes[0].layers[:, 1].sum())
    if numbers > LARGEST:
        return f"lanes are for batches with up to {LARGEST} activations in all, found {numbers}"
    return None


def _parts(model: nn.Module, prefix: str = "") -> Iterator[tuple[str, nn.Module]]:
    """Yield the layers in order, with nested sequences opened and identities left out."""
    for name, part in model.named_children():
        if type(part) is nn.Sequential:
            yield from _parts(part, f"{prefix}{name}.")
        elif type(part) is not nn.Identity:
            yield f"{prefix}{name}", part


def _has_hooks(part: nn.Module) -> bool:
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return any(getattr(part, name) for name in hooks)
