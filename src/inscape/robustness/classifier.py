"""The classifier under attack: scores of classes, gradients, and bounds of the inputs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor
from torch.nn import functional

from inscape._core import checks
from inscape._core.anytime import most_rows
from inscape._core.checks import Function
from inscape.functional.final_activation import ends_in_probability
from inscape.functional.jacobians import ROWS, jacobians, probe

#: A loss of scores and classes for each point, to be maximised.
PointLoss = Callable[[Tensor, Tensor], Tensor]
Bounds = tuple[float | Tensor, float | Tensor] | None
#: Copies of its input that an attack keeps for each point.
COPIES = 5


def cross_entropy(scores: Float[Tensor, "n k"], y: Int64[Tensor, " n"]) -> Float[Tensor, " n"]:
    """Return the cross-entropy of each point."""
    return functional.cross_entropy(scores, y, reduction="none")


def margin(scores: Float[Tensor, "n k"], y: Int64[Tensor, " n"]) -> Float[Tensor, " n"]:
    """Return by how much the right class leads the best other: below 0 where a point is wrong."""
    right = scores.gather(1, y[:, None])[:, 0]
    others = scores.scatter(1, y[:, None], -torch.inf)
    return right - others.amax(1)


def misclassified(scores: Float[Tensor, "n k"], y: Int64[Tensor, " n"]) -> Bool[Tensor, " n"]:
    """Tell which points are misclassified; NaN scores count as wrong."""
    return (scores.argmax(1) != y) | scores.isnan().any(1)


@dataclass(frozen=True, eq=False, kw_only=True)
class AttackedClassifier:
    """A function with scores for ``classes`` classes; ``rows`` points fit into memory at once.

    A single output above ``halfway`` means class 1: 0 for a logit, 1/2 for a probability.
    """

    f: Function
    classes: int
    rows: int
    halfway: float = 0.0
    low: Tensor | None = None
    high: Tensor | None = None

    @property
    def range(self) -> tuple[float, float] | None:
        """Return the lowest and the highest value that any input may take."""
        if self.low is None or self.high is None:
            return None
        return float(self.low.min()), float(self.high.max())

    def scores(self, x: Float[Tensor, "n *d"]) -> Float[Tensor, "n k"]:
        """Return one score for each class; a single output is that of class 1, class 0 has 0."""
        outputs = self.f(x).reshape(len(x), -1)
        return functional.pad(outputs - self.halfway, (1, 0)) if outputs.shape[1] == 1 else outputs

    @torch.no_grad()
    def outputs(self, x: Float[Tensor, "n *d"]) -> Float[Tensor, "n c"]:
        """Return the outputs of any number of points, in batches."""
        parts = torch.split(x, self.rows)
        return torch.cat([self.f(part).reshape(len(part), -1) for part in parts])

    @torch.no_grad()
    def scores_without_gradient(self, x: Float[Tensor, "n *d"]) -> Float[Tensor, "n k"]:
        """Return the scores of any number of points, without gradients."""
        if len(x) == 0:
            return x.new_zeros(0, self.classes)
        return torch.cat([self.scores(batch) for batch in torch.split(x, self.rows)])

    def wrong(self, x: Float[Tensor, "n *d"], y: Int64[Tensor, " n"]) -> Bool[Tensor, " n"]:
        """Tell which points are misclassified."""
        return misclassified(self.scores_without_gradient(x), y)

    def loss_gradient(
        self, x: Float[Tensor, "n *d"], y: Int64[Tensor, " n"], loss: PointLoss
    ) -> tuple[Float[Tensor, "n k"], Float[Tensor, " n"], Float[Tensor, "n *d"]]:
        """Return scores, the loss of each point and its gradient with respect to the input."""
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            scores = self.scores(x)
            losses = loss(scores, y)
            if losses.requires_grad:
                (computed,) = torch.autograd.grad(losses.sum(), x, allow_unused=True)
            else:
                computed = None
        gradient = torch.zeros_like(x) if computed is None else computed
        return scores.detach(), losses.detach(), gradient

    def jacobians(self, x: Float[Tensor, "n *d"]) -> Float[Tensor, "n k D"]:
        """Return the gradients of all scores."""
        return jacobians(self.scores, x)

    def batches(self, rows: Int64[Tensor, " m"]) -> Iterator[Int64[Tensor, " some"]]:
        """Split indices of points into batches that fit into memory."""
        if len(rows):
            yield from torch.tensor_split(rows, -(-len(rows) // self.rows))

    def clipped(self, x: Float[Tensor, "n *d"]) -> Float[Tensor, "n *d"]:
        """Return the nearest points within the bounds."""
        return self.clipped_in_place(x.clone()) if self.low is not None else x

    def clipped_in_place(self, x: Float[Tensor, "n *d"]) -> Float[Tensor, "n *d"]:
        """Move points to the nearest within the bounds, and return them."""
        if self.low is None or self.high is None:
            return x
        if self.low.ndim == self.high.ndim == 0:  # numbers are quicker than tensors
            return x.clamp_(float(self.low), float(self.high))
        return x.clamp_(self.low, self.high)


def classifier_of(
    f: Function, x: Float[Tensor, "n *d"], *, bounds: Bounds, memory: int
) -> AttackedClassifier:
    """Return the classifier under attack, after checks of function, points and bounds."""
    probed = probe(f, x)
    input_bytes = (x.numel() // len(x)) * x.element_size()
    forward_bytes = (
        probed.row_bytes - 3 * probed.outputs * input_bytes
    )  # of one gradient, not of each output's
    rows = max(1, min(most_rows(ROWS), memory // (forward_bytes + COPIES * input_bytes)))
    low, high = _box(x, bounds)
    single = probed.outputs == 1 and ends_in_probability(probed.f, x)
    return AttackedClassifier(
        f=probed.f,
        classes=max(2, probed.outputs),
        rows=rows,
        halfway=0.5 if single else 0.0,
        low=low,
        high=high,
    )


def _box(x: Float[Tensor, "n *d"], bounds: Bounds) -> tuple[Tensor | None, Tensor | None]:
    """Return the bounds as tensors, after a check that all points lie within them."""
    if bounds is None:
        return None, None
    bound_pair: object = bounds
    pair = tuple(bound_pair) if isinstance(bound_pair, tuple | list) else ()
    if len(pair) != 2 or not all(isinstance(bound, float | int | Tensor) for bound in pair):
        raise TypeError(
            f"bounds must be two numbers or tensors, (lowest, highest), found {bounds}: for one "
            "that has no end pass -math.inf or math.inf, for both bounds=None."
        )
    low, high = (torch.as_tensor(bound, dtype=x.dtype, device=x.device) for bound in pair)
    if not bool((low < high).all()):
        raise ValueError(
            f"bounds must be (lowest, highest) with the first below the second, found {bounds}: "
            "pass the range of the inputs, e.g. (0.0, 1.0), or None for no bounds."
        )
    outside = ((x < low) | (x > high)).flatten(1).any(1)
    if bool(outside.any()):
        raise ValueError(
            f"x must lie within the bounds {float(low.min()):.4g} to {float(high.max()):.4g}, "
            f"found {float(x.min()):.4g} to {float(x.max()):.4g} ({int(outside.sum())} of "
            f"{len(x)} points are outside): pass the bounds of your inputs, or None for no bounds."
        )
    return low, high


def classes_of(y: object, x: Float[Tensor, "n *d"], classes: int) -> Int64[Tensor, " n"]:
    """Return the labels as class numbers, or raise what is wrong with them."""
    if y is None:
        raise ValueError(
            "robustness needs the class number of each point, found data without labels: pass y, "
            "e.g. the model's own answers, f(x).argmax(1)."
        )
    checks.labels(y, x)
    assert isinstance(y, Tensor)
    return checks.class_numbers(y, classes).to(x.device).long()
