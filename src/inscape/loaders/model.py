"""Opening a model: an object, a factory with weights, an exported program, a saved file."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from inscape._core.copies import module_copy
from inscape._core.precision import real_dtype, to_precision
from inscape._core.unsupported_models import refuse_unreadable
from inscape.errors import UnsupportedModelError
from inscape.loaders.device import choose_device, choose_dtype
from inscape.loaders.estimators import convert, is_estimator, named_classes
from inscape.loaders.exported_program import exported_module
from inscape.loaders.factory import SEEDED, build
from inscape.loaders.files import short
from inscape.loaders.hugging_face import is_hugging_face, open_hugging_face
from inscape.loaders.keras import is_keras, opened_from_memory
from inscape.loaders.labels import Name
from inscape.loaders.saved_models import SUFFIXES, open_saved
from inscape.loaders.weights import load_weights


@dataclass(frozen=True, eq=False, kw_only=True)
class OpenedModel:
    """A module in eval mode, its source, and the notes made while opening it.

    ``classes`` are what its classes are called, in the order of its outputs, where it knows them.
    """

    model: nn.Module
    source: str
    notes: tuple[str, ...] = ()
    was_training: bool = False
    classes: tuple[Name, ...] = ()


def open_model(
    spec: object,
    *,
    weights: str | Path | None = None,
    trust: bool = False,
    device: str | torch.device = "cpu",
    dtype: str | torch.dtype | None = None,
    max_size: int | None = None,
) -> OpenedModel:
    """Open a model for measuring; an object of yours is left as it is, a copy is changed.

    Args:
        spec: An ``nn.Module``, a scikit-learn model, an ``ExportedProgram``; or, as text,
            ``package.module:factory``, ``path/to/file.py:factory``, or the path of a ``.pt2``,
            ``.onnx``, ``.nnet``, ``.keras`` or ``.h5``, of a folder of Hugging Face or, with
            ``trust``, of a pickled model or a TorchScript archive.
        weights: File of a state dict (``torch.save``) or safetensors to load into it.
        trust: Allow files that run code of their own when they are opened.
        device: ``auto`` (cuda, then mps, then cpu), ``cpu``, ``cuda``, ``cuda:1`` or ``mps``.
        dtype: ``float32`` or ``float64``; None keeps the model's own.
        max_size: Bytes that a file may unpack to; 2 GB or a quarter of memory if not given.

    >>> opened = open_model(nn.Linear(2, 1))
    >>> opened.source, opened.notes
    ('Linear object', ('was in training mode: switched to eval (a copy; yours is unchanged)',))
    """
    place = choose_device(device)
    precision = choose_dtype(dtype, place)
    source_object, source, notes = _opened(spec, trust=trust, max_size=max_size)
    model, more = _as_module(source_object, source)
    notes += more
    refuse_unreadable(model)
    callers = model is spec
    if weights is not None:
        model, callers = _copied(model) if callers else model, False
        notes = tuple(note for note in notes if note != SEEDED)
        notes += load_weights(model, weights, trust=trust, max_size=max_size)
        source += f" with the weights in {weights}"
    _refuse_lazy(model)
    was_training = any(module.training for module in model.modules())
    model, more = _settled(model, place, precision, callers=callers)
    return OpenedModel(
        model=model,
        source=source,
        notes=notes + more,
        was_training=was_training,
        classes=named_classes(source_object) if is_estimator(source_object) else (),
    )


def _opened(spec: object, *, trust: bool, max_size: int | None) -> tuple[Any, str, tuple[str, ...]]:
    """Return what ``spec`` names, how to call it, and notes."""
    if not isinstance(spec, str | Path):
        return spec, f"{type(spec).__name__} object", ()
    text = str(spec)
    saved = Path(text).suffix.lower() in SUFFIXES
    if is_hugging_face(Path(text).expanduser()):
        folder = Path(text).expanduser()
        opened, notes = open_hugging_face(folder, trust=trust, max_size=max_size)
    elif not saved:
        opened, notes = build(text)
    else:
        opened, notes = open_saved(text, trust=trust, max_size=max_size)
    return opened, text, notes


def _as_module(candidate: Any, source: str) -> tuple[nn.Module, tuple[str, ...]]:
    if is_estimator(candidate):
        return convert(candidate)
    if is_keras(candidate):
        return opened_from_memory(candidate)
    if isinstance(candidate, torch.export.ExportedProgram):
        return exported_module(candidate), ()
    if not isinstance(candidate, nn.Module):
        raise TypeError(
            f"{source} must be or return an nn.Module or a scikit-learn model, found "
            f"{_kind(candidate)}: {_instead(candidate)}."
        )
    notes = []
    while (inner := _inside(candidate)) is not None:
        notes.append(f"took the module inside {type(candidate).__name__}")
        candidate = inner
    return candidate, tuple(notes)


def _instead(candidate: Any) -> str:
    if isinstance(candidate, partial) and isinstance(candidate.func, nn.Module):
        names = ", ".join(f"{name!r}: ..." for name in candidate.keywords)
        return f"return inscape.adapt(model, fixed={{{names}}})"
    return "return the network itself"


def _kind(candidate: Any) -> str:
    if isinstance(candidate, type) and issubclass(candidate, nn.Module):
        return f"the class {candidate.__name__} itself instead of an object of it"
    return "None" if candidate is None else f"a {type(candidate).__name__}"


def _inside(model: nn.Module) -> nn.Module | None:
    """Return what DataParallel or torch.compile have wrapped, or None."""
    if isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
        return model.get_submodule("module")
    compiled = type(model).__name__ == "OptimizedModule"
    return model.get_submodule("_orig_mod") if compiled else None


def _copied(model: nn.Module) -> nn.Module:
    try:
        return module_copy(model)
    except Exception as error:
        raise UnsupportedModelError(
            f"the model must be copied before anything in it is changed, but copy.deepcopy raised "
            f"{short(error)}; call model.eval(), load "
            "its weights and choose device and dtype yourself."
        ) from error


def _refuse_lazy(model: nn.Module) -> None:
    for name, parameter in model.named_parameters():
        if is_lazy(parameter):
            raise UnsupportedModelError(
                f"the model must know the shapes of its weights, found {name!r} of a lazy layer "
                "not yet initialised: run one batch through it in the factory, or give --weights."
            )


def _settled(
    model: nn.Module, place: torch.device, precision: torch.dtype | None, *, callers: bool
) -> tuple[nn.Module, tuple[str, ...]]:
    """Return the model in eval mode on its device, in one precision; a copy if it is the user's."""
    tensors = [*model.parameters(), *model.buffers()]
    floats = {kind for kind in map(real_dtype, tensors) if kind.is_floating_point}
    wanted = precision or (torch.float64 if torch.float64 in floats else torch.float32)
    trains = any(module.training for module in model.modules())
    converts, moves = floats - {wanted}, any(tensor.device != place for tensor in tensors)
    notes = []
    aside = " (a copy; yours is unchanged)" if callers else ""
    if callers and (trains or converts or moves):
        model = _copied(model)
    if converts:
        kinds = ", ".join(sorted(str(item).removeprefix("torch.") for item in floats))
        notes.append(f"converted from {kinds} to {str(wanted).removeprefix('torch.')}{aside}")
        model = to_precision(model, wanted)
    if moves:
        notes.append(f"moved to {place}{aside}")
        model = model.to(place)
    if trains:
        notes.append(_switch_to_eval(model) + aside)
    return model, tuple(notes)


def _switch_to_eval(model: nn.Module) -> str:
    try:
        model.eval()
    except NotImplementedError:  # the module of an exported program: its mode is in its graph
        for module in model.modules():
            module.training = False
        return "an exported program has no eval(): taken as it was exported"
    return "was in training mode: switched to eval"
