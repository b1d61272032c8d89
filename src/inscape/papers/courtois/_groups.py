"""Whether features lie in groups: on a map of them, and in their own space."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from inscape.kernels import Neighbours, embedding, neighbours, tangent_features
from inscape.papers.courtois import _peaks as peaks
from inscape.papers.courtois._toys import numbers

#: Points on the map that count as near.
NEAR = 15
#: Numbers of groups among which the silhouette chooses.
COUNTS = (2, 3, 4, 5, 6)


def purity(points: Float[Tensor, "n d"], kinds: Int64[Tensor, " n"], count: int = NEAR) -> float:
    """Return the share of the nearest points that are of a point's own kind."""
    distances = torch.cdist(points.double(), points.double()).fill_diagonal_(torch.inf)
    nearest = distances.topk(count, largest=False).indices
    return float((kinds[nearest] == kinds[:, None]).double().mean())


def partition(points: Float[Tensor, "n d"], kinds: Int64[Tensor, " n"]) -> dict[str, float]:
    """Return how k-means divides points: its agreement with three kinds, and the best number.

    Agreement is the adjusted Rand index; the best number is that of the largest silhouette.
    """
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_rand_score, silhouette_score

    rows = points.double().numpy()
    found = {k: KMeans(k, n_init=10, random_state=0).fit_predict(rows) for k in COUNTS}
    heights = {k: float(silhouette_score(rows, found[k])) for k in COUNTS}
    return {
        "agreement": float(adjusted_rand_score(kinds.numpy(), found[3])),
        "groups": max(COUNTS, key=lambda k: heights[k]),
    }


def sharing(model: nn.Module, pairs: Int64[Tensor, "n 2"], count: int = 10) -> dict[str, float]:
    """Return how often the kernel's neighbours among inputs share exactly one peak."""
    x = peaks.inputs(pairs).double()
    near = neighbours(model, x, count=count)
    assert isinstance(near, Neighbours)  # there are trainable parameters
    common = torch.stack([(x[rows] * x).sum(1) for rows in near.by_kernel.T], dim=1)
    one = (common == 1).double()
    return {"first shares one": float(one[:, 0].mean()), "ten share one": float(one.mean())}


def measured(model: nn.Module, start: nn.Module, *, shown: bool, every: int) -> dict[str, Any]:
    """Return what figure 12 shows of a trained network, beside the same of the untrained one.

    Args:
        model: The trained network, in float64.
        start: The network as it began, in float64.
        shown: Whether to keep the map.
        every: Look at every so-manieth input.
    """
    pairs = peaks.all_pairs()[::every]
    kinds = peaks.groups(pairs)
    x = peaks.inputs(pairs).double()
    rows = tangent_features(model, x)
    plane = embedding(rows @ rows.T, perplexity=min(30.0, len(rows) / 4))
    on_map = partition(plane, kinds)
    found: dict[str, Any] = {
        "purity on the map": purity(plane, kinds),
        "agreement on the map": on_map["agreement"],
        "groups on the map": on_map["groups"],
        "purity of features": purity(rows, kinds),
        "purity untrained": purity(tangent_features(start, x), kinds),
        **sharing(model, pairs),
        **{f"{name}, untrained": value for name, value in sharing(start, pairs).items()},
    }
    if shown:
        found["plane"] = np.array(numbers(plane, 3), dtype=np.float32)
        found["pairs"] = pairs.numpy().astype(np.int8)
    return found
