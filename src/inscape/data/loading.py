"""A data set by its name, as Python and the command line ask for it."""

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from inscape.data.catalogue import CatalogueEntry, Value, convert, parse
from inscape.data.dataset import Dataset
from inscape.errors import DataError


def load(
    name: str,
    *,
    data_dir: str | Path | None = None,
    download: bool = False,
    stand_in: bool = False,
    **settings: Any,
) -> Dataset:
    """Return a data set of the catalogue, with settings in the name, as keywords or both.

    >>> load("disc:n=512,seed=1")
    Dataset(disc: 512 x 2 -> 1 real, 1280 test examples)
    >>> load("gp", n=5, seed=3).subset(2).x.tolist()
    [[-1.0], [1.0]]

    Args:
        name: ``NAME`` or ``NAME:key=value,...``; a pair of digits is written ``mnist-binary:4-9``.
        data_dir: Where to look for files first; INSCAPE_DATA_DIR if not given, then the cache.
        download: Fetch files that are missing.
        stand_in: Let scikit-learn's digits stand in where MNIST's files cannot be had; the notes of
            the result then say so.
        settings: Settings of the data set; text is read as the command line's would be.
    """
    entry, options = parse(name)
    for key, value in settings.items():
        if key in options:
            raise ValueError(f"{key} is given in {name!r} and again as {key}={value!r}: keep one.")
        options[key] = convert(entry, key, _dtype_name(value))
    lacking = [key for key in entry.needs if key not in options]
    if lacking:
        raise ValueError(
            f"{entry.name} needs {' and '.join(lacking)}: write e.g. {entry.name}:4-9."
        )
    files = {"data_dir": data_dir, "download": download} if entry.files else {}
    try:
        return maker(entry)(**_typed(options), **files)
    except DataError:
        if not (stand_in and entry.stand_in):
            raise
        return _stand_in(entry, options)


def maker(entry: CatalogueEntry) -> Callable[..., Dataset]:
    """Return the function that makes a data set."""
    module, _, function = entry.maker.partition(":")
    make: Callable[..., Dataset] = getattr(import_module(f"inscape.data.{module}"), function)
    return make


def _stand_in(entry: CatalogueEntry, options: dict[str, Any]) -> Dataset:
    """Return the embedded set with the same settings, and a note that it is another one."""
    samples = options.pop("n", None)
    data = load(entry.stand_in, **options)
    if isinstance(samples, int):
        data = data.subset(min(samples, len(data.x)))
    reason = f"its files are missing or bad (run 'inscape data fetch {entry.files}')"
    return replace(data, notes=(f"stands in for {entry.name}: {reason}", *data.notes))


def _dtype_name(value: Any) -> Any:
    return str(value).removeprefix("torch.") if isinstance(value, torch.dtype) else value


def _typed(settings: dict[str, Value]) -> dict[str, Any]:
    """Turn the name of a dtype into the dtype."""
    name = settings.get("dtype", "float32")
    dtype = getattr(torch, str(name), None)
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"dtype must be float32 or float64, found {name!r}: choose one of them.")
    return {**settings, "dtype": dtype}
