"""Data files: npz, npy, csv and pt, read without running anything in them."""

import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from zipfile import BadZipFile

from inscape.errors import DataError
from inscape.files.archives import read_npy, read_npz
from inscape.files.size_limits import check_size
from inscape.files.tensors import load_tensors
from inscape.loaders.arrays import Arrays, from_names, from_pair
from inscape.loaders.files import existing, globals_in, kind_of, phrase, short
from inscape.loaders.tables import read_table

SUFFIXES = (".npz", ".npy", ".csv", ".tsv", ".pt", ".pth")


def read_file(
    spec: str | Path,
    *,
    target: str | None,
    with_labels: bool,
    max_size: int | None = None,
    arguments: Sequence[str] = (),
) -> Arrays:
    """Return the arrays in a data file, chosen by its suffix.

    Args:
        spec: The path.
        target: Column of the label in a table.
        with_labels: Whether a table's last column is the label.
        max_size: Bytes that the file may unpack to; 2 GB or a quarter of memory if not given.
        arguments: Names that the model's forward has; arrays of these names are its inputs.
    """
    path = existing(spec, "data")
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise DataError(
            f"a data file must end in {', '.join(SUFFIXES)}, found {path.name}: save it as .npz "
            "with numpy.savez(FILE, x=x, y=y)."
        )
    if kind_of(path) == "empty":
        raise DataError(f"{path} must hold data, found an empty file: copy or save it again.")
    check_size(path, path.stat().st_size, max_size=max_size)
    if suffix in (".csv", ".tsv"):
        return read_table(path, target=target, with_labels=with_labels)
    if suffix in (".pt", ".pth"):
        return _read_torch(path, max_size=max_size, arguments=arguments)
    try:
        if suffix == ".npz":
            _refuse_other(path, "numpy archive")
            return from_names(read_npz(path, max_size=max_size), str(path), arguments)
        _refuse_other(path, "numpy array")
        return from_pair(read_npy(path, max_size=max_size))
    except BadZipFile as error:
        raise _unreadable(path, error) from error


def _read_torch(path: Path, *, max_size: int | None, arguments: Sequence[str]) -> Arrays:
    if kind_of(path) not in ("torch", "pickle"):
        _refuse_other(path, "torch")
    try:
        loaded = load_tensors(path, max_size=max_size)
    except pickle.UnpicklingError as error:
        wanted = ", ".join(map(repr, globals_in(path)[:3]))
        if not wanted:
            raise _unreadable(path, error) from error
        raise DataError(
            f"{path} must hold nothing but tensors, found a pickle that would run code "
            f"({wanted}): save them with torch.save((x, y), FILE)."
        ) from error
    except DataError:
        raise
    except Exception as error:  # a damaged pickle may raise nearly anything
        raise _unreadable(path, error) from error
    if isinstance(loaded, Mapping):
        named = {str(key): value for key, value in loaded.items()}
        return from_names(named, str(path), arguments)
    return from_pair(loaded)


def _refuse_other(path: Path, kind: str) -> None:
    if kind_of(path) != kind:
        raise DataError(
            f"{path} must be what its suffix says, found {phrase(path)}: copy or save it again."
        )


def _unreadable(path: Path, error: Exception) -> DataError:
    if "Object arrays" in str(error):
        return DataError(
            f"{path} must hold plain numbers, found an array of Python objects, which could run "
            "code: save numeric arrays, with examples of one length."
        )
    return DataError(
        f"{path} must be a whole file, found one that is damaged or truncated ({short(error)}): "
        "copy or save it again."
    )
