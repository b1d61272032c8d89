"""The weights of a Keras file, by layer, in the order in which Keras creates them."""

import re
from collections.abc import Mapping
from typing import Any

from inscape.errors import UnsupportedModelError
from inscape.loaders.keras.config import KerasLayer, Model
from inscape.loaders.keras.hdf5 import Hdf5Group
from inscape.loaders.keras.layers_dense import Array

Table = dict[str, Any]

#: Where the layers of a model stand in a ``.keras`` file, of Keras 3 and of Keras 2.
_FOLDERS = ("layers", "_layer_checkpoint_dependencies")
#: Parts of a layer that have variables of their own, in the order of Keras.
_PARTS = {
    "Bidirectional": ("forward_layer/cell", "backward_layer/cell"),
    "MultiHeadAttention": tuple(
        f"{sign}{part}_dense" for sign in ("", "_") for part in ("query", "key", "value", "output")
    ),
    **dict.fromkeys(("GRU", "LSTM", "SimpleRNN"), ("cell",)),
}


def from_archive(model: Model, root: Hdf5Group) -> Table:
    """Return the weights of the layers in the HDF5 file of a ``.keras`` archive."""
    folder = next((name for name in _FOLDERS if name in root), None)
    if folder is None:
        return {}
    groups = root.group(folder)
    table: Table = {}
    used: dict[str, int] = {}
    for layer in model.layers:
        name = _snake_case(layer.kind)
        used[name] = used.get(name, -1) + 1
        name = f"{name}_{used[name]}" if used[name] else name
        if name in groups:
            table[layer.name] = _of_layer(layer, groups.group(name))
    return table


def _of_layer(layer: KerasLayer, group: Hdf5Group) -> Any:
    if isinstance(layer.inner, Model):
        return from_archive(layer.inner, group)
    if layer.kind == "TimeDistributed" and isinstance(layer.inner, KerasLayer):
        return _of_layer(layer.inner, group.group("layer"))
    places = ["", *_PARTS.get(layer.kind, ())]
    return [array for place in places for array in _variables(group, place)]


def _variables(group: Hdf5Group, place: str) -> list[Array]:
    """Return the variables of a layer or of a part of it, in order."""
    for name in filter(None, place.split("/")):
        if name not in group:
            return []
        group = group.group(name)
    if "vars" not in group:
        return []
    inner = group.group("vars")
    return [inner.array(name) for name in sorted(inner, key=_number)]


def _number(name: str) -> tuple[int, str]:
    return (int(name) if name.isdecimal() else -1, name)


def from_groups(model: Model, root: Hdf5Group) -> Table:
    """Return the weights of the layers in an ``.h5`` file."""
    if "model_weights" not in root:
        raise UnsupportedModelError("a Keras file must hold model_weights, found none in it")
    groups = root.group("model_weights")
    return {
        layer.name: _of_group(layer, groups.group(layer.name))
        for layer in model.layers
        if layer.name in groups
    }


def _of_group(layer: KerasLayer, group: Hdf5Group) -> Any:
    named = [(name, group.array(name)) for name in _names(group, "weight_names")]
    if not isinstance(layer.inner, Model):
        return [array for _, array in named]
    return _by_layer(layer.inner, named)


def _by_layer(model: Model, named: list[tuple[str, Array]]) -> Table:
    """Return the weights of a model inside another, sorted by the layers that their names name."""
    table: Table = {}
    for layer in model.layers:
        own = [(name, array) for name, array in named if layer.name in name.split("/")[:-1]]
        if isinstance(layer.inner, Model):
            table[layer.name] = _by_layer(layer.inner, own)
        else:
            table[layer.name] = [array for _, array in own]
    return table


def _names(group: Hdf5Group, key: str) -> list[str]:
    """Return a list of names, which Keras cuts into parts where it is long."""
    attributes: Mapping[str, Any] = group.attributes
    parts = [attributes[key]] if key in attributes else []
    while f"{key}{len(parts)}" in attributes and key not in attributes:
        parts.append(attributes[f"{key}{len(parts)}"])
    return [str(name) for part in parts if isinstance(part, list) for name in part]


def _snake_case(name: str) -> str:
    split = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", re.sub(r"\W+", "", name))
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", split).lower()
