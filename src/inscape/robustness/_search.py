"""Attacks at every budget, and the smallest step that breaks each point."""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from inscape.robustness.attack import Attack, Target
from inscape.robustness.classifier import AttackedClassifier
from inscape.robustness.noise import Noise
from inscape.robustness.norm_balls import Draws, block_size, size, slack
from inscape.runtime.progress import Bar, progress


@dataclass(frozen=True, eq=False, kw_only=True)
class SearchOutcome:
    """Outcome of an attack on a batch of points.

    ``start`` is 1 for points that are right unmoved; ``right`` the fraction of draws (one, but for
    noise) in which each stays right at each budget. ``moved`` is the nearest wrong point that was
    found and ``lengths`` the step to it: 0 for points that were wrong from the start, infinite
    where none was found.
    """

    start: Float[Tensor, " n"]
    right: Float[Tensor, "budgets n"]
    moved: Float[Tensor, "n *d"]
    lengths: Float[Tensor, " n"]

    @staticmethod
    def concatenated(parts: "Sequence[SearchOutcome]") -> "SearchOutcome":
        """Return the outcomes of several batches of points as one."""
        return SearchOutcome(
            start=torch.cat([part.start for part in parts]),
            right=torch.cat([part.right for part in parts], dim=1),
            moved=torch.cat([part.moved for part in parts]),
            lengths=torch.cat([part.lengths for part in parts]),
        )

    def after(self, first: int) -> "SearchOutcome":
        """Return the same without the first points."""
        return SearchOutcome(
            start=self.start[first:],
            right=self.right[:, first:],
            moved=self.moved[first:],
            lengths=self.lengths[first:],
        )

    def reordered(self, order: Callable[[Tensor], Tensor]) -> "SearchOutcome":
        """Return the same with the points reordered by a function."""
        return SearchOutcome(
            start=order(self.start),
            right=order(self.right.T).T,
            moved=order(self.moved),
            lengths=order(self.lengths),
        )


class Search:
    """Points under attack, and the smallest breaking step known for each.

    ``first`` is the index of the first of them: a point's random numbers depend on its index.
    """

    def __init__(
        self,
        attack: Attack,
        classifier: AttackedClassifier,
        x: Float[Tensor, "n *d"],
        y: Int64[Tensor, " n"],
        budgets: Sequence[float],
        *,
        carry: bool,
        seed: int,
        first: int = 0,
    ) -> None:
        self.attack, self.classifier, self.x, self.y, self.seed = attack, classifier, x, y, seed
        self.budgets, self.first = budgets, first
        self.carry = carry and not isinstance(attack, Noise)
        self.moved = x.clone()
        wrong = classifier.wrong(x, y)
        self.start = (~wrong).to(x.dtype)
        self.lengths = torch.where(wrong, 0.0, torch.inf).to(x.dtype)
        self._right: list[Tensor] = []

    def run(self) -> Iterator[None]:
        """Attack at every budget; one step for each batch of the model."""
        minimal = self.carry and self.attack.minimal  # one run answers for every budget
        budgets = self.budgets[-1:] if minimal else self.budgets
        passes = self.attack.passes(self.classifier.classes) * len(self.x)
        with progress(int(passes * len(budgets)), label="attacking") as bar:
            for k, budget in enumerate(budgets):
                if isinstance(self.attack, Noise):
                    yield from self._noisy(self.attack, budget, k)
                else:
                    yield from self._at(budget, k, bar)
                bar.done = int(passes * (k + 1))
                bar.advance(0, note=f"budget {budget:.3g}")

    @property
    def outcome(self) -> SearchOutcome:
        """Return the outcome so far; budgets that were not tried yet leave all points right."""
        if self.carry:
            right = [(~self.broken(budget)).to(self.x.dtype) for budget in self.budgets]
        else:
            right = self._right + [self.start] * (len(self.budgets) - len(self._right))
        return SearchOutcome(
            start=self.start,
            right=torch.stack(right),
            moved=self.moved.clone(),
            lengths=self.lengths.clone(),
        )

    def broken(self, budget: float) -> Bool[Tensor, " n"]:
        """Tell which points are known to break within a budget."""
        return self.lengths <= budget + slack(self.x, budget, self.attack.norm)

    def _at(self, budget: float, k: int, bar: Bar) -> Iterator[None]:
        """Attack at one budget; without ``carry``, as if no other had been tried."""
        broken = self.broken(budget if self.carry else 0.0)
        for batch in self.classifier.batches((~broken).nonzero()[:, 0]):
            broken[batch] = yield from self._attacked(batch, budget, k, bar)
        self._right.append((~broken).to(self.x.dtype))

    def _draws(self, rows: Int64[Tensor, " m"], *seeds: int) -> Draws:
        return Draws(self.first + rows.cpu(), block_size(self.x), self.seed, *seeds)

    def _attacked(
        self, indices: Int64[Tensor, " m"], budget: float, k: int, bar: Bar
    ) -> Generator[None, None, Bool[Tensor, " m"]]:
        x, y = self.x[indices], self.y[indices]
        target = Target(
            classifier=self.classifier,
            x=x,
            y=y,
            budget=budget,
            draws=self._draws(indices, k),
            tick=lambda passes: bar.advance(int(passes)),
        )
        candidates = (yield from self.attack.search(target)).detach()
        length = size(candidates - x, self.attack.norm)
        wrong = length > 0  # unmoved points are still right
        wrong[wrong.clone()] = self.classifier.wrong(candidates[wrong], y[wrong])
        nearer = wrong & (length < self.lengths[indices])
        self.moved[indices[nearer]] = candidates[nearer]
        self.lengths[indices[nearer]] = length[nearer]
        return wrong & (length <= budget + slack(x, budget, self.attack.norm))

    def _noisy(self, attack: Noise, budget: float, k: int) -> Iterator[None]:
        """Count in which fraction of the noisy draws each point is right."""
        right = torch.zeros(len(self.x), dtype=self.x.dtype, device=self.x.device)
        indices = torch.arange(len(self.x))
        for draw in range(attack.draws):
            target = Target(
                classifier=self.classifier,
                x=self.x,
                y=self.y,
                budget=budget,
                draws=self._draws(indices, k, draw),
            )
            candidates = attack.perturb(target)
            wrong = self.classifier.wrong(candidates, self.y)
            length = size(candidates - self.x, attack.norm)
            nearer = wrong & (length < self.lengths)
            self.moved[nearer], self.lengths[nearer] = candidates[nearer], length[nearer]
            right += ~wrong
            yield
        self._right.append(right / attack.draws)
