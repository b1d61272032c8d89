"""The space of gradients: features of points, whether classes lie apart there, and a map of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Float64, Integer, Real
from torch import Tensor, nn

from inscape._core import Result, Row, Summary, checks
from inscape._core.inference import outside_inference
from inscape._core.result import PROPORTION, Range
from inscape.errors import BudgetError, UnsupportedModelError
from inscape.kernels.tangent import inputs
from inscape.kernels.tangent.memory_plan import sizes
from inscape.kernels.tangent.vjp import Tangents, tangents

#: Bytes that features may take unless the caller says otherwise.
MEMORY = 2**30


@outside_inference
def tangent_features(
    model: nn.Module,
    x: Real[Tensor, "n *d"],
    *,
    output: int | None = None,
    memory: int = MEMORY,
) -> Float[Tensor, "n p"]:
    """Return the gradients of outputs by all trainable parameters, one row for each point.

    The inner products of rows are the tangent kernel: that of one output, or its trace if all
    outputs are taken, one after the other. Parameters come in the order of the module; those that
    no gradient reaches have zeros.

    Args:
        model: A module in eval mode.
        x: Points; whole numbers if the model takes such.
        output: Number of the output; by default all.
        memory: Bytes that the features may take.

    >>> net = torch.nn.Linear(2, 1).eval()
    >>> tangent_features(net, torch.tensor([[3.0, 4.0]]))
    tensor([[3., 4., 1.]])
    """
    count = inputs.outputs(model, x)
    named = {name: p.numel() for name, p in model.named_parameters() if p.requires_grad}
    if not named:
        raise UnsupportedModelError(
            "tangent features need trainable parameters, found none: set requires_grad."
        )
    if output is not None and not 0 <= output < count:
        raise ValueError(
            f"output must lie between 0 and {count - 1}, found {output}: choose another."
        )
    rows = count if output is None else 1
    like = inputs.numbers_like(model, x)
    taken = len(x) * rows * sum(named.values()) * like.element_size()
    if taken > memory:
        raise BudgetError(
            f"the features take {taken:,} bytes, found memory={memory:,}: raise memory, or use "
            "tangent_kernel, which does not write them out."
        )
    features = like.new_zeros(len(x), rows * sum(named.values()))
    one = sizes(model, x).at_once(count) + taken // len(x)
    start, reached = 0, False
    pieces = -(-len(x) // max(1, min(256, memory // one)))
    for some in torch.tensor_split(x, pieces):
        seen = tangents(model, some)
        reached |= bool(seen.factors)
        features[start : start + len(some)] = _features(seen, named, output)
        start += len(some)
    inputs.refuse_unreached(reached)
    return features


def _features(seen: Tangents, named: dict[str, int], output: int | None) -> Float[Tensor, "n p"]:
    chosen = list(range(seen.rows)) if output is None else [output]
    parts = {name: seen.y.new_zeros(len(chosen), len(seen.y), size) for name, size in named.items()}
    parts.update({name: j[chosen] for name, j in seen.by_parameter().items()})
    return torch.cat(list(parts.values()), dim=2).transpose(0, 1).flatten(1).detach()


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Separability(Result):
    """How far classes lie apart in the space of a kernel, each from all others.

    ``margins`` are half the widths of the streets along the planes, as shares of the root mean
    square length of features; no point is in the street where a class can be separated, and a plane
    without direction has margin 0. Of two classes there is one plane. ``accuracies`` belong to the
    planes, ``accuracy`` to the class whose plane a point is farthest beyond; ``test_accuracy`` to
    other points.
    """

    range: ClassVar[Range] = PROPORTION

    classes: tuple[int, ...]
    accuracies: Float64[Tensor, " planes"]
    margins: Float64[Tensor, " planes"]
    support: tuple[int, ...]
    accuracy: float
    test_accuracy: float | None
    penalty: float

    def rows(self) -> Iterator[Row]:
        """Yield one row for each plane."""
        planes = zip(self.accuracies.tolist(), self.margins.tolist(), self.support, strict=True)
        for k, (accuracy, margin, support) in enumerate(planes):
            label = self.classes[-1] if len(self.classes) == 2 else self.classes[k]
            row: Row = {"class": label, "accuracy": accuracy, "margin": margin}
            yield {**row, "support": support}

    def summary(self) -> Summary:
        """Return the share of points on the right side."""
        margin = float(self.margins.min())
        basis = f"{len(self.classes)} classes, smallest margin {margin:.3g}"
        return Summary(value=self.accuracy, kind="exact", basis=basis)


def separability(
    kernel: Float[Tensor, "n n"],
    y: Integer[Tensor, " n"],
    *,
    test: tuple[Float[Tensor, "m n"], Integer[Tensor, " m"]] | None = None,
    penalty: float = 1e3,
) -> Separability:
    r"""Separate classes by planes in the space of a kernel: linear support vector machines.

    .. math:: \min_{w, b} \tfrac12 |w|^2 + C \sum_i \max(0, 1 - y_i (w \cdot \phi(x_i) + b)),
              \quad \mathrm{margin} = 1 / |w|

    One plane for each class against all others. The kernel is divided by its mean diagonal, so
    that penalty and margins have the same meaning for all kernels.

    Args:
        kernel: Inner products of features: ``tangent_kernel(...).trace``, or
            ``features @ features.T``.
        y: Class numbers.
        test: Inner products of other points with these, and their class numbers.
        penalty: Price of a point on the wrong side of the margin; large ones ask for a plane that
            makes no error.
    """
    checks.labels(y, kernel)
    classes = torch.unique(y).tolist()
    if len(classes) < 2:
        raise ValueError(
            f"y must hold at least two classes, found {len(classes)}: pass points of another class."
        )
    if not penalty > 0:
        raise ValueError(f"penalty must be positive, found {penalty}: raise penalty.")
    gram = kernel.detach().double().cpu()
    size = float(gram.diagonal().mean())
    planes = [_plane(gram / size, y.cpu() == c, penalty) for c in classes[len(classes) == 2 :]]
    scores = torch.stack([gram / size @ plane.weights + plane.offset for plane in planes], dim=1)
    wanted = torch.stack([y.cpu() == c for c in classes[len(classes) == 2 :]], dim=1)
    return Separability(
        classes=tuple(classes),
        accuracies=((scores > 0) == wanted).double().mean(0),
        margins=torch.tensor([plane.margin for plane in planes], dtype=torch.float64),
        support=tuple(plane.support for plane in planes),
        accuracy=_accuracy(scores, y.cpu(), classes),
        test_accuracy=None if test is None else _elsewhere(test, size, planes, classes),
        penalty=float(penalty),
    )


@dataclass(frozen=True, eq=False)
class _Plane:
    weights: Float64[Tensor, " n"]
    offset: float
    margin: float
    support: int


def _plane(gram: Float64[Tensor, "n n"], inside: Tensor, penalty: float) -> _Plane:
    from sklearn.svm import SVC

    machine = SVC(C=penalty, kernel="precomputed", tol=1e-6).fit(gram.numpy(), inside.numpy())
    weights = torch.zeros(len(gram), dtype=torch.float64)
    weights[torch.tensor(machine.support_).long()] = torch.tensor(machine.dual_coef_[0])
    length = float((weights @ gram @ weights).clamp(min=0).sqrt())
    margin = 1 / length if length else 0.0
    return _Plane(weights, float(machine.intercept_[0]), margin, len(machine.support_))


def _accuracy(scores: Float64[Tensor, "n k"], y: Tensor, classes: list[int]) -> float:
    place = (scores[:, 0] > 0).long() if scores.shape[1] == 1 else scores.argmax(1)
    return float((torch.tensor(classes)[place] == y).double().mean())


def _elsewhere(
    test: tuple[Tensor, Tensor], size: float, planes: list[_Plane], classes: list[int]
) -> float:
    gram, y = test[0].detach().double().cpu() / size, test[1].cpu()
    checks.labels(y, gram)
    scores = torch.stack([gram @ plane.weights + plane.offset for plane in planes], dim=1)
    return _accuracy(scores, y, classes)


def embedding(
    kernel: Float[Tensor, "n n"], *, perplexity: float = 30.0, seed: int = 0
) -> Float64[Tensor, "n 2"]:
    """Map points to the plane such that near ones in the space of a kernel stay near (t-SNE).

    Begins at the two directions in which the features vary most.

    Args:
        kernel: Inner products of features, such as ``tangent_kernel(..., normalised=True).trace``.
        perplexity: How many neighbours a point has, about; less than the number of points.
        seed: Seed of scikit-learn's draws.
    """
    from sklearn.manifold import TSNE

    gram = kernel.detach().double().cpu()
    if not 1 <= perplexity < len(gram):
        raise ValueError(
            f"perplexity must lie between 1 and the number of points, {len(gram)}, found "
            f"{perplexity}: choose about a third of the points at most."
        )
    own = gram.diagonal()
    distances = (own[:, None] + own - 2 * gram).clamp(min=0).sqrt().fill_diagonal_(0)
    centred = gram - gram.mean(0) - gram.mean(1, keepdim=True) + gram.mean()
    found = torch.linalg.eigh((centred + centred.T) / 2)
    vectors = found.eigenvectors[:, [-1, -2]]
    sides = vectors.gather(0, vectors.abs().argmax(0, keepdim=True)).sign()
    start = vectors * sides * found.eigenvalues[[-1, -2]].clamp(min=0).sqrt()
    start = start / start[:, 0].std().clamp(min=1e-12) * 1e-4
    machine = TSNE(
        init=start.numpy(), metric="precomputed", perplexity=perplexity, random_state=seed
    )
    return torch.from_numpy(machine.fit_transform(distances.numpy())).double()
