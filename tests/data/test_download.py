import errno
import hashlib
import io
import socket
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest

from inscape.data.download import download
from inscape.data.files import Remote

BODY = bytes(range(256)) * 1000
KNOWN = Remote(
    name="file.bin",
    mirrors=(),
    algorithm="sha256",
    digest=hashlib.sha256(BODY).hexdigest(),
    size=len(BODY),
    parts=(),
    folder="",
)


@pytest.fixture
def target(site, tmp_path) -> Path:
    site.files["/file.bin"] = BODY
    return tmp_path / "new" / "file.bin"


def get(target: Path, *urls: str, timeout: float = 30.0, **changes) -> Path:
    return download(urls, target, replace(KNOWN, **changes), timeout=timeout, pause=0.0)


def only(target: Path) -> list[str]:
    return sorted(path.name for path in target.parent.iterdir())


def test_whole_file_arrives_in_one_request(site, target):
    assert get(target, f"{site.url}/file.bin").read_bytes() == BODY
    assert site.asked == [("/file.bin", "")]
    assert only(target) == ["file.bin"]


def test_goes_on_from_what_an_earlier_call_left(site, target):
    target.parent.mkdir()
    target.with_name("file.bin.part").write_bytes(BODY[:1000])
    assert get(target, f"{site.url}/file.bin").read_bytes() == BODY
    assert site.asked == [("/file.bin", "bytes=1000-")]


def test_interrupted_in_the_middle_goes_on_by_itself(site, target):
    site.moods = ["drop 70000", "drop 30000"]
    assert get(target, f"{site.url}/file.bin").read_bytes() == BODY
    assert [asked for _, asked in site.asked] == ["", "bytes=70000-", "bytes=100000-"]
    assert only(target) == ["file.bin"]


def test_given_up_keeps_the_part_and_the_next_call_resumes(site, target):
    site.moods = ["drop 70000", "500", "500", "500"]
    with pytest.raises(ConnectionError, match=r"HTTP 500 .*what arrived is kept"):
        get(target, f"{site.url}/file.bin")
    assert only(target) == ["file.bin.part"]
    site.asked.clear()
    assert get(target, f"{site.url}/file.bin").read_bytes() == BODY
    assert site.asked == [("/file.bin", "bytes=70000-")]


def test_an_ended_connection_is_named_with_its_bytes(site, target):
    site.moods = ["drop 10"] * 2 + ["drop 0"] * 4
    with pytest.raises(ConnectionError, match="the connection ended after 20 of 256000 bytes"):
        get(target, f"{site.url}/file.bin")


def test_server_that_ignores_ranges_restarts_cleanly(site, target):
    site.moods = ["drop 70000", "deaf"]
    assert get(target, f"{site.url}/file.bin").read_bytes() == BODY
    assert [asked for _, asked in site.asked] == ["", "bytes=70000-"]


def test_server_that_sends_another_range_makes_it_begin_again(site, target):
    site.moods = ["drop 70000", "liar"]
    assert get(target, f"{site.url}/file.bin").read_bytes() == BODY
    assert [asked for _, asked in site.asked] == ["", "bytes=70000-", ""]


def test_wrong_bytes_are_set_aside_and_the_next_mirror_is_tried(site, target):
    site.files["/b/file.bin"] = BODY
    site.moods = ["forger"]
    assert get(target, f"{site.url}/file.bin", f"{site.url}/b/file.bin").read_bytes() == BODY
    assert [path for path, _ in site.asked] == ["/file.bin", "/b/file.bin"]
    assert only(target) == ["file.bin", "file.bin.bad"]
    assert target.with_name("file.bin.bad").read_bytes() == bytes(len(BODY))


def test_wrong_bytes_from_every_mirror_leave_no_file(site, target):
    site.moods = ["forger"]
    with pytest.raises(ConnectionError, match=r"sha256 .* expected, found .*set aside as .*\.bad"):
        get(target, f"{site.url}/file.bin")
    assert only(target) == ["file.bin.bad"]


def test_wrong_size_is_named(site, target):
    with pytest.raises(ConnectionError, match="7 bytes expected, found 256000"):
        get(target, f"{site.url}/file.bin", size=7)


def test_no_more_than_the_published_size_is_received(site, target):
    with pytest.raises(ConnectionError, match="7 bytes expected, found 256000"):
        get(target, f"{site.url}/file.bin", size=7)
    assert only(target) == [] if target.parent.exists() else True
    site.moods = ["wordless"]  # a mirror that does not say how much it will send
    with pytest.raises(ConnectionError, match="1000 bytes expected, found more"):
        get(target, f"{site.url}/file.bin", size=1000)
    assert only(target) == []


