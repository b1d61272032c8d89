"""The models of a sweep: what each is called, how it is opened, and the digest of what it holds."""

import hashlib
import importlib.util
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from inscape.loaders import OpenedModel
from inscape.loaders.saved_models import SUFFIXES
from inscape.report.sweeps.cells import SHELF

#: Files that hold weights alone, for which ``--model`` names the architecture.
WEIGHTS = (".pt", ".pth", ".ckpt", ".bin", ".safetensors")
#: What a folder holds that is one model and not a folder of models.
ONE_MODEL = "config.json"
#: Bytes that are hashed at a time.
CHUNK = 1 << 20


@dataclass(frozen=True, kw_only=True)
class ListedModel:
    """One model: its name, where it is from, and the settings of its cells that open it."""

    name: str
    source: str
    settings: Mapping[str, Any]

    @property
    def in_memory(self) -> bool:
        """Tell whether it is an object of this process, which no other process can open."""
        return "object" in self.settings


def entries(
    models: object, *, factory: object, options: Mapping[str, Any]
) -> tuple[ListedModel, ...]:
    """Return the models of a sweep, each once.

    Args:
        models: Paths, folders, patterns, factories or objects; one, several, or by name.
        factory: Builds the network of files that hold weights alone: ``FILE.py:FACTORY``, or a
            function of this process.
        options: How models are opened: take, trust, device, dtype, max_size.
    """
    listed = _listed(models)
    if not listed:
        raise ValueError(
            "a sweep needs at least one model, found none: name files of models, folders of "
            "checkpoints, or pass a list of modules."
        )
    names = short_names([item for _, item in listed])
    models_by_name: dict[str, ListedModel] = {}
    for (given, item), name in zip(listed, names, strict=True):
        settings = {**_settings(item, factory), **options}
        models_by_name.setdefault(given or name, _entry(given or name, item, settings))
    return tuple(models_by_name.values())


def _entry(name: str, item: object, settings: dict[str, Any]) -> ListedModel:
    source = str(item) if isinstance(item, str | Path) else f"{type(item).__name__} object"
    return ListedModel(name=name, source=source, settings=settings)


def _listed(models: object) -> list[tuple[str, object]]:
    """Return every model with the name that it was given, if it was."""
    if isinstance(models, Mapping):
        return [(str(name), item) for name, item in models.items()]
    several = isinstance(models, Sequence) and not isinstance(models, str | nn.Module)
    items: list[object] = list(models) if several else [models]  # type: ignore[call-overload]
    words = [str(item) for item in items if isinstance(item, str | Path)]
    if len(words) == len(items) and words == sorted(words):  # as a shell lists a pattern
        items = sorted(items, key=lambda item: natural(str(item)))
    parts = [("", part) for item in items for part in _expanded(item)]
    return list({str(part) if isinstance(part, str) else id(part): (name, part)
                 for name, part in parts}.values())  # fmt: skip


def _expanded(item: object) -> Iterator[object]:
    """Yield the models that a path stands for: those of a folder or a pattern, or itself."""
    if not isinstance(item, str | Path):
        yield item
        return
    text, path = str(item), Path(item).expanduser()
    if path.is_dir() and not (path / ONE_MODEL).is_file():
        files = [file for file in path.iterdir() if file.suffix.lower() in SUFFIXES]
        if not files:
            raise ValueError(
                f"a folder of models must hold files that end in {', '.join(SUFFIXES[:4])} or the "
                f"like, found none in {text}: name another folder, or the files themselves."
            )
        yield from sorted(map(str, files), key=natural)
    elif any(letter in text for letter in "*?[") and not path.exists():
        matches = sorted(_matches(path), key=natural)
        if not matches:
            raise ValueError(f"no file matches {text}: check the pattern.")
        yield from matches
    else:
        yield text


def _matches(pattern: Path) -> list[str]:
    """Return the paths that match a pattern, written as the pattern is."""
    home = Path(pattern.anchor) if pattern.is_absolute() else Path()
    inside = str(pattern.relative_to(pattern.anchor) if pattern.is_absolute() else pattern)
    return [str(path) for path in home.glob(inside)]


