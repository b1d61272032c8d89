"""The mean error at the queries farthest from the data, with its confidence interval."""

from jaxtyping import Float64
from torch import Tensor

from inscape._core import Summary
from inscape._core.result import finite_mean, positive_summary, wilson


def tail_summary(
    errors: Float64[Tensor, " m"], count: int, basis: str, *, classes: bool
) -> Summary:
    r"""Return the mean of the last errors with a 95% interval.

    .. math:: \mathrm{Var} \approx \bigl( s^2 + (1 - k / m) (\mu - e_q)^2 \bigr) / k

    The quantile where the last ``k`` begin is itself an estimate, which adds the distance of the
    mean from the error :math:`e_q` there (the influence function of a mean beyond a quantile).

    Args:
        errors: Errors in the order of the distances of their queries.
        count: Number of the last to average.
        basis: What they are.
        classes: Whether errors are 0 and 1.
    """
    tail, m = errors[-count:], len(errors)
    mean = finite_mean(tail)
    window = max(1, count // 2)
    boundary_error = finite_mean(errors[max(0, m - count - window) : m - count + window])
    largest = max(float(tail.abs().max()), abs(boundary_error)) or 1.0  # squares overflow soon
    shift_variance = (1 - count / m) * (mean / largest - boundary_error / largest) ** 2
    if classes:
        smoothed = (count * mean + 2) / (count + 4)
        inflation = shift_variance * largest**2 / (smoothed * (1 - smoothed))
        low, high = wilson(tail.mean(), count / (1 + inflation)).tolist()
        return Summary(value=mean, kind="estimate", basis=basis, low=low, high=high)
    if count < 2:
        return Summary(value=mean, kind="estimate", basis=basis)
    error = largest * ((float((tail / largest).var()) + shift_variance) / count) ** 0.5
    return positive_summary(mean, error, count, kind="estimate", basis=basis)
