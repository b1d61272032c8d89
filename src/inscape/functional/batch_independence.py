"""Batch mixing: whether the output of a function for one row depends on the rest of the batch.

Batches of one shape go through the same kernels, so that a row comes out bit for bit the same
whatever the other rows are. Batches of other sizes may differ by rounding: compared loosely.
"""

import math

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from inscape._core import checks
from inscape._core.checks import Function
from inscape.errors import UnsupportedModelError

#: Rows of a trial: more than a pair, since a function that shifts rows by two leaves pairs alone.
TRIAL = 3

#: Rows from all over the data that are tried where those of a trial have equal outputs.
SPREAD = 16

#: How many times the movement of an output that rounding of the input causes is taken for rounding.
MARGIN = 16

#: Difference of outputs in batches of other sizes that is taken for rounding, relative to them.
LEAST = 1e-3

#: Bits of a number that must agree before a call counts as repeated; of short numbers, several.
BITS = 23


def trial_rows(x: Shaped[Tensor, "n *d"]) -> Shaped[Tensor, "3 *d"]:
    """Return the first row, one in the middle and the last; of fewer, some more than once."""
    return torch.stack((x[0], x[len(x) // 2], x[-1])).detach()


@torch.no_grad()
def refuse_mixing(f: Function, rows: Shaped[Tensor, "3 *d"], trial: Float[Tensor, "3 c"]) -> None:
    """Refuse a function whose rows depend on each other: it has no gradient per point.

    Args:
        f: The function; it must not write over its input.
        rows: Rows from ``trial_rows``.
        trial: What the function returned for them in one batch, flat.
    """
    try:
        alone = f(rows[1:2]).reshape(1, -1)
        unmoved = torch.equal(_kept(f, rows, 1, _other_rows(rows)), trial[1])
    except Exception:  # batch norm without running statistics accepts no single row
        alone, unmoved = torch.full_like(trial[1:2], torch.inf), False
    agrees = _alike(alone, trial[1:2], trial)
    more = _further_calls(trial.dtype)
    if agrees and unmoved and all(_is_repeated(f, rows, trial) for _ in range(more)):
        return
    checks.call(f, rows[:2].clone())  # outputs of three rows may be rows by chance
    calls = [checks.call(f, rows.clone()).reshape(TRIAL, -1) for _ in range(1 + more)]
    again = calls[0]
    if not all(_repeats(call, trial) for call in calls):
        raise ValueError(
            "the model must give one output for one input, but two calls with the same batch "
            "differ: take random draws out of its forward."
        )
    rounding = _rounding(f, rows, trial, again)
    if torch.finfo(trial.dtype).bits < 32:  # rounding may be more than a thousandth of an output
        agrees = agrees or _gap(alone, trial[1:2]) <= float(rounding.max())
    if not agrees or not _moves_by_rounding(f, rows, trial, rounding):
        raise _mixed()


@torch.no_grad()
def refuse_hidden_mixing(
    f: Function, x: Shaped[Tensor, "n *d"], trial: Float[Tensor, "3 c"]
) -> None:
    """Refuse a function that mixes rows elsewhere than at the rows of its trial.

    Where these have equal outputs (units that are off, or saturated), mixing may not show there:
    rows from all over the data are compared in one batch and in two.
    """
    if not torch.equal(trial, trial[:1].expand_as(trial)):
        return
    spread = torch.linspace(0, len(x) - 1, min(len(x), SPREAD)).round().long()
    rows = x.detach()[spread.to(x.device)]
    half = (len(rows) + 1) // 2
    try:
        together = f(rows.clone()).reshape(len(rows), -1)
        parts = torch.split(rows, half)
        apart = torch.cat([f(part.clone()).reshape(len(part), -1) for part in parts])
    except Exception:  # outside the domain of the function: for those to say who need these rows
        return
    gap = _gap(together, apart)
    if gap > LEAST * float(together.abs().max()) + _least(trial.dtype) and gap > _noise(f, rows):
        raise _mixed()


def _noise(f: Function, rows: Tensor) -> float:
    """Return how far outputs move by rounding of the inputs, with a margin."""
    y = f(rows.clone()).reshape(len(rows), -1)
    eps = torch.finfo(y.dtype).eps
    moved = f(rows * (1 + eps)) if rows.is_floating_point() else f(rows.clone())
    return MARGIN * (_gap(moved.reshape(len(rows), -1), y) + eps * float(y.abs().max()))


def refuse_pairing(f: Function, rows: Shaped[Tensor, "3 *d"], error: UnsupportedModelError) -> None:
    """Refuse a function that raised ``error`` on three rows and accepts two: it mixes them."""
    if error.__cause__ is None:  # it accepts three rows, and returns something else than a tensor
        return
    try:
        f(rows[:2].clone())
    except Exception:  # it fails on any batch
        return
    raise _mixed()


def _mixed() -> ValueError:
    return ValueError(
        "the model must treat each row of a batch alone, but its output for a point changes "
        "with the other points: use running statistics in batch norm (track_running_stats)."
    )


def _kept(f: Function, rows: Tensor, k: int, others: Tensor) -> Float[Tensor, " c"]:
    """Return the output for row ``k`` in its place among ``others``, which are written over."""
    others[k] = rows[k]
    try:
        return f(others)[k].reshape(-1)
    except Exception:  # outside the domain of the function
        return f(_repeated(rows, k))[k].reshape(-1)


def _other_rows(rows: Tensor) -> Tensor:
    """Return other rows of like size, in the unit interval if the rows are.

    Of integers (token ids, in floating point as well, for they may be rounded to integers again),
    the one in the middle alone, or if all are equal in reverse order.
    """
    if not rows.is_floating_point():
        return _permuted(rows)
    base = _permuted(rows) if torch.equal(rows, rows.round()) else rows
    return (base * 0.9375).add_(0.017)


def _permuted(rows: Tensor) -> Tensor:
    repeated = _repeated(rows, 1)
    return rows.flip(-1) if torch.equal(repeated, rows) else repeated


def _repeated(rows: Tensor, k: int) -> Tensor:
    return torch.empty_like(rows).copy_(rows[k])


def _rounding(f: Function, rows: Tensor, trial: Tensor, again: Tensor) -> Float[Tensor, " c"]:
    """Return how far outputs may move by rounding.

    It is seen from a call repeated (``again``), and from inputs moved by one rounding.
    """
    rounding = (again - trial).abs() + torch.finfo(trial.dtype).eps * trial.abs()
    if rows.is_floating_point():
        signs = torch.ones_like(rows)
        signs.flatten(1)[:, ::2] = -1
        nudged = checks.call(f, rows * (1 + signs * torch.finfo(rows.dtype).eps))
        rounding += (nudged.reshape(TRIAL, -1) - trial).abs()
    return MARGIN * rounding.amax(0)


def _moves_by_rounding(f: Function, rows: Tensor, trial: Tensor, rounding: Tensor) -> bool:
    """Tell whether rounding accounts for all that moves in a row as the other rows change.

    A function that groups rows by what they are, such as a mixture of experts, runs a row in
    batches of other sizes.
    """
    movements = [
        (_kept(f, rows, k, others) - trial[k]).abs()
        for k in range(TRIAL)
        for others in (_other_rows(rows), _repeated(rows, k))
    ]
    return bool((torch.stack(movements).amax(0) <= rounding).all())


def _further_calls(dtype: torch.dtype) -> int:
    """Return how many more calls must agree: random outputs of 8 bits are often equal by chance."""
    return math.ceil(BITS / -math.log2(torch.finfo(dtype).eps)) - 1


def _is_repeated(f: Function, rows: Tensor, trial: Tensor) -> bool:
    """Tell whether a further call of the same batch returns the same bits."""
    return torch.equal(f(rows).reshape(TRIAL, -1), trial)


def _repeats(again: Tensor, trial: Tensor) -> bool:
    """Tell whether a call repeated agrees; small outputs have no allowance of their own."""
    share = max(LEAST, 2 * torch.finfo(trial.dtype).eps)
    return float((again - trial).abs().max()) <= share * float(trial.abs().max())


def _alike(again: Tensor, part: Tensor, trial: Tensor) -> bool:
    """Tell whether outputs agree up to the rounding that batches of other sizes bring."""
    return _gap(again, part) <= LEAST * float(trial.abs().max()) + _least(trial.dtype)


def _least(dtype: torch.dtype) -> float:
    """Return a difference of outputs that may be rounding of larger numbers inside."""
    return min(100 * torch.finfo(dtype).eps, LEAST)


def _gap(one: Tensor, other: Tensor) -> float:
    """Return the largest difference of outputs, infinite where their shapes differ."""
    return float((one - other).abs().max()) if one.shape == other.shape else math.inf
