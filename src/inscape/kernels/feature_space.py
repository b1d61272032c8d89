"""Tangent features: per-sample gradients, their linear separability, and a t-SNE embedding."""

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
from inscape.kernels.tangent.memory_plan import gradient_bytes
from inscape.kernels.tangent.vjp import PerSampleGradients, per_sample_gradients

#: Default bytes of features.
MEMORY = 2**30


@outside_inference
def tangent_features(
    model: nn.Module,
    x: Real[Tensor, "n *d"],
    *,
    output: int | None = None,
    memory: int = MEMORY,
) -> Float[Tensor, "n p"]:
    """Return the gradients of outputs by all trainable parameters, one row for each sample.

    The inner products of rows are the tangent kernel: that of one output, or its trace if the
    gradients of all outputs are concatenated. Parameters are in the order of the module; those that
    no gradient reaches have zeros.

    Args:
        model: A module in eval mode.
        x: Samples; integers such as token ids if the model supports them.
        output: Index of the output; by default all.
        memory: Bytes for the features.

    >>> net = torch.nn.Linear(2, 1).eval()
    >>> tangent_features(net, torch.tensor([[3.0, 4.0]]))
    tensor([[3., 4., 1.]])
    """
    count = inputs.output_count(model, x)
    named = {name: p.numel() for name, p in model.named_parameters() if p.requires_grad}
    if not named:
        raise UnsupportedModelError(
            "tangent features need trainable parameters, found none: set requires_grad."
        )
    if output is not None and not 0 <= output < count:
        raise ValueError(
            f"output must lie between 0 and {count - 1}, found {output}: choose another."
        )
    output_rows = count if output is None else 1
    like = inputs.floating_like(model, x)
    needed = len(x) * output_rows * sum(named.values()) * like.element_size()
    if needed > memory:
        raise BudgetError(
            f"the features take {needed:,} bytes, found memory={memory:,}: raise memory, or use "
            "tangent_kernel, which does not store them."
        )
    features = like.new_zeros(len(x), output_rows * sum(named.values()))
    bytes_per_sample = gradient_bytes(model, x).at_once(count) + needed // len(x)
    start, reached = 0, False
    batches = -(-len(x) // max(1, min(256, memory // bytes_per_sample)))
    for batch in torch.tensor_split(x, batches):
        gradients = per_sample_gradients(model, batch)
        reached |= bool(gradients.gradients)
        features[start : start + len(batch)] = _features(gradients, named, output)
        start += len(batch)
    inputs.refuse_unreached(reached)
    return features


def _features(
    gradients: PerSampleGradients, named: dict[str, int], output: int | None
) -> Float[Tensor, "n p"]:
    outputs = list(range(gradients.cotangent_count)) if output is None else [output]
    parts = {
        name: gradients.y.new_zeros(len(outputs), len(gradients.y), size)
        for name, size in named.items()
    }
    parts.update({name: j[outputs] for name, j in gradients.by_parameter().items()})
    return torch.cat(list(parts.values()), dim=2).transpose(0, 1).flatten(1).detach()


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Separability(Result):
    """Linear separability of classes in the feature space of a kernel, each against all others.

    ``margins`` are those of the hyperplanes, relative to the root mean square norm of features; a
    hyperplane without direction has margin 0. Two classes have one hyperplane. ``accuracies``
    belong to the hyperplanes, ``accuracy`` to the class with the largest decision value;
    ``test_accuracy`` to the test set.
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
        """Yield one row for each hyperplane."""
        planes = zip(self.accuracies.tolist(), self.margins.tolist(), self.support, strict=True)
        for k, (accuracy, margin, support) in enumerate(planes):
            label = self.classes[-1] if len(self.classes) == 2 else self.classes[k]
            row: Row = {"class": label, "accuracy": accuracy, "margin": margin}
            yield {**row, "support": support}

    def summary(self) -> Summary:
        """Return the fraction of samples that are classified correctly."""
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
    r"""Return how well linear support vector machines separate classes in a kernel's feature space.

    .. math:: \min_{w, b} \tfrac12 |w|^2 + C \sum_i \max(0, 1 - y_i (w \cdot \phi(x_i) + b)),
              \quad \mathrm{margin} = 1 / |w|

    One hyperplane for each class against all others. The kernel is divided by its mean diagonal,
    so that penalty and margins are comparable between kernels.

    Args:
        kernel: Inner products of features: ``tangent_kernel(...).trace``, or
            ``features @ features.T``.
        y: Class labels.
        test: Inner products of test samples with these, and their class labels.
        penalty: Weight C of the hinge loss; a large one approaches a hard margin.
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
    scale = float(gram.diagonal().mean())
    planes = [_plane(gram / scale, y.cpu() == c, penalty) for c in classes[len(classes) == 2 :]]
    scores = torch.stack([gram / scale @ plane.weights + plane.offset for plane in planes], dim=1)
    targets = torch.stack([y.cpu() == c for c in classes[len(classes) == 2 :]], dim=1)
    return Separability(
        classes=tuple(classes),
        accuracies=((scores > 0) == targets).double().mean(0),
        margins=torch.tensor([plane.margin for plane in planes], dtype=torch.float64),
        support=tuple(plane.support for plane in planes),
        accuracy=_accuracy(scores, y.cpu(), classes),
        test_accuracy=None if test is None else _test_accuracy(test, scale, planes, classes),
        penalty=float(penalty),
    )


@dataclass(frozen=True, eq=False)
class _Plane:
    weights: Float64[Tensor, " n"]
    offset: float
    margin: float
    support: int


def _plane(gram: Float64[Tensor, "n n"], positive: Tensor, penalty: float) -> _Plane:
    from sklearn.svm import SVC

    svm = SVC(C=penalty, kernel="precomputed", tol=1e-6).fit(gram.numpy(), positive.numpy())
    weights = torch.zeros(len(gram), dtype=torch.float64)
    weights[torch.tensor(svm.support_).long()] = torch.tensor(svm.dual_coef_[0])
    norm = float((weights @ gram @ weights).clamp(min=0).sqrt())
    margin = 1 / norm if norm else 0.0
    return _Plane(weights, float(svm.intercept_[0]), margin, len(svm.support_))


def _accuracy(scores: Float64[Tensor, "n k"], y: Tensor, classes: list[int]) -> float:
    predicted = (scores[:, 0] > 0).long() if scores.shape[1] == 1 else scores.argmax(1)
    return float((torch.tensor(classes)[predicted] == y).double().mean())


def _test_accuracy(
    test: tuple[Tensor, Tensor], scale: float, planes: list[_Plane], classes: list[int]
) -> float:
    gram, y = test[0].detach().double().cpu() / scale, test[1].cpu()
    checks.labels(y, gram)
    scores = torch.stack([gram @ plane.weights + plane.offset for plane in planes], dim=1)
    return _accuracy(scores, y, classes)


def embedding(
    kernel: Float[Tensor, "n n"], *, perplexity: float = 30.0, seed: int = 0
) -> Float64[Tensor, "n 2"]:
    """Return a two-dimensional t-SNE embedding of samples in the feature space of a kernel.

    Initialised by the first two principal components of the features.

    Args:
        kernel: Inner products of features, such as ``tangent_kernel(..., normalised=True).trace``.
        perplexity: Effective number of neighbours of a sample; less than the number of samples.
        seed: Random state of scikit-learn.
    """
    from sklearn.manifold import TSNE

    gram = kernel.detach().double().cpu()
    if not 1 <= perplexity < len(gram):
        raise ValueError(
            f"perplexity must lie between 1 and the number of points, {len(gram)}, found "
            f"{perplexity}: choose about a third of the points at most."
        )
    squared_norms = gram.diagonal()
    distances = (
        (squared_norms[:, None] + squared_norms - 2 * gram).clamp(min=0).sqrt().fill_diagonal_(0)
    )
    centred = gram - gram.mean(0) - gram.mean(1, keepdim=True) + gram.mean()
    spectrum = torch.linalg.eigh((centred + centred.T) / 2)
    vectors = spectrum.eigenvectors[:, [-1, -2]]
    signs = vectors.gather(0, vectors.abs().argmax(0, keepdim=True)).sign()
    initial = vectors * signs * spectrum.eigenvalues[[-1, -2]].clamp(min=0).sqrt()
    initial = initial / initial[:, 0].std().clamp(min=1e-12) * 1e-4
    tsne = TSNE(
        init=initial.numpy(), metric="precomputed", perplexity=perplexity, random_state=seed
    )
    return torch.from_numpy(tsne.fit_transform(distances.numpy())).double()
