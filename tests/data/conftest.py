"""A cache of its own for every test, small published files, and a web server that misbehaves."""

import gzip
import hashlib
import io
import tarfile
import threading
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from inscape.data.files import FILE_SETS, DatasetPart, FileSet
from inscape.data.idx import write_idx


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    """Keep every test out of the user's cache and environment."""
    monkeypatch.delenv("INSCAPE_DATA_DIR", raising=False)
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda *_, **__: str(tmp_path / "cache"))
    return tmp_path / "cache" / "data"


@dataclass
class Site:
    """A local site: its files, how it treats each request in turn, and what it was asked."""

    files: dict[str, bytes] = field(default_factory=dict)
    moods: list[str] = field(default_factory=list)
    asked: list[tuple[str, str]] = field(default_factory=list)
    url: str = ""

    def next_mood(self) -> str:
        return self.moods.pop(0) if self.moods else "good"


class _Handler(BaseHTTPRequestHandler):
    site: Site

    def log_message(self, *_: object) -> None:
        """Stay silent."""

    def do_GET(self) -> None:
        site, wanted = self.site, self.headers.get("Range", "")
        site.asked.append((self.path, wanted))
        mood, body = site.next_mood(), site.files.get(self.path)
        if mood.isdecimal() or body is None:
            self.send_error(int(mood) if mood.isdecimal() else 404)
            return
        if mood == "asleep":
            self.connection.recv(1)  # says nothing until the other side has left
            return
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        if mood == "deaf":
            start = 0
        if start >= len(body) and wanted and mood != "deaf":
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(body)}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self._send(mood, body, start)

    def _send(self, mood: str, body: bytes, start: int) -> None:
        piece = body[start:]
        self.send_response(206 if start else 200)
        if start:
            said = 0 if mood == "liar" else start
            self.send_header("Content-Range", f"bytes {said}-{len(body) - 1}/{len(body)}")
        if mood != "wordless":
            self.send_header("Content-Length", str(len(piece)))
        self.end_headers()
        if mood == "forger":
            piece = bytes(len(piece))
        if mood.startswith("drop"):
            piece = piece[: int(mood.removeprefix("drop "))]
        with suppress(OSError):  # the other side may have hung up
            self.wfile.write(piece)
            self.wfile.flush()


@pytest.fixture
def site():
    """Serve the files of a Site on this machine."""
    handler = type("Handler", (_Handler,), {"site": Site()})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        handler.site.url = f"http://127.0.0.1:{server.server_address[1]}"
        yield handler.site
        server.shutdown()
        thread.join()


def _idx_files(seed: int, train: int = 30, test: int = 20) -> dict[str, bytes]:
    rng = np.random.default_rng(seed)
    return {
        "train-images": write_idx(rng.integers(0, 256, (train, 28, 28)).astype(np.uint8)),
        "train-labels": write_idx(((np.arange(train) + seed) % 10).astype(np.uint8)),
        "test-images": write_idx(rng.integers(0, 256, (test, 28, 28)).astype(np.uint8)),
        "test-labels": write_idx(((np.arange(test)[::-1] + seed) % 10).astype(np.uint8)),
    }


def _known(part: DatasetPart, raw: bytes) -> DatasetPart:
    digests = {"sha256": hashlib.sha256(raw).hexdigest(), "md5": hashlib.md5(raw).hexdigest()}
    forms = (
        replace(
            form,
            digest=digests[form.algorithm],
            size=len(raw),
            sha256=digests["sha256"] if form.sha256 else "",
        )
        for form in part.forms
    )
    return DatasetPart(part.name, tuple(forms))


@dataclass(frozen=True)
class Small:
    """A small file set with the unpacked bytes of its parts."""

    files: FileSet
    raw: dict[str, bytes]

    def name(self, part: str) -> str:
        """Return the plain file name of a part."""
        return next(p.forms[0].names[0] for p in self.files.parts if p.name == part)

    def write(self, folder: Path, *, packed: bool = False) -> None:
        """Write all parts as a user would keep them."""
        folder.mkdir(parents=True, exist_ok=True)
        for part, raw in self.raw.items():
            name = self.name(part) + (".gz" if packed else "")
            (folder / name).write_bytes(gzip.compress(raw, 1) if packed else raw)


def _small_idx(name: str, seed: int, site: Site, monkeypatch) -> Small:
    files, raw = FILE_SETS[name], _idx_files(seed)
    remotes = []
    for remote in files.remotes:
        body = gzip.compress(raw[remote.parts[0]], mtime=0)
        site.files[f"/{name}/{remote.name}"] = body
        sha256 = hashlib.sha256(body).hexdigest()
        mirrors = (f"{site.url}/nowhere/", f"{site.url}/{name}/")
        remotes.append(replace(remote, mirrors=mirrors, digest=sha256, size=len(body)))
    parts = tuple(_known(part, raw[part.name]) for part in files.parts)
    small = replace(files, parts=parts, remotes=tuple(remotes))
    monkeypatch.setitem(FILE_SETS, name, small)
    return Small(small, raw)


@pytest.fixture
def mnist(site, monkeypatch) -> Small:
    """Put a small MNIST in the place of the real one, on disk nowhere, on the site whole."""
    return _small_idx("mnist", 1, site, monkeypatch)


@pytest.fixture
def fashion(site, monkeypatch) -> Small:
    """Put a small Fashion-MNIST in the place of the real one."""
    return _small_idx("fashion-mnist", 2, site, monkeypatch)


def cifar_batch(seed: int, n: int = 4) -> bytes:
    """Return a small binary batch."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 256, (n, 3073)).astype(np.uint8)
    rows[:, 0] %= 10
    return rows.tobytes()


def tar_of(members: dict[str, bytes]) -> bytes:
    """Return a tar.gz archive."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, raw in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(raw)
            tar.addfile(info, io.BytesIO(raw))
    return out.getvalue()


@pytest.fixture(name="tar_of")
def _tar_of():
    return tar_of


@pytest.fixture
def cifar(site, monkeypatch) -> Small:
    """Put a small binary CIFAR-10 in the place of the real one; the site has its archive."""
    files = FILE_SETS["cifar10"]
    raw = {part.name: cifar_batch(i) for i, part in enumerate(files.parts)}
    remote = next(remote for remote in files.remotes if "binary" in remote.name)
    named = dict(zip(remote.members, raw.values(), strict=True))
    body = tar_of({"../outside.bin": b"no", "cifar-10-batches-bin/readme.html": b"no", **named})
    site.files[f"/cifar/{remote.name}"] = body
    remote = replace(
        remote,
        digest=hashlib.md5(body).hexdigest(),
        sha256=hashlib.sha256(body).hexdigest(),
        size=len(body),
        mirrors=(f"{site.url}/cifar/",),
    )
    parts = tuple(
        DatasetPart(p.name, (_known(p, raw[p.name]).forms[0], p.forms[1])) for p in files.parts
    )
    small = replace(files, parts=parts, remotes=(remote,))
    monkeypatch.setitem(FILE_SETS, "cifar10", small)
    return Small(small, raw)
