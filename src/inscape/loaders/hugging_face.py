"""A folder of Hugging Face: config.json and safetensors, opened by ``transformers``.

The architecture is one of those that the installed ``transformers`` has; code in the folder
(``auto_map``) and pickled weights are not touched unless they are trusted.
"""

import json
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from inscape.errors import UnsupportedModelError
from inscape.files.atomic import check_regular
from inscape.files.size_limits import check_size
from inscape.loaders.files import short
from inscape.runtime.extras import need

CONFIG = "config.json"
_PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".h5", ".msgpack")
#: Bytes of a config.json; the largest integer in it, and the largest number of layers and heads.
_LONGEST, _LARGEST, _MOST = 10_000_000, 10_000_000, 4_096


def is_hugging_face(path: Path) -> bool:
    """Tell whether a folder holds a model of Hugging Face."""
    return path.is_dir() and (path / CONFIG).is_file()


def open_hugging_face(
    path: Path, *, trust: bool, max_size: int | None = None
) -> tuple[nn.Module, tuple[str, ...]]:
    """Return the model in a folder, and what there is to say about it."""
    for item in path.iterdir():
        if not item.is_dir():
            check_regular(item, "a file of the model")
    config = _config(path)
    if not trust:
        _refuse_code(path, config)
        _refuse_large(path, config)
    _check_files(path, trust=trust, max_size=max_size)
    with _offline():
        transformers = need("transformers", extra="huggingface", why="opening a model folder")
        kind = _class_of(transformers, config)
        _check_parameters(transformers, kind, path, trust=trust, max_size=max_size)
        return _loaded(transformers, kind, path, trust=trust)


def _config(path: Path) -> Mapping[str, Any]:
    file = path / CONFIG
    check_size(file, file.stat().st_size, max_size=_LONGEST)
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise UnsupportedModelError(
            f"{file} must hold JSON, found something else ({short(error)[:100]}): copy it again."
        ) from error
    if not isinstance(config, Mapping) or not isinstance(config.get("model_type"), str):
        raise UnsupportedModelError(
            f"{file} must name its model_type, as transformers writes it, found none: save the "
            "model with model.save_pretrained(FOLDER)."
        )
    return config


def _refuse_code(path: Path, config: Mapping[str, Any]) -> None:
    """Refuse a description that asks for code of the folder, or for other loaders."""
    for key in ("auto_map", "custom_pipelines", "trust_remote_code", "quantization_config"):
        if config.get(key):
            raise UnsupportedModelError(
                f"{path / CONFIG} must describe a model of transformers alone, found {key!r}, "
                "which requires code from elsewhere: use --trust (trust=True) only if you trust "
                "whoever wrote it."
            )


def _check_files(path: Path, *, trust: bool, max_size: int | None) -> None:
    """Refuse a folder without safetensors, or one whose files lie elsewhere or are too large."""
    weights = sorted(path.glob("*.safetensors"))
    pickled = sorted(item for item in path.iterdir() if item.suffix in _PICKLED)
    if not weights and not (trust and pickled):
        kind = f"pickled ones ({pickled[0].name})" if pickled else "none"
        raise UnsupportedModelError(
            f"{path} must hold weights as model.safetensors, found {kind}: save it with "
            "model.save_pretrained(FOLDER, safe_serialization=True)."
        )
    check_size(path, sum(item.stat().st_size for item in weights), max_size=max_size)
    for index in path.glob("*.safetensors.index.json"):
        _check_index(path, index)


def _check_index(path: Path, index: Path) -> None:
    check_size(index, index.stat().st_size, max_size=_LONGEST)
    try:
        shards = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
    except (ValueError, LookupError, AttributeError, TypeError, RecursionError) as error:
        raise UnsupportedModelError(
            f"{index} must say in which file each tensor is, found {short(error)[:100]}"
        ) from error
    for name in shards:
        if not isinstance(name, str) or Path(name).name != name or not name.endswith("safetensors"):
            raise UnsupportedModelError(
                f"{index} must name safetensors in its own folder, found {str(name)[:60]!r}: copy "
                "the whole folder again."
            )


def _refuse_large(path: Path, config: Mapping[str, Any]) -> None:
    """Refuse sizes that no model has, before anything is built of them."""
    waiting: list[tuple[str, Any]] = [("", config)]
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, Mapping):
            waiting += ((str(inner), part) for inner, part in value.items())
        elif isinstance(value, list):
            waiting += ((key, part) for part in value)
        most = _MOST if "layers" in key or key.startswith("num_") else _LARGEST
        if type(value) is int and abs(value) > most:
            raise UnsupportedModelError(
                f"{path / CONFIG} must have {key[:60]!r} of at most {most:,}, found "
                f"{str(value)[:60]}: say --trust (trust=True) if that is what the model has."
            )


def _check_parameters(
    transformers: Any, kind: Any, path: Path, *, trust: bool, max_size: int | None
) -> None:
    """Refuse a model with more parameters than the limit allows, before any is stored."""
    try:
        settings = transformers.AutoConfig.from_pretrained(
            str(path), local_files_only=True, trust_remote_code=trust
        )
        with torch.device("meta"):
            empty = kind(settings) if kind is not transformers.AutoModel else kind.from_config(
                settings, trust_remote_code=trust
            )  # fmt: skip
    except Exception as error:
        if trust:  # its own code may need more than a shape
            return
        raise _unreadable(path, error) from error
    check_size(path, sum(4 * p.numel() for p in empty.parameters()), max_size=max_size)


def _unreadable(path: Path, error: Exception) -> UnsupportedModelError:
    return UnsupportedModelError(
        f"{path} must be a model that transformers can open, but it raised {short(error)[:300]}: "
        "save it again with model.save_pretrained(FOLDER)."
    )


def _loaded(
    transformers: Any, kind: Any, path: Path, *, trust: bool
) -> tuple[nn.Module, tuple[str, ...]]:
    options = {
        "local_files_only": True,
        "trust_remote_code": trust,
        "dtype": "float32",
        "attn_implementation": "eager",  # plain operators, whose derivatives every engine knows
    }
    if not trust:
        options["use_safetensors"] = True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model, report = kind.from_pretrained(str(path), output_loading_info=True, **options)
        except Exception as error:
            raise _unreadable(path, error) from error
    notes = [f"opened by transformers {transformers.__version__} as {type(model).__name__}"]
    missing = sorted(report.get("missing_keys") or ())
    if missing:
        notes.append(
            f"{len(missing)} weights are not in the folder and are random ({missing[0]}, ...)"
        )
    return model.eval(), tuple(notes)


def _class_of(transformers: Any, config: Mapping[str, Any]) -> Any:
    """Return the class that a config names if transformers has it, else the general one."""
    names = config.get("architectures") or ()
    name = names[0] if isinstance(names, list) and names else None
    base = transformers.PreTrainedModel
    if isinstance(name, str) and name.isidentifier():
        known = getattr(transformers, name, None)
        if isinstance(known, type) and issubclass(known, base):
            return known
    return transformers.AutoModel


@contextmanager
def _offline() -> Iterator[None]:
    """Ask nobody on the network, and draw no progress bars meanwhile."""
    keys = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    before = {key: os.environ.get(key) for key in keys}
    os.environ.update(keys)
    try:
        logging = sys.modules.get("transformers.utils.logging")
        if logging is not None:
            logging.disable_progress_bar()
        yield
    finally:
        for key, value in before.items():
            os.environ.pop(key, None) if value is None else os.environ.update({key: value})
