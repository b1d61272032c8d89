"""Random settings: for each instrument small legal ones, and now and then an illegal one."""

import math
from random import Random
from typing import Any

import numpy as np

from fuzz import networks
from fuzz.networks import Builder

#: Networks that an instrument is made for; plain ones for all others.
SUITED: dict[str, list[Builder]] = {
    "boolean_function": [networks.boolean],
    "channel_pruning": [networks.convolution],
    "node_pruning": [networks.prunable],
    "exhaustive_pruning": [networks.prunable],
    "boundary": [networks.planar],
    "closed_regions": [networks.simplex],
    "line_regions": [networks.planar, networks.kinked],
    "plane_regions": [networks.planar],
    "grid_regions": [networks.planar],
    "region_at": [networks.planar, networks.kinked],
    "region_bounds": [networks.kinked],
    "region_evolution": [networks.planar],
    "slice_difference": [networks.planar],
    "tropical": [networks.kinked],
    "robustness": [networks.classifier],
    "slope_variation": [networks.one_input],
    "total_variation": [networks.one_input],
    "weights_product": [networks.two_layer],
    "spectral_norm": [networks.chain],
    "kernel_drift": [networks.hidden],
    "path_kernel": [networks.hidden],
}
PLANAR = frozenset({"one row", "two rows", "equal rows", "expanded", "zeros", "denormal"})
#: Kinds of data that an instrument must refuse, or that say nothing: drawn one time in five.
UNSUITED: dict[str, frozenset[str]] = {
    **dict.fromkeys(("boundary", "plane_regions", "grid_regions", "region_evolution",
                     "slice_difference"),
                    PLANAR | {"first rows equal", "lattice"}),
    "line_regions": PLANAR | {"first rows equal", "lattice"},
    "extrapolation": PLANAR,
    "rugosity": PLANAR - {"two rows"},
    "effective_length_scale": PLANAR - {"two rows"},
    "neighbours": frozenset({"one row", "two rows"}),
    "slope_variation": PLANAR - {"two rows"},
    "total_variation": PLANAR - {"two rows"},
}  # fmt: skip
#: Instruments whose export costs so much that few networks are used again and again.
FEW = 12
MANY = 150

#: Points that an instrument needs at least; fewer are drawn one time in five.
FEWEST = {"extrapolation": 4, "neighbours": 4, "map_alignment": 4, "map_transfer": 4,
          "layer_alignment": 4, "procrustes_distance": 2, "canonical_correlation": 3,
          "mutual_neighbours": 3}  # fmt: skip

SEEDS = [0, 1, 7, 12345, 2**31, np.int64(3)]
BAD_SEEDS = [-1, 1.5, math.nan, "0", None, 2**70, [1]]
BAD_COUNTS = [0, -3, 2.5, math.nan, math.inf, "4", None, [3]]

Choices = dict[str, list[Any]]
CHORDS: Choices = {"pairs": [1, 2, 5], "knots": [2, 3, 6]}
MEMORY: Choices = {"memory": [1, 4096, 2**20]}
SEED: Choices = {"seed": SEEDS}
POINTS: Choices = {"points": [1, 3, 1000]}

