"""A model from the user's own code: ``package.module:factory`` or ``path/to/file.py:factory``."""

import ast
import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from inscape._core.copies import module_copy
from inscape.errors import UnsupportedModelError, did_you_mean
from inscape.loaders.files import existing

SEEDED = "random weights, if any, were drawn with seed 0"


def build(spec: str) -> tuple[Any, tuple[str, ...]]:
    """Import the module of ``MODULE:NAME``, call what it names and return what comes back.

    The folder of the file (or the working folder) is on ``sys.path`` only meanwhile, nothing is
    written beside the sources, and random initial weights come from seed 0.
    """
    home, _, name = spec.rpartition(":")
    if not home or not name:
        raise ValueError(
            f"a model of your own must be written MODULE:FACTORY or FILE.py:FACTORY, found "
            f"{spec!r}: add the name of a function without arguments that returns the model"
            f"{_offer(spec)}."
        )
    path = existing(home, "the file of the factory") if home.endswith(".py") else None
    with importing_from(path.resolve().parent if path else Path.cwd()), _seeded():
        module = _import_file(path) if path else _import_module(home)
        target = _attribute(module, name, home)
        if isinstance(target, nn.Module):
            return module_copy(target), ()
        if not callable(target):
            return target, ()
        _refuse_arguments(target, name, home)
        try:
            return target(), (SEEDED,)
        except (Exception, SystemExit) as error:
            raise UnsupportedModelError(
                f"the factory {name!r} in {home} must return a model, but it raised "
                f"{error_summary(error)}: fix it, or call it in a script of yours first."
            ) from error


def error_summary(error: BaseException) -> str:
    """Return the kind of an error, its first line, and where in whose file it was raised."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {text} ({Path(last.filename).name}, line {last.lineno})"


@contextmanager
def importing_from(folder: Path) -> Iterator[None]:
    """Let imports find ``folder`` first, keep quiet on stdout and write no bytecode."""
    aside = _namesakes(folder)
    for name in aside:
        del sys.modules[name]
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    sys.path.insert(0, str(folder))
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        sys.path.remove(str(folder))
        sys.dont_write_bytecode = writes
        sys.modules.update(aside)


def _namesakes(folder: Path) -> dict[str, ModuleType]:
    """Return loaded modules of other projects that bear the name of a file in this folder.

    Two models may each come with a ``layers.py`` of their own. Libraries are left alone.
    """
    modules = {item.stem for item in folder.iterdir() if item.suffix == ".py" or item.is_dir()}
    return {
        name: module
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] in modules and _elsewhere(module, folder)
    }


def _elsewhere(module: ModuleType, folder: Path) -> bool:
    if module.__name__.partition(".")[0] in {*sys.stdlib_module_names, "inscape", "__main__"}:
        return False
    file = getattr(module, "__file__", None)
    if file is None or "site-packages" in file:
        return False
    return folder not in Path(file).resolve().parents


@contextmanager
def _seeded() -> Iterator[None]:
    """Draw initial weights from seed 0 and leave the global generator as it was."""
    before = torch.random.get_rng_state()
    torch.default_generator.manual_seed(0)
    try:
        yield
    finally:
        torch.random.set_rng_state(before)


def _import_file(path: Path) -> ModuleType:
    name = f"inscape_intake_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None  # a .py file always has a loader
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look their module up
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise _import_refusal(str(path), error) from error
    return module


def _import_module(home: str) -> ModuleType:
    try:
        return importlib.import_module(home)
    except (Exception, SystemExit) as error:
        raise _import_refusal(home, error) from error


def _import_refusal(home: str, error: BaseException) -> UnsupportedModelError:
    if isinstance(error, ModuleNotFoundError) and home.partition(".")[0] == error.name:
        return UnsupportedModelError(
            f"the module of the factory must be importable, found no {home!r} here or among the "
            "installed packages: check the name, or give the path of its .py file."
        )
    hint = (
        "put what the script does under if __name__ == '__main__'"
        if isinstance(error, SystemExit)
        else "fix it, or run it with python to see the whole trace"
    )
    return UnsupportedModelError(
        f"{home} must be importable, but it raised {error_summary(error)}: {hint}."
    )


def _attribute(module: ModuleType, name: str, home: str) -> Any:
    target: Any = module
    for part in name.split("."):
        if not hasattr(target, part):
            names = [item for item in dir(target) if not item.startswith("_")]
            others = f"it has {', '.join(_callables(target)) or 'none'}."
            near = did_you_mean(part, names, otherwise=others, quoted=True)
            raise ValueError(f"{home} must define {name!r}, found no {part!r} in it: {near}")
        target = getattr(target, part)
    return target


def _callables(module: Any) -> list[str]:
    own = {name: item for name, item in vars(module).items() if not name.startswith("_")}
    return [
        name
        for name, item in own.items()
        if callable(item) and getattr(item, "__module__", None) == module.__name__
    ][:8]


def _refuse_arguments(factory: Any, name: str, home: str) -> None:
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):  # some built-in callables have none to show
        return
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [p.name for p in parameters if p.default is p.empty and p.kind not in variadic]
    if needed:
        raise ValueError(
            f"the factory {name!r} in {home} must need no arguments, found {', '.join(needed)}: "
            f"write def model(): return {name}(...) with your values, and name that."
        )


def _offer(spec: str) -> str:
    """Return the functions and classes of a named file, read without running it."""
    path = Path(spec)
    if path.suffix != ".py" or not path.is_file():
        return ""
    try:
        body = ast.parse(path.read_text(encoding="utf-8")).body
    except (SyntaxError, UnicodeDecodeError):
        return ""
    names = [item.name for item in body if isinstance(item, ast.FunctionDef | ast.ClassDef)]
    return f", e.g. {' or '.join(f'{spec}:{name}' for name in names[:4])}" if names else ""
