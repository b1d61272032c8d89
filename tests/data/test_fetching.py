import errno
import hashlib
import io
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from inscape.data.fetching import fetch
from inscape.data.files import FILE_SETS
from inscape.errors import DataError


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_everything_is_fetched_from_the_first_mirror_that_has_it(mnist, site, cache):
    rows = fetch("mnist", pause=0)
    assert [row.state for row in rows] == ["ok"] * 4
    assert files_in(cache) == [f"mnist/{remote.name}" for remote in sorted_remotes(mnist)]
    assert [path.split("/")[1] for path, _ in site.asked] == ["nowhere", "mnist"] * 4


def sorted_remotes(small):
    return sorted(small.files.remotes, key=lambda remote: remote.name)


def test_only_what_is_lacking_is_fetched(mnist, site, tmp_path, cache):
    mnist.write(tmp_path / "mine")
    (tmp_path / "mine" / mnist.name("test-labels")).unlink()
    rows = fetch("mnist-binary", data_dir=tmp_path / "mine", pause=0)
    assert [row.state for row in rows] == ["ok"] * 4
    assert files_in(cache) == ["mnist/t10k-labels-idx1-ubyte.gz"]
    site.asked.clear()
    fetch("mnist", data_dir=tmp_path / "mine", pause=0)
    assert site.asked == []


def test_a_bad_file_of_the_cache_is_set_aside_and_fetched_again(mnist, cache):
    fetch("mnist", pause=0)
    path = cache / "mnist" / "train-labels-idx1-ubyte.gz"
    path.write_bytes(b"rubbish")
    assert [row.state for row in fetch("mnist", pause=0)] == ["ok"] * 4
    assert path.with_name(path.name + ".bad").read_bytes() == b"rubbish"


def test_files_go_where_they_are_asked_to(mnist, tmp_path, cache):
    rows = fetch("mnist", to=tmp_path / "chosen", pause=0)
    assert {row.path.parent for row in rows} == {tmp_path / "chosen" / "mnist"}
    assert not cache.exists()


def test_a_mirror_of_the_user_is_asked_first(mnist, site):
    site.files |= {path.replace("/mnist/", "/own/"): body for path, body in site.files.items()}
    fetch("mnist", mirrors=(f"{site.url}/own",), pause=0)
    assert [path.split("/")[1] for path, _ in site.asked] == ["own"] * 4


@pytest.mark.parametrize("mirror", ["file:///etc", "ftp://x", "example.org"])
def test_a_mirror_must_be_http(mirror):
    with pytest.raises(ValueError, match="must start with http:// or https://, found"):
        fetch("mnist", mirrors=(mirror,))


def test_sets_without_files_need_nothing():
    assert fetch("disc") == []


def test_a_file_that_cannot_be_had_is_named_and_the_next_call_goes_on(mnist, site, cache):
    lost = site.files.pop("/mnist/train-labels-idx1-ubyte.gz")
    with pytest.raises(ConnectionError, match=r"^train-labels-idx1-ubyte.gz must come from one of"):
        fetch("mnist", pause=0)
    assert files_in(cache) == ["mnist/train-images-idx3-ubyte.gz"]
    site.files["/mnist/train-labels-idx1-ubyte.gz"] = lost
    assert [row.state for row in fetch("mnist", pause=0)] == ["ok"] * 4


def test_no_archive_at_all_names_both(cifar, site, monkeypatch):
    gone = replace(cifar.files.remotes[0], mirrors=(f"{site.url}/nowhere/",))
    both = (gone, replace(gone, name="other.tar.gz"))
    monkeypatch.setitem(FILE_SETS, "cifar10", replace(cifar.files, remotes=both))
    with pytest.raises(ConnectionError, match=r"^cifar-10-binary.tar.gz must .*other.tar.gz must"):
        fetch("cifar10", pause=0)


def test_an_archive_is_unpacked_to_named_files_only_and_removed(cifar, site, cache, tmp_path):
    rows = fetch("cifar10", pause=0)
    assert [row.state for row in rows] == ["ok"] * 6
    names = [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]
    assert files_in(cache) == [f"cifar-10-batches-bin/{name}" for name in names]
    ledger = "cache/running/"  # what this process notes, so that a later one tidies after a kill
    written = [name for name in files_in(tmp_path) if not name.startswith(ledger)]
    assert written == [f"cache/data/{name}" for name in files_in(cache)]
    for part, raw in cifar.raw.items():
        assert (cache / "cifar-10-batches-bin" / cifar.name(part)).read_bytes() == raw


