"""Models from Keras files (.keras, .h5): read here, layer by layer, without Keras."""

import json
import tempfile
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from torch import nn

from inscape.errors import UnsupportedModelError
from inscape.files.archives import opened_zip, read_member
from inscape.files.size_limits import check_size
from inscape.loaders.files import short
from inscape.loaders.keras.comparison import compared, loaded_by_keras
from inscape.loaders.keras.config import Model, read_config
from inscape.loaders.keras.hdf5 import SIGNATURE, File
from inscape.loaders.keras.network import KNOWN, KerasNetwork
from inscape.loaders.keras.weights import Table, from_archive, from_groups

__all__ = ["KerasNetwork", "is_keras", "open_keras", "opened_from_memory"]

_MEMBERS = ("config.json", "metadata.json", "model.weights.h5")
#: Bytes of a description: Python takes some 16 times as many.
_LONGEST = 50_000_000


def open_keras(
    path: Path, *, trust: bool, max_size: int | None = None
) -> tuple[nn.Module, tuple[str, ...]]:
    """Return the network of a file, and what there is to say about it.

    A file with other layers than the known ones is left to Keras, with its code, if ``trust`` is
    set.
    """
    try:
        text, model, table = _read(path, max_size)
        network = _built(path, model, table)
    except UnsupportedModelError as error:
        if not trust:
            raise
        return loaded_by_keras(path, str(error))
    return network, compared(network, text, table)


def is_keras(candidate: object) -> bool:
    """Tell a model of Keras in memory, without importing Keras."""
    homes = {kind.__module__.partition(".")[0] for kind in type(candidate).__mro__}
    return "keras" in homes and callable(getattr(candidate, "save", None))


def opened_from_memory(candidate: Any) -> tuple[nn.Module, tuple[str, ...]]:
    """Return a model of Keras as a plain module with its own weights, and notes.

    Keras itself computes in the one precision that it was made in, and copies of its models are in
    training mode. A model with layers that are not known here is taken as it is, if it is a module.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.keras"
        candidate.save(path)
        try:
            network, notes = open_keras(path, trust=False)
        except UnsupportedModelError as error:
            if not isinstance(candidate, nn.Module):
                raise
            return candidate, (f"computed by Keras itself, in its own precision ({error})",)
    return network, ("Keras's layers as PyTorch's, with a copy of their weights", *notes)


def _built(path: Path, model: Model, table: Table) -> KerasNetwork:
    try:
        return KerasNetwork(model, table)
    except UnsupportedModelError:
        raise
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RuntimeError,
        TypeError,
        ValueError,
    ) as error:
        raise UnsupportedModelError(
            f"{path} must describe layers as Keras does, found settings or weights that raised "
            f"{short(error)[:200]}: save the model again."
        ) from error


def _read(path: Path, max_size: int | None) -> tuple[str, Model, Table]:
    """Return the description of a model as text and as read, and its weights."""
    check_size(path, path.stat().st_size, max_size=max_size)
    with path.open("rb") as file:
        start = file.read(8)
    if start == SIGNATURE:
        root = File(path.read_bytes(), path, max_size=max_size).root
        text = root.attributes.get("model_config")
        if not isinstance(text, str):
            raise _no_architecture(path)
        model = _described(text, path, str(root.attributes.get("keras_version", "")))
        return text, model, from_groups(model, root)
    members = _members(path, max_size)
    if "config.json" not in members or "model.weights.h5" not in members:
        raise _no_architecture(path)
    text = members["config.json"].decode("utf-8", "replace")
    model = _described(text, path, _version(members))
    root = File(members["model.weights.h5"], path, max_size=max_size).root
    return text, model, from_archive(model, root)


def _described(text: str, path: Path, version: str) -> Model:
    if len(text) > _LONGEST:
        raise UnsupportedModelError(
            f"{path} must describe its layers in at most {_LONGEST:,} letters, found {len(text):,}"
        )
    return read_config(text, path, KNOWN, keras_2=version.startswith(("1.", "2.")))


def _version(members: dict[str, bytes]) -> str:
    try:
        metadata: Any = json.loads(members.get("metadata.json", b"{}")[:10_000])
    except (ValueError, RecursionError):
        return ""
    return str(metadata.get("keras_version", "")) if isinstance(metadata, dict) else ""


def _members(path: Path, max_size: int | None) -> dict[str, bytes]:
    try:
        with opened_zip(path, max_size=max_size) as archive:
            names = archive.namelist()
            if len(set(names)) != len(names):
                raise ValueError("it holds two members of one name")
            return {name: read_member(archive, name) for name in _MEMBERS if name in names}
    except BadZipFile as error:
        raise ValueError(
            f"{path} must be a whole Keras file (.keras or .h5), found one that cannot be read "
            f"({error}): copy it again or save it anew with model.save('model.keras')."
        ) from error


def _no_architecture(path: Path) -> UnsupportedModelError:
    return UnsupportedModelError(
        f"{path} must hold a whole Keras model, found no description of its layers (weights "
        "alone?): save it with model.save('model.keras')."
    )
