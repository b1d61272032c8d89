"""Attacking at every budget, and what each point's smallest breaking step was."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from inscape._core.progress import Bar, progress
from inscape.robustness._balls import Draws, size, slack
from inscape.robustness._victim import Victim
from inscape.robustness.attack import Attack, Target
from inscape.robustness.noise import Noise


@dataclass(frozen=True, eq=False, kw_only=True)
class Found:
    """What a search came to.

    ``start`` is 1 for points that are right unmoved; ``right`` the share of draws (one, but for
    noise) in which each stays right at each budget. ``moved`` is the nearest wrong point that was
    found and ``lengths`` the step to it: 0 for points that were wrong from the start, infinite
    where none was found.
    """

    start: Float[Tensor, " n"]
    right: Float[Tensor, "budgets n"]
    moved: Float[Tensor, "n *d"]
    lengths: Float[Tensor, " n"]


class Search:
    """Points under attack, and the smallest breaking step known for each."""

    def __init__(
        self,
        attack: Attack,
        victim: Victim,
        x: Float[Tensor, "n *d"],
        y: Int64[Tensor, " n"],
        *,
        seed: int,
    ) -> None:
        self.attack, self.victim, self.x, self.y, self.seed = attack, victim, x, y, seed
        self.moved = x.clone()
        wrong = victim.wrong(x, y)
        self.start = (~wrong).to(x.dtype)
        self.lengths = torch.where(wrong, 0.0, torch.inf).to(x.dtype)

    def run(self, budgets: Sequence[float], *, carry: bool) -> Found:
        """Attack at every budget and return what was found."""
        if carry and self.attack.minimal:
            return self._once(budgets)
        each = self.attack.passes(self.victim.classes) * len(self.x)
        with progress(int(each * len(budgets)), label="attacking") as bar:
            rows = []
            for k, budget in enumerate(budgets):
                if isinstance(self.attack, Noise):
                    rows.append(self._noisy(self.attack, budget, k))
                else:
                    rows.append(~self._at(budget, k, bar, carry=carry))
                bar.done = int(each * (k + 1))
                bar.advance(0, note=f"budget {budget:.3g}")
        if carry and not isinstance(self.attack, Noise):
            rows = [~self.broken(budget) for budget in budgets]
        right = torch.stack([row.to(self.x.dtype) for row in rows])
        return Found(start=self.start, right=right, moved=self.moved, lengths=self.lengths)

    def _once(self, budgets: Sequence[float]) -> Found:
        """Run an attack that seeks the smallest step: its one run answers for every budget."""
        total = int(self.attack.passes(self.victim.classes) * len(self.x))
        with progress(total, label="attacking") as bar:
            self._at(budgets[-1], 0, bar, carry=True)
            bar.done = total
        right = torch.stack([(~self.broken(budget)).to(self.x.dtype) for budget in budgets])
        return Found(start=self.start, right=right, moved=self.moved, lengths=self.lengths)

    def broken(self, budget: float) -> Bool[Tensor, " n"]:
        """Tell which points are known to break within a budget."""
        return self.lengths <= budget + slack(self.x, budget, self.attack.norm)

    def _at(self, budget: float, k: int, bar: Bar, *, carry: bool) -> Bool[Tensor, " n"]:
        """Attack at one budget; without ``carry``, as if no other had been tried."""
        standing = ~self.broken(budget if carry else 0.0)
        broken = ~standing
        rows = standing.nonzero()[:, 0]
        for some in self.victim.pieces(rows):
            broken[some] = self._attacked(some, budget, k, bar)
        return broken

    def _attacked(
        self, rows: Int64[Tensor, " m"], budget: float, k: int, bar: Bar
    ) -> Bool[Tensor, " m"]:
        x, y = self.x[rows], self.y[rows]
        draws = Draws(rows.cpu(), len(self.x), self.seed, k)
        target = Target(
            victim=self.victim,
            x=x,
            y=y,
            budget=budget,
            draws=draws,
            tick=lambda passes: bar.advance(int(passes)),
        )
        at = self.attack.perturb(target).detach()
        length = size(at - x, self.attack.norm)
        wrong = length > 0  # points that an attack gave back as they were are right still
        wrong[wrong.clone()] = self.victim.wrong(at[wrong], y[wrong])
        nearer = wrong & (length < self.lengths[rows])
        self.moved[rows[nearer]] = at[nearer]
        self.lengths[rows[nearer]] = length[nearer]
        return wrong & (length <= budget + slack(x, budget, self.attack.norm))

    def _noisy(self, attack: Noise, budget: float, k: int) -> Float[Tensor, " n"]:
        """Return the share of noisy draws in which each point is right."""
        right = torch.zeros(len(self.x), dtype=self.x.dtype, device=self.x.device)
        rows = torch.arange(len(self.x))
        for draw in range(attack.draws):
            target = Target(
                victim=self.victim,
                x=self.x,
                y=self.y,
                budget=budget,
                draws=Draws(rows, len(self.x), self.seed, k, draw),
            )
            at = attack.perturb(target)
            wrong = self.victim.wrong(at, self.y)
            length = size(at - self.x, attack.norm)
            nearer = wrong & (length < self.lengths)
            self.moved[nearer], self.lengths[nearer] = at[nearer], length[nearer]
            right += ~wrong
        return right / attack.draws
