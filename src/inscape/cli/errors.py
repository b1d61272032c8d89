"""How a verb fails: one line on stderr and an exit code; a traceback only on request."""

import errno
import os
import select
import shlex
import sys
import traceback
from contextvars import ContextVar
from typing import Any

import typer
from typer.core import TyperGroup

from inscape.cli.parameters import convert_only_given
from inscape.cli.terminal import echo

FAILED = 1  # the run failed: disk, network, memory, budget
USAGE = 2  # the user asked for something that cannot be
OUT_OF_TOLERANCE = 3  # finished, but a checked number is not what it should be
INTERRUPTED = 130
UNREAD = 141  # nobody reads the output any more, as in ``inscape list | head -1``; said by no line

#: What a path is that no file can have.
_NO_PATH = (errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR)

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
            convert_only_given(command.get_params(ctx))
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


def exit_code(error: BaseException) -> int:
    """Return 2 for what the user can mend in the command, 1 for what failed on the way."""
    match error:
        case KeyboardInterrupt():
            return INTERRUPTED
        case ValueError() | TypeError() | ImportError() | FileNotFoundError():
            return USAGE
        case OSError() if error.errno in _NO_PATH:
            return USAGE
    return FAILED


def open_streams() -> None:
    """Give the process standard streams where it was started without; what they get is lost.

    Otherwise the next file that is opened would be taken for the standard output.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r"))


def _nobody_reads() -> bool:
    """Tell whether the reader of the standard output or of the errors is gone, and let it be.

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


def sentence(error: BaseException) -> str:
    """Return what to tell the user about an error, in one line."""
    said = " ".join(str(error).split())
    match error:
        case KeyboardInterrupt():
            return "interrupted: nothing was left half written."
        case OSError() if error.errno is not None:
            return _about_disk(error)
        case MemoryError():
            return "out of memory: use fewer points (--limit) or a smaller model."
        case ValueError() | TypeError() | ImportError() | OSError() | RuntimeError() if said:
            return said
    name = type(error).__name__
    return f"unexpected {name}: {said or 'no text'}; run it again with --debug and report it."


def _about_disk(error: OSError) -> str:
    where = error.filename2 or error.filename
    place = os.fspath(where) if isinstance(where, str | os.PathLike) else "the disk"
    why = (error.strerror or "unknown reason").lower()
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return f"cannot write {place}: {why}: free some space or choose another --out folder."
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return f"cannot use {place}: {why}: change its permissions or choose another path."
        case errno.ENOENT:
            return f"cannot find {place}: {why}: check the path."
    return f"cannot use {place}: {why}."
