"""Robustness: the accuracy when every input is perturbed within a budget."""

import math
from collections.abc import Iterator, Mapping, Sequence
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
from inscape.robustness._search import Search, SearchOutcome
from inscape.robustness._single_step import SingleStep
from inscape.robustness._warnings import warnings
from inscape.robustness.attack import Attack
from inscape.robustness.autoattack import attack_named
from inscape.robustness.classifier import AttackedClassifier, Bounds, classes_of, classifier_of
from inscape.robustness.fgsm import Fgsm
from inscape.robustness.noise import Noise
from inscape.robustness.norm_balls import Norm

#: Default budgets, as fractions of the median distance to the nearest point of another class.
FRACTIONS = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2)
#: Points among which nearest points of other classes are sought.
CANDIDATES = 1000
#: How many of them the median is over.
QUERIES = 200
#: Multiplications that those distances may cost: fewer points of larger inputs are used.
WORK = 2_000_000_000
#: Points of the first group where the caller may stop; each group after it is twice as large.
FIRST = 16
#: Warning before the attack has ended on all points of a first result.
UNFINISHED = (
    "The attack has ended on {done} of {count} points so far, and one step along the gradient "
    "stands for it at the others: give it more time."
)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Robustness(Result):
    """Fraction of points that stay right at each budget, the first of which is 0.

    An upper bound of the true accuracy, since the attack may miss a step; intervals (Wilson, 95%)
    are for the draw of the points. Broken points are not attacked again: at each budget those count
    for which any step of at most that length was found. Steps of ``robustness.refine`` begin with
    one step along the gradient from a few points, with a warning.

    ``lengths`` holds the length of the smallest step found that breaks each point: 0 if it was
    wrong from the start, infinite if none was found. ``rival`` is the median distance of a point to
    the nearest one of another class if budgets were derived from it, else 0. The examples are those
    that broke most easily; ``answer`` is their predicted class, -1 where scores are NaN.
    ``warnings`` are sentences on why the attack may be too weak.

    >>> x = torch.tensor([[-2.0], [-1.0], [1.0], [4.0]])
    >>> y = (x[:, 0] > 0).long()
    >>> robustness(lambda x: x, x, y, budgets=[0.5, 1.5, 3.0]).accuracy.tolist()
    [1.0, 1.0, 0.5, 0.25]
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
        return torch.stack([wilson(accuracy, len(self.lengths)) for accuracy in self.accuracy])

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
    r"""Measure the accuracy when each point may be moved by at most a budget.

    .. math:: A(c) = \frac{1}{n} \sum_i \min_{|\delta| \leq c}
              1 [ \arg \max f(x_i + \delta) = y_i ]

    An attack may miss the minimum, so that this is an upper bound; see :class:`Robustness`.

    Args:
        f: Classifier: one score for each class, or one output that is positive for class 1.
        x: Points.
        y: Their class numbers.
        attack: ``"noise"``, ``"fgsm"``, ``"fgsm-sign"``, ``"pgd"``, ``"apgd-ce"``, ``"apgd-dlr"``,
            ``"apgd-t"``, ``"fab"``, ``"fab-t"``, ``"square"``, ``"autoattack"``, or an attack with
            settings of its own, such as ``Pgd(norm="linf", steps=40)``.
        norm: ``"l2"`` or ``"linf"``, for an attack given by its name.
        budgets: Largest lengths of the steps (standard deviations for noise), increasing; default
            1/64 to 1/2 of the median distance to the nearest point of another class.
        bounds: Lowest and highest value of an input (numbers, or tensors shaped as one input).
        carry: Whether a step found at one budget counts at all larger ones; False attacks at each
            budget separately, as for the single step of FGSM of exactly that length.
        sanity: Whether to look for gradient masking, at about sixty passes for each unbroken point.
        points: How many points to attack, drawn without replacement; all if there are no more.
        examples: How many of the points that broke most easily to return.
        seed: Seed of that draw and of the attack.
        memory: Bytes that the working set may take.
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
    evaluation = _Evaluation(chosen, classifier, steps, carry=carry, rival=rival, seed=seed)
    yield from evaluation.results(x, y, points, examples, sanity=sanity)


