"""An imported network is compared with Keras itself, where that is installed."""

import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import Tensor, nn

from inscape.errors import BudgetError, UnsupportedModelError
from inscape.loaders.files import short
from inscape.loaders.keras.layers_dense import Embedded
from inscape.loaders.keras.network import KerasNetwork
from inscape.runtime.extras import need

#: A difference, as a fraction of the largest output, from which on the import is refused.
REFUSED = 1e-2
#: Sizes that are tried where the file names none.
_TRIED = (16, 32, 64, 8)
_LARGEST = 10**7


class BackendError(ImportError):
    """Keras is there, with another backend than torch."""


def keras_on_torch() -> Any:
    """Return Keras with torch as its backend; its folder of settings is not touched."""
    loaded = sys.modules.get("keras")
    chosen = os.environ.get("KERAS_BACKEND", "torch")
    if loaded is not None:
        chosen = loaded.backend.backend()
    if chosen != "torch":
        raise BackendError(
            f"Keras must run on torch, found the backend {chosen!r}"
            f"{', already imported' if loaded else ''}: set KERAS_BACKEND=torch before Python "
            "starts."
        )
    if loaded is not None:
        return loaded
    with tempfile.TemporaryDirectory() as folder:
        settings = {"KERAS_BACKEND": "torch", "KERAS_HOME": folder}
        with mock.patch.dict(os.environ, settings):
            return import_module("keras")


def loaded_by_keras(path: Path, reason: str) -> tuple[nn.Module, tuple[str, ...]]:
    """Return a trusted model as Keras opens it, with all of its code."""
    if "keras" not in sys.modules and find_spec("keras") is None:
        need("keras", extra="keras", why=f"a model that Inscape cannot read by itself ({reason})")
    keras = keras_on_torch()
    try:
        model = keras.models.load_model(path, compile=False, safe_mode=False)
    except Exception as error:  # whatever code of the file raises
        raise UnsupportedModelError(
            f"{path} must be a model that Keras can open, but it raised {short(error)}: import "
            "the package that its layers come from, or give --model FILE.py:FACTORY."
        ) from error
    return model, (f"opened by Keras with all of its code, as trusted: {reason}",)


def compared(network: KerasNetwork, text: str, table: Mapping[str, Any]) -> tuple[str, ...]:
    """Return notes on what goes in, and on how far a network is from Keras."""
    notes = _said_of_inputs(network)
    inputs = _example(network)
    if inputs is None:
        return (*notes, "not run: the file does not say how large its input is")
    with torch.no_grad():
        results = network(*inputs)
    if find_spec("keras") is None:
        return (*notes, "not compared with Keras, which is not installed")
    outputs = list(results.values()) if isinstance(results, dict) else [results]
    try:
        expected = _by_keras(text, table, inputs)
    except Exception as error:  # another version, another backend
        return (*notes, f"not compared with Keras: {short(error)[:200]}")
    return (*notes, _difference(outputs, expected))


def _embeds(network: KerasNetwork) -> bool:
    return any(isinstance(module, Embedded) for module in network.modules())


def _said_of_inputs(network: KerasNetwork) -> tuple[str, ...]:
    images = any(shape is not None and len(shape) == 3 for shape in network.shapes)
    return ("expects images with channels last, as Keras does",) * images + (
        "expects token ids: inputs are rounded, and have no gradient",
    ) * _embeds(network)


def _example(network: KerasNetwork) -> list[Tensor] | None:
    """Return random inputs that the network accepts."""
    if any(shape is None for shape in network.shapes):
        return None
    first: Exception | None = None
    open_sizes = any(size is None for shape in network.shapes for size in shape or ())
    for size in _TRIED if open_sizes else _TRIED[:1]:
        draw = torch.Generator().manual_seed(0)
        rows = [[2, *(size if n is None else n for n in shape or ())] for shape in network.shapes]
        if any(np.prod(np.array(row, dtype=object)) > _LARGEST for row in rows):
            raise BudgetError(f"an input must have at most {_LARGEST:,} numbers, found {rows}")
        inputs = [torch.rand(row, generator=draw) for row in rows]
        inputs = [x.round() for x in inputs] if _embeds(network) else inputs
        try:
            with torch.no_grad():
                network(*inputs)
        except UnsupportedModelError as error:
            first = first or error
            continue
        return inputs
    assert first is not None
    if not open_sizes:
        raise first
    return None


def _by_keras(text: str, table: Mapping[str, Any], inputs: Sequence[Tensor]) -> list[Tensor]:
    """Return the outputs of Keras, made from the checked description and the arrays read here."""
    keras = keras_on_torch()
    described = json.loads(text)
    kind = keras.Sequential if described["class_name"] == "Sequential" else keras.Model
    model = kind.from_config(described["config"])
    if not model.built:
        model.build([tuple(x.shape) for x in inputs] if len(inputs) > 1 else inputs[0].shape)
    _set_weights(model, table)
    with torch.no_grad():
        outputs = model(list(inputs) if len(inputs) > 1 else inputs[0], training=False)
    outputs = list(outputs.values()) if isinstance(outputs, dict) else outputs
    return [x.detach().cpu() for x in (outputs if isinstance(outputs, list | tuple) else [outputs])]


def _set_weights(model: Any, table: Mapping[str, Any]) -> None:
    for layer in model.layers:
        own = table.get(layer.name, ())
        if isinstance(own, Mapping):
            _set_weights(layer, own)
        elif len(own):
            layer.set_weights([*own, *layer.get_weights()[len(own) :]])


def _difference(outputs: Sequence[Tensor], expected: Sequence[Tensor]) -> str:
    if [x.shape for x in outputs] != [x.shape for x in expected]:
        raise _differs(f"outputs of shape {[tuple(x.shape) for x in outputs]}")
    largest = max(float(x.abs().max()) for x in expected)
    pairs = zip(outputs, expected, strict=True)
    difference = max(float((a.double() - b.double()).abs().max()) for a, b in pairs)
    if not difference <= REFUSED * max(largest, 1e-3):
        raise _differs(f"a difference of {difference:.2g} where outputs are up to {largest:.2g}")
    return f"differs from Keras by at most {difference:.1g} (outputs up to {largest:.2g})"


def _differs(difference: str) -> UnsupportedModelError:
    return UnsupportedModelError(
        "a network read from a Keras file must agree with Keras on random inputs, found "
        f"{difference}: use --trust to let Keras itself run it, and report the file."
    )
