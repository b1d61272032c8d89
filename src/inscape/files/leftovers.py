"""What a process leaves behind if it is killed, noted beforehand so that a later one tidies it.

Each process that writes keeps a ledger in the user's cache: one line for each temporary file that
is open, none when all is done. A ledger is named by the boot, the PID namespace, the PID and the
start of its process, since PIDs are used again. ``tidy`` deletes what the ledgers of processes
that are gone name, and the semaphores whose prefix follows from a ledger's name; nothing else: no
file is judged by its age.
"""

import atexit
import contextlib
import hashlib
import json
import os
import platform
import re
import secrets
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

#: Where Linux keeps named semaphores.
SEMAPHORES = Path("/dev/shm")

_TEMPORARY = re.compile(r"\.inscape-[0-9a-f]{32}\.tmp")
_LEDGER = re.compile(r"(?P<host>[\w.-]+)~(?P<pid>\d+)~(?P<start>\d+)\.jsonl")


def temporary_path(path: Path) -> Path:
    """Return a name beside ``path`` that nobody else uses."""
    return path.with_name(f".inscape-{secrets.token_hex(16)}.tmp")


def semaphore_prefix() -> str:
    """Return the prefix of the semaphores of this process, which follows from its ledger's name.

    macOS allows 31 letters for a whole name.
    """
    return _prefix(_ledger().path.name)


@contextmanager
def noted(path: Path, *, unless_named_in: Path | None = None) -> Iterator[None]:
    """Note within the block that a file is to be deleted should this process be killed.

    Args:
        path: A temporary file, or a file that is of no use without another.
        unless_named_in: The other file: where its text has the name of ``path``, both are whole.
    """
    line = {"file": str(path.absolute())}
    if unless_named_in is not None:
        line["unless_named_in"] = str(unless_named_in.absolute())
    with _ledger().entry(line):
        yield


def tidy() -> None:
    """Delete what processes that are gone have noted as theirs."""
    try:
        ledgers = list(_folder().glob("*.jsonl"))
    except OSError:
        return
    for ledger in ledgers:
        if _is_gone(ledger.name):
            with contextlib.suppress(OSError):  # another process was quicker
                for line in ledger.read_text(encoding="utf-8", errors="replace").splitlines():
                    _delete(line)
                for semaphore in SEMAPHORES.glob(f"sem.{_prefix(ledger.name)}-*"):
                    _unlink(semaphore)
                ledger.unlink(missing_ok=True)


class _Ledger:
    """The ledger of this process; where it cannot be written, nothing is noted."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.lock = threading.Lock()
        self.open = 0
        self.path = _folder() / f"{_host()}~{self.pid}~{_start(self.pid) or 0}.jsonl"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        except OSError:
            self.file = -1
        atexit.register(self.close)

    @contextmanager
    def entry(self, line: dict[str, str]) -> Iterator[None]:
        """Keep a line in the ledger within the block."""
        with self.lock:
            self.open += 1
            self._write(f"\n{json.dumps(line)}\n")
        try:
            yield
        finally:
            with self.lock:
                self.open -= 1
                if not self.open and self.file >= 0 and os.getpid() == self.pid:
                    with contextlib.suppress(OSError):
                        os.ftruncate(self.file, 0)

    def _write(self, text: str) -> None:
        if self.file >= 0:
            with contextlib.suppress(OSError):  # a full disk: the file itself will say so
                os.write(self.file, text.encode())

    def close(self) -> None:
        """Delete the ledger at the end of the process that began it, if nothing is open."""
        if os.getpid() == self.pid and not self.open and self.file >= 0:
            os.close(self.file)
            self.file = -1
            with contextlib.suppress(OSError):
                self.path.unlink(missing_ok=True)


_ledgers: dict[int, _Ledger] = {}
_first = threading.Lock()


def _ledger() -> _Ledger:
    """Return the ledger of this process, which tidies up once before it begins."""
    ledger = _ledgers.get(os.getpid())
    if ledger is None:
        with _first:
            ledger = _ledgers.get(os.getpid())
            if ledger is None:
                tidy()
                ledger = _ledgers[os.getpid()] = _Ledger()
    return ledger


def _prefix(ledger: str) -> str:
    return f"inscape-{hashlib.sha256(ledger.encode()).hexdigest()[:8]}"


def _folder() -> Path:
    import platformdirs

    return Path(platformdirs.user_cache_dir("inscape", appauthor=False)) / "running"


@cache
def _host() -> str:
    """Return a name of this boot of this machine, and of the PIDs that this process sees."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        namespace = Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        return re.sub(r"[^\w.-]", "-", platform.node()) or "unknown"
    return f"{boot}.{namespace}"


def _start(pid: int) -> int | None:
    """Return when a process began, in ticks since the boot; None where it is gone or unknown."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def _is_gone(name: str) -> bool:
    """Tell whether the process of a ledger is known to be gone; of another machine it is not."""
    ledger = _LEDGER.fullmatch(name)
    if ledger is None or ledger["host"] != _host():
        return False
    pid, start = int(ledger["pid"]), int(ledger["start"])
    if start:
        return _start(pid) != start
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def _delete(line: str) -> None:
    """Delete what a line names, if it is a file of this user's and of the kind that we note."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):  # the process was killed as it wrote the line
        return
    match entry:
        case {"file": str(name), "unless_named_in": str(other)}:
            path = Path(name)
            if path.suffix == ".npz" and not _names(Path(other), path.name):
                _unlink(path)
        case {"file": str(name)} if _TEMPORARY.fullmatch(Path(name).name):
            _unlink(Path(name))


def _names(path: Path, name: str) -> bool:
    try:
        return name.encode() in path.read_bytes()
    except FileNotFoundError:
        return False
    except OSError:  # who knows: the file stays
        return True


def _unlink(path: Path) -> None:
    with contextlib.suppress(OSError):
        status = path.lstat()
        owned = not hasattr(os, "getuid") or status.st_uid == os.getuid()
        if path.is_absolute() and stat.S_ISREG(status.st_mode) and owned:
            path.unlink()
