"""Inscape shows what function a neural network has learned.

Families are loaded when first used, so that ``import inscape`` stays quick:

>>> import inscape, torch
>>> f = torch.nn.Linear(3, 1, dtype=torch.float64).eval()
>>> x = torch.eye(3, dtype=torch.float64)
>>> norm = inscape.smoothness.gradient_norm(f, x).summary().value
>>> abs(norm - f.weight.norm().item()) < 1e-12
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inscape import (
        boolean,
        compression,
        controls,
        data,
        ensembles,
        extrapolation,
        figures,
        kernels,
        lab,
        landscape,
        loaders,
        models,
        pruning,
        regions,
        report,
        robustness,
        sensitivity,
        similarity,
        smoothness,
        spectra,
        training,
    )
    from inscape._core import Result, instruments, load
    from inscape.loaders import adapt
    from inscape.report.comparison.compare import compare
    from inscape.report.look.look import look
    from inscape.report.sweeps import sweep
    from inscape.training import record_training, watch

__version__ = "0.1.0"

__all__ = [
    "Result",
    "__version__",
    "adapt",
    "boolean",
    "compare",
    "compression",
    "controls",
    "data",
    "ensembles",
    "extrapolation",
    "figures",
    "instruments",
    "kernels",
    "lab",
    "landscape",
    "load",
    "loaders",
    "look",
    "models",
    "pruning",
    "record_training",
    "regions",
    "report",
    "robustness",
    "sensitivity",
    "similarity",
    "smoothness",
    "spectra",
    "sweep",
    "training",
    "watch",
]

_HOMES = {
    "Result": "inscape._core",
    "adapt": "inscape.loaders",
    "compare": "inscape.report",
    "instruments": "inscape._core",
    "load": "inscape._core",
    "look": "inscape.report",
    "record_training": "inscape.training",
    "sweep": "inscape.report",
    "watch": "inscape.training",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in __all__:
        return import_module(f"inscape.{name}")
    raise AttributeError(f"module 'inscape' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
