"""Where a report goes, and that it can go there."""

import errno
import os
import tempfile
from pathlib import Path

import pytest

from inscape.cli.console import Speech
from inscape.report.page_paths import check_page, page_name, page_path


@pytest.mark.parametrize(
    ("out", "page"),
    [
        ("reports", "reports/n.html"),
        ("a/b", "a/b/n.html"),
        ("a/b.html", "a/b.html"),
        (".", "n.html"),
    ],
)
def test_page_path(out, page):
    assert page_path(Path(out), "n") == Path(page)


def test_a_folder_may_be_called_html(tmp_path):
    (tmp_path / "x.html").mkdir()
    assert page_path(tmp_path / "x.html", "n") == tmp_path / "x.html" / "n.html"


@pytest.mark.parametrize(
    ("model", "weights", "data", "name"),
    [
        ("net.py:make", None, "points.npz", "net-make-points"),
        ("a/b/net.py:make", "w/best.pt", "d/points.v2.npz", "net-make-best-points.v2"),
        ("package.module:Net.small", None, "mnist", "module-Net.small-mnist"),
        ("runs/model.pt2", None, "mnist-binary:4-9,n=64", "model-mnist-binary-4-9-n-64"),
        ("net.py:make", None, "gp:length_scale=0.5", "net-make-gp-length_scale-0.5"),
        ("../x:y", None, "/etc/é~.csv", "x-y-é"),
    ],
)
def test_page_name(model, weights, data, name):
    assert page_name(model, weights and Path(weights), data) == name


def test_a_writable_place_is_left_as_it_was(tmp_path):
    check_page(tmp_path / "new" / "folder" / "a.html")
    assert list(tmp_path.iterdir()) == []


def test_relative_places(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_page(Path("reports/a.html"))
    check_page(Path("a.html"))
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_way(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"cannot write into the folder .*file: not a directory"):
        check_page(tmp_path / "file" / "x" / "a.html")


def test_a_folder_in_the_way(tmp_path):
    with pytest.raises(OSError, match=r"cannot write the report .*: it is a folder"):
        check_page(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(OSError, match="permission denied: choose another with --out"):
        check_page(tmp_path / "a.html")


def test_a_read_only_disk(tmp_path, monkeypatch):
    def refuse(dir):
        raise OSError(errno.EROFS, "Read-only file system", str(dir))

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    with pytest.raises(OSError, match="read-only file system: choose another with --out"):
        check_page(tmp_path / "a.html")


def test_speech(capsys):
    Speech(quiet=False)("a", "b")
    Speech(quiet=True)("c")
    assert capsys.readouterr() == ("", "a\nb\n")
