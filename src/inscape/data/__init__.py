"""Data sets: made ones, embedded ones and published ones, each by name and with its hash.

Modules are imported when a name of them is first used, so that the catalogue needs no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inscape.data.balls import (
        ball_versus_sphere,
        circle_versus_annulus,
        half_plane,
        xor_circles,
    )
    from inscape.data.catalogue import describe, names
    from inscape.data.dataset import Dataset
    from inscape.data.embedded import digits, digits_binary
    from inscape.data.fetching import fetch
    from inscape.data.gp import gaussian_process, spread_order
    from inscape.data.images import cifar10, fashion_mnist, mnist, mnist_binary
    from inscape.data.loading import load
    from inscape.data.places import cache_dir
    from inscape.data.store import DataFile, find
    from inscape.data.toy import annulus, disc, noisy_sine

__all__ = [
    "DataFile",
    "Dataset",
    "annulus",
    "ball_versus_sphere",
    "cache_dir",
    "cifar10",
    "circle_versus_annulus",
    "describe",
    "digits",
    "digits_binary",
    "disc",
    "fashion_mnist",
    "fetch",
    "find",
    "gaussian_process",
    "half_plane",
    "load",
    "mnist",
    "mnist_binary",
    "names",
    "noisy_sine",
    "spread_order",
    "xor_circles",
]

_HOMES = {
    "balls": ("ball_versus_sphere", "circle_versus_annulus", "half_plane", "xor_circles"),
    "catalogue": ("describe", "names"),
    "dataset": ("Dataset",),
    "embedded": ("digits", "digits_binary"),
    "fetching": ("fetch",),
    "gp": ("gaussian_process", "spread_order"),
    "images": ("cifar10", "fashion_mnist", "mnist", "mnist_binary"),
    "loading": ("load",),
    "places": ("cache_dir",),
    "store": ("DataFile", "find"),
    "toy": ("annulus", "disc", "noisy_sine"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'inscape.data' has no attribute {name!r}")
    return getattr(import_module(f"inscape.data.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
