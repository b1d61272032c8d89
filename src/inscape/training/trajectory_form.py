"""Whether the parts of a trajectory from a file fit each other: all that replays rely on."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from inscape.training.loop_record import LoopRecord
    from inscape.training.trajectory import Trajectory

#: Type and number of dimensions of each array of a recorded loop.
_LOOP = {
    "rows": (torch.int64, 1),
    "sources": (torch.int64, 1),
    "sizes": (torch.int64, 1),
    "counts": (torch.int64, 1),
    "options": (torch.float64, 3),
    "norms": (torch.float64, 1),
    "scales": (torch.float64, 1),
    "random": (torch.uint8, 2),
    "random_of": (torch.int64, 1),
    "hashes": (torch.int64, 1),
}
_ENTRY = re.compile(r"(\d{1,9})\.(\w+)")

#: What optimizers of PyTorch keep of each weight; one that has only begun may keep nothing.
_MOMENTS = {"step", "exp_avg", "exp_avg_sq"}
_STATE = {
    "adam": _MOMENTS,
    "adamw": _MOMENTS,
    "torch.optim.NAdam": _MOMENTS | {"mu_product"},
    "torch.optim.RAdam": _MOMENTS,
    "torch.optim.Adagrad": {"step", "sum"},
    "torch.optim.Adadelta": {"step", "square_avg", "acc_delta"},
    "torch.optim.Adamax": {"step", "exp_avg", "exp_inf"},
    "torch.optim.ASGD": {"step", "eta", "mu", "ax"},
    "torch.optim.RMSprop": {"step", "square_avg"},
    "torch.optim.Rprop": {"step", "prev", "step_size"},
}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_penalties(value: object) -> bool:
    pairs = value if isinstance(value, tuple) else ()
    return isinstance(value, tuple) and all(_is_number(c) and _is_text(name) for c, name in pairs)


def _or_none(test: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or test(value)


_SETTINGS: Mapping[str, Callable[[Any], bool]] = {
    "lr": _is_number,
    "momentum": _is_number,
    "nesterov": lambda value: isinstance(value, bool),
    "weight_decay": _is_number,
    "betas": lambda value: len(value) == 2 and all(map(_is_number, value)),
    "batch": _or_none(lambda value: _is_count(value) and value != 0),
    "epochs": _is_count,
    "stop_loss": _or_none(_is_number),
    "stop_on": _is_text,
    "loss": _is_text,
    "optimizer": _is_text,
    "schedule": _or_none(_is_text),
    "penalties": _is_penalties,
    "seed": _is_count,
    "record": _or_none(_is_count),
}


def check_form(trajectory: "Trajectory") -> None:
    """Raise a ``ValueError`` that names the first part of a trajectory that does not fit."""
    fault = next(_faults(trajectory), None)
    if fault is not None:
        raise ValueError(fault)


def _faults(trajectory: "Trajectory") -> Iterator[str]:
    for name, value in asdict(trajectory.settings).items():
        if not _SETTINGS[name](value):
            yield f"the setting {name} = {value!r:.60}"
    checkpoints, rates, order = trajectory.checkpoints, trajectory.rates, trajectory.order
    if not _has_form(checkpoints, torch.int64, 1) or not len(checkpoints):
        yield "checkpoints that are no list of integers"
        return
    if int(checkpoints[0]) < 0 or not bool((checkpoints.diff() > 0).all()):
        yield "checkpoints that do not increase"
    if not _has_form(rates, torch.float64, 1):
        yield "learning rates that are no list of numbers"
    if order is not None and not _is_order(order):
        yield "an order of the data that is none"
    if not _is_text(trajectory.data) or not all(map(_is_text, trajectory.trainable)):
        yield "names that are no text"
        return
    if missing := [name for name in trajectory.trainable if name not in trajectory.states]:
        yield f"no weights of {missing[0]!r:.60}"
        return
    for name, rows in trajectory.states.items():
        if not rows.ndim or len(rows) != len(checkpoints):
            yield f"another number of checkpoints of {name!r:.60}"
            return
    yield from _memory_faults(trajectory)
    if trajectory.loop is not None:
        yield from _loop_faults(trajectory, trajectory.loop)


def _memory_faults(trajectory: "Trajectory") -> Iterator[str]:
    """Yield what does not fit of the optimiser state: a tensor of each weight, or one number."""
    optimizer = trajectory.settings.optimizer
    entries: dict[int, dict[str, int]] = {}
    for name, rows in trajectory.memory.items():
        match = _ENTRY.fullmatch(name)
        if match is None or int(match[1]) >= len(trajectory.trainable):
            yield f"{name!r:.60} in the optimiser state"
            return
        if not rows.ndim or len(rows) > len(trajectory.checkpoints):
            yield f"too many rows of {name!r} in the optimiser state"
            return
        entries.setdefault(int(match[1]), {})[match[2]] = len(rows)
        weights = trajectory.states[trajectory.trainable[int(match[1])]]
        if not optimizer.startswith("own:") and not _is_state_of(rows, weights):
            yield f"another shape or type of {name!r} in the optimiser state than of its weights"
    for number, lengths in entries.items():
        if len(set(lengths.values())) > 1 or _STATE.get(optimizer, set()) - lengths.keys():
            yield f"a part of the optimiser state of {trajectory.trainable[number]!r:.60} only"


def _is_state_of(rows: Tensor, weights: Tensor) -> bool:
    """Tell whether rows are one number from 0, or one tensor as the weights, at each checkpoint."""
    if rows.ndim == 1 < weights.ndim:
        return not rows.is_complex() and bool((rows >= 0).all())
    return rows.shape[1:] == weights.shape[1:] and (rows.ndim == 1 or rows.dtype is weights.dtype)


def _loop_faults(trajectory: "Trajectory", loop: "LoopRecord") -> Iterator[str]:
    grouped = [name for group in loop.groups for name in group]
    if sorted(grouped) != sorted(trajectory.trainable):
        yield "other parameters in the groups of the optimizer than were trained"
    if not all(map(_is_text, loop.evaluated + loop.option_names + loop.notes)):
        yield "names that are no text"
    if set(loop.option_names) & {"params"} or set(loop.option_kinds) - {"float", "bool"}:
        yield "options of no optimizer"
    dtype = getattr(torch, str(loop.autocast), None)
    if loop.autocast is not None and not isinstance(dtype, torch.dtype):
        yield f"autocast = {loop.autocast!r:.60}"
    if not _is_count(loop.accumulate) or not loop.accumulate:
        yield f"accumulate = {loop.accumulate!r:.60}"
    if loop.largest is not None and not _is_number(loop.largest):
        yield f"gradients clipped at {loop.largest!r:.60}"
    if loop.steps != trajectory.steps:
        yield "another number of learning rates than of updates"
    forms = ((loop.replayable, bool), (loop.verdict, str))
    if not all(isinstance(value, form) for value, form in forms):
        yield "a verdict that is none"


def loop_forms_fit(loop: "LoopRecord") -> bool:
    """Tell whether the arrays of a recorded loop have their types and numbers of dimensions."""
    kept = [part for part in (loop.kept_x, loop.kept_y) if part is not None]
    return (
        all(_has_form(getattr(loop, name), *form) for name, form in _LOOP.items())
        and all(part.ndim for part in kept)
        and [len(part) for part in kept] in ([], 2 * [len(kept[0]) if kept else 0])
        and int(loop.rows.min() if len(loop.rows) else 0) >= -1
    )


def _has_form(tensor: Tensor, dtype: torch.dtype, dimensions: int) -> bool:
    return tensor.dtype is dtype and tensor.ndim == dimensions


def _is_order(order: Tensor) -> bool:
    """Tell whether each row holds indices of the data: 0 to n - 1."""
    whole = not (order.is_floating_point() or order.is_complex() or order.dtype is torch.bool)
    if order.ndim != 2 or not whole or not order.numel():
        return False
    return int(order.min()) >= 0 and int(order.max()) < order.shape[1]
