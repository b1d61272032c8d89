"""Download one file: resumable, from the first mirror that has it, kept if its hash is right."""

import errno
import http.client
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

from inscape.data.files import Remote
from inscape.data.store import mismatch
from inscape.runtime.progress import Bar, progress

CHUNK = 1 << 16
#: Tries that may pass without a new byte before a mirror is given up.
TRIES = 3


class _RefusedError(Exception):
    """The mirror answered, and will answer the same again."""


class _BrokenError(Exception):
    """The transfer stopped; trying again may help."""


def download(
    urls: tuple[str, ...],
    target: Path,
    known: Remote,
    *,
    timeout: float = 30.0,
    pause: float = 1.0,
) -> Path:
    """Download the first of ``urls`` that works to ``target``; on failure leave no such file.

    The bytes grow in ``<name>.part``, which the next call goes on with, are checked when they are
    all there, and are then renamed. Wrong bytes are set aside as ``<name>.bad``.

    Args:
        urls: The same file on each mirror, in the order to try.
        target: The file to make; its folder is made too.
        known: Published size and hashes; nothing beyond that size is received.
        timeout: Seconds without a byte after which a connection counts as broken.
        pause: Seconds between two tries of a broken transfer.
    """
    part = target.with_name(f"{target.name}.part")
    failures = []
    try:
        for url in urls:
            resumed = part.exists()
            failure = _attempt(url, part, target, known, timeout, pause)
            if failure and resumed and not part.exists():  # the old beginning may be at fault
                failure = _attempt(url, part, target, known, timeout, pause)
            if not failure:
                return target
            failures.append(f"{urlsplit(url).netloc}: {failure}")
    except OSError as error:
        raise disk_error(error, part) from error
    raise ConnectionError(
        f"{target.name} must come from one of {len(urls)} mirrors, and none gave it "
        f"({'; '.join(failures)}): try again later (what arrived is kept), or put the file into "
        f"{target.parent} yourself."
    )


def _attempt(
    url: str, part: Path, target: Path, known: Remote, timeout: float, pause: float
) -> str:
    """Complete ``part`` from one mirror and rename it; return what went wrong, if anything."""
    try:
        _complete(url, part, known, timeout, pause)
    except (_RefusedError, _BrokenError) as error:
        return str(error)
    reason = mismatch(part.read_bytes(), known)
    if not reason:
        part.replace(target)
        return ""
    aside = part.replace(target.with_name(f"{target.name}.bad"))
    return f"{reason}; set aside as {aside}"


def _complete(url: str, part: Path, known: Remote, timeout: float, pause: float) -> None:
    """Repeat transfers until the file is complete, as long as each few bring new bytes."""
    best, idle = _length(part), 0
    while True:
        try:
            if _transfer(url, part, known, timeout):
                return
            trouble = _BrokenError("the mirror could not go on from what was there")
        except _BrokenError as error:
            trouble = error
        idle = 0 if _length(part) > best else idle + 1
        best = max(best, _length(part))
        if idle >= TRIES:
            raise trouble
        time.sleep(pause)


def _transfer(url: str, part: Path, known: Remote, timeout: float) -> bool:
    """Request the missing bytes once; tell whether the file is complete by the mirror's count."""
    _refuse_plain(url, known)
    have = _length(part)
    headers = {"User-Agent": "inscape"} | ({"Range": f"bytes={have}-"} if have else {})
    try:
        response = urllib.request.urlopen(
            urllib.request.Request(url, headers=headers), timeout=timeout
        )
    except urllib.error.HTTPError as error:
        with error:
            return _on_status(error, part, have)
    except (OSError, http.client.HTTPException) as error:
        raise _BrokenError(_reason(error)) from error
    with response:
        _refuse_plain(response.url, known)  # it may have been sent on to another address
        start = have if response.status == 206 else 0
        content_range = response.headers.get("Content-Range", "")
        if response.status == 206 and not content_range.startswith(f"bytes {have}-"):
            part.unlink()  # the mirror sent another piece than the one asked for: begin again
            return False
        length = response.headers.get("Content-Length", "")
        total = start + int(length) if length.isdecimal() else None
        if total is not None and total > known.size:
            part.unlink(missing_ok=True)
            raise _RefusedError(f"{known.size} bytes expected, found {total}")
        part.parent.mkdir(parents=True, exist_ok=True)
        with (
            part.open("r+b" if start else "wb") as file,
            progress(total or 0, label=known.name, done=start, in_bytes=True) as meter,
        ):
            file.seek(start)
            _copy(response, file, meter, known.size)
        if meter.done > known.size:
            part.unlink()
            raise _RefusedError(f"{known.size} bytes expected, found more")
        if total is not None and meter.done < total:
            raise _BrokenError(f"the connection ended after {meter.done} of {total} bytes")
    return True


def _refuse_plain(url: str, known: Remote) -> None:
    """Refuse an address that anybody on the way can change, unless a sha256 would show it."""
    if urlsplit(url).scheme != "https" and not (known.sha256 or known.algorithm == "sha256"):
        raise _RefusedError(f"https expected where no sha256 is known, found {url}")


def _copy(response: http.client.HTTPResponse, file: BinaryIO, meter: Bar, size: int) -> None:
    """Write what arrives, and stop where it is more than the published size."""
    while meter.done <= size:
        try:
            chunk = response.read(CHUNK)
        except http.client.IncompleteRead as error:
            file.write(error.partial)
            raise _BrokenError("the connection ended early") from error
        except (OSError, http.client.HTTPException) as error:
            raise _BrokenError(_reason(error)) from error
        if not chunk:
            return
        file.write(chunk)
        meter.advance(len(chunk))


def _on_status(error: urllib.error.HTTPError, part: Path, have: int) -> bool:
    if error.code == 416 and have:  # nothing lies beyond what we have
        total = (error.headers.get("Content-Range") or "").rpartition("/")[2]
        if total == str(have):
            return True
        part.unlink()
        return False
    if error.code >= 500 or error.code in (408, 429):
        raise _BrokenError(f"HTTP {error.code} {error.reason}")
    raise _RefusedError(f"HTTP {error.code} {error.reason} for {error.url}")


def _length(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _reason(error: Exception) -> str:
    inner = error.reason if isinstance(error, urllib.error.URLError) else error
    message = inner.strerror if isinstance(inner, OSError) else None
    return (message or str(inner) or type(inner).__name__).lower()


def disk_error(error: OSError, part: Path) -> OSError:
    """Say in one sentence what the disk refused."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        progress = f"{_length(part)} bytes are kept in {part.name}"
        text = f"the disk of {part.parent} is full ({progress}): free some space and run it again."
    else:
        text = f"{part.parent} must be writable, found: {error.strerror or error}; choose another."
    return OSError(text)  # without an errno, so that the text itself is what is shown
