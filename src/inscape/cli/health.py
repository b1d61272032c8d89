"""What is installed and what works here: the facts behind ``inscape doctor``."""

import os
import platform
import sys
from collections import Counter
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from inscape import __version__, index

Fact = dict[str, object]

#: So many stale records are named; the rest is counted.
NAMED = 5

#: What is said of records that carry no hash.
UNHASHED = "without a hash: a changed number would not be noticed"

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
    "video": "nothing yet; planned: animations saved as .mp4",
    "web": "nothing yet; planned: the explorer in a browser",
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
    for extra, found in sorted(by_extra.items()):
        there = all(package["state"] == "ok" for package in found)
        yield {
            "extra": extra,
            "state": "installed" if there else "not installed",
            "packages": [str(package["package"]) for package in found],
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
        found = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return {**fact, "found": None, "state": "missing"}
    fits = requirement.specifier.contains(found, prereleases=True)
    return {**fact, "found": found, "state": "ok" if fits else "wrong version"}


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


def folder(path: Path) -> Fact:
    """Return whether a folder is there, how much is in it and whether it can be written."""
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    nearest = next(parent for parent in (path, *path.parents) if parent.exists())
    return {
        "path": str(path),
        "exists": path.is_dir(),
        "bytes": size,
        "writable": nearest.is_dir() and os.access(nearest, os.W_OK),
    }


def datasets(data_dir: Path | None = None) -> Iterator[Fact]:
    """Yield each published data set: whether its files are here, whole, and where."""
    from inscape.data import catalogue, find

    for name in sorted({entry.files for entry in catalogue.ENTRIES if entry.files}):
        found = find(name, data_dir)
        good = {row.part for row in found if row.state == "ok"}
        parts = {row.part for row in found}
        bad = any(row.state == "bad" for row in found)
        state = "bad" if bad else "ok" if good == parts else "partial" if good else "missing"
        yield {
            "dataset": name,
            "state": state,
            "files": f"{len(good)} of {len(parts)}",
            "where": sorted({str(row.path.parent) for row in found if row.path is not None}),
            "to_do": _TO_DO[state].format(name),
        }


def records(root: Path) -> tuple[list[Fact], list[str]]:
    """Return the records of each experiment and scale, and a sentence about each damaged one.

    Those made under other claims than today's are named: a claim is not changed after its run.
    Those without a hash are counted, and those whose content does not match it are damaged. The
    store is left as it is.
    """
    from inscape.lab.staleness import stale
    from inscape.lab.store import Store

    store = Store(root, mends=False)
    counts = Counter((experiment, scale) for experiment, scale, _ in store.places())
    reasons: dict[tuple[str, str], dict[str, list[str]]] = {}
    for found in stale(store):
        place = reasons.setdefault((found.experiment, found.scale), {})
        place.setdefault(f"stale: {found.reason}", []).append(found.key)
    for (experiment, scale, key), problem in store.damaged.items():
        place = reasons.setdefault((experiment, scale), {})
        place.setdefault(f"damaged: {problem}", []).append(key)
    for experiment, scale, key in sorted(store.unhashed):
        place = reasons.setdefault((experiment, scale), {})
        place.setdefault(UNHASHED, []).append(key)
    facts: list[Fact] = []
    for (experiment, scale), count in sorted(counts.items()):
        odd = reasons.get((experiment, scale), {})
        state = "; ".join(_odd(reason, keys) for reason, keys in odd.items()) or "ok"
        facts.append({"experiment": experiment, "scale": scale, "records": count, "state": state})
    return facts, list(store.told())


def _odd(reason: str, keys: list[str]) -> str:
    """Say how many records have a fault, and which."""
    named = ", ".join(keys[:NAMED]) + (", ..." if len(keys) > NAMED else "")
    return f"{len(keys):,} {reason} ({named})"


_TO_DO = {
    "ok": "",
    "bad": "inscape data verify {}",
    "partial": "inscape data fetch {}",
    "missing": "inscape data fetch {}",
}
