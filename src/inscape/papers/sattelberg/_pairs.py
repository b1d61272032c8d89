"""How alike the networks of a set are, pair by pair, by the measures of sections 7.3.2 to 7.3.4.

All pairs share the maps of each network: what comes out is what the instruments of
``inscape.similarity`` give for each pair.
"""

from typing import Any

import torch
from jaxtyping import Float64
from torch import Tensor

from inscape.papers.sattelberg._maps import Maps

#: A linear network's maps differ by rounding alone: its alignment is 0 / 0 (erratum S31).
CONSTANT = 1e-12


def measured(networks: list[Maps]) -> dict[str, Any]:
    """Return a matrix of numbers for each measure, rows and columns in the order given."""
    count, outputs = len(networks), networks[0].outputs.shape[1]
    products = torch.zeros(count, count, dtype=torch.float64)
    largest = torch.full((2, count), -torch.inf, dtype=torch.float64)
    alignments = torch.zeros(3, count, count, dtype=torch.float64)
    size = 0
    for output in range(outputs):  # one at a time, so that the maps of all fit into memory
        maps = [network.of(output) for network in networks]
        size += maps[0].numel()
        flat = [own.flatten() for own in maps]
        products += torch.stack([torch.stack([a.dot(b) for b in flat]) for a in flat])
        peaks = torch.stack([torch.stack([own.max(), own.abs().max()]) for own in maps], 1)
        largest = torch.maximum(largest, peaks)
        alignments += aligned(maps) / outputs
    found = {
        "distance": distances(products, largest[0]) / size,
        "absolute distance": distances(products, largest[1]) / size,
        **dict(zip(("biased", "debiased", "uncentred"), alignments, strict=True)),
        "cross-entropy": cross_entropies([network.outputs for network in networks]),
        "disagreement": disagreements([network.outputs for network in networks]),
    }
    return {
        name: [[None if x != x else x for x in row] for row in matrix.tolist()]
        for name, matrix in found.items()
    }


def distances(
    products: Float64[Tensor, "k k"], peaks: Float64[Tensor, " k"]
) -> Float64[Tensor, "k k"]:
    """Return the squared distance of all maps, each divided by the largest of its network."""
    scaled = products / torch.outer(peaks, peaks)
    own = scaled.diagonal()
    return (own[:, None] - 2 * scaled + own[None]).clamp(min=0)


def aligned(maps: list[Float64[Tensor, "n D"]]) -> Float64[Tensor, "3 k k"]:
    """Return the alignment of each pair: biased as printed, debiased, and uncentred."""
    n, count = len(maps[0]), len(maps)
    raw = torch.empty(count, n * n, dtype=torch.float64)
    constant = torch.zeros(count, dtype=torch.bool)
    for k, own in enumerate(maps):
        raw[k] = (own @ own.T).flatten()
        constant[k] = bool((own - own[0]).abs().max() <= CONSTANT * own.abs().max())
    uncentred = _cosines(raw @ raw.T)
    kernels = raw.view(count, n, n)
    for kernel in kernels:  # centred columns of the maps are doubly centred kernels
        kernel -= kernel.mean(0)
        kernel -= kernel.mean(1, keepdim=True)
    biased, diagonals = raw @ raw.T, torch.stack([kernel.diagonal() for kernel in kernels])
    # Rows of a centred kernel add up to 0; without its diagonal, to the diagonal's opposite.
    both, traces = diagonals @ diagonals.T, diagonals.sum(1)
    unbiased = biased - both + torch.outer(traces, traces) / ((n - 1) * (n - 2))
    unbiased -= 2 * both / (n - 2)
    found = torch.stack([_cosines(biased), _cosines(unbiased), uncentred])
    found[:2, constant] = torch.nan
    found[:2, :, constant] = torch.nan
    return found


def _cosines(products: Float64[Tensor, "k k"]) -> Float64[Tensor, "k k"]:
    sizes = products.diagonal().sqrt()
    return products / torch.outer(sizes, sizes)


def cross_entropies(outputs: list[Float64[Tensor, "n c"]]) -> Float64[Tensor, "k k"]:
    """Return the mean cross-entropy of each pair: the row is predicted by the column."""
    logs = [each.log_softmax(1) for each in outputs]
    rows = [[float(-(p.exp() * q).sum(1).mean()) for q in logs] for p in logs]
    return torch.tensor(rows, dtype=torch.float64)


def disagreements(outputs: list[Float64[Tensor, "n c"]]) -> Float64[Tensor, "k k"]:
    """Return the share of images to which each pair gives different classes."""
    classes = [each.argmax(1) for each in outputs]
    rows = [[float((a != b).double().mean()) for b in classes] for a in classes]
    return torch.tensor(rows, dtype=torch.float64)