class _Evaluation:
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
        self._attack, self._classifier, self._budgets = attack, classifier, budgets
        self._carry, self._rival, self._seed = carry, rival, seed

    def results(
        self,
        x: Float[Tensor, "n *d"],
        y: Int64[Tensor, " n"],
        points: int,
        examples: int,
        *,
        sanity: bool,
    ) -> Iterator[Robustness]:
        """Yield results of ever more points, after single gradient steps if one may stop early."""
        draw = Draw(len(x), points, seed=self._seed, shuffled=True)
        quick: SearchOutcome | None = None
        if stoppable() and not isinstance(self._attack, Noise | Fgsm):
            first = Draw(len(x), min(points, FIRST), seed=self._seed, shuffled=True)
            for quick in self.single_steps(x, y, first):
                yield self.unfinished(quick, 0)
        best: Robustness | None = None
        picks: list[Tensor] = []
        parts: list[SearchOutcome] = []
        done = 0
        for batch in draw.growing(FIRST, self._classifier.rows):
            search = self.search(x[batch], y[batch], first=done)
            for _ in search.run():
                if stoppable():
                    yield best or self.unfinished(search.outcome if quick is None else quick, 0)
            picks.append(torch.arange(len(x))[batch])
            parts.append(search.outcome)
            done += len(picks[-1])
            if quick is not None and done < len(quick.lengths):
                joint = SearchOutcome.concatenated([*parts, quick.after(done)])
                best = self.unfinished(joint, done)
            else:
                indices = draw.in_order(torch.cat(picks)).to(x.device)
                outcome = SearchOutcome.concatenated(parts).reordered(draw.in_order)
                best = self.result(outcome, indices, x, y, examples)
            yield best
        if sanity and best is not None:
            data = x[indices], y[indices]
            sentences = warnings(
                self._attack, self._classifier, *data, outcome, self._budgets[-1], seed=self._seed
            )
            texts = yield from meanwhile(sentences, best)
            yield replace(best, warnings=texts)

    def search(self, x: Float[Tensor, "m *d"], y: Int64[Tensor, " m"], *, first: int) -> Search:
        """Return the attack on a batch of points, ``first`` of which is the first index.

        A point's random numbers depend on its index, not on the other points.
        """
        task = self._attack, self._classifier, x, y, self._budgets
        return Search(*task, carry=self._carry, seed=self._seed, first=first)

    def single_steps(
        self, x: Float[Tensor, "n *d"], y: Int64[Tensor, " n"], draw: Draw
    ) -> Iterator[SearchOutcome]:
        """Yield outcomes of one gradient step, for ever more of a few points."""
        parts: list[SearchOutcome] = []
        for batch in draw.growing(2, self._classifier.rows):
            indices = torch.arange(len(x))[batch].to(x.device)
            task = self._classifier, x[indices], y[indices], self._budgets
            glance = SingleStep(*task, norm=self._attack.norm, carry=self._carry)
            for _ in glance.run():
                yield SearchOutcome.concatenated(parts or [glance.outcome])
            parts.append(glance.outcome)
            yield SearchOutcome.concatenated(parts)

    def unfinished(self, outcome: SearchOutcome, done: int) -> Robustness:
        """Return an upper bound while the first points are still under attack."""
        empty = torch.arange(0)
        result = self.result(outcome, empty, outcome.moved[:0], empty, 0)
        return replace(result, warnings=(UNFINISHED.format(done=done, count=len(outcome.lengths)),))

    def result(
        self,
        outcome: SearchOutcome,
        rows: Int64[Tensor, " m"],
        x: Float[Tensor, "n *d"],
        y: Int64[Tensor, " n"],
        examples: int,
    ) -> Robustness:
        """Return the result for the points of ``x`` at some indices."""
        easiest = _easiest(outcome.lengths, examples)
        indices, moved = rows[easiest], outcome.moved[easiest]
        return Robustness(
            budgets=torch.tensor([0.0, *self._budgets], dtype=torch.float64),
            accuracy=torch.cat([outcome.start[None], outcome.right]).double().mean(1).cpu(),
            lengths=outcome.lengths.double().cpu(),
            attack=self._attack.name,
            settings=str(self._attack),
            norm="std" if isinstance(self._attack, Noise) else self._attack.norm,
            bounds=self._classifier.range,
            carry=self._carry,
            rival=self._rival,
            examples=indices.cpu(),
            before=x[indices].cpu(),
            after=moved.cpu(),
            label=y[indices].cpu(),
            answer=_answers(self._classifier, moved),
            warnings=(),
            seed=self._seed,
        )


def _answers(classifier: AttackedClassifier, x: Float[Tensor, "k *d"]) -> Int64[Tensor, " k"]:
    """Return the predicted class of each point; -1 where scores are NaN."""
    scores = classifier.scores_without_gradient(x)
    return torch.where(scores.isnan().any(1), -1, scores.argmax(1)).cpu()


def _steps(budgets: Sequence[float] | None, x: Tensor, rival: float) -> list[float]:
    """Return the budgets above 0, or raise what is wrong with them."""
    if budgets is None:
        std = float(x.std()) if x.numel() > 1 else 0.0
        scale = rival if rival > 0 else std * x[0].numel() ** 0.5 or 1.0
        return [fraction * scale for fraction in FRACTIONS]
    numbers = [float(budget) for budget in budgets]
    if not all(math.isfinite(budget) and budget >= 0 for budget in numbers):
        raise ValueError(f"budgets must be finite and not negative, found {numbers}: mend them.")
    if any(later <= earlier for earlier, later in pairwise(numbers)):
        raise ValueError(f"budgets must rise, found {numbers}: sort them, each one once.")
    steps = [budget for budget in numbers if budget > 0]
    if not steps:
        raise ValueError(f"budgets must hold a number above 0, found {numbers}: add one.")
    return steps


def rival_distance(
    x: Float[Tensor, "n *d"], y: Int64[Tensor, " n"], norm: str, *, seed: int
) -> float:
    """Return the median distance of a point to the nearest of another class; 0 without others.

    Estimated from at most a thousand points, fewer of inputs above 10,000 numbers.
    """
    fraction = min(1.0, math.sqrt(WORK / (CANDIDATES * QUERIES * x[0].numel())))
    candidate_count, query_count = math.ceil(fraction * CANDIDATES), math.ceil(fraction * QUERIES)
    picks = draw_numbers(len(x), candidate_count, seed=seed).to(x.device)
    candidates, labels = x[picks].flatten(1), y[picks]
    candidates = candidates.to(
        torch.promote_types(x.dtype, torch.float32)
    )  # no distances in half precision
    order = 2.0 if norm == "l2" else math.inf
    distances = torch.cdist(candidates[:query_count], candidates, p=order)
    distances[labels[:query_count, None] == labels[None]] = torch.inf
    nearest = distances.amin(1)
    nearest = nearest[nearest.isfinite()]
    return float(nearest.median()) if len(nearest) else 0.0


def _easiest(lengths: Float[Tensor, " n"], count: int) -> Int64[Tensor, " k"]:
    """Return the points that broke by the shortest steps, without those that were wrong."""
    order = torch.where(lengths > 0, lengths, torch.inf).sort(stable=True)
    return order.indices[order.values.isfinite()][:count]
