"""The group of all verbs: it reads the line, runs the verb and turns errors into exit codes.

Typer loads pydantic to convert words. A parameter that was left out has nothing to convert, so
``inscape list`` starts as soon as ``inscape --help`` does.
"""

import os
import select
import shlex
import sys
import traceback
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any

import typer
from typer.core import TyperArgument, TyperGroup, TyperOption

from inscape.cli.console import echo
from inscape.cli.errors import UNREAD, exit_code, sentence

#: Set (and not 0), it does the same as ``--debug``.
DEBUG = "INSCAPE_DEBUG"


_words: ContextVar[tuple[str, ...]] = ContextVar("words", default=())


def typed() -> str:
    """Return the command that is running, as it can be typed again."""
    return shlex.join(["inscape", *_words.get()])


class Verbs(TyperGroup):
    """The group of all verbs; it turns expected errors into one line and an exit code."""

    def parse_args(self, ctx: Any, args: Any) -> Any:
        """Accept ``--debug`` anywhere in the line and keep the line for reports."""
        debug = "--debug" in args
        args = [word for word in args if word != "--debug"]
        _words.set(tuple(args))
        for command in (self, *self.commands.values()):
            _convert_only_given(command.get_params(ctx))
        return super().parse_args(ctx, ["--debug", *args] if debug and args else args)

    def invoke(self, ctx: Any) -> Any:
        """Run the verb."""
        try:
            _refuse_undecodable(_words.get())
            result = super().invoke(ctx)
            sys.stdout.flush()  # or the interpreter would find out that nobody reads, after its end
            return result
        except (typer.TyperException, typer.Exit, typer.Abort):
            raise
        except (Exception, KeyboardInterrupt) as error:
            if isinstance(error, BrokenPipeError) and _nobody_reads():
                raise typer.Exit(UNREAD) from error
            if ctx.params.get("debug") or os.environ.get(DEBUG, "0") not in ("", "0"):
                echo("".join(traceback.format_exception(error)), err=True, nl=False)
            echo(f"inscape: {sentence(error)}", err=True)
            raise typer.Exit(exit_code(error)) from error


def _nobody_reads() -> bool:
    """Tell whether the reader of the standard output or of the errors is gone, and ignore it.

    Both are then sent nowhere, so that what is still to be written raises nothing.
    """
    gone = False
    for stream in (sys.stdout, sys.stderr):
        poll = select.poll()
        poll.register(stream.fileno(), select.POLLERR)
        if any(event & select.POLLERR for _, event in poll.poll(0)):
            gone = True
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
    return gone


def _refuse_undecodable(words: tuple[str, ...]) -> None:
    """Refuse words that no page or record could repeat."""
    for word in words:
        if any("\ud800" <= letter <= "\udfff" for letter in word):
            raise ValueError(
                f"names and paths must be text in UTF-8, found {word!a}: rename the file, or "
                "choose another name."
            )


class _Unconverted:
    """Takes the place of Typer's conversion where there is no value."""

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


def _convert_only_given(parameters: Iterable[Any]) -> None:
    """Skip the conversion of parameters that were not given."""
    for parameter in parameters:
        if type(parameter) is TyperOption:
            parameter.__class__ = _Option
        elif type(parameter) is TyperArgument:
            parameter.__class__ = _Argument
