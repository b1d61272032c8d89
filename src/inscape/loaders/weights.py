"""Weights from a file into a module: nothing in the file is executed unless it is trusted."""

import pickle
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from inscape.errors import DataError, UnsupportedModelError
from inscape.files.size_limits import check_size
from inscape.files.tensors import load_tensors
from inscape.loaders.factory import importing_from
from inscape.loaders.files import existing, globals_in, kind_of, phrase, short

State = dict[str, Any]

#: Where checkpoints keep their weights, in the order of search.
KEYS = ("state_dict", "model", "model_state_dict", "net")

#: What DataParallel and torch.compile put before every name.
PREFIXES = ("module.", "_orig_mod.")


def load_weights(
    model: nn.Module, path: str | Path, *, trust: bool = False, max_size: int | None = None
) -> tuple[str, ...]:
    """Load the weights in a file into ``model``, and return what there is to say about it."""
    path = existing(path, "weights")
    state, notes = read_state(path, trust=trust, max_size=max_size)
    state, more = fitted_state(model, state)
    _refuse_mismatch(model, state, path)
    model.load_state_dict(state)
    return (*notes, *more)


def read_state(
    path: Path, *, trust: bool = False, max_size: int | None = None
) -> tuple[State, tuple[str, ...]]:
    """Return the state dict in a file, and under which key of a checkpoint it was found."""
    kind = kind_of(path)
    if kind == "safetensors":
        check_size(path, path.stat().st_size, max_size=max_size)
        return _read_safetensors(path), ()
    if kind not in ("torch", "pickle"):
        raise ValueError(
            f"weights must be a state_dict (.pt, .pth) or .safetensors, found {phrase(path)} in "
            f"{path}: save them with torch.save(model.state_dict(), FILE)."
        )
    return find_state(load_torch(path, trust=trust, max_size=max_size), path)


def load_torch(path: Path, *, trust: bool = False, max_size: int | None = None) -> Any:
    """Read a file of ``torch.save`` without running code of it, or with it if it is trusted."""
    try:
        return load_tensors(path, max_size=max_size)
    except DataError:
        raise
    except pickle.UnpicklingError as error:
        if trust:
            return load_with_code(path)
        if not globals_in(path):
            raise _damaged(path, error) from error
        raise code_refusal(path) from error
    except Exception as error:
        raise _damaged(path, error) from error


def load_with_code(path: Path) -> Any:
    """Unpickle a trusted file, with all the code that it asks for."""
    try:
        with importing_from(Path.cwd()):
            return torch.load(path, map_location="cpu", weights_only=False)
    except (ImportError, AttributeError) as error:
        raise UnsupportedModelError(
            f"{path} must find the classes it was saved with, but it raised "
            f"{type(error).__name__}: {error}; run where they can be imported, or give "
            "--model FILE.py:FACTORY and its state_dict as --weights."
        ) from error
    except Exception as error:
        raise _damaged(path, error) from error


def code_refusal(path: Path) -> UnsupportedModelError:
    """Say which code a pickle asks for, and what to do instead."""
    names = globals_in(path)
    wanted = ", ".join(map(repr, names[:3])) or "names that cannot be read"
    return UnsupportedModelError(
        f"{path} must hold nothing but tensors, found a pickle that would run code ({wanted}): "
        "save model.state_dict() instead, or use --trust (trust=True) only if you trust whoever "
        "wrote the file."
    )


def find_state(loaded: Any, path: Path) -> tuple[State, tuple[str, ...]]:
    """Search a checkpoint for its weights: at the top, under one of the keys, or one below."""
    if isinstance(loaded, nn.Module):
        return loaded.state_dict(), ("took the weights of a whole saved model",)
    if _is_state(loaded):
        return loaded, ()
    for trail, inner in _candidates(loaded):
        if isinstance(inner, nn.Module):
            inner = inner.state_dict()
        if _is_state(inner):
            return inner, (f"read the weights under the key {'/'.join(trail)!r}",)
    content = (
        f"a dict with the keys {', '.join(map(repr, list(loaded)[:6]))}"
        if isinstance(loaded, Mapping)
        else f"a {type(loaded).__name__}"
    )
    raise ValueError(
        f"{path} must hold a state_dict, alone or under one of the keys {', '.join(KEYS)}, found "
        f"{content}: save model.state_dict()."
    )


