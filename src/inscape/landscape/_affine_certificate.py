"""Theorem 1 as a certificate: a network that is affine on its data, at a convex minimum."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float64
from torch import Tensor, nn

from inscape.landscape._dense_network import (
    DenseLayer,
    final_values,
    label_mass,
    output_slopes,
)
from inscape.landscape._loss_function import LossFunction
from inscape.landscape.affine_fit import reduced_rank_regression

EPSILON = float(torch.finfo(torch.float64).eps)
#: Pre-activations must exceed so many machine epsilons of the terms that they are sums of.
POSITIVE = 1024
#: Up to this many rows the matrix of the convex problem is solved whole.
WHOLE = 1500
#: Singular values of the data below this fraction of the largest count as zero.
DEPENDENT = 1e-10


@dataclass(frozen=True)
class AffineCertificate:
    """Whether a network is at a minimum of the convex problem, and how far from it at most.

    ``radius`` is a distance of parameters; ``reason`` says why nothing is certified.
    """

    affine: bool
    certified: bool = False
    radius: float = math.inf
    curvature: float = 0.0
    reason: str = ""


def affine_certificate(problem: LossFunction, layers: list[DenseLayer]) -> AffineCertificate:
    r"""Certify by theorem 1 of Goldblum et al. that a minimum lies within a radius.

    .. math:: \min_A \frac1n \sum_i \ell(A \tilde x_i, y_i), \quad f_\theta(x_i) = A \tilde x_i

    All hidden pre-activations are positive on the data, so that all networks nearby are affine
    there. The map's problem is convex: its minimum lies within a distance that follows from the
    gradient and the smallest curvature, and the first layer alone can move there.
    """
    hidden = layers[:-1]
    if not hidden or any(layer.kind not in (nn.ReLU, nn.Identity) for layer in hidden):
        return AffineCertificate(False)
    if layers[-1].kind is not nn.Identity or not all(map(_positive, hidden)):
        return AffineCertificate(False)
    if problem.decay:
        return AffineCertificate(True, reason="weight decay is no function of the affine map")
    if layers[0].bias is None:
        return AffineCertificate(True, reason="the first layer has no bias")
    rest = layers[1].weight
    for layer in layers[2:]:
        rest = layer.weight @ rest
    if problem.loss == "cross_entropy":  # a shift of all logits changes nothing
        rest = _without_shifts(len(rest)).T @ rest
    room = float(torch.linalg.svdvals(rest)[-1]) if rest.shape[0] <= rest.shape[1] else 0.0
    if room <= DEPENDENT * float(rest.norm()):
        return AffineCertificate(True, reason=_limited_rank(problem, layers))
    distance, curvature = _distance(problem, layers)
    if not math.isfinite(distance):
        return AffineCertificate(
            True, curvature=curvature, reason="the gradient is too large for the curvature"
        )
    radius = distance / room
    if not _stays_positive(layers, radius):
        return AffineCertificate(True, curvature=curvature, reason="pre-activations may change")
    return AffineCertificate(True, True, radius, curvature)


def _without_shifts(classes: int) -> Float64[Tensor, "c c1"]:
    """Return an orthonormal basis of the logits that sum to zero."""
    ones = torch.ones(classes, 1, dtype=torch.float64)
    columns = torch.cat([ones, torch.eye(classes, dtype=torch.float64)[:, 1:]], dim=1)
    basis: Tensor = torch.linalg.qr(columns).Q[:, 1:]
    return basis


def _limited_rank(problem: LossFunction, layers: list[DenseLayer]) -> str:
    """Return what limits the rank, and how far the loss is from the best map of that rank."""
    reason = "the layers after the first limit the rank of the map"
    width = min(len(layer.weight) for layer in layers[:-1])
    if problem.loss != "mse":
        return reason
    outputs = final_values(layers)
    y = problem.labels(slice(None), outputs).reshape(outputs.shape)
    weight, bias = reduced_rank_regression(layers[0].inputs, y, rank=width)
    best = float((layers[0].inputs @ weight.T + bias - y).square().mean())
    excess = float((outputs - y).square().mean()) - best
    return f"{reason}; the loss is {excess:.2g} above the least of all maps of rank {width}"


def _positive(layer: DenseLayer) -> bool:
    """Tell whether all pre-activations of a layer are positive by more than their rounding."""
    if layer.kind is nn.Identity:
        return True
    terms = layer.inputs.abs() @ layer.weight.abs().T
    if layer.bias is not None:
        terms = terms + layer.bias.abs()
    return bool((layer.outputs > POSITIVE * EPSILON * terms).all())


def _stays_positive(layers: list[DenseLayer], radius: float) -> bool:
    """Tell whether a change of the first layer's parameters keeps all pre-activations positive."""
    moved = radius * layers[0].extended_inputs().norm(dim=1)
    for number, layer in enumerate(layers[:-1]):
        if number:
            moved = moved * float(torch.linalg.matrix_norm(layer.weight, 2))
        if layer.kind is nn.ReLU and not bool((layer.outputs > moved[:, None]).all()):
            return False
    return True


def _distance(problem: LossFunction, layers: list[DenseLayer]) -> tuple[float, float]:
    """Return how far the affine map is from a minimiser at most, and the curvature used."""
    inputs = layers[0].extended_inputs()
    slopes = output_slopes(problem, layers)
    _, values, right = torch.linalg.svd(inputs, full_matrices=False)
    spread = right[values > DEPENDENT * float(values[0])]
    reduced = inputs @ spread.T  # coordinates in which the data are independent
    gradient = slopes.T @ reduced / len(inputs)
    rounding = EPSILON * float((slopes.abs().T @ reduced.abs()).norm()) / len(inputs)
    steepness = float(gradient.norm()) + 16 * rounding
    if problem.loss == "mse":
        moments = reduced.T @ reduced / len(inputs)
        curvature = 2 / slopes.shape[1] * float(torch.linalg.eigvalsh(moments)[0])
        return (steepness / curvature if curvature > 0 else math.inf), curvature
    curvature = _softmax_curvature(problem, layers, reduced)
    # |third derivative| <= factor * second derivative along a line of unit speed
    factor = math.sqrt(2) * float(inputs.norm(dim=1).max())
    if steepness * factor >= curvature:
        return math.inf, curvature
    return -math.log1p(-steepness * factor / curvature) / factor, curvature


def _softmax_curvature(
    problem: LossFunction, layers: list[DenseLayer], reduced: Float64[Tensor, "n r"]
) -> float:
    """Return a lower bound of the curvature of cross-entropy, orthogonal to shifts of logits."""
    p = final_values(layers).softmax(1)
    mass = label_mass(problem, layers) / len(reduced)
    classes, size = p.shape[1], reduced.shape[1]
    if (classes - 1) * size > WHOLE:
        weights = (mass * p.min(1).values)[:, None]  # the least variance of a unit vector
        return float(torch.linalg.eigvalsh(reduced.T @ (weights * reduced))[0])
    basis = _without_shifts(classes)
    matrix = torch.zeros((classes - 1) * size, (classes - 1) * size, dtype=torch.float64)
    turned = p @ basis
    for part in torch.split(torch.arange(len(p)), 256):
        scores = torch.einsum("nc,ca,cb->nab", p[part], basis, basis)
        scores = scores - turned[part, :, None] * turned[part, None, :]
        matrix += torch.einsum(
            "n,nab,ni,nj->aibj", mass[part], scores, reduced[part], reduced[part]
        ).reshape(matrix.shape)
    values = torch.linalg.eigvalsh((matrix + matrix.T) / 2)
    return float(values[0]) - len(values) * EPSILON * float(values[-1])
