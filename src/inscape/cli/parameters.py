"""Parameters of a verb that load pydantic, as Typer does to convert words, only where given.

A parameter that was left out has nothing to convert; so ``inscape list`` starts as soon as
``inscape --help`` does.
"""

from collections.abc import Iterable
from typing import Any

from typer.core import TyperArgument, TyperOption


class _Unconverted:
    """Stands for Typer's conversion where there is no value."""

    def coerce(self, value: Any, **_: Any) -> Any:
        return value


def _conversion(parameter: Any, value: Any) -> _Unconverted | None:
    """Return what replaces the conversion of a value: None leaves it to Typer."""
    alone = parameter.nargs == 1 and not parameter.multiple
    return _Unconverted() if value is None and alone else None


class _Option(TyperOption):
    def process_value(self, ctx: Any, value: Any) -> Any:
        self._runtime_param: Any = _conversion(self, value)
        return super().process_value(ctx, value)


class _Argument(TyperArgument):
    def process_value(self, ctx: Any, value: Any) -> Any:
        self._runtime_param: Any = _conversion(self, value)
        return super().process_value(ctx, value)


def convert_only_given(parameters: Iterable[Any]) -> None:
    """Let parameters that were left out go without conversion."""
    for parameter in parameters:
        if type(parameter) is TyperOption:
            parameter.__class__ = _Option
        elif type(parameter) is TyperArgument:
            parameter.__class__ = _Argument
