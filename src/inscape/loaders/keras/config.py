"""The description of a Keras model, checked against a list of known classes before all else."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NoReturn

from inscape.errors import UnsupportedModelError, did_you_mean
from inscape.loaders.onnx.nodes import shown

#: Where classes of Keras itself live; with a dot and more behind it as well.
_HOMES = ("keras", "keras_core", "tf_keras", "tensorflow.keras", "builtins")
_MODELS = ("Sequential", "Functional", "Model")
_DEEPEST = 60
_LAYERS = 5_000
#: What a description may name beside layers: nothing of it reaches the numbers of a saved model.
_HARMLESS = frozenset(
    (
        "GlorotUniform",
        "GlorotNormal",
        "HeUniform",
        "HeNormal",
        "LecunUniform",
        "LecunNormal",
        "Zeros",
        "Ones",
        "Constant",
        "RandomNormal",
        "RandomUniform",
        "TruncatedNormal",
        "VarianceScaling",
        "Orthogonal",
        "OrthogonalInitializer",
        "Identity",
        "IdentityInitializer",
        "L1",
        "L2",
        "L1L2",
        "OrthogonalRegularizer",
        "MaxNorm",
        "NonNeg",
        "UnitNorm",
        "MinMaxNorm",
        "DTypePolicy",
        "Policy",
        "FloatDTypePolicy",
        "__keras_tensor__",
        "__tuple__",
        "TensorShape",
        "function",
    )
)

Reference = tuple[str, int, int]


@dataclass(frozen=True, kw_only=True)
class LayerCall:
    """One use of a layer: its arguments (references, lists, numbers), and those with names."""

    arguments: tuple[Any, ...]
    named: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class KerasLayer:
    """One layer: its class, name and settings, its calls, and the layer or model inside it."""

    kind: str
    name: str
    settings: Mapping[str, Any]
    calls: tuple[LayerCall, ...] = ()
    inner: "KerasLayer | Model | None" = None

    @property
    def place(self) -> str:
        """Say which layer this is."""
        return f"the layer {shown(self.name)} ({self.kind})"

    def refuse(self, expected: str, value: object) -> NoReturn:
        """Refuse the file because of this layer."""
        raise UnsupportedModelError(
            f"{self.place} must have {expected}, found {shown(value)}: save the model again, or "
            "use --trust (trust=True) to let Keras open it, if you trust its source."
        )

    def integer(self, key: str, default: int) -> int:
        """Return a setting that is an integer."""
        value = self.settings.get(key, default)
        if type(value) is not int:
            self.refuse(f"an integer as {key}", value)
        return int(value)

    def number(self, key: str, default: float) -> float:
        """Return a setting that is a number; null stands for the default."""
        value = self.settings.get(key)
        value = default if value is None else value
        if isinstance(value, Mapping):  # as older versions wrote NumPy's numbers
            value = value.get("value", value.get("config"))
        if type(value) not in (int, float):
            self.refuse(f"a number as {key}", value)
        return float(value)

    def flag(self, key: str, default: bool) -> bool:
        """Return a setting that is true or false."""
        value = self.settings.get(key, default)
        if type(value) is not bool:
            self.refuse(f"true or false as {key}", value)
        return bool(value)

    def text(self, key: str, default: str) -> str:
        """Return a setting that is a word."""
        value = self.settings.get(key) or default
        if not isinstance(value, str):
            self.refuse(f"a word as {key}", value)
        return value

    def integers(self, key: str, length: int, default: int, most: int = 65_536) -> list[int]:
        """Return a setting that is one integer, or so many; from 0 on and of a reasonable size."""
        value = self.settings.get(key, default)
        value = default if value is None else value
        listed = [value] * length if type(value) is int else _flat(value)
        if len(listed) != length or not all(type(v) is int and 0 <= v <= most for v in listed):
            self.refuse(f"{length} integers from 0 to {most:,} as {key}", value)
        return listed

    def only(self, key: str, *allowed: Any) -> None:
        """Refuse a setting that has another value than these."""
        if self.settings.get(key, allowed[0]) not in allowed:
            self.refuse(f"{key} {' or '.join(map(repr, allowed))}", self.settings[key])


@dataclass(frozen=True, kw_only=True)
class Model:
    """Layers in order, and which of their results go in and out."""

    kind: str
    name: str
    layers: tuple[KerasLayer, ...]
    inputs: tuple[Reference, ...]
    outputs: tuple[Reference, ...]


def read_config(text: str, path: object, known: frozenset[str], *, keras_2: bool = False) -> Model:
    """Return the model that a JSON text describes, if all of its classes are known."""
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnsupportedModelError(
            f"{path} must describe its layers as JSON, found something else "
            f"({type(error).__name__}): save the model again."
        ) from error
    check_classes(config, path, known)
    if not isinstance(config, Mapping) or config.get("class_name") not in _MODELS:
        kind = config.get("class_name") if isinstance(config, Mapping) else type(config).__name__
        raise _foreign(path, kind, "a Sequential or Functional model")
    try:
        return _model(config, keras_2)
    except UnsupportedModelError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise UnsupportedModelError(
            f"{path} must describe each layer and what it reads, found a description that is "
            f"damaged ({type(error).__name__}: {shown(error)}): save the model again."
        ) from error


def check_classes(config: Any, path: object, known: frozenset[str], depth: int = 0) -> None:
    """Refuse a description that names a class, module or function that is not on the list."""
    if depth > _DEEPEST:
        raise _foreign(path, "brackets", f"at most {_DEEPEST} levels of them")
    if isinstance(config, list):
        for item in config:
            check_classes(item, path, known, depth + 1)
    if not isinstance(config, Mapping):
        return
    if "class_name" in config:
        _check_class(config, path, known)
    for key, item in config.items():
        check_classes(item, path, known, depth + 1)
        if key == "module" and item is not None and not _at_home(item):
            raise _foreign(path, item, "classes of Keras alone")


def _check_class(entry: Mapping[str, Any], path: object, known: frozenset[str]) -> None:
    name, registered = entry["class_name"], entry.get("registered_name")
    if not isinstance(name, str) or name not in {*known, *_HARMLESS, *_MODELS}:
        offer = did_you_mean(str(name), sorted(known), otherwise="", quoted=True)
        raise _foreign(path, name, "layers that are known here", offer)
    if registered not in (None, "", name, "Functional", f"keras.{name}"):
        raise _foreign(path, registered, "classes of Keras alone")
    if name == "function" and not isinstance(entry.get("config"), str):
        raise _foreign(path, "a function with code", "functions by name")


def _at_home(module: Any) -> bool:
    homes = tuple(f"{home}." for home in _HOMES)
    return isinstance(module, str) and (module in _HOMES or module.startswith(homes))


def _model(entry: Mapping[str, Any], keras_2: bool) -> Model:
    config = entry["config"]
    listed = config if isinstance(config, list) else config["layers"]
    name = "" if isinstance(config, list) else str(config.get("name", ""))
    if len(listed) > _LAYERS:
        raise ValueError(f"{len(listed)} layers, at most {_LAYERS} are read")
    layers = [_layer(item, keras_2) for item in listed]
    if entry["class_name"] == "Sequential":
        chain, ends = _chained(layers)
        return Model(kind="Sequential", name=name, layers=chain, inputs=ends[:1], outputs=ends[1:])
    kind = str(entry["class_name"])
    inputs, outputs = (_references(config[key]) for key in ("input_layers", "output_layers"))
    return Model(kind=kind, name=name, layers=tuple(layers), inputs=inputs, outputs=outputs)


def _layer(entry: Mapping[str, Any], keras_2: bool) -> KerasLayer:
    config = dict(entry["config"]) if isinstance(entry["config"], Mapping) else {}
    kind = str(entry["class_name"])
    inner: KerasLayer | Model | None = None
    if kind in _MODELS:
        inner = _model(entry, keras_2)
    elif isinstance(config.get("layer"), Mapping):
        inner = _layer(config["layer"], keras_2)
    name = str(entry.get("name") or config.get("name") or (inner.name if inner else kind))
    calls = tuple(_call(node) for node in entry.get("inbound_nodes") or ())
    config = {} if kind in _MODELS else {**config, "keras_2": keras_2}
    return KerasLayer(kind=kind, name=name, settings=config, calls=calls, inner=inner)


def _call(node: Any) -> LayerCall:
    """Return one use of a layer, from both ways of writing it."""
    if isinstance(node, Mapping):
        arguments = tuple(_argument(value) for value in node.get("args", ()))
        named = {key: _argument(value) for key, value in node.get("kwargs", {}).items()}
        return LayerCall(arguments=arguments, named=named)
    reads = [(str(entry[0]), int(entry[1]), int(entry[2])) for entry in node]
    named = {k: v for entry in node for k, v in (entry[3] if len(entry) > 3 else {}).items()}
    return LayerCall(arguments=(reads[0] if len(reads) == 1 else reads,), named=named)


def _argument(value: Any) -> Any:
    if isinstance(value, list):
        return [_argument(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    if value.get("class_name") == "__keras_tensor__":
        name, node, place = value["config"]["keras_history"]
        return str(name), int(node), int(place)
    if value.get("class_name") == "__tuple__":
        return [_argument(item) for item in value["config"]["value"]]
    raise ValueError("an argument that is no tensor and no number")


def _references(listed: Any) -> tuple[Reference, ...]:
    """Return inputs or outputs: one, a list, or a dictionary of them."""
    if isinstance(listed, Mapping):
        listed = list(listed.values())
    if len(listed) == 3 and isinstance(listed[0], str) and isinstance(listed[1], int):
        listed = [listed]
    return tuple((str(name), int(node), int(place)) for name, node, place in listed)


def _chained(layers: list[KerasLayer]) -> tuple[tuple[KerasLayer, ...], tuple[Reference, ...]]:
    """Return the layers of a chain, each reading the one before, and its two ends."""
    if not layers or layers[0].kind != "InputLayer":
        first = dict(layers[0].settings) if layers else {}
        shape = first.get("batch_input_shape") or first.get("batch_shape")
        input_layer = KerasLayer(kind="InputLayer", name="input", settings={"batch_shape": shape})
        layers = [input_layer, *layers]
    chained = [layers[0]]
    for before, layer in pairwise(layers):
        call = LayerCall(arguments=((before.name, 0, 0),))
        chained.append(
            KerasLayer(kind=layer.kind, name=layer.name, settings=layer.settings, calls=(call,),
                  inner=layer.inner)
        )  # fmt: skip
    return tuple(chained), ((layers[0].name, 0, 0), (layers[-1].name, 0, 0))


def _flat(value: Any) -> list[Any]:
    """Return the numbers in lists of lists."""
    if not isinstance(value, list | tuple):
        return [value]
    return [number for item in value for number in _flat(item)]


def _foreign(path: object, value: Any, expected: str, near: str = "") -> UnsupportedModelError:
    return UnsupportedModelError(
        f"{path} must be a Keras model with {expected}, found {shown(value)}: "
        f"{near + ' ' if near else ''}use --trust (trust=True) to let Keras open it with all of "
        "its code, only if you trust whoever wrote the file."
    )
