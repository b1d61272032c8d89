"""Small Keras files for tests, written without Keras."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

Layers = list[tuple[str, dict[str, Any], list[np.ndarray]]]


def draw(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def described(layers: Layers, shape, **more) -> dict[str, Any]:
    """Return the description of a chain of layers."""
    entries = [_entry("InputLayer", {"batch_shape": [None, *shape], "name": "x"})]
    entries += [
        _entry(kind, {"name": f"layer_{place}", **settings})
        for place, (kind, settings, _) in enumerate(layers)
    ]
    return {
        "module": "keras",
        "class_name": "Sequential",
        "config": {"name": "net", "layers": entries},
        **more,
    }


def _entry(kind: str, settings: dict[str, Any]) -> dict[str, Any]:
    module = settings.pop("module", "keras.layers")
    return {"module": module, "class_name": kind, "config": settings, "registered_name": None}


def write_h5(path: Path, layers: Layers, shape, config=None) -> Path:
    """Write a file as Keras 2 did, and Keras 3 does for .h5."""
    import h5py

    with h5py.File(path, "w") as file:
        file.attrs["model_config"] = json.dumps(config or described(layers, shape))
        file.attrs["keras_version"] = "3.15.1"
        group = file.create_group("model_weights")
        for place, (_, _, weights) in enumerate(layers):
            inner = group.create_group(f"layer_{place}")
            names = [f"layer_{place}/w{at}:0" for at in range(len(weights))]
            inner.attrs["weight_names"] = [name.encode() for name in names]
            for name, array in zip(names, weights, strict=True):
                inner[name] = array
    return path


def write_keras(path: Path, layers: Layers, shape, config=None) -> Path:
    """Write an archive as Keras 3 does."""
    import h5py

    content = io.BytesIO()
    with h5py.File(content, "w") as file:
        used: dict[str, int] = {}
        for kind, _, weights in layers:
            name = _snake(kind)
            used[name] = used.get(name, -1) + 1
            name += f"_{used[name]}" if used[name] else ""
            group = file.create_group(f"layers/{name}/vars")
            for at, array in enumerate(weights):
                group[str(at)] = array
    return packed(path, config or described(layers, shape), content.getvalue())


def packed(path: Path, config: Any, weights: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("metadata.json", json.dumps({"keras_version": "3.15.1"}))
        archive.writestr("config.json", json.dumps(config))
        archive.writestr("model.weights.h5", weights)
    return path


def _snake(kind: str) -> str:
    letters = [f"_{c.lower()}" if c.isupper() and i else c for i, c in enumerate(kind)]
    return (
        "".join(letters)
        .lower()
        .replace("1_d", "1d")
        .replace("2_d", "2d")
        .replace("p_re_l_u", "p_re_lu")
    )


MLP: Layers = [
    ("Dense", {"units": 8, "activation": "relu"}, [draw(4, 8), draw(8, seed=1)]),
    ("Dense", {"units": 3}, [draw(8, 3, seed=2), draw(3, seed=3)]),
]
CNN: Layers = [
    (
        "Conv2D",
        {"filters": 4, "kernel_size": [3, 3], "strides": [2, 2], "padding": "same"},
        [draw(3, 3, 2, 4), draw(4)],
    ),
    ("BatchNormalization", {"axis": 3}, [draw(4), draw(4), draw(4), draw(4) ** 2 + 0.1]),
    ("ReLU", {"max_value": 6.0}, []),
    ("MaxPooling2D", {"pool_size": [2, 2], "padding": "same"}, []),
    ("Flatten", {}, []),
    ("Dense", {"units": 3}, [draw(16, 3, seed=4), draw(3, seed=5)]),
]
