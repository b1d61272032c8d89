"""Output cross-entropy: how badly one network's probabilities predict those of another."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from inscape._core import NotApplicable, Result, Row, Summary, checks, instrument, mean_summary
from inscape._core.checks import Function
from inscape._core.result import NONNEGATIVE, Range
from inscape.functional.jacobians import MEMORY
from inscape.similarity._pair import NO_OTHER, Other, paired, perturbed


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class OutputCrossEntropy(Result):
    """Cross-entropy of both networks' probabilities at each example, and the first's entropy."""

    range: ClassVar[Range] = NONNEGATIVE

    cross_entropies: Float64[Tensor, " n"]
    entropies: Float64[Tensor, " n"]

    @property
    def divergences(self) -> Float64[Tensor, " n"]:
        """Return the Kullback-Leibler divergence at each example: cross-entropy above entropy."""
        return (self.cross_entropies - self.entropies).clamp(min=0)

    def per_sample(self) -> Float64[Tensor, " n"]:
        """Return the cross-entropy at each example."""
        return self.cross_entropies

    def rows(self) -> Iterator[Row]:
        """Yield one row for each example."""
        columns = (self.cross_entropies.tolist(), self.entropies.tolist())
        for k, (cross, own) in enumerate(zip(*columns, strict=True)):
            yield {"example": k, "cross_entropy": cross, "entropy": own}

    def summary(self) -> Summary:
        """Return the mean over the examples."""
        basis = f"{len(self.entropies)} examples, own entropy {float(self.entropies.mean()):.3g}"
        return mean_summary(self.cross_entropies, kind="estimate", basis=basis)


@instrument(
    reads="pair",
    larger="less alike outputs",
    cost="instant",
    work=lambda n, c: 2 * n,
    meaning="The probabilities of the second network predict those of the first with a "
    "cross-entropy of {value}.",
    cites="sattelberg2026linearity, Eqs. (7.8)-(7.9) (S21)",
    example=perturbed,
    by_default=False,
)
@torch.no_grad()
def output_cross_entropy(
    f: Function,
    x: Float[Tensor, "n *d"],
    *,
    other: Other = None,
    other_x: Float[Tensor, "m *e"] | None = None,
    memory: int = MEMORY,
) -> OutputCrossEntropy | NotApplicable:
    r"""Measure the cross-entropy of two networks' softmax outputs.

    .. math:: H(p, q) = - \sum_i p_i \log q_i, \quad p = \sigma(f(x)), \; q = \sigma(g(x))

    Sattelberg's Eqs. (7.8) and (7.9), with the indices that are missing in print (S21). Exact at
    each example; the mean is an estimate with its interval. It is not symmetric, and at least the
    entropy of ``f`` itself, which it reaches where both networks are equal.

    Args:
        f: The network whose probabilities are to be predicted.
        x: Examples.
        other: The network that predicts them; without one the result is "not applicable".
        other_x: The same examples as the second network takes them, where it takes another form.
        memory: Bytes that the working set may take.

    >>> import torch
    >>> f = lambda x: torch.zeros(len(x), 4)
    >>> round(output_cross_entropy(f, torch.ones(3, 1), other=f).summary().value, 4)
    1.3863
    """
    checks.whole(1, memory=memory)
    checks.points(x)
    if other is None:
        return NotApplicable(what="output_cross_entropy", reason=NO_OTHER)
    pair = paired(f, x, other, other_x, same_inputs=False)
    if pair.first.outputs == 1:
        reason = "a single output has no probabilities: give it a second logit of zero"
        return NotApplicable(what="output_cross_entropy", reason=reason)
    first, second = (side.double() for side in pair.outputs(pair.rows(memory)))
    log_p, log_q = first.log_softmax(1), second.log_softmax(1)
    p = log_p.exp()
    return OutputCrossEntropy(cross_entropies=-_expected(p, log_q), entropies=-_expected(p, log_p))


def _expected(p: Float64[Tensor, "n c"], logs: Float64[Tensor, "n c"]) -> Float64[Tensor, " n"]:
    """Return the mean of logarithms under ``p``; a class without probability adds nothing."""
    return torch.where(p > 0, p * logs, 0.0).sum(1)
