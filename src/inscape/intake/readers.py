"""Data files: npz, npy, csv and pt, read without running anything in them."""

import pickle
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from inscape._core.errors import DataError
from inscape.intake.arrays import Arrays, from_names, from_pair
from inscape.intake.files import existing, globals_in, kind_of, phrase, short
from inscape.intake.tables import read_table

SUFFIXES = (".npz", ".npy", ".csv", ".tsv", ".pt", ".pth")

_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError)


def read_file(spec: str | Path, *, target: str | None, with_labels: bool) -> Arrays:
    """Return the arrays in a data file, chosen by its suffix."""
    path = existing(spec, "data")
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise DataError(
            f"a data file must end in {', '.join(SUFFIXES)}, found {path.name}: save it as .npz "
            "with numpy.savez(FILE, x=x, y=y)."
        )
    if kind_of(path) == "empty":
        raise DataError(f"{path} must hold data, found an empty file: copy or save it again.")
    if suffix in (".csv", ".tsv"):
        return read_table(path, target=target, with_labels=with_labels)
    if suffix in (".pt", ".pth"):
        return _read_torch(path)
    return _read_npz(path) if suffix == ".npz" else _read_npy(path)


def _read_npz(path: Path) -> Arrays:
    _refuse_other(path, "numpy archive")
    try:
        with np.load(path, allow_pickle=False) as archive:
            found = {name: archive[name] for name in archive.files}
    except _BROKEN as error:
        raise _unreadable(path, error) from error
    return from_names(found, str(path))


def _read_npy(path: Path) -> Arrays:
    _refuse_other(path, "numpy array")
    try:
        return Arrays(x=np.load(path, allow_pickle=False))
    except _BROKEN as error:
        raise _unreadable(path, error) from error


def _read_torch(path: Path) -> Arrays:
    if kind_of(path) not in ("torch", "pickle"):
        _refuse_other(path, "torch")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the pickle's protocol
            found: Any = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        wanted = ", ".join(map(repr, globals_in(path)[:3]))
        if not wanted:
            raise _unreadable(path, error) from error
        raise DataError(
            f"{path} must hold nothing but tensors, found a pickle that would run code "
            f"({wanted}): save them with torch.save((x, y), FILE)."
        ) from error
    except (RuntimeError, *_BROKEN) as error:
        raise _unreadable(path, error) from error
    if isinstance(found, Mapping):
        return from_names({str(key): value for key, value in found.items()}, str(path))
    return from_pair(found)


def _refuse_other(path: Path, kind: str) -> None:
    if kind_of(path) != kind:
        raise DataError(
            f"{path} must be what its suffix says, found {phrase(path)}: copy or save it again."
        )


def _unreadable(path: Path, error: Exception) -> DataError:
    if "Object arrays" in str(error):
        return DataError(
            f"{path} must hold plain numbers, found an array of Python objects, which could run "
            "code: save numeric arrays, with rows of one length."
        )
    return DataError(
        f"{path} must be a whole file, found one that is damaged or truncated ({short(error)}): "
        "copy or save it again."
    )
