"""The mean error at the queries farthest from the data; which these are, is an estimate too."""

from jaxtyping import Float64
from torch import Tensor

from inscape._core import Summary
from inscape._core.result import positive_summary, wilson


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
    mean = float(tail.mean())
    near = max(1, count // 2)
    border = float(errors[max(0, m - count - near) : m - count + near].mean())
    moved = (1 - count / m) * (mean - border) ** 2
    if classes:
        smooth = (count * mean + 2) / (count + 4)
        low, high = wilson(tail.mean(), count / (1 + moved / (smooth * (1 - smooth)))).tolist()
        return Summary(value=mean, kind="estimate", basis=basis, low=low, high=high)
    if count < 2:
        return Summary(value=mean, kind="estimate", basis=basis)
    size = float(tail.abs().max()) or 1.0  # squares overflow soon
    variance = float((tail / size).var()) + moved / size**2
    error = size * (variance / count) ** 0.5
    return positive_summary(mean, error, count, kind="estimate", basis=basis)
