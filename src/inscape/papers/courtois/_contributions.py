"""What kind of kernel a training has built, seen from what every sample has added."""

from typing import Any

import torch
from jaxtyping import Float64, Int64
from torch import Tensor, nn

from inscape.kernels import PathKernel, tangent_features
from inscape.papers.courtois import _peaks as peaks
from inscape.training import Fit

#: Samples that added most to a prediction, and count as its neighbours.
TOP = 32

Added = Float64[Tensor, "q n"]


def participation(added: Added) -> Float64[Tensor, " q"]:
    """Return the share of samples that take part: 1 if all add the same amount, 1/n if one does."""
    size = added.abs()
    found: Tensor = size.sum(1).square() / size.square().sum(1) / added.shape[1]
    return found


def effective_rank(added: Added) -> float:
    """Return the exponential of the entropy of the singular values, as shares of their sum."""
    values = torch.linalg.svdvals(added)
    shares = values / values.sum()
    return float(torch.special.entr(shares).sum().exp())


def with_labels(added: Added, labels: Tensor) -> Float64[Tensor, " q"]:
    """Return the share of all pushes that go the way of the sample's own label."""
    toward = torch.where(labels, added, -added).clamp(min=0)
    return toward.sum(1) / added.abs().sum(1)


def sharing(added: Added, one: Tensor, other: Tensor, top: int = TOP) -> float:
    """Return how often those who added most share a peak with the query, relative to chance.

    Args:
        added: What samples have added to queries.
        one: Inputs of the queries.
        other: Inputs of the samples.
        top: Samples that count for each query.
    """
    common = (one @ other.T > 0).to(added.dtype)
    first = added.abs().topk(min(top, added.shape[1]), dim=1).indices
    return float(common.gather(1, first).mean() / common.mean())


def correlation(added: Added, kernel: Added) -> float:
    """Return the correlation over samples of two tables, averaged over queries."""
    left, right = (rows - rows.mean(1, keepdim=True) for rows in (added, kernel))
    size = left.norm(dim=1) * right.norm(dim=1)
    return float(((left * right).sum(1) / size).mean())


def metric(run: Fit) -> Float64[Tensor, " p"]:
    """Return by what Adam multiplies the gradient of each parameter at the end; 1 for descent."""
    trajectory = run.trajectory
    assert trajectory is not None  # the training was recorded
    numbers = [p.numel() for p in run.model.parameters()]
    if trajectory.settings.optimizer == "sgd":
        return torch.ones(sum(numbers), dtype=torch.float64)
    state = trajectory.optimizer_state(trajectory.steps)
    squares = torch.cat([state[k]["exp_avg_sq"].flatten() for k in range(len(numbers))]).double()
    beta = trajectory.settings.betas[1]
    return 1 / ((squares / (1 - beta**trajectory.steps)).sqrt() + 1e-8)


def kernel_at_end(
    model: nn.Module, one: Tensor, other: Tensor, weights: Float64[Tensor, " p"]
) -> Added:
    """Return the tangent kernel with a weight for each parameter."""
    left, right = (tangent_features(model, x) for x in (one, other))
    return (left * weights) @ right.T


def measured(
    run: Fit, split: PathKernel, train: Int64[Tensor, "n peaks"], asked: Int64[Tensor, "q peaks"]
) -> dict[str, Any]:
    """Return all measures of the contributions of one training."""
    added = split.samples[:, :, 0]
    one, other = (peaks.inputs(places).double() for places in (asked, train))
    labels = peaks.labels(train)
    sides = labels.double() * 2 - 1
    flat = torch.ones_like(metric(run))
    plain, own = (kernel_at_end(run.model, one, other, w) * sides for w in (flat, metric(run)))
    return {
        "participation": float(participation(added).mean()),
        "rank": effective_rank(added),
        "with labels": float(with_labels(added, labels).mean()),
        "sharing": sharing(added, one, other),
        "tangent": correlation(added, plain),
        "own metric": correlation(added, own),
        "left over": float((added.sum(1).abs() / added.abs().sum(1)).mean()),
    }
