"""FAB: minimum-norm adversarial examples by projections on the decision boundary."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from inscape._core import checks
from inscape._core.inference import no_grad
from inscape.robustness._hyperplane import nearest
from inscape.robustness._losses import lead_of, rivals
from inscape.robustness.attack import Perturbing, Stepwise, Target
from inscape.robustness.classifier import AttackedClassifier
from inscape.robustness.norm_balls import broadcastable, finite, size, uniform_in_ball

#: How far beyond the linearised boundary a step goes.
BEYOND = 1.05
#: The largest weight of the step from the start.
PULL = 0.1
#: Fraction of its step that a point keeps once it is misclassified.
BACK = 0.9
#: Halvings of the last stretch between start and the best point found.
HALVINGS = 10


@dataclass(frozen=True, kw_only=True)
class Fab(Stepwise):
    r"""Fast adaptive boundary attack (Croce and Hein 2020): seeks the *smallest* step that breaks.

    .. math:: x_{k+1} = P \bigl( (1 - \alpha)(x_k + \eta d_k) + \alpha (x_0 + \eta d_0) \bigr)

    :math:`d_k` and :math:`d_0` lead from the iterate and from the start to the boundary as it looks
    from the iterate, linearised; :math:`\alpha` grows with the fraction of the first in both. A
    misclassified point goes back by a tenth of its step. Untargeted, the nearest of all boundaries
    is taken, at the cost of the gradients of all classes; targeted, that of each of the likeliest
    ``goals`` other classes in turn. The budget only bounds random restarts.
    """

    targeted: bool = False
    steps: int = 100
    restarts: int = 1
    goals: int = 9

    minimal = True

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.whole(1, steps=self.steps, restarts=self.restarts, goals=self.goals)

    @property
    def name(self) -> str:
        """Return ``fab`` or ``fab-t``."""
        return "fab-t" if self.targeted else "fab"

    def passes(self, classes: int) -> float:
        """Return a gradient (of each class) and a look for each step of each run."""
        per_step = 4.0 * min(self.goals, classes - 1) if self.targeted else 2.0 + 2.0 * classes
        return self.restarts * (self.steps * per_step + HALVINGS)

    def search(self, target: Target) -> Perturbing:
        """Return the nearest wrong point that was found for each, or the point itself."""
        if not self.targeted:
            best, lengths = yield from self._best(target, None)
            return _halved(target, best, lengths.isfinite())
        goals = rivals(target.classifier, target.x, target.y, self.goals)
        copies, (n, many) = goals.numel(), goals.shape
        owners = torch.arange(n, device=goals.device).repeat_interleave(many)
        best, lengths = torch.empty_like(target.x[owners]), target.x.new_empty(copies)
        for piece in target.classifier.batches(torch.arange(copies, device=goals.device)):
            own = target.of(owners[piece])
            best[piece], lengths[piece] = yield from self._best(own, goals.flatten()[piece])
        first = lengths.reshape(n, many).argmin(1) + many * torch.arange(n, device=goals.device)
        return _halved(target, best[first], lengths[first].isfinite())

    def _best(
        self, target: Target, goal: Int64[Tensor, " n"] | None
    ) -> Generator[None, None, tuple[Float[Tensor, "n *d"], Float[Tensor, " n"]]]:
        """Return the best of all restarts, and its length, infinite where nothing broke."""
        best = target.x.clone()
        length = torch.full_like(size(target.x, self.norm), torch.inf)
        for restart in range(self.restarts):
            start = self._start(target, length, restart)
            yield from self._walk(target, start, goal, best, length)
        return best, length

    def _start(
        self, target: Target, length: Float[Tensor, " n"], restart: int
    ) -> Float[Tensor, "n *d"]:
        if restart == 0:
            return target.x
        radius = length.clamp(max=target.budget) / 2
        step = uniform_in_ball(target.x, self.norm, target.draws.child(restart))
        return target.classifier.clipped(target.x + step * broadcastable(radius, step))

    @no_grad
    def _walk(
        self,
        target: Target,
        at: Float[Tensor, "n *d"],
        goal: Int64[Tensor, " n"] | None,
        best: Float[Tensor, "n *d"],
        length: Float[Tensor, " n"],
    ) -> Iterator[None]:
        """Walk from ``at``, and write nearer wrong points into ``best`` and ``length``."""
        classifier, x, y = target.classifier, target.x, target.y
        for _ in range(self.steps):
            gap, normal = _boundary(classifier, at, y, goal, self.norm)
            at = classifier.clipped(self._onward(target, at, gap, normal))
            wrong = classifier.wrong(at, y)
            target.tick((4.0 if goal is not None else 2.0 + 2.0 * classifier.classes) * len(x))
            moved = size(at - x, self.norm)
            nearer = wrong & (moved < length)
            best[nearer] = at[nearer]
            length[nearer] = moved[nearer]
            at = torch.where(broadcastable(wrong, at), x + BACK * (at - x), at)
            yield

    def _onward(
        self,
        target: Target,
        at: Float[Tensor, "n *d"],
        gap: Float[Tensor, " n"],
        normal: Float[Tensor, "n D"],
    ) -> Float[Tensor, "n *d"]:
        """Return the next iterates: beyond the boundary seen from ``at``, drawn to the start."""
        x, flat = target.x.flatten(1), at.flatten(1)
        low, high = _flat_box(target.classifier, target.x)
        step = nearest(flat, normal, gap, self.norm, low, high)
        from_start = gap + (normal * (flat - x)).sum(1)
        step_from_start = nearest(x, normal, from_start, self.norm, low, high)
        sizes = size(step, self.norm), size(step_from_start, self.norm)
        fraction = sizes[0] / (sizes[0] + sizes[1]).clamp_min(torch.finfo(x.dtype).tiny)
        pull = fraction.clamp(max=PULL)[:, None]
        onward = (1 - pull) * (flat + BEYOND * step) + pull * (x + BEYOND * step_from_start)
        return onward.reshape(at.shape)


def _boundary(
    classifier: AttackedClassifier,
    at: Float[Tensor, "n *d"],
    y: Int64[Tensor, " n"],
    goal: Int64[Tensor, " n"] | None,
    norm: str,
) -> tuple[Float[Tensor, " n"], Float[Tensor, "n D"]]:
    """Return how far scores are from the boundary, and its normal, as they look at ``at``."""
    if goal is not None:
        _, lead, gradient = classifier.loss_gradient(at, y, lead_of(goal))
        return -lead, finite(gradient).flatten(1)
    scores = classifier.scores_without_gradient(at)
    rows = torch.arange(len(at), device=at.device)
    jacobian = finite(classifier.jacobians(at))
    normals = jacobian - jacobian[rows, y][:, None]
    gaps = scores[rows, y][:, None] - scores
    dual = torch.linalg.vector_norm(normals, ord=2 if norm == "l2" else 1, dim=2)
    distances = gaps.abs() / dual.clamp_min(torch.finfo(at.dtype).tiny)
    distances[rows, y] = torch.inf
    chosen = distances.argmin(1)
    return gaps[rows, chosen], normals[rows, chosen]


def _flat_box(
    classifier: AttackedClassifier, x: Float[Tensor, "n *d"]
) -> tuple[Tensor | None, Tensor | None]:
    if classifier.low is None or classifier.high is None:
        return None, None
    low, high = (bound.expand(1, *x.shape[1:]) for bound in (classifier.low, classifier.high))
    return low.flatten(1), high.flatten(1)


def _halved(
    target: Target, best: Float[Tensor, "n *d"], is_broken: Tensor
) -> Float[Tensor, "n *d"]:
    """Return the points nearest to the start, between it and ``best``, that are still wrong."""
    ones = torch.ones(len(best), dtype=best.dtype, device=best.device)
    right, wrong = torch.zeros_like(ones), ones
    for _ in range(HALVINGS):
        middle = (right + wrong) / 2
        candidates = torch.lerp(target.x, best, broadcastable(middle, best))
        is_wrong = target.classifier.wrong(candidates, target.y)
        wrong, right = torch.where(is_wrong, middle, wrong), torch.where(is_wrong, right, middle)
    nearer = torch.lerp(target.x, best, broadcastable(wrong, best))
    return torch.where(broadcastable(is_broken & (wrong < 1), best), nearer, best)
