"""The mean error at the queries farthest from the data; which these are, is an estimate too."""

from jaxtyping import Float64
from torch import Tensor

from inscape._core import Summary
from inscape._core.result import finite_mean, positive_summary, wilson


def tail_summary(
    errors: Float64[Tensor, " m"], count: int, basis: str, *, classes: bool
) -> Summary:
    r"""Return the mean of the last errors with a 95% interval.

    .. math:: \mathrm{Var} \approx \bigl( s^2 + (1 - k / m) (\mu - e_q)^2 \bigr) / k

    Where the last ``k`` begin is itself an estimate: other queries put the border elsewhere, which
    moves the mean by its distance from the error :math:`e_q` at the border (the influence function
    of a mean beyond a quantile).

    Args:
        errors: Errors in the order of the distances of their queries.
        count: How many of the last to take.
        basis: What they are.
        classes: Whether errors are 0 and 1.
    """
    tail, m = errors[-count:], len(errors)
    mean = finite_mean(tail)
    near = max(1, count // 2)
    border = finite_mean(errors[max(0, m - count - near) : m - count + near])
    size = max(float(tail.abs().max()), abs(border)) or 1.0  # squares overflow soon
    moved = (1 - count / m) * (mean / size - border / size) ** 2
    if classes:
        smooth = (count * mean + 2) / (count + 4)
        shift = moved * size**2 / (smooth * (1 - smooth))
        low, high = wilson(tail.mean(), count / (1 + shift)).tolist()
        return Summary(value=mean, kind="estimate", basis=basis, low=low, high=high)
    if count < 2:
        return Summary(value=mean, kind="estimate", basis=basis)
    error = size * ((float((tail / size).var()) + moved) / count) ** 0.5
    return positive_summary(mean, error, count, kind="estimate", basis=basis)