def natural(text: str) -> list[tuple[int, str]]:
    """Return a key that sorts epoch-10 after epoch-2.

    >>> sorted(["epoch-10.pt", "epoch-2.pt"], key=natural)
    ['epoch-2.pt', 'epoch-10.pt']
    """
    words = re.split(r"(\d+)", text)
    return [(int(word), "") if word.isdecimal() else (-1, word) for word in words]


def short_names(items: Sequence[object]) -> list[str]:
    """Return short names that differ: of files their stems, with folders where stems are alike."""
    paths = [item for item in items if isinstance(item, str)]
    stems = [_stem(path) for path in paths]
    unique = len(set(stems)) == len(stems)
    names, objects = [], 0
    for item in items:
        if isinstance(item, str):
            names.append(_stem(item) if unique else item)
        else:
            objects += 1
            names.append(f"{type(item).__name__} {objects}")
    return names


def _stem(path: str) -> str:
    return Path(path).stem if Path(path).suffix.lower() in SUFFIXES else path


def _settings(item: object, factory: object) -> dict[str, Any]:
    if not isinstance(item, str):
        return {"object": _kept(item), "weights": None}
    path = Path(item).expanduser()
    weights = factory is not None and path.suffix.lower() in WEIGHTS
    spec = factory if weights else item
    loaded = str(path.absolute()) if weights else None
    if not isinstance(spec, str):
        return {"object": _kept(spec), "weights": loaded, "sha256": _file_digest([path])}
    digest = _file_digest([_code(spec), path])
    return {"spec": _absolute(spec), "weights": loaded, "sha256": digest}


def _kept(item: object) -> str:
    """Keep an object of the caller's for the cells of this process, and return its digest."""
    digest = object_digest(item)
    SHELF.objects[digest] = item
    return digest


def _absolute(spec: str) -> str:
    """Return a path, or the path of a factory, as workers in other folders find it."""
    home, colon, name = spec.rpartition(":")
    if colon and home.endswith(".py"):
        return f"{Path(home).expanduser().absolute()}:{name}"
    path = Path(spec).expanduser()
    return str(path.absolute()) if path.exists() or path.suffix.lower() in SUFFIXES else spec


def _code(spec: str) -> Path | None:
    """Return the file of a factory."""
    home, colon, _ = spec.rpartition(":")
    if not colon:
        return None
    if home.endswith(".py"):
        return Path(home).expanduser()
    try:
        module = importlib.util.find_spec(home)
    except (ImportError, ValueError):
        return None
    return Path(module.origin) if module is not None and module.origin else None


def _file_digest(paths: Sequence[Path | None]) -> str:
    """Return the SHA-256 of files and of all files in folders; what is missing counts as empty."""
    digest = hashlib.sha256()
    for path in paths:
        files = sorted(path.rglob("*")) if path is not None and path.is_dir() else [path]
        for file in files:
            if file is not None and file.is_file():
                with file.open("rb") as opened:
                    while chunk := opened.read(CHUNK):
                        digest.update(chunk)
            digest.update(b"|")
    return digest.hexdigest()


def object_digest(item: object) -> str:
    """Return a digest of what an object holds: class, source of its class, weights and buffers."""
    module = item.model if isinstance(item, OpenedModel) else item
    if inspect.isfunction(item) or inspect.isclass(item):
        return f"{item.__module__}.{item.__qualname__}-{hashlib.sha256(_source(item)).hexdigest()}"
    if not isinstance(module, nn.Module):
        import joblib

        return f"{type(item).__name__}-{joblib.hash(item)}"
    digest = hashlib.sha256(repr(module).encode())
    for kind in sorted({type(part) for part in module.modules()}, key=lambda kind: kind.__name__):
        digest.update(f"{kind.__module__}.{kind.__qualname__}".encode())
        if not kind.__module__.startswith("torch."):
            digest.update(_source(kind))
    for name, tensor in module.state_dict().items():
        digest.update(f"{name}{tensor.dtype}{tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(-1).numpy().tobytes())
    return digest.hexdigest()


def _source(item: Any) -> bytes:
    """Return the source of a class or a function, nothing where it was typed into a shell."""
    try:
        return inspect.getsource(item).encode()
    except (OSError, TypeError):
        return b""
