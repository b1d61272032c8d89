"""Hostile Keras files; they need h5py to be written, and nothing to be opened."""

import base64
import io
import json
import marshal
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from hostile.kinds import kind
from loaders.keras_files import MLP, described, packed, write_h5, write_keras

_SHAPE = (6,)
_LAYERS = [("Dense", {"units": 3}, [np.ones((6, 3), np.float32), np.zeros(3, np.float32)])]


def _with_layer(entry: dict[str, Any]) -> dict[str, Any]:
    config = described(_LAYERS, _SHAPE)
    config["config"]["layers"].append(entry)
    return config


def _code(mark: Path) -> str:
    """Return the bytes of a function that makes a file, as Keras keeps a Lambda."""
    body = compile(
        f"(lambda x: __import__('pathlib').Path({str(mark)!r}).touch() or x)", "", "eval"
    )
    inner = next(item for item in body.co_consts if hasattr(item, "co_code"))
    return base64.b64encode(marshal.dumps(inner)).decode()


def _lambda(mark: Path) -> dict[str, Any]:
    function = {
        "class_name": "__lambda__",
        "config": {"code": _code(mark), "defaults": None, "closure": None},
    }
    settings = {"name": "code", "function": function, "arguments": {}}
    return {"module": "keras.layers", "class_name": "Lambda", "config": settings}


@kind("model", ".keras")
def lambda_layer(path: Path, mark: Path) -> None:
    """Bring a layer that is marshalled code."""
    write_keras(path, _LAYERS, _SHAPE, _with_layer(_lambda(mark)))


@kind("model", ".h5")
def lambda_layer_of_keras_2(path: Path, mark: Path) -> None:
    """Bring a layer of code in the older format, without the new marks."""
    settings = {"name": "code", "function": [_code(mark), None, None], "function_type": "lambda"}
    write_h5(path, _LAYERS, _SHAPE, _with_layer({"class_name": "Lambda", "config": settings}))


@kind("model", ".keras")
def lambda_as_activation(path: Path, mark: Path) -> None:
    """Hide the code in the activation of a dense layer."""
    layers = [("Dense", {"units": 3, "activation": _lambda(mark)}, _LAYERS[0][2])]
    write_keras(path, layers, _SHAPE)


@kind("model", ".keras")
def system_as_activation(path: Path, mark: Path) -> None:
    """Name os.system as the activation."""
    function = {"module": "os", "class_name": "function", "config": "system",
                "registered_name": "system"}  # fmt: skip
    layers = [("Dense", {"units": 3, "activation": function}, _LAYERS[0][2])]
    write_keras(path, layers, _SHAPE)


@kind("model", ".keras")
def system_as_layer(path: Path, mark: Path) -> None:
    """Name os.system as a layer, with its argument as settings."""
    entry = {"module": "os", "class_name": "system", "config": f"touch {mark}"}
    write_keras(path, _LAYERS, _SHAPE, _with_layer(entry))


@kind("model", ".keras")
def module_of_keras_that_evaluates(path: Path, mark: Path) -> None:
    """Name a class that is Keras' own and opens files."""
    entry = {"module": "keras.layers", "class_name": "TFSMLayer",
             "config": {"name": "a", "filepath": str(mark)}}  # fmt: skip
    write_keras(path, _LAYERS, _SHAPE, _with_layer(entry))


@kind("model", ".keras")
def dense_of_another_module(path: Path, mark: Path) -> None:
    """Call a class of another package Dense."""
    layers = [("Dense", {"units": 3, "module": "antigravity"}, _LAYERS[0][2])]
    write_keras(path, layers, _SHAPE)


@kind("model", ".keras")
def registered_layer(path: Path, mark: Path) -> None:
    """Ask for a class that somebody has registered."""
    config = described(_LAYERS, _SHAPE)
    config["config"]["layers"][1]["registered_name"] = "evil>Dense"
    write_keras(path, _LAYERS, _SHAPE, config)


@kind("model", ".keras")
def code_in_an_initialiser(path: Path, mark: Path) -> None:
    """Hide another class in a setting that plays no part."""
    first = {
        "module": "subprocess",
        "class_name": "Popen",
        "config": {"args": ["touch", str(mark)]},
    }
    layers = [("Dense", {"units": 3, "kernel_initializer": first}, _LAYERS[0][2])]
    write_keras(path, layers, _SHAPE)


@kind("model", ".keras")
def bomb(path: Path, _: Path) -> None:
    """Unpack to gigabytes of zeros."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("config.json", json.dumps(described(_LAYERS, _SHAPE)))
        with archive.open("model.weights.h5", "w", force_zip64=True) as member:
            for _ in range(34):
                member.write(bytes(1 << 26))


@kind("model", ".keras")
def deep_brackets(path: Path, _: Path) -> None:
    """Describe layers in a hundred thousand brackets."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("config.json", "[" * 100_000 + "]" * 100_000)
        archive.writestr("model.weights.h5", b"")


@kind("model", ".keras")
def wide_upsampling(path: Path, _: Path) -> None:
    """Describe tensors of a petabyte in three layers."""
    layers = [("Reshape", {"target_shape": [1, 1, 6]}, [])]
    layers += [("UpSampling2D", {"size": [4096, 4096]}, [])] * 3
    write_keras(path, layers, _SHAPE)