LEGAL: dict[str, Choices] = {
    "boolean_function": {"level": [0.0, 0.5, -1.0]},
    "lipschitz": {"points": [1, 3], **SEED},
    "extrapolation": {"points": [5, 500], "folds": [2, 3], "known": [5, 2000], **SEED},
    "kernel_drift": {"outputs": ["full", "diagonal", "trace"], "normalised": [False, True]},
    "neighbours": {"count": [1, 2, 3]},
    "path_kernel": {"mode": ["exact", "first-order"]},
    "tangent_kernel": {"outputs": ["full", "diagonal", "trace"], "normalised": [False, True]},
    "interpolation": {"loss": [None, "mse"]},
    "hessian_trace": {"matrix": ["hessian", "gauss_newton"], "products": [9, 60], **SEED},
    "hessian_density": {
        "matrix": ["hessian", "gauss_newton"], "probes": [1, 3], "steps": [2, 9], **SEED,
    },
    "sharpness": {"products": [4, 200], "tolerance": [1e-3, 1e-6], **SEED},
    "local_minimum": {
        "dense": [0, 200], "products": [5, 20], "tolerance": [1e-6, 1e-3], **SEED,
    },
    "stationarity": {"lr": [0.1, 1e-3]},
    "loss_surface": {
        "grid": [3, 4], "reach": [1.0, 0.1], "products": [5, 20],
        "statistics": ["kept", "kept", "recomputed"], **SEED,
    },
    "hessian_extremes": {
        "matrix": ["hessian", "gauss_newton"], "products": [5, 40], "dense": [0, 200],
        "tolerance": [1e-3, 1e-6], **SEED,
    },
    "channel_pruning": {"steps": [1, 2], **SEED},
    "exhaustive_pruning": {"slack": [0.0, 0.01, 0.2], **SEED},
    "magnitude_pruning": {
        "fraction": [0.2, 0.5], "steps": [1, 3], "scope": ["global", "layer"], **SEED,
    },
    "node_pruning": {"steps": [1, 2, None], **SEED},
    "boundary": {"level": [0.0]},
    "closed_regions": {"level": [0.0, 0.3, -0.5]},
    "grid_regions": {
        "grid": [2, 5], "method": ["jacobian", "pattern"], "neighbours": ["4", "8", "row"],
        "intercepts": [True, False],
    },
    "line_regions": {"pairs": [None, 1, 4], "gradients": [False, True], **SEED},
    "local_maps": {**POINTS, "patterns": [False, False, True], **SEED},
    "plane_regions": {},
    "region_at": {"index": [0], "faces": ["irredundant", "all"]},
    "region_bounds": {"dimension": [None, 1]},
    "region_evolution": {"grid": [4, 8]},
    "tropical": {"terms": [50, 5000]},
    "robustness": {
        "attack": ["noise", "fgsm", "pgd"], "norm": ["l2", "linf"], "points": [3, 200],
        "budgets": [[0.1, 0.5], [0.3], None], "sanity": [False, False, True], **SEED,
    },
    "effective_length_scale": {
        "lines": [2, 6], "knots": [2, 5], "process": [False], "resamples": [5], **SEED,
    },
    "gradient_deflection": {**CHORDS, **MEMORY, **SEED},
    "gradient_norm": {**POINTS, **MEMORY, **SEED},
    "gradient_path_length": {**CHORDS, "exact": [False, False, True], **SEED},
    "path_length": {**CHORDS, "exact": [False, False, True], **SEED},
    "rugosity": {**POINTS, "directions": [1, 3], "step": [0.1, 1.0], **SEED},
    "slope_variation": {"knots": [51], "low": [None, -1.0], "high": [None, 2.0]},
    "total_variation": {"knots": [51], "low": [None, -1.0], "high": [None, 2.0]},
    "weights_product": {},
    "distance_from_init": {},
    "fisher_rao_norm": {
        **POINTS, "labels": ["data", "model"], "loss": ["auto", "auto", "squared_error"], **SEED,
    },
    "spectral_norm": {},
    "conv_spectrum": {"steps": [2, 60], **SEED},
    "parameter_norm": {"order": [1, 2]},
    "effective_rank": {"padding": ["circular", "own"]},
    "active_subspace": {
        "outputs": [None, None, [0]], "count": [1, 3], "points": [2, 50], "resamples": [0, 5],
        "method": ["auto", "exact", "randomised"], "room": [1, 2**20], **MEMORY, **SEED,
    },
    "saliency": {
        "output": [None, None, 0], "steps": [3, 16], "pieces": [2, 4000], "points": [1, 3, 50],
        **MEMORY, **SEED,
    },
    "disagreement": {"level": [0.0], **MEMORY},
    "output_cross_entropy": {**MEMORY},
    "map_distance": {"scale": ["signed", "absolute"], **MEMORY},
    "map_alignment": {"centred": [True, True, False], **MEMORY},
    "map_transfer": {"ridge": [0.0, 0.1], **MEMORY},
    "slice_difference": {},
    "layer_alignment": {"kernel": ["linear", "linear", "rbf"], "bandwidth": [0.5, 1.0], **MEMORY},
    "procrustes_distance": {"permuted": [1, 3], **SEED},
    "canonical_correlation": {"variance": [1.0, 0.9], "permuted": [1, 3], **SEED},
    "mutual_neighbours": {"count": [1, 2], "metric": ["euclidean", "cosine"], **MEMORY},
}  # fmt: skip

#: Settings that are drawn at every call, since the defaults would take too long.
ALWAYS = ("pairs", "knots", "lines", "resamples", "process", "grid", "directions", "steps",
          "count", "folds")  # fmt: skip


def settings(draw: Random, instrument: str) -> dict[str, Any]:
    """Return legal settings of an instrument: some of them, the others left at their defaults."""
    choices = LEGAL[instrument]
    return {
        name: draw.choice(values)
        for name, values in choices.items()
        if name in ALWAYS or draw.random() < 0.6
    }


def illegal(draw: Random, instrument: str) -> tuple[str, dict[str, Any]]:
    """Return one illegal setting and its kind; none where an instrument has no such setting."""
    names = [name for name, values in LEGAL[instrument].items() if name != "budgets"]
    if not names:
        return "", {}
    name = draw.choice(names)
    if name == "seed":
        return "bad seed", {name: draw.choice(BAD_SEEDS)}
    values = [value for value in LEGAL[instrument][name] if value is not None]
    if isinstance(values[0], str):
        return "bad choice", {name: draw.choice(["none of these", 3, math.nan])}
    if isinstance(values[0], bool):
        return "", {}
    if isinstance(values[0], int):
        bad = [value for value in BAD_COUNTS if value not in LEGAL[instrument][name]]
        return "bad count", {name: draw.choice(bad)}
    return "bad number", {name: draw.choice([math.nan, math.inf, "1", [1.0]])}
