"""Robustness: how many answers stay right when every input is moved by a little."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from inscape._core import NotApplicable, Result, Row, Summary, checks, instrument
from inscape._core.anytime import anytime, meanwhile, stoppable
from inscape._core.checks import Function
from inscape._core.inference import no_grad
from inscape._core.result import PROPORTION, Range, wilson
from inscape._core.sampling import Draw, draw_numbers
from inscape.functional.jacobians import MEMORY
from inscape.robustness._first_step import Glance
from inscape.robustness._search import Found, Search
from inscape.robustness._warnings import warnings
from inscape.robustness.attack import Attack
from inscape.robustness.autoattack import attack_named
from inscape.robustness.classifier import AttackedClassifier, Bounds, classes_of, classifier_of
from inscape.robustness.fgsm import Fgsm
from inscape.robustness.noise import Noise
from inscape.robustness.norm_balls import Norm

#: Default budgets, as shares of the usual distance to the nearest point of another class.
SHARES = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)
#: Points among which nearest points of other classes are sought.
CROWD = 1000
#: How many of them are asked for their distance.
PROBED = 200
#: Products of numbers that those distances may take: fewer points of larger inputs are asked.
WORK = 2_000_000_000
#: Points of the first group where the caller may stop; each group after it is twice as large.
FIRST = 16
#: What is said before the attack has ended on all points of a first look.
UNFINISHED = (
    "The attack has ended on {done} of {count} points so far, and one step along the gradient "
    "stands for it at the others: give it more time."
)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Robustness(Result):
    """Share of points that stay right at each budget, the first of which is 0.

    ``lengths`` holds the length of the smallest step found that breaks each point: 0 if it was
    wrong from the start, infinite if none was found. ``rival`` is the usual (median) distance of a
    point to the nearest one of another class if budgets were taken from it, else 0. The examples
    are those that broke most easily; ``answer`` is what they are taken for, -1 where scores are not
    numbers. ``doubts`` are sentences on why the attack may say too little.
    """

    range: ClassVar[Range] = PROPORTION
    nonfinite: ClassVar[Mapping[str, str]] = {
        "lengths": "infinite where no step was found that breaks a point",
        "bounds": "infinite where inputs have no bound",
    }

    budgets: Float64[Tensor, " budgets"]
    accuracy: Float64[Tensor, " budgets"]
    lengths: Float64[Tensor, " n"]
    attack: str
    settings: str
    norm: str
    bounds: tuple[float, float] | None
    carry: bool
    rival: float
    examples: Int64[Tensor, " k"]
    before: Float[Tensor, "k *d"]
    after: Float[Tensor, "k *d"]
    label: Int64[Tensor, " k"]
    answer: Int64[Tensor, " k"]
    warnings: tuple[str, ...]
    seed: int

    @property
    def intervals(self) -> Float64[Tensor, "budgets 2"]:
        """Return Wilson's 95% interval of the accuracy at each budget."""
        return torch.stack([wilson(share, len(self.lengths)) for share in self.accuracy])

    def rows(self) -> Iterator[Row]:
        """Yield one row for each budget."""
        for k, budget in enumerate(self.budgets.tolist()):
            low, high = self.intervals[k].tolist()
            yield {
                "attack": self.attack,
                "norm": self.norm,
                "budget": budget,
                "accuracy": float(self.accuracy[k]),
                "low": low,
                "high": high,
                "points": len(self.lengths),
            }

    def per_sample(self) -> Tensor:
        """Return 1 for each point that stays right at the middle budget, else 0."""
        return (self.lengths > self.budgets[len(self.budgets) // 2]).double()

    def summary(self) -> Summary:
        """Return the accuracy at the middle budget."""
        k = len(self.budgets) // 2
        low, high = self.intervals[k].tolist()
        basis = (
            f"{self.attack}, {self.norm} {float(self.budgets[k]):.3g}, {len(self.lengths)} points"
        )
        if self.warnings:
            basis += "; read the warning"
        return Summary(
            value=float(self.accuracy[k]),
            kind="estimate" if self.attack == "noise" else "upper bound",
            basis=basis,
            low=low,
            high=high,
        )


@instrument(
    reads="function",
    better="larger",
    larger="more answers that hold under attack",
    cost="seconds",
    work=lambda n, c: min(n, 200) * 430,
    samples="points",
    meaning="When the attack may move every point by the middle one of its budgets, a fraction of "
    "{value} is still classified correctly.",
    cites="madry2018towards; croce2020reliable",
)
@anytime
@no_grad
def robustness(
    f: Function,
    x: Float[Tensor, "n *d"],
    y: Tensor | None,
    *,
    attack: str | Attack = "pgd",
    norm: Norm = "l2",
    budgets: Sequence[float] | None = None,
    bounds: Bounds = None,
    carry: bool = True,
    sanity: bool = True,
    points: int = 200,
    examples: int = 6,
    seed: int = 0,
    memory: int = MEMORY,
) -> Iterator[Robustness | NotApplicable]:
    r"""Measure how many points stay right when each is moved by at most a budget.

    .. math:: A(c) = \frac{1}{n} \sum_i \min_{|\delta| \leq c}
              1 [ \arg \max f(x_i + \delta) = y_i ]

    An attack seeks the minimum and may miss it, so that the accuracy is an upper bound of the true
    one; intervals (Wilson, 95%) are for the draw of the points. Points that are broken are not
    attacked again: at each budget those count for which any step of at most that length was found.
    Signs that the attack was blind rather than the network robust are told in ``doubts``. Steps of
    ``refine`` begin with one step along the gradient from a few points, and a doubt says so.

    Args:
        f: Classifier: one score for each class, or one output that is positive for class 1.
        x: Points.
        y: Their class numbers.
        attack: ``"noise"``, ``"fgsm"``, ``"fgsm-sign"``, ``"pgd"``, ``"apgd-ce"``, ``"apgd-dlr"``,
            ``"apgd-t"``, ``"fab"``, ``"fab-t"``, ``"square"``, ``"autoattack"``, or an attack with
            settings of its own, such as ``Pgd(norm="linf", steps=40)``.
        norm: ``"l2"`` or ``"linf"``, for an attack given by its name.
        budgets: Largest lengths of the steps (standard deviations for noise), rising; by default
            1/64 to 1/2 of the usual distance to the nearest point of another class.
        bounds: Lowest and highest value of an input (numbers, or tensors shaped as one input);
            None for no bounds: nothing is clipped that you do not ask for.
        carry: Whether a step found at one budget counts at all where it fits; False takes each
            budget for itself, as for the single step of FGSM of exactly that length.
        sanity: Whether to look for signs that the attack is blind, at the cost of some sixty passes
            for each point that stands.
        points: How many points to attack, drawn without replacement; all if there are no more.
        examples: How many of the points that broke most easily to keep.
        seed: Seed of that draw and of the attack.
        memory: Bytes that the working set may take.

    >>> import torch
    >>> x = torch.tensor([[-2.0], [-1.0], [1.0], [4.0]])
    >>> y = (x[:, 0] > 0).long()
    >>> robustness(lambda x: x, x, y, budgets=[0.5, 1.5, 3.0]).accuracy.tolist()
    [1.0, 1.0, 0.5, 0.25]
    """
    checks.whole(1, points=points, memory=memory)
    checks.whole(0, examples=examples)
    classifier = classifier_of(f, x, bounds=bounds, memory=memory)
    if isinstance(y, Tensor) and y.is_floating_point():
        yield NotApplicable(what="robustness", reason="the labels are real numbers, not classes")
        return
    y = classes_of(y, x, classifier.classes)
    chosen = attack if isinstance(attack, Attack) else attack_named(attack, norm)
    rival = rival_distance(x, y, chosen.norm, seed=seed) if budgets is None else 0.0
    steps = _steps(budgets, x, rival)
    draw = Draw(len(x), points, seed=seed, shuffled=True)
    trial = _Trial(chosen, classifier, steps, carry=carry, rival=rival, seed=seed)
    quick: Found | None = None
    if stoppable() and not isinstance(chosen, Noise | Fgsm):
        for quick in trial.glances(
            x, y, Draw(len(x), min(points, FIRST), seed=seed, shuffled=True)
        ):
            yield trial.unfinished(quick, 0)
    best: Robustness | None = None
    picks: list[Tensor] = []
    parts: list[Found] = []
    done = 0
    for some in draw.growing(FIRST, classifier.rows):
        search = trial.search(x[some], y[some], first=done)
        for _ in search.run():
            if stoppable():
                yield best or trial.unfinished(search.found if quick is None else quick, 0)
        picks.append(torch.arange(len(x))[some])
        parts.append(search.found)
        done += len(picks[-1])
        if quick is not None and done < len(quick.lengths):
            best = trial.unfinished(Found.joined([*parts, quick.after(done)]), done)
        else:
            rows = draw.in_order(torch.cat(picks))
            found = Found.joined(parts).arranged(draw.in_order)
            best = trial.result(found, rows.to(x.device), x, y, examples)
        yield best
    if sanity and best is not None:
        place = rows.to(x.device)
        signs = warnings(chosen, classifier, x[place], y[place], found, steps[-1], seed=seed)
        said = yield from meanwhile(signs, best)
        yield replace(best, warnings=said)


class _Trial:
    """A classifier, an attack and its budgets."""

    def __init__(
        self,
        attack: Attack,
        classifier: AttackedClassifier,
        budgets: list[float],
        *,
        carry: bool,
        rival: float,
        seed: int,
    ) -> None:
        self._attack, self._victim, self._budgets = attack, classifier, budgets
        self._carry, self._rival, self._seed = carry, rival, seed

    def search(self, x: Float[Tensor, "m *d"], y: Int64[Tensor, " m"], *, first: int) -> Search:
        """Return the search for steps that break some points, the first of which has that number.

        A point's random numbers belong to its number, whatever the other points are.
        """
        task = self._attack, self._victim, x, y, self._budgets
        return Search(*task, carry=self._carry, seed=self._seed, first=first)

    def glances(
        self, x: Float[Tensor, "n *d"], y: Int64[Tensor, " n"], draw: Draw
    ) -> Iterator[Found]:
        """Yield what one step along the gradient breaks of a few points, ever more of them."""
        parts: list[Found] = []
        for some in draw.growing(2, self._victim.rows):
            place = torch.arange(len(x))[some].to(x.device)
            task = self._victim, x[place], y[place], self._budgets
            glance = Glance(*task, norm=self._attack.norm, carry=self._carry)
            for _ in glance.run():
                yield Found.joined(parts or [glance.found])
            parts.append(glance.found)
            yield Found.joined(parts)

    def unfinished(self, found: Found, done: int) -> Robustness:
        """Return an upper bound while the first points are still under attack."""
        nothing = torch.arange(0)
        result = self.result(found, nothing, found.moved[:0], nothing, 0)
        return replace(result, warnings=(UNFINISHED.format(done=done, count=len(found.lengths)),))

    def result(
        self,
        found: Found,
        rows: Int64[Tensor, " m"],
        x: Float[Tensor, "n *d"],
        y: Int64[Tensor, " n"],
        examples: int,
    ) -> Robustness:
        """Return what was found at some rows of ``x``."""
        kept = _easiest(found.lengths, examples)
        place, moved = rows[kept], found.moved[kept]
        return Robustness(
            budgets=torch.tensor([0.0, *self._budgets], dtype=torch.float64),
            accuracy=torch.cat([found.start[None], found.right]).double().mean(1).cpu(),
            lengths=found.lengths.double().cpu(),
            attack=self._attack.name,
            settings=str(self._attack),
            norm="std" if isinstance(self._attack, Noise) else self._attack.norm,
            bounds=self._victim.range,
            carry=self._carry,
            rival=self._rival,
            examples=place.cpu(),
            before=x[place].cpu(),
            after=moved.cpu(),
            label=y[place].cpu(),
            answer=_answers(self._victim, moved),
            warnings=(),
            seed=self._seed,
        )


def _answers(classifier: AttackedClassifier, x: Float[Tensor, "k *d"]) -> Int64[Tensor, " k"]:
    """Return the class that each point is put into; -1 where scores are not numbers."""
    scores = classifier.judged(x)
    return torch.where(scores.isnan().any(1), -1, scores.argmax(1)).cpu()


def _steps(budgets: Sequence[float] | None, x: Tensor, rival: float) -> list[float]:
    """Return the budgets above 0, or say what is wrong with them."""
    if budgets is None:
        spread = float(x.std()) if x.numel() > 1 else 0.0
        scale = rival if rival > 0 else spread * x[0].numel() ** 0.5 or 1.0
        return [share * scale for share in SHARES]
    found = _numbers(budgets)
    if not all(math.isfinite(budget) and budget >= 0 for budget in found):
        raise ValueError(f"budgets must be finite and not negative, found {found}: mend them.")
    if any(later <= earlier for earlier, later in pairwise(found)):
        raise ValueError(f"budgets must rise, found {found}: sort them, each one once.")
    steps = [budget for budget in found if budget > 0]
    if not steps:
        raise ValueError(f"budgets must hold a number above 0, found {found}: add one.")
    return steps


def _numbers(budgets: object) -> list[float]:
    """Return the budgets as numbers; one that stands alone is asked to come in a list."""
    given = budgets.tolist() if isinstance(budgets, Tensor) else budgets
    if isinstance(given, float | int | str) or not isinstance(given, Iterable):
        raise TypeError(f"budgets must be a list of numbers, found {budgets!r}: pass e.g. [0.1].")
    listed = list(given)
    try:
        return [float(budget) for budget in listed]
    except (TypeError, ValueError):
        raise TypeError(
            f"budgets must be a list of numbers, found {listed!r}: pass e.g. [0.1, 0.2]."
        ) from None


def rival_distance(
    x: Float[Tensor, "n *d"], y: Int64[Tensor, " n"], norm: str, *, seed: int
) -> float:
    """Return the median distance of a point to the nearest of another class; 0 without others.

    Estimated from at most a thousand points, fewer of inputs above 10,000 numbers.
    """
    fewer = min(1.0, math.sqrt(WORK / (CROWD * PROBED * x[0].numel())))
    crowded, probed = math.ceil(fewer * CROWD), math.ceil(fewer * PROBED)
    picks = draw_numbers(len(x), crowded, seed=seed).to(x.device)
    crowd, labels = x[picks].flatten(1), y[picks]
    crowd = crowd.to(torch.promote_types(x.dtype, torch.float32))  # no distances in half precision
    order = 2.0 if norm == "l2" else math.inf
    apart = torch.cdist(crowd[:probed], crowd, p=order)
    apart[labels[:probed, None] == labels[None]] = torch.inf
    nearest = apart.amin(1)
    nearest = nearest[nearest.isfinite()]
    return float(nearest.median()) if len(nearest) else 0.0


def _easiest(lengths: Float[Tensor, " n"], count: int) -> Int64[Tensor, " k"]:
    """Return the points that broke by the shortest steps, without those that were wrong."""
    order = torch.where(lengths > 0, lengths, torch.inf).sort(stable=True)
    return order.indices[order.values.isfinite()][:count]