def test_plain_http_needs_a_sha256(site, target):
    md5 = {"algorithm": "md5", "digest": hashlib.md5(BODY).hexdigest()}
    with pytest.raises(
        ConnectionError, match="https expected where no sha256 is known, found http"
    ):
        get(target, f"{site.url}/file.bin", **md5)
    assert site.asked == []
    assert get(target, f"{site.url}/file.bin", **md5, sha256=KNOWN.digest).read_bytes() == BODY


def test_both_hashes_are_compared(site, target):
    md5 = {"algorithm": "md5", "digest": hashlib.md5(BODY).hexdigest()}
    with pytest.raises(ConnectionError, match=r"sha256 0000.* expected, found"):
        get(target, f"{site.url}/file.bin", **md5, sha256="0" * 64)


def test_a_wrong_beginning_is_dropped_and_the_same_mirror_asked_again(site, target):
    target.parent.mkdir()
    target.with_name("file.bin.part").write_bytes(b"rubbish")
    assert get(target, f"{site.url}/file.bin").read_bytes() == BODY
    assert [asked for _, asked in site.asked] == ["bytes=7-", ""]


def test_missing_on_one_mirror_comes_from_the_next(site, target):
    assert get(target, f"{site.url}/none.bin", f"{site.url}/file.bin").read_bytes() == BODY
    assert [path for path, _ in site.asked] == ["/none.bin", "/file.bin"]


def test_missing_everywhere_names_every_mirror_once(site, target):
    with pytest.raises(ConnectionError) as caught:
        get(target, f"{site.url}/x/file.bin", f"{site.url}/y/file.bin")
    text = str(caught.value)
    assert text.startswith("file.bin must come from one of 2 mirrors, and none gave it")
    assert f"HTTP 404 Not Found for {site.url}/x/file.bin; " in text
    assert f"HTTP 404 Not Found for {site.url}/y/file.bin)" in text
    assert str(target.parent) in text
    assert not target.parent.exists()
    assert len(site.asked) == 2


def test_server_error_is_tried_again(site, target):
    site.moods = ["503", "429"]
    assert get(target, f"{site.url}/file.bin").read_bytes() == BODY
    assert len(site.asked) == 3


def test_a_part_that_is_already_whole_is_only_checked(site, target):
    target.parent.mkdir()
    target.with_name("file.bin.part").write_bytes(BODY)
    assert get(target, f"{site.url}/file.bin").read_bytes() == BODY
    assert site.asked == [("/file.bin", f"bytes={len(BODY)}-")]


def test_a_part_that_is_too_long_begins_again(site, target):
    target.parent.mkdir()
    target.with_name("file.bin.part").write_bytes(BODY + b"more")
    assert get(target, f"{site.url}/file.bin").read_bytes() == BODY
    assert [asked for _, asked in site.asked] == ["bytes=256004-", ""]


def test_a_length_that_is_not_announced_is_no_obstacle(site, target):
    site.moods = ["wordless"]
    assert get(target, f"{site.url}/file.bin").read_bytes() == BODY


def test_silence_beyond_the_timeout_counts_as_broken(site, target, monkeypatch):
    waits, urlopen = iter([0.5]), urllib.request.urlopen  # only the silent connection is hurried

    def hurried(request, *, timeout):
        assert timeout == 7.0
        return urlopen(request, timeout=next(waits, 60.0))

    monkeypatch.setattr(urllib.request, "urlopen", hurried)
    site.moods = ["asleep"]
    assert get(target, f"{site.url}/file.bin", timeout=7.0).read_bytes() == BODY
    assert len(site.asked) == 2


def test_nobody_listening_is_one_sentence(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(ConnectionError, match=r"127.0.0.1:\d+: connection refused"):
        get(tmp_path / "file.bin", f"http://127.0.0.1:{port}/file.bin")


def test_full_disk_is_said_and_leaves_no_final_file(site, target, monkeypatch):
    class Full(io.FileIO):
        def write(self, chunk):
            if self.tell() >= 100_000:
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(chunk)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", lambda path, mode: Full(path, mode.replace("b", "")))
        with pytest.raises(OSError, match=r"the disk of .* is full \(\d{6} bytes are kept in file"):
            get(target, f"{site.url}/file.bin")
    assert only(target) == ["file.bin.part"]
    assert get(target, f"{site.url}/file.bin").read_bytes() == BODY
    assert site.asked[-1][1].startswith("bytes=1")


def test_a_folder_that_cannot_be_made_is_said(site, target, tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(OSError, match=r"taken.inner must be writable, found: Not a directory"):
        get(tmp_path / "taken" / "inner" / "file.bin", f"{site.url}/file.bin")
