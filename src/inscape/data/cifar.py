"""The two formats of CIFAR-10: rows of bytes, and pickles, which a restricted reader opens."""

import io
import pickle
from typing import Any, TypeGuard

import numpy as np
from jaxtyping import UInt8

from inscape.errors import DataError

_PIXELS = 3 * 32 * 32

Batch = tuple[UInt8[np.ndarray, "n 3 32 32"], UInt8[np.ndarray, " n"]]


def read_binary(raw: bytes, name: str = "the file") -> Batch:
    """Return images and labels of a binary batch: one label byte, then three planes, per image."""
    if not raw or len(raw) % (_PIXELS + 1):
        raise DataError(
            f"{name} must hold complete images of {_PIXELS + 1} bytes, found {len(raw)} "
            "bytes: it is truncated or no CIFAR-10 batch; fetch it again."
        )
    rows = np.frombuffer(raw, np.uint8).reshape(-1, _PIXELS + 1)
    return _checked(rows[:, 1:], rows[:, 0], name)


def read_pickle(raw: bytes, name: str = "the file") -> Batch:
    """Return images and labels of a pickled batch; only arrays and plain values can come out.

    Pickles can run code. This reader builds numpy arrays, numbers, text, lists and dictionaries;
    a file that asks for anything else is refused before anything of it is called.
    """
    try:
        stored = _CifarUnpickler(io.BytesIO(raw), encoding="bytes").load()
    except DataError as error:
        raise DataError(f"{name} {error}") from error
    except Exception as error:  # a damaged pickle may raise nearly anything
        raise DataError(
            f"{name} must be a pickled CIFAR-10 batch, found a damaged file "
            f"({type(error).__name__}): fetch it again."
        ) from error
    fields = stored if isinstance(stored, dict) else {}
    data, labels = fields.get(b"data"), fields.get(b"labels")
    if not _are_images(data) or not _are_labels(labels, len(data)):
        raise DataError(
            f"{name} must hold uint8 data of shape (n, {_PIXELS}) and a list of n labels from 0 to "
            "9, found something else: it is no CIFAR-10 batch."
        )
    return _checked(data, np.array(labels, np.uint8), name)


class _CifarUnpickler(pickle.Unpickler):
    """An unpickler that knows only what those files hold."""

    def find_class(self, module: str, name: str) -> Any:
        """Return one of the four globals that a pickled array needs, refuse all others."""
        known = {
            ("numpy.core.multiarray", "_reconstruct"): _rebuild(),
            ("numpy._core.multiarray", "_reconstruct"): _rebuild(),
            ("numpy", "ndarray"): np.ndarray,
            ("numpy", "dtype"): np.dtype,
            ("_codecs", "encode"): _encode,
        }
        if (module, name) not in known:
            raise DataError(
                f"asks for {module}.{name}, which a CIFAR-10 batch does not need: "
                "it was refused and nothing was run; fetch the file again."
            )
        return known[module, name]


def _rebuild() -> Any:
    """Return numpy's own rebuilder of arrays, wherever this version keeps it."""
    return np.empty(0).__reduce__()[0]


def _encode(text: str, encoding: str = "latin1") -> bytes:
    """Turn text into bytes as newer pickles of bytes ask for; no other codec is let in."""
    if encoding not in ("latin1", "latin-1"):
        raise DataError(f"asks for the codec {encoding!r}, which a CIFAR-10 batch does not need.")
    return text.encode("latin1")


def _are_images(data: object) -> TypeGuard[UInt8[np.ndarray, "n p"]]:
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8:
        return False
    return data.ndim == 2 and data.shape[1] == _PIXELS


def _are_labels(labels: object, n: int) -> bool:
    return (
        isinstance(labels, list)
        and len(labels) == n
        and all(isinstance(label, int) and 0 <= label <= 9 for label in labels)
    )


def _checked(data: UInt8[np.ndarray, "n p"], labels: UInt8[np.ndarray, " n"], name: str) -> Batch:
    if len(labels) and labels.max() > 9:
        raise DataError(
            f"{name} must have labels from 0 to 9, found {labels.max()}: it is no CIFAR-10 batch."
        )
    return data.reshape(-1, 3, 32, 32), labels
