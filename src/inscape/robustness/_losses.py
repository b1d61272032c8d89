"""Losses that attacks raise beside the cross-entropy, for any number of classes from two up."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from inscape.robustness.classifier import AttackedClassifier, PointLoss, margin

#: Keeps quotients finite where leading scores are equal.
TINY = 1e-12


def difference_ratio(scores: Float[Tensor, "n k"], y: Int64[Tensor, " n"]) -> Float[Tensor, " n"]:
    r"""Return the difference of logits ratio (DLR) of each point.

    .. math:: -\frac{z_y - \max_{i \ne y} z_i}{z_{\pi_1} - z_{\pi_3}}

    It does not change when all scores are shifted or scaled. With two classes there is no third
    score and it is the plain margin: steps are normalised, so that its scale does not matter.
    """
    lead = -margin(scores, y)
    if scores.shape[1] < 3:
        return lead
    top = scores.topk(3, dim=1).values
    return lead / (top[:, 0] - top[:, 2] + TINY)


def ratio_towards(goal: Int64[Tensor, " n"]) -> PointLoss:
    r"""Return the targeted DLR loss for one goal class of each point.

    .. math:: -\frac{z_y - z_t}{z_{\pi_1} - (z_{\pi_3} + z_{\pi_4}) / 2}

    With three classes the third score stands for the mean of third and fourth; with two there is no
    quotient.
    """

    def loss(scores: Tensor, y: Tensor) -> Tensor:
        lead = lead_of(goal)(scores, y)
        if scores.shape[1] < 3:
            return lead
        top = scores.topk(min(4, scores.shape[1]), dim=1).values
        return lead / (top[:, 0] - top[:, 2:].mean(1) + TINY)

    return loss


def lead_of(goal: Int64[Tensor, " n"]) -> PointLoss:
    """Return the loss by which the goal class leads the right one."""

    def loss(scores: Tensor, y: Tensor) -> Tensor:
        both = scores.gather(1, torch.stack([goal, y], dim=1))
        return both[:, 0] - both[:, 1]

    return loss


def rivals(
    classifier: AttackedClassifier, x: Float[Tensor, "n *d"], y: Int64[Tensor, " n"], count: int
) -> Int64[Tensor, "n goals"]:
    """Return the classes beside the right one, the likeliest first, ``count`` if there are."""
    others = classifier.scores_without_gradient(x).scatter(1, y[:, None], -torch.inf)
    count = min(count, classifier.classes - 1)
    return others.topk(count, dim=1).indices
