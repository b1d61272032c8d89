"""The npz files of keras: four arrays in a zip archive, read without pickle."""

from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from inscape.errors import DataError
from inscape.files.archives import member_names
from inscape.files.archives import read_npz as read_arrays

_KEYS = {
    "train-images": "x_train",
    "train-labels": "y_train",
    "test-images": "x_test",
    "test-labels": "y_test",
}


def read_npz(path: Path, part: str) -> NDArray[np.uint8]:
    """Return one of the four parts (``train-images``, ...) of a keras file."""
    key = _KEYS[part]
    try:
        arrays = read_arrays(path, only=key)
    except BadZipFile as error:
        raise DataError(
            f"{path} must be an npz file of plain arrays, found something else "
            f"({type(error).__name__}: {error}): fetch it again."
        ) from error
    if key not in arrays:
        members = [name.removesuffix(".npy") for name in member_names(path)]
        raise DataError(
            f"{path} must hold x_train, y_train, x_test and y_test, found "
            f"{', '.join(members) or 'nothing'}: it is no keras file of images."
        )
    array = arrays[key]
    if array.dtype != np.uint8:
        raise DataError(
            f"{key} in {path} must be uint8, found {array.dtype}: "
            "keep the published file, not a converted one."
        )
    return array