def test_an_archive_at_hand_is_used_and_kept(cifar, site, cache, tmp_path):
    remote = cifar.files.remotes[0]
    archive = tmp_path / remote.name
    archive.write_bytes(site.files[f"/cifar/{remote.name}"])
    assert [row.state for row in fetch("cifar10", data_dir=tmp_path)] == ["ok"] * 6
    assert site.asked == []
    assert archive.exists()


def test_a_wrong_archive_at_hand_is_not_used(cifar, site, tmp_path):
    (tmp_path / cifar.files.remotes[0].name).write_bytes(b"rubbish")
    fetch("cifar10", data_dir=tmp_path, pause=0)
    assert len(site.asked) == 1


def _serve(cifar, site, monkeypatch, body: bytes) -> None:
    remote = replace(
        cifar.files.remotes[0],
        digest=hashlib.md5(body).hexdigest(),
        sha256=hashlib.sha256(body).hexdigest(),
        size=len(body),
    )
    site.files[f"/cifar/{remote.name}"] = body
    monkeypatch.setitem(FILE_SETS, "cifar10", replace(cifar.files, remotes=(remote,)))


def test_a_damaged_archive_is_named(cifar, site, monkeypatch, cache):
    whole = site.files[f"/cifar/{cifar.files.remotes[0].name}"]
    _serve(cifar, site, monkeypatch, whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"must be a whole tar.gz archive, found a damaged one"):
        fetch("cifar10", pause=0)


def test_an_archive_that_lacks_a_batch_is_named(cifar, site, monkeypatch, tar_of):
    member = cifar.files.remotes[0].members[0]
    _serve(cifar, site, monkeypatch, tar_of({member: cifar.raw["data_batch_1"]}))
    with pytest.raises(DataError, match="must be whole after fetching, found data_batch_2, data_b"):
        fetch("cifar10", pause=0)


def test_links_in_an_archive_are_not_followed(cifar, site, monkeypatch, cache, tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(cifar.raw["data_batch_1"])
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        link = tarfile.TarInfo(cifar.files.remotes[0].members[0])
        link.type, link.linkname = tarfile.SYMTYPE, str(secret)
        tar.addfile(link)
    _serve(cifar, site, monkeypatch, out.getvalue())
    with pytest.raises(DataError, match="must be whole after fetching, found data_batch_1, data_b"):
        fetch("cifar10", pause=0)
    assert files_in(cache) == []


def test_another_archive_stands_in_for_one_that_cannot_be_had(cifar, site, monkeypatch):
    gone = replace(cifar.files.remotes[0], mirrors=(f"{site.url}/nowhere/",))
    both = replace(cifar.files, remotes=(gone, cifar.files.remotes[0]))
    monkeypatch.setitem(FILE_SETS, "cifar10", both)
    assert [row.state for row in fetch("cifar10", pause=0)] == ["ok"] * 6


def test_a_disk_that_fills_while_unpacking_is_said(cifar, cache, monkeypatch):
    replace = Path.replace

    def full(path: Path, target: Path) -> Path:
        if target.name == "data_batch_3.bin":
            raise OSError(errno.ENOSPC, "No space left on device")
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match=r"the disk of .*cifar-10-batches-bin is full"):
        fetch("cifar10", pause=0)
    assert not (cache / "cifar-10-batches-bin" / "data_batch_3.bin").exists()
    monkeypatch.undo()


def test_the_published_files_are_complete():
    for files in FILE_SETS.values():
        brought = {part for remote in files.remotes for part in remote.parts}
        assert brought == {part.name for part in files.parts}
        for remote in files.remotes:
            length = {"sha256": 64, "md5": 32}[remote.algorithm]
            assert len(remote.digest) == length
            assert remote.size > 0
            assert remote.algorithm == "sha256" or len(remote.sha256) == 64
            assert all(mirror.endswith("/") for mirror in remote.mirrors)
        for part in files.parts:
            for form in part.forms:
                assert len(form.digest) == {"sha256": 64, "md5": 32}[form.algorithm]
