"""How a verb fails: the exit code of an error, and what is said of it in one line."""

import errno
import os
import sys

FAILED = 1  # the run failed: disk, network, memory, budget
USAGE = 2  # the user asked for something that cannot be
OUT_OF_TOLERANCE = 3  # finished, but a checked number is not what it should be
INTERRUPTED = 130
UNREAD = 141  # nobody reads the output any more, as in ``inscape list | head -1``; said by no line

#: What a path is that no file can have.
_NO_PATH = (errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR)


def exit_code(error: BaseException) -> int:
    """Return 2 for an error that the user can fix in the command, 1 for a run that failed."""
    match error:
        case KeyboardInterrupt():
            return INTERRUPTED
        case ValueError() | TypeError() | ImportError() | FileNotFoundError():
            return USAGE
        case OSError() if error.errno in _NO_PATH:
            return USAGE
    return FAILED


def open_streams() -> None:
    """Open the standard streams that the process was started without, to nowhere.

    Otherwise the next file that is opened would be taken for the standard output.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r"))


def sentence(error: BaseException) -> str:
    """Return what to tell the user about an error, in one line."""
    message = " ".join(str(error).split())
    match error:
        case KeyboardInterrupt():
            return "interrupted: nothing was left half written."
        case OSError() if error.errno is not None:
            return _about_disk(error)
        case MemoryError():
            return "out of memory: use fewer points (--limit) or a smaller model."
        case ValueError() | TypeError() | ImportError() | OSError() | RuntimeError() if message:
            return message
    name = type(error).__name__
    return f"unexpected {name}: {message or 'no text'}; run it again with --debug and report it."


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