@kind("model", ".keras")
def wide_padding(path: Path, _: Path) -> None:
    """Pad by 10^15 zeros."""
    layers = [("Reshape", {"target_shape": [1, 1, 6]}, [])]
    write_keras(path, [*layers, ("ZeroPadding2D", {"padding": 10**15}, [])], _SHAPE)


@kind("model", ".keras")
def long_stride(path: Path, _: Path) -> None:
    """Stride further than oneDNN can."""
    layers = [("Reshape", {"target_shape": [6, 1]}, [])]
    settings = {"filters": 1, "kernel_size": [1], "strides": [10**6]}
    write_keras(path, [*layers, ("Conv1D", settings, [np.ones((1, 1, 1)), np.ones(1)])], _SHAPE)


@kind("model", ".h5")
def lying_shapes(path: Path, _: Path) -> None:
    """Bring weights of other shapes than the description says."""
    write_h5(path, MLP, (4,), described(_LAYERS, _SHAPE))


@kind("model", ".h5")
def circle_of_layers(path: Path, _: Path) -> None:
    """Let two layers read each other."""
    config = described(MLP, (4,))
    layers = config["config"]["layers"]
    layers[1]["inbound_nodes"] = [[["layer_1", 0, 0, {}]]]
    layers[2]["inbound_nodes"] = [[["layer_0", 0, 0, {}]]]
    ends = {"input_layers": [["x", 0, 0]], "output_layers": [["layer_1", 0, 0]]}
    config = {"class_name": "Functional", "config": {**config["config"], **ends}}
    write_h5(path, MLP, (4,), config)


def _bytes_of(change: Any) -> bytes:
    content = io.BytesIO()
    with h5py.File(content, "w") as file:
        change(file)
    return content.getvalue()


@kind("model", ".keras")
def external_link(path: Path, _: Path) -> None:
    """Link the weights to a file of the system."""

    def change(file: Any) -> None:
        file["layers/dense/vars/0"] = h5py.ExternalLink("/etc/passwd", "/")

    packed(path, described(_LAYERS, _SHAPE), _bytes_of(change))


@kind("model", ".keras")
def soft_link(path: Path, _: Path) -> None:
    """Link a group to itself."""

    def change(file: Any) -> None:
        file["layers"] = h5py.SoftLink("/layers")

    packed(path, described(_LAYERS, _SHAPE), _bytes_of(change))


@kind("model", ".keras")
def external_storage(path: Path, _: Path) -> None:
    """Keep the numbers of an array in a file of the system."""

    def change(file: Any) -> None:
        group = file.create_group("layers/dense/vars")
        group.create_dataset("0", (6, 3), "f4", external=[("/etc/passwd", 0, 72)])

    packed(path, described(_LAYERS, _SHAPE), _bytes_of(change))


@kind("model", ".keras")
def compressed_array(path: Path, _: Path) -> None:
    """Declare a compressed array of a terabyte."""

    def change(file: Any) -> None:
        group = file.create_group("layers/dense/vars")
        group.create_dataset("0", (10**6, 250_000), "f4", compression="gzip", chunks=(1000, 1000))

    packed(path, described(_LAYERS, _SHAPE), _bytes_of(change))


def _sound() -> bytes:
    def change(file: Any) -> None:
        for at, array in enumerate(_LAYERS[0][2]):
            file[f"layers/dense/vars/{at}"] = array

    return _bytes_of(change)


@kind("model", ".keras")
def cut_off(path: Path, _: Path) -> None:
    """End in the middle of the numbers."""
    packed(path, described(_LAYERS, _SHAPE), _sound()[:1500])


@kind("model", ".keras")
def places_beyond_the_end(path: Path, _: Path) -> None:
    """Let every place of the file point beyond its end."""
    content = bytearray(_sound())
    for at in range(64, len(content) - 8, 8):
        if 96 < int.from_bytes(content[at : at + 8], "little") < len(content):
            content[at : at + 8] = (2**63 - 1).to_bytes(8, "little")
    packed(path, described(_LAYERS, _SHAPE), bytes(content))


@kind("model", ".keras")
def circle_of_groups(path: Path, _: Path) -> None:
    """Let a group hold itself."""

    def change(file: Any) -> None:
        group = file.create_group("layers/dense")
        group["vars"] = file["layers"]

    packed(path, described(_LAYERS, _SHAPE), _bytes_of(change))


@kind("model", ".keras")
def random_bytes(path: Path, _: Path) -> None:
    """Change a tenth of the bytes of a sound file."""
    content = bytearray(_sound())
    draw = np.random.default_rng(0)
    for at in draw.integers(8, len(content), len(content) // 10):
        content[at] = draw.integers(256)
    packed(path, described(_LAYERS, _SHAPE), bytes(content))


@kind("model", ".keras")
def two_configs(path: Path, mark: Path) -> None:
    """Hold two descriptions, of which a reader may see either."""
    config = described(_LAYERS, _SHAPE)
    packed(path, config, _sound())
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("config.json", json.dumps(_with_layer(_lambda(mark))))
