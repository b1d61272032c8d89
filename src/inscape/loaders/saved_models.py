"""A file given as the model itself, without a factory."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from inscape.errors import UnsupportedModelError
from inscape.loaders.estimators import is_estimator
from inscape.loaders.exported_program import EXPORT, open_exported
from inscape.loaders.factory import importing_from
from inscape.loaders.files import existing, kind_of, phrase, short
from inscape.loaders.nnet import open_nnet
from inscape.loaders.torchscript import Scripted
from inscape.loaders.weights import KEYS, code_refusal, load_torch, read_state

_TORCH = (".pt", ".pth", ".ckpt", ".bin", ".safetensors", ".ts")
_PICKLES = (".joblib", ".pkl", ".pickle")
_KERAS = (".keras", ".h5", ".hdf5")
_FOREIGN = (".tflite", ".pb", ".mlmodel")
SUFFIXES = (".pt2", ".nnet", ".onnx", *_KERAS, *_TORCH, *_PICKLES, *_FOREIGN)

Opened = tuple[Any, tuple[str, ...]]


def open_saved(spec: str | Path, *, trust: bool, max_size: int | None = None) -> Opened:
    """Return the model in a file and what there is to say about it."""
    suffix = Path(spec).suffix.lower()
    if suffix in _FOREIGN:
        raise UnsupportedModelError(
            f"{spec} must be a PyTorch, Keras, ONNX or scikit-learn model, found {suffix}, which "
            "is not supported: convert it to .onnx, or save the PyTorch model in eval mode with "
            f"torch.export.save({EXPORT}, 'model.pt2')."
        )
    path = existing(spec, "the model")
    if suffix == ".pt2" or kind_of(path) == "exported":
        return open_exported(path, trust=trust, max_size=max_size)
    if suffix == ".nnet":
        return open_nnet(path, max_size=max_size)
    if suffix == ".onnx":
        from inscape.loaders.onnx import open_onnx

        return open_onnx(path, max_size=max_size)
    if suffix in _KERAS:
        from inscape.loaders.keras import open_keras

        return open_keras(path, trust=trust, max_size=max_size)
    if suffix in _PICKLES:
        return _open_pickle(path, trust=trust)
    return _open_torch(path, trust=trust, max_size=max_size)


def _open_torch(path: Path, *, trust: bool, max_size: int | None) -> Opened:
    kind = kind_of(path)
    if kind == "torchscript":
        return _open_torchscript(path, trust=trust)
    if kind == "safetensors":
        read_state(path, max_size=max_size)
        raise _no_architecture(path)
    if kind not in ("torch", "pickle"):
        raise ValueError(
            f"{path} must be a model saved by PyTorch, found {phrase(path)}: give --model "
            "FILE.py:FACTORY and a state_dict as --weights, or a .pt2."
        )
    saved = load_torch(path, trust=trust, max_size=max_size)
    if isinstance(saved, Mapping):
        models = [saved[key] for key in KEYS if isinstance(saved.get(key), nn.Module)]
        if not models:
            raise _no_architecture(path)
        saved = models[0]
    return _trusted(saved, path)


def _open_torchscript(path: Path, *, trust: bool) -> Opened:
    if not trust:
        raise UnsupportedModelError(
            f"{path} must be a model that runs no foreign code, found a TorchScript archive, a "
            "program that can write files: export it as .pt2 instead, or use --trust "
            "(trust=True) only if you trust whoever wrote it."
        )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`torch.jit.load` is deprecated", DeprecationWarning)
        try:
            script = torch.jit.load(path, map_location="cpu")  # type: ignore[no-untyped-call]
        except RuntimeError as error:
            raise ValueError(
                f"{path} must be a whole TorchScript archive, found one that cannot be read "
                f"({short(error)}): save it again."
            ) from error
    return Scripted(script), ("TorchScript, which PyTorch has deprecated: export it as .pt2",)


def _open_pickle(path: Path, *, trust: bool) -> Opened:
    if not trust:
        raise code_refusal(path)
    import joblib

    with importing_from(Path.cwd()), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            unpickled = joblib.load(path)
        except Exception as error:
            raise ValueError(
                f"{path} must be a whole pickle of a scikit-learn model, found one that raised "
                f"{short(error)}; save it again with "
                "the versions that are installed here."
            ) from error
    model, notes = _trusted(unpickled, path)
    return model, (*notes, *(str(item.message).partition("\n")[0] for item in caught))


def _trusted(saved: Any, path: Path) -> Opened:
    if isinstance(saved, nn.Module) or is_estimator(saved):
        return saved, ("unpickled with its own code, as trusted",)
    raise UnsupportedModelError(
        f"{path} must hold an nn.Module or a scikit-learn model, found a {type(saved).__name__}: "
        "save the network itself."
    )


def _no_architecture(path: Path) -> UnsupportedModelError:
    return UnsupportedModelError(
        f"{path} must hold a whole model, found weights without their architecture: give --model "
        f"FILE.py:FACTORY --weights {path}, with a function that builds the network."
    )
