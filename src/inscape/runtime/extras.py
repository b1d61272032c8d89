"""An optional import, or the sentence that says how to get it."""

from importlib import import_module
from types import ModuleType


def need(module: str, *, extra: str, why: str) -> ModuleType:
    """Import an optional package, or say who needs it and which extra brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{why} needs the package {module!r}, which is not installed: "
            f"run pip install 'inscape[{extra}]'."
        ) from error
