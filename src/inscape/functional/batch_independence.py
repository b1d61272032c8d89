"""Batch independence: whether a function acts on each sample of a batch independently.

Batches of one shape run through the same kernels, so that the output for a sample is reproducible
bit for bit whatever the other samples are. Batches of other sizes may differ by rounding and are
compared with a tolerance.
"""

import math

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from inscape._core import checks
from inscape._core.checks import Function
from inscape.errors import UnsupportedModelError

#: Samples of a trial: more than two, since a function that rolls a batch by two fixes each pair.
TRIAL = 3

#: Samples from all over the data that are tried where those of a trial have equal outputs.
SCATTERED = 16

#: Changes of an output up to this multiple of its response to input rounding count as rounding.
MARGIN = 16

#: Relative difference of outputs between batch sizes that counts as rounding.
RELATIVE_TOLERANCE = 1e-3

#: Bits that must agree before a call counts as repeated; 8-bit and 16-bit floats need more calls.
BITS = 23


def trial_samples(x: Shaped[Tensor, "n *d"]) -> Shaped[Tensor, "3 *d"]:
    """Return the first, the middle and the last sample, with repeats if there are fewer than 3."""
    return torch.stack((x[0], x[len(x) // 2], x[-1])).detach()


@torch.no_grad()
def refuse_mixing(
    f: Function, samples: Shaped[Tensor, "3 *d"], trial: Float[Tensor, "3 c"]
) -> None:
    """Raise if the outputs of a function mix the samples of a batch: no per-sample gradient exists.

    Args:
        f: The function; it must not write over its input.
        samples: Samples from ``trial_samples``.
        trial: Its outputs for them in one batch, flattened.
    """
    try:
        # First a batch of the size of the trial's: a module that keeps a state until a batch of
        # another size comes shows it then, and only then.
        unmoved = torch.equal(_output_among(f, samples, 1, _other_samples(samples)), trial[1])
        alone = f(samples[1:2]).reshape(1, -1)
    except Exception:  # batch norm without running statistics rejects a single sample
        alone, unmoved = torch.full_like(trial[1:2], torch.inf), False
    agrees = _agree(alone, trial[1:2], trial)
    extra_calls = _further_calls(trial.dtype)
    if agrees and unmoved and all(_is_repeated(f, samples, trial) for _ in range(extra_calls)):
        return
    checks.call(f, samples[:2].clone())  # three outputs may match the batch by chance
    calls = [checks.call(f, samples.clone()).reshape(TRIAL, -1) for _ in range(2 + extra_calls)]
    again = calls[0]
    if not all(_repeats(call, trial) for call in calls):
        raise ValueError(
            "the model must be deterministic, but two calls with the same batch "
            f"differ: {_cause(f, samples)}."
        )
    rounding = _rounding(f, samples, trial, again)
    if torch.finfo(trial.dtype).bits < 32:  # rounding may be more than a thousandth of an output
        agrees = agrees or _largest_difference(alone, trial[1:2]) <= float(rounding.max())
    if not agrees or not _rounding_explains_changes(f, samples, trial, rounding):
        raise _mixing_error()


def _cause(f: Function, samples: Shaped[Tensor, "3 *d"]) -> str:
    """Return what to do about a function whose calls differ."""
    before = {name: tensor.clone() for name, tensor in _kept_tensors(f).items()}
    checks.call(f, samples.clone())
    after = _kept_tensors(f)
    changed = [name for name, old in before.items() if not torch.equal(old, after.get(name, old))]
    if changed and isinstance(f, nn.Module) and changed[0] not in dict(f.named_buffers()):
        return f"let its forward not keep {changed[0]!r} from call to call"
    if changed:
        return f"let its forward change {changed[0]!r} in training mode only"
    return "remove random draws from its forward"


def _kept_tensors(f: Function) -> dict[str, Tensor]:
    """Return the buffers of a module, and the tensors that are plain attributes of its parts."""
    if not isinstance(f, nn.Module):
        return {}
    attributes = {
        f"{name}.{key}".lstrip("."): value
        for name, module in f.named_modules()
        for key, value in vars(module).items()
        if isinstance(value, Tensor)
    }
    return {**dict(f.named_buffers()), **attributes}


@torch.no_grad()
def refuse_hidden_mixing(
    f: Function, x: Shaped[Tensor, "n *d"], trial: Float[Tensor, "3 c"]
) -> None:
    """Raise if a function mixes samples in a way that its trial cannot show.

    Where the trial has equal outputs (units that are off, or saturated), samples from all over the
    data are compared in one batch and in two.
    """
    if not torch.equal(trial, trial[:1].expand_as(trial)):
        return
    indices = torch.linspace(0, len(x) - 1, min(len(x), SCATTERED)).round().long()
    samples = x.detach()[indices.to(x.device)]
    half = (len(samples) + 1) // 2
    try:
        together = f(samples.clone()).reshape(len(samples), -1)
        parts = torch.split(samples, half)
        separate = torch.cat([f(part.clone()).reshape(len(part), -1) for part in parts])
    except Exception:  # outside the domain of the function: the caller reports it where it matters
        return
    gap = _largest_difference(together, separate)
    if gap > RELATIVE_TOLERANCE * float(together.abs().max()) + _absolute_tolerance(
        trial.dtype
    ) and gap > _rounding_bound(f, samples):
        raise _mixing_error()


def _rounding_bound(f: Function, samples: Tensor) -> float:
    """Return an upper bound on the change of the outputs by rounding of the inputs."""
    y = f(samples.clone()).reshape(len(samples), -1)
    eps = torch.finfo(y.dtype).eps
    perturbed = f(samples * (1 + eps)) if samples.is_floating_point() else f(samples.clone())
    return MARGIN * (
        _largest_difference(perturbed.reshape(len(samples), -1), y) + eps * float(y.abs().max())
    )


def refuse_pairing(
    f: Function, samples: Shaped[Tensor, "3 *d"], error: UnsupportedModelError
) -> None:
    """Raise if a function fails on three samples with ``error`` but accepts two: it mixes them."""
    if error.__cause__ is None:  # it accepts three samples, and does not return a tensor
        return
    try:
        f(samples[:2].clone())
    except Exception:  # it fails on any batch
        return
    raise _mixing_error()


def _mixing_error() -> ValueError:
    return ValueError(
        "the model must act on each sample independently, but its output for a sample changes "
        "with the other samples: use running statistics in batch norm (track_running_stats)."
    )


def _output_among(f: Function, samples: Tensor, k: int, others: Tensor) -> Float[Tensor, " c"]:
    """Return the output for sample ``k`` at its index among ``others``, which are overwritten."""
    others[k] = samples[k]
    try:
        return f(others)[k].reshape(-1)
    except Exception:  # outside the domain of the function
        return f(_repeated(samples, k))[k].reshape(-1)


def _other_samples(samples: Tensor) -> Tensor:
    """Return other samples of similar size, in the unit interval if the samples are.

    For integers (token ids, also in floating point, since they may be rounded again), the middle
    sample repeated, or all in reverse order if they are equal.
    """
    if not samples.is_floating_point():
        return _permuted(samples)
    base = _permuted(samples) if torch.equal(samples, samples.round()) else samples
    return (base * 0.9375).add_(0.017)


def _permuted(samples: Tensor) -> Tensor:
    repeated = _repeated(samples, 1)
    return samples.flip(-1) if torch.equal(repeated, samples) else repeated


def _repeated(samples: Tensor, k: int) -> Tensor:
    return torch.empty_like(samples).copy_(samples[k])


def _rounding(f: Function, samples: Tensor, trial: Tensor, again: Tensor) -> Float[Tensor, " c"]:
    """Return the largest change of each output by rounding.

    Estimated from a repeated call (``again``), and from inputs perturbed by one rounding.
    """
    rounding = (again - trial).abs() + torch.finfo(trial.dtype).eps * trial.abs()
    if samples.is_floating_point():
        signs = torch.ones_like(samples)
        signs.flatten(1)[:, ::2] = -1
        perturbed = checks.call(f, samples * (1 + signs * torch.finfo(samples.dtype).eps))
        rounding += (perturbed.reshape(TRIAL, -1) - trial).abs()
    return MARGIN * rounding.amax(0)


def _rounding_explains_changes(
    f: Function, samples: Tensor, trial: Tensor, rounding: Tensor
) -> bool:
    """Return whether rounding explains how an output changes with the other samples.

    A function that groups samples by their values, such as a mixture of experts, evaluates a sample
    in batches of other sizes.
    """
    movements = [
        (_output_among(f, samples, k, others) - trial[k]).abs()
        for k in range(TRIAL)
        for others in (_other_samples(samples), _repeated(samples, k))
    ]
    return bool((torch.stack(movements).amax(0) <= rounding).all())


def _further_calls(dtype: torch.dtype) -> int:
    """Return how many more calls must agree: random 8-bit outputs are often equal by chance."""
    return math.ceil(BITS / -math.log2(torch.finfo(dtype).eps)) - 1


def _is_repeated(f: Function, samples: Tensor, trial: Tensor) -> bool:
    """Return whether another call with the same batch is reproducible bit for bit."""
    return torch.equal(f(samples).reshape(TRIAL, -1), trial)


def _repeats(again: Tensor, trial: Tensor) -> bool:
    """Return whether a repeated call agrees, relative to the largest output."""
    tolerance = max(RELATIVE_TOLERANCE, 2 * torch.finfo(trial.dtype).eps)
    return float((again - trial).abs().max()) <= tolerance * float(trial.abs().max())


def _agree(again: Tensor, part: Tensor, trial: Tensor) -> bool:
    """Return whether outputs agree up to the rounding of other batch sizes."""
    return _largest_difference(again, part) <= RELATIVE_TOLERANCE * float(
        trial.abs().max()
    ) + _absolute_tolerance(trial.dtype)


def _absolute_tolerance(dtype: torch.dtype) -> float:
    """Return the absolute tolerance for rounding of larger intermediate values."""
    return min(100 * torch.finfo(dtype).eps, RELATIVE_TOLERANCE)


def _largest_difference(first: Tensor, second: Tensor) -> float:
    """Return the largest difference of outputs, infinite where their shapes differ."""
    return float((first - second).abs().max()) if first.shape == second.shape else math.inf
