"""Single-step attacks: one step along the gradient, tried at every budget."""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from inscape.robustness._search import SearchOutcome
from inscape.robustness.classifier import AttackedClassifier, cross_entropy, misclassified
from inscape.robustness.norm_balls import size, slack, steepest


class SingleStep:
    """FGSM at every budget, for one gradient and one forward pass each.

    In ``outcome`` budgets that were not tried yet leave all points right.
    """

    def __init__(
        self,
        classifier: AttackedClassifier,
        x: Float[Tensor, "n *d"],
        y: Int64[Tensor, " n"],
        budgets: Sequence[float],
        *,
        norm: str,
        carry: bool,
    ) -> None:
        self._classifier, self._x, self._y = classifier, x, y
        self._budgets, self._norm, self._carry = budgets, norm, carry
        scores, _, gradient = classifier.loss_gradient(x, y, cross_entropy)
        wrong = misclassified(scores, y)
        self._step = steepest(gradient, norm)
        self._start = (~wrong).to(x.dtype)
        self._lengths = torch.where(wrong, 0.0, torch.inf).to(x.dtype)
        self._moved = x.clone()
        self._right: list[Tensor] = []

    def run(self) -> Iterator[None]:
        """Try every budget; one step for each."""
        for budget in self._budgets:
            at = self._classifier.clipped(self._x + budget * self._step)
            wrong = self._classifier.wrong(at, self._y)
            length = size(at - self._x, self._norm)
            nearer = wrong & (length < self._lengths)
            self._moved[nearer], self._lengths[nearer] = at[nearer], length[nearer]
            self._right.append((~wrong).to(self._x.dtype) * self._start)
            yield

    @property
    def outcome(self) -> SearchOutcome:
        """Return the outcome so far."""
        right = self._right + [self._start] * (len(self._budgets) - len(self._right))
        if self._carry:
            reach = [budget + slack(self._x, budget, self._norm) for budget in self._budgets]
            right = [(self._lengths > most).to(self._x.dtype) for most in reach]
        return SearchOutcome(
            start=self._start,
            right=torch.stack(right),
            moved=self._moved.clone(),
            lengths=self._lengths.clone(),
        )
