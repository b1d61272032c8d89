"""Arrays in the user's cache, each file with a checksum."""

import hashlib
import io
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from inscape.data.places import cache_dir
from inscape.files.atomic import written

Array = npt.NDArray[Any]


def cached_arrays(name: str, make: Callable[[], Mapping[str, Array]]) -> dict[str, Array]:
    """Return the arrays of a name from the cache, or compute and cache them if they are missing."""
    folder = cache_dir() / "boolean"
    cached = _read(folder / f"{name}.npz")
    if cached is not None:
        return cached
    arrays = {key: np.asarray(array) for key, array in make().items()}
    _write(folder / f"{name}.npz", arrays)
    return arrays


def _read(path: Path) -> dict[str, Array] | None:
    """Return the arrays of a file, or None if it is missing or its checksum does not match."""
    try:
        raw = path.read_bytes()
        checksum = path.with_suffix(".sha256").read_text(encoding="ascii").strip()
        if hashlib.sha256(raw).hexdigest() != checksum:
            return None
        with np.load(io.BytesIO(raw), allow_pickle=False) as arrays:
            return {key: arrays[key] for key in arrays.files}
    except (OSError, ValueError, zipfile.BadZipFile):
        return None


def _write(path: Path, arrays: Mapping[str, Array]) -> None:
    raw = io.BytesIO()
    save: Callable[..., None] = np.savez_compressed
    save(raw, **arrays)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with written(path) as file:
            file.write(raw.getvalue())
        with written(path.with_suffix(".sha256")) as file:
            file.write(hashlib.sha256(raw.getvalue()).hexdigest().encode())
    except OSError:  # the cache cannot be written: computed again next time
        return