def fitted_state(model: nn.Module, state: State) -> tuple[State, tuple[str, ...]]:
    """Rename the keys of a state dict to those of the model where a known prefix is in the way."""
    wanted = set(model.state_dict())
    notes: list[str] = []
    if not wanted <= set(state):
        state = _renamed(state, _bare, notes)
    outer = next(iter(state)).partition(".")[0] + "."
    inner = {key.removeprefix(outer) for key in state}
    if inner == wanted != set(state):  # as Lightning puts "model." before every name
        state = _renamed(state, lambda key: (key.removeprefix(outer), {outer}), notes)
    return _with_counters(model, state), tuple(notes)


def _renamed(
    state: State, rename: Callable[[str], tuple[str, set[str]]], notes: list[str]
) -> State:
    renamed = {key: rename(key) for key in state}
    if len({name for name, _ in renamed.values()}) < len(state):
        return state  # two keys would become one
    counts = Counter(prefix for _, prefixes in renamed.values() for prefix in prefixes)
    notes += [f"stripped the prefix {prefix!r} from {n} keys" for prefix, n in counts.items()]
    return {renamed[key][0]: value for key, value in state.items()}


def _bare(key: str) -> tuple[str, set[str]]:
    """Return a key without the known prefixes, and which there were."""
    visited = set()
    while prefix := next((item for item in PREFIXES if key.startswith(item)), None):
        key = key.removeprefix(prefix)
        visited.add(prefix)
    if "._orig_mod." in key:  # no module of a user is called so: it can go wherever it stands
        key = key.replace("._orig_mod.", ".")
        visited.add("_orig_mod.")
    return key, visited


def _with_counters(model: nn.Module, state: State) -> State:
    """Fill in the batch counters that old files lack and that play no part in eval mode."""
    own = model.state_dict()
    lacking = [key for key in own if key.endswith("num_batches_tracked") and key not in state]
    return {**state, **{key: own[key] for key in lacking}}


def _refuse_mismatch(model: nn.Module, state: State, path: Path) -> None:
    own = model.state_dict()
    shapes = {key: _shape(value) for key, value in own.items()}
    state_shapes = {key: _shape(value) for key, value in state.items()}
    missing = [f"{key!r} {shapes[key]}" for key in shapes if key not in state_shapes]
    foreign = [f"{key!r} {state_shapes[key]}" for key in state_shapes if key not in shapes]
    other = [
        f"{key!r} is {shapes[key]} in the model and {state_shapes[key]} in the file"
        for key in shapes
        if key in state_shapes
        and "?" not in (shapes[key], state_shapes[key])
        and shapes[key] != state_shapes[key]
    ]
    parts = [
        f"the model has {_first_three(missing)}, which the file lacks" if missing else "",
        f"the file has {_first_three(foreign)}, which the model lacks" if foreign else "",
        _first_three(other),
    ]
    if any(parts):
        raise UnsupportedModelError(
            f"the weights in {path} must be those of the model, but "
            f"{'; '.join(filter(None, parts))}: give the factory with which they were trained."
        )


def _first_three(items: list[str]) -> str:
    rest = f" and {len(items) - 3} more" if len(items) > 3 else ""
    return ", ".join(items[:3]) + rest


def _shape(value: Any) -> str:
    if not isinstance(value, Tensor) or is_lazy(value):
        return "?"
    return str(tuple(value.shape))


def _is_state(loaded: Any) -> bool:
    return (
        isinstance(loaded, Mapping)
        and len(loaded) > 0
        and all(isinstance(key, str) for key in loaded)
        and all(
            isinstance(value, Tensor) or key.endswith("_extra_state")
            for key, value in loaded.items()
        )
    )


def _candidates(loaded: Any) -> list[tuple[tuple[str, ...], Any]]:
    if not isinstance(loaded, Mapping):
        return []
    once = [((key,), loaded[key]) for key in KEYS if key in loaded]
    twice = [
        ((*trail, key), inner[key])
        for trail, inner in once
        if isinstance(inner, Mapping)
        for key in KEYS
        if key in inner
    ]
    return [*once, *twice]


def _read_safetensors(path: Path) -> State:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path, device="cpu")
    except (SafetensorError, OSError) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> ValueError:
    return ValueError(
        f"{path} must be a whole file, found one that is damaged or truncated ({short(error)}): "
        "copy or save it again."
    )
