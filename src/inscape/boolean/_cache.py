"""What is found once and kept in the user's cache, with a checksum."""

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


def kept(name: str, make: Callable[[], Mapping[str, Array]]) -> dict[str, Array]:
    """Return the arrays of a name: from the cache if they are whole there, else made and kept."""
    folder = cache_dir() / "boolean"
    found = _read(folder / f"{name}.npz")
    if found is not None:
        return found
    made = {key: np.asarray(array) for key, array in make().items()}
    _write(folder / f"{name}.npz", made)
    return made


def _read(path: Path) -> dict[str, Array] | None:
    """Return what a file holds, or None where it is missing, broken or not what was written."""
    try:
        raw = path.read_bytes()
        said = path.with_suffix(".sha256").read_text(encoding="ascii").strip()
        if hashlib.sha256(raw).hexdigest() != said:
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
    except OSError:  # no place to keep it: it is found anew next time
        return
