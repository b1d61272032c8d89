"""A call with a budget for every public function that has a ``memory`` argument."""

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

import inscape
from inscape.extrapolation import error_map
from inscape.kernels import PathWatch, tangent_features
from inscape.training import fit

#: Bytes of the small budget, and of one that is not felt.
BUDGET, LARGE = 16 * 2**20, 2**30

Budgeted = Callable[[int], Any]
smooth, maps, kernels = inscape.smoothness, inscape.regions, inscape.kernels
similarity = inscape.similarity


def dense(*widths: int) -> nn.Sequential:
    """Return a ReLU network in float32."""
    torch.manual_seed(0)
    layers = [nn.Linear(a, b) for a, b in itertools.pairwise(widths)]
    return nn.Sequential(*[m for layer in layers for m in (layer, nn.ReLU())][:-1]).eval()


def broad(inputs: int = 8, width: int = 2000, outputs: int = 2, depth: int = 4) -> nn.Sequential:
    """Return a network with many activations, few weights and little work."""
    torch.manual_seed(0)
    hidden = [nn.Tanh() for _ in range(depth)]
    return nn.Sequential(nn.Linear(inputs, width), *hidden, nn.Linear(width, outputs)).eval()


def drawn(*shape: int) -> Tensor:
    """Return Gaussian points."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


def labels(n: int) -> Tensor:
    """Return class numbers of two classes."""
    return torch.arange(n) % 2


def at_points(instrument: Callable[..., Any], **settings: Any) -> Callable[[], Budgeted]:
    """Return a call at many points of a broad network."""

    def case() -> Budgeted:
        net, x = broad(), drawn(2000, 8)
        return lambda m: instrument(net, x, memory=m, **settings)

    return case


def with_labels(instrument: Callable[..., Any], **settings: Any) -> Callable[[], Budgeted]:
    """Return a call that takes labels."""

    def case() -> Budgeted:
        net, x, y = broad(), drawn(2000, 8), labels(2000)
        return lambda m: instrument(net, x, y, memory=m, **settings)

    return case


def extrapolation() -> Budgeted:
    """Ask for errors at given queries."""
    net, x, y = broad(), drawn(2000, 8), labels(2000)
    settings = {"queries": x, "answers": y, "baselines": (), "known": 99}
    return lambda m: inscape.extrapolation.extrapolation(net, x, y, memory=m, **settings)


def map_of_errors() -> Budgeted:
    """Draw a map."""
    net = broad(inputs=2, width=4000, outputs=1, depth=3)
    return lambda m: error_map(net, lambda x: x[:, :1], size=50, memory=m)


def interpolation() -> Budgeted:
    """Go from one network to another."""
    net, other, x, y = broad(), broad(), drawn(2000, 8), labels(2000)
    at = torch.linspace(0, 1, 2)
    return lambda m: inscape.landscape.interpolation(net, x, y, other=other, at=at, memory=m)


def beside_another(
    instrument: Callable[..., Any], rows: int = 2000, width: int = 2000
) -> Callable[[], Budgeted]:
    """Return a call of an instrument of two networks."""

    def case() -> Budgeted:
        net, other, x = broad(width=width), broad(width=width), drawn(rows, 8)
        return lambda m: instrument(net, x, other=other, memory=m)

    return case


def of_curvature(name: str, **settings: Any) -> Callable[[], Budgeted]:
    """Return a call of an instrument of the loss, with few products."""

    def case() -> Budgeted:
        net, x, y = broad(inputs=2, width=1000), drawn(300, 2), labels(300)
        instrument = getattr(inscape.landscape, name)
        return lambda m: instrument(net, x, y, memory=m, **settings)

    return case


def on_lines(instrument: Callable[..., Any], **settings: Any) -> Callable[[], Budgeted]:
    """Return a call that cuts a short segment by a network with many units."""

    def case() -> Budgeted:
        torch.manual_seed(0)
        layers = [nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
        net, x = nn.Sequential(*layers, nn.Linear(16 * 196, 2)).eval(), drawn(1, 1, 28, 28)
        x = torch.cat([x, x + 1e-2 * drawn(2, 1, 28, 28)[1:]])
        return lambda m: instrument(net, x, memory=m, **settings)

    return case


def shared_regions() -> Budgeted:
    """Compare activation patterns of many units."""
    net, x = dense(8, 20_000, 2), drawn(400, 8)
    return lambda m: inscape.compression.region_sharing(net, x, memory=m)


def on_a_plane(instrument: Callable[..., Any]) -> Callable[[], Budgeted]:
    """Return a call that cuts a plane."""

    def case() -> Budgeted:
        net, x = dense(2, 300, 1), drawn(50, 2)
        return lambda m: instrument(net, x, memory=m)

    return case


def input_maps(cells: int) -> Callable[[], Budgeted]:
    """Return a call for the maps of cells in the whole input space."""

    def case() -> Budgeted:
        net, x = dense(400, 60, 10), drawn(3, 400)
        regions = maps.plane_regions(net, x)
        some = torch.arange(min(cells, regions.cells))
        return lambda m: regions.input_maps(net, some, memory=m)

    return case


def region_at(inputs: int, units: int) -> Callable[[], Budgeted]:
    """Return a call for the region of a point."""

    def case() -> Budgeted:
        net, x = dense(inputs, units, 1), drawn(3, inputs)
        return lambda m: maps.region_at(net, x, faces="all", facets=False, memory=m)

    return case


def grid_regions(method: str, grid: int) -> Callable[[], Budgeted]:
    """Return a call on a grid of points."""

    def case() -> Budgeted:
        net, x = (broad(width=40_000) if method == "jacobian" else dense(8, 60_000, 2)), drawn(9, 8)
        return lambda m: maps.grid_regions(net, x, grid=grid, method=method, memory=m)

    return case


def tangent_kernel() -> Budgeted:
    """Ask for a kernel."""
    net, x = broad(), drawn(800, 8)
    return lambda m: kernels.tangent_kernel(net, x, outputs="trace", memory=m)


def features(points: int) -> Callable[[], Budgeted]:
    """Return a call for gradients."""

    def case() -> Budgeted:
        net, x = broad(), drawn(points, 8)
        return lambda m: tangent_features(net, x, memory=m)

    return case


def neighbours() -> Budgeted:
    """Ask for neighbours."""
    net, x = broad(), drawn(700, 8)
    return lambda m: kernels.neighbours(net, x, memory=m)


def kernel_drift() -> Budgeted:
    """Follow a kernel along a training."""
    net, x, y = broad(), drawn(400, 8), drawn(400, 2)
    run = fit(net, x, y, lr=0.01, epochs=2, batch=200, record=1, progress=False)
    return lambda m: kernels.kernel_drift(net, x, trajectory=run.trajectory, memory=m)


def conv_spectrum() -> Budgeted:
    """Iterate both ends of the spectrum of a convolution on a long signal."""
    torch.manual_seed(0)
    net, x = nn.Sequential(nn.Conv1d(4, 4, 3, padding=1), nn.Flatten()).eval(), drawn(3, 4, 16_000)
    return lambda m: inscape.spectra.conv_spectrum(net, x, memory=m)


def path_kernel() -> Budgeted:
    """Split predictions after a training."""
    net, x, y = dense(32, 128, 2), drawn(300, 32), drawn(300, 2)
    settings = {"lr": 0.01, "epochs": 1, "batch": 150, "record": 1, "optimizer": "adam"}
    run = fit(net, x, y, progress=False, **settings)
    more = {"trajectory": run.trajectory, "queries": x}
    return lambda m: kernels.path_kernel(net, x, y, memory=m, **more)


def path_watch() -> Budgeted:
    """Split predictions while a training runs."""
    x, y = drawn(100, 32), drawn(100, 2)

    def call(memory: int) -> Any:
        watch = PathWatch(x, memory=memory)
        net = dense(32, 512, 2)
        fit(net, x, y, lr=0.01, epochs=1, batch=50, watch=watch, progress=False)
        return watch.result()

    return call


CASES: dict[str, Callable[[], Budgeted]] = {
    "gradient_norm": at_points(smooth.gradient_norm),
    "path_length": at_points(smooth.path_length, pairs=20),
    "path_length, exact": on_lines(smooth.path_length, pairs=2, exact=True),
    "gradient_path_length": at_points(smooth.gradient_path_length, pairs=20),
    "gradient_path_length, exact": on_lines(smooth.gradient_path_length, pairs=2, exact=True),
    "gradient_deflection": at_points(smooth.gradient_deflection, pairs=20),
    "rugosity": at_points(smooth.rugosity, points=500),
    "effective_length_scale": at_points(smooth.effective_length_scale, lines=30, resamples=9),
    "extrapolation": extrapolation,
    "error_map": map_of_errors,
    "robustness": with_labels(
        inscape.robustness.robustness, attack="fgsm", points=2000, budgets=[0.5], sanity=False
    ),
    "lipschitz": at_points(inscape.controls.lipschitz, points=300),
    "conv_spectrum": conv_spectrum,
    "fisher_rao_norm": with_labels(inscape.spectra.fisher_rao_norm),
    "interpolation": interpolation,
    "hessian_extremes": of_curvature("hessian_extremes", products=3),
    "hessian_trace": of_curvature("hessian_trace", products=6),
    "hessian_density": of_curvature("hessian_density", probes=2, steps=2),
    "sharpness": of_curvature("sharpness", products=3),
    "stationarity": of_curvature("stationarity"),
    "local_minimum": of_curvature("local_minimum", products=3),
    "loss_surface": of_curvature("loss_surface", products=3, grid=3),
    "map_compression": at_points(inscape.compression.map_compression, clusters=[1]),
    "region_sharing": shared_regions,
    "active_subspace": at_points(
        inscape.sensitivity.active_subspace, points=1300, count=2, resamples=0
    ),
    "saliency": at_points(inscape.sensitivity.saliency, points=2, steps=400),
    "disagreement": beside_another(similarity.disagreement),
    "output_cross_entropy": beside_another(similarity.output_cross_entropy),
    "map_distance": beside_another(similarity.map_distance, rows=400),
    "map_alignment": beside_another(similarity.map_alignment, rows=400),
    "map_transfer": beside_another(similarity.map_transfer, rows=400),
    "layer_alignment": beside_another(similarity.layer_alignment, rows=400),
    "mutual_neighbours": beside_another(similarity.mutual_neighbours, width=20),
    "local_maps": at_points(maps.local_maps, points=800, patterns=False),
    "local_maps, patterns": at_points(maps.local_maps, points=800, patterns=True),
    "grid_regions": grid_regions("jacobian", 14),
    "grid_regions, pattern": grid_regions("pattern", 24),
    "line_regions": on_lines(maps.line_regions),
    "line_regions, gradients": on_lines(maps.line_regions, gradients=True),
    "line_regions, maps": on_lines(maps.line_regions, maps=True),
    "plane_regions": on_a_plane(maps.plane_regions),
    "boundary": on_a_plane(maps.boundary),
    "input_maps": input_maps(10_000),
    "region_at": region_at(300, 1000),
    "tangent_kernel": tangent_kernel,
    "tangent_features": features(200),
    "neighbours": neighbours,
    "kernel_drift": kernel_drift,
    "path_kernel": path_kernel,
    "PathWatch": path_watch,
}

#: Calls of functions that refuse what does not fit, of which all just fits.
FITTING: dict[str, Callable[[], Budgeted]] = {
    "input_maps, fits": input_maps(400),
    "region_at, fits": region_at(100, 600),
    "tangent_features, fits": features(80),
}
