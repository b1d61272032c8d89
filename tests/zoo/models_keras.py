"""Keras files: one that others published, and some written by Keras itself."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

import inscape
from loaders.keras_files import CNN, write_h5
from zoo.files import SHARED, AbsentError, shared
from zoo.rows import Subject, draw, opened, row, tokens


def cifar_images(count: int) -> torch.Tensor:
    """Return the first test images of CIFAR-10, raw, with their channels last."""
    path = SHARED / "data" / "cifar-10-batches-bin" / "test_batch.bin"
    if not path.is_file():
        raise AbsentError("no CIFAR-10 beside the clone")
    raw = np.fromfile(path, np.uint8, count * 3073).reshape(count, 3073)[:, 1:]
    return torch.from_numpy(raw.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1).astype(np.float64))


@row("CNN of CIFAR-10 (`cifar-10-model` 7.4.0)", "Keras")
def cifar(folder: Path) -> Subject:
    model, how = opened(shared("cifar10_cnn_keras.h5"), "`.h5` of Keras 2")
    return Subject(model, cifar_images(3), how)


@row("CNN written with h5py", "Keras", needs=("h5py",), fast=True)
def plain(folder: Path) -> Subject:
    model, how = opened(write_h5(folder / "net.h5", CNN, (8, 8, 2)), "`.h5`, without Keras")
    return Subject(model, draw(3, 8, 8, 2), how)


def _saved(folder: Path, model: Any, suffix: str = ".keras") -> Path:
    draws = np.random.default_rng(0)
    for weight in model.weights:
        if "variance" not in weight.path and "float" in str(weight.dtype):
            weight.assign(draws.uniform(-0.5, 0.5, weight.shape))
    model.save(folder / f"net{suffix}")
    return folder / f"net{suffix}"


def _keras() -> Any:
    from inscape.loaders.keras.comparison import keras_on_torch

    return keras_on_torch()


@row("MobileNet block (depthwise, ReLU6)", "Keras", needs=("keras", "h5py"))
def mobile(folder: Path) -> Subject:
    keras = _keras()
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((12, 12, 3)),
            layers.Conv2D(6, 3, strides=2, padding="same"),
            layers.BatchNormalization(),
            layers.ReLU(6.0),
            layers.DepthwiseConv2D(3, padding="same"),
            layers.ReLU(6.0),
            layers.GlobalAveragePooling2D(),
            layers.Dense(3),
        ]
    )
    net, how = opened(_saved(folder, model), "`.keras`")
    return Subject(net, draw(3, 12, 12, 3), how)


@row("LSTM and bidirectional GRU", "Keras", needs=("keras", "h5py"))
def recurrent(folder: Path) -> Subject:
    keras = _keras()
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((6, 4)),
            layers.LSTM(5, return_sequences=True),
            layers.Bidirectional(layers.GRU(3)),
            layers.Dense(2),
        ]
    )
    net, how = opened(_saved(folder, model), "`.keras`")
    return Subject(net, draw(3, 6, 4), how)


@row("Functional model of two inputs, two outputs", "several", needs=("keras", "h5py"))
def functional(folder: Path) -> Subject:
    keras = _keras()
    layers = keras.layers
    first, second = keras.Input((5,), name="first"), keras.Input((4,), name="second")
    both = layers.Concatenate()([layers.Dense(6, activation="relu")(first), second])
    logits, side = layers.Dense(3, name="logits")(both), layers.Dense(1, name="side")(both)
    model = keras.Model([first, second], [logits, side])
    net, how = opened(_saved(folder, model, ".h5"), "`.h5`, `adapt(take='logits', inputs=...)`")
    inputs = {"first": draw(3, 5), "second": draw(3, 4, seed=1)}
    adapted = inscape.adapt(net, take="logits", inputs=inputs)
    return Subject(adapted, adapted.rows(inputs), how)


@row("Embedding and pooled text (tokens)", "tokens", needs=("keras", "h5py"))
def text(folder: Path) -> Subject:
    keras = _keras()
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((7,)),
            layers.Embedding(30, 5),
            layers.Conv1D(4, 3, activation="relu"),
            layers.GlobalMaxPooling1D(),
            layers.Dense(2),
        ]
    )
    net, how = opened(_saved(folder, model), "`.keras`, measured in the embedding")
    ids = tokens(3, 7, 30)
    adapted = inscape.adapt(net, inputs=(ids,), embedding=True)
    return Subject(adapted, adapted.rows((ids,)), how)


@row("Transformer block (multi-head attention)", "Keras", needs=("keras", "h5py"))
def attention(folder: Path) -> Subject:
    keras = _keras()
    layers = keras.layers
    x = keras.Input((5, 8))
    mixed = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 4)(x, x))
    model = keras.Model(x, layers.Dense(3)(layers.GlobalAveragePooling1D()(mixed)))
    net, how = opened(_saved(folder, model), "`.keras`")
    return Subject(net, draw(3, 5, 8), how)
