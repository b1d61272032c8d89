"""Packages, extras and devices of this installation, and how many instruments there are."""

import os
import platform
import sys
from collections import Counter
from collections.abc import Iterator
from importlib import metadata

from inscape import __version__, index

Fact = dict[str, object]

#: Extras for those who work on Inscape itself.
FOR_DEVELOPERS = {"bench", "dev", "docs", "test", "zoo"}

#: What each extra gives to a user.
BRINGS = {
    "huggingface": "models from folders of Hugging Face: inscape look --model FOLDER",
    "keras": "Keras files compared with Keras, and opened by it with --trust",
    "onnx": "models from .onnx files: inscape look --model net.onnx",
    "parquet": "results saved as .parquet",
    "ray": "experiments on a Ray cluster: inscape reproduce --executor ray",
    "slurm": "experiments on a Slurm cluster: inscape reproduce --executor slurm",
    "symbolic": "stationary points of tiny networks: inscape.boolean.stationary",
    "video": "moving pictures as .mp4: inscape.figures.animation.animate",
    "web": "the explorer in a browser: inscape explore",
}


def system() -> Fact:
    """Return versions of Inscape, Python and the machine."""
    return {
        "inscape": __version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "environment": sys.prefix,
    }


def packages() -> Iterator[Fact]:
    """Yield each package that Inscape needs: the wanted and the found version."""
    for requirement, extra in _requirements():
        if extra is None:
            yield _package(requirement)


def extras() -> Iterator[Fact]:
    """Yield each extra of the installed package: whether it is there and what it brings."""
    by_extra: dict[str, list[Fact]] = {}
    for requirement, extra in _requirements():
        if extra is not None and extra not in FOR_DEVELOPERS:
            by_extra.setdefault(extra, []).append(_package(requirement))
    for extra, packages in sorted(by_extra.items()):
        complete = all(package["state"] == "ok" for package in packages)
        yield {
            "extra": extra,
            "state": "installed" if complete else "not installed",
            "packages": [str(package["package"]) for package in packages],
            "brings": BRINGS.get(extra, ""),
        }


def _requirements() -> Iterator[tuple[str, str | None]]:
    """Yield the requirements of the installed package, each with the extra that it belongs to."""
    from packaging.requirements import Requirement

    names = metadata.metadata("inscape").get_all("Provides-Extra") or []
    for line in metadata.requires("inscape") or []:
        marker = Requirement(line).marker
        if marker is None or marker.evaluate({"extra": ""}):
            yield line, None
            continue
        yield from ((line, name) for name in names if marker.evaluate({"extra": name}))


def _package(line: str) -> Fact:
    from packaging.requirements import Requirement

    requirement = Requirement(line)
    fact: Fact = {"package": requirement.name, "needs": str(requirement.specifier)}
    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return {**fact, "found": None, "state": "missing"}
    fits = requirement.specifier.contains(version, prereleases=True)
    return {**fact, "found": version, "state": "ok" if fits else "wrong version"}


def devices() -> Fact:
    """Return what torch can compute on, or why it cannot be loaded."""
    fact: Fact = {"cores": len(os.sched_getaffinity(0)) if sys.platform == "linux" else None}
    fact["cores"] = fact["cores"] or os.cpu_count()
    try:
        import torch
    except (ImportError, OSError) as error:
        return {**fact, "state": f"torch cannot be loaded: {error}"}
    cuda = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return {
        **fact,
        "threads": torch.get_num_threads(),
        "cpu": True,
        "cuda": cuda if torch.cuda.is_available() else False,
        "mps": torch.backends.mps.is_available(),
        "state": "ok",
    }


def instruments() -> Fact:
    """Return how many instruments each family has."""
    return dict(Counter(entry.family for entry in index.entries()))
