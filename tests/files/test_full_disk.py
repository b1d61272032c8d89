"""A full disk leaves what was there before, whichever write it is that fails."""

import contextlib
import errno
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from jaxtyping import Float
from torch import Tensor

from faults import Disk, contents, failing, killed
from inscape._core import NotApplicable, Result
from inscape._core.saving import INLINE, load
from inscape.figures import drawing
from inscape.figures.drawing import rendered
from inscape.files.leftovers import tidy
from inscape.models import mlp
from inscape.training import fit

FAULTS = 200  # more than any of these writes; reaching it fails the test


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Numbers(Result):
    """A result that is large enough for an npz, or not."""

    tensor: Float[Tensor, " n"]

    def rows(self):
        yield from ({"value": v} for v in self.tensor.tolist())


def trajectory(value: float):
    x = torch.full((8, 2), value)
    return fit(mlp(2, 3, 1, seed=0), x, x[:, :1], epochs=2, record=1, seed=0).trajectory


def picture(value: float) -> Result:
    return NotApplicable(what=f"number {value}", reason="none")


def numbers(count: int, value: float) -> Result:
    return Numbers(tensor=torch.full((count,), value))


SAVES: dict[str, tuple[str, Callable[[float], object]]] = {
    "json": ("r.json", lambda value: numbers(3, value)),
    "json and npz": ("r.json", lambda value: numbers(INLINE + 1, value)),
    "csv": ("r.csv", lambda value: numbers(3, value)),
    "tex": ("r.tex", lambda value: numbers(3, value)),
    "html": ("r.html", lambda value: numbers(3, value)),
    "parquet": ("r.parquet", lambda value: numbers(3, value)),
    "svg": ("r.svg", picture),
    "pdf": ("r.pdf", picture),
    "png": ("r.png", picture),
    "trajectory": ("r.npz", trajectory),
}


@pytest.fixture(params=SAVES)
def case(request, tmp_path, monkeypatch) -> tuple[Path, object, object]:
    """Return a path, and an old and a new thing to save there."""
    name, make = SAVES[request.param]
    drawn: dict[tuple[str, str], bytes] = {}

    def rendered_once(ax, suffix):  # into memory: it takes long, and nothing is written
        key = (ax.texts[0].get_text(), suffix)
        drawn[key] = drawn.get(key) or rendered(ax, suffix)
        return drawn[key]

    monkeypatch.setattr(drawing, "rendered", rendered_once)
    if request.param == "parquet":
        pytest.importorskip("pyarrow")
    folder = tmp_path / "there"
    folder.mkdir()
    make(0.5).save(tmp_path / name)  # imports and caches write on their own, once
    return folder / name, make(1.0), make(2.0)


def raised(thing, path: Path) -> OSError | None:
    """Save something and return the error that stood in the way."""
    try:
        thing.save(path)
    except OSError as error:
        return error
    return None


@pytest.mark.parametrize("stays", [True, False])
@pytest.mark.parametrize("before", [False, True])
def test_every_write_in_turn_fails_and_leaves_old_or_new(case, before, stays):
    path, old, new = case
    new.save(path)
    expected = contents(path.parent)
    for at in range(FAULTS):
        shutil.rmtree(path.parent)
        path.parent.mkdir()
        if before:
            old.save(path)
        former = contents(path.parent)
        with failing(Disk(at, stays=stays)) as disk:
            error = raised(new, path)
        if error is None:  # no fault, or one that only a later process would miss
            assert set(expected.values()) <= set(contents(path.parent).values())
        else:
            assert error.errno == errno.ENOSPC
            assert contents(path.parent) == former
        new.save(path)
        assert contents(path.parent) == expected
        if not disk.failed:
            break
    assert 3 < at < FAULTS  # a file is opened, written and renamed


def test_the_error_names_the_file(tmp_path):
    with failing(Disk(2)), pytest.raises(OSError, match="No space left") as caught:
        numbers(3, 1.0).save(tmp_path / "r.csv")
    assert caught.value.filename == str(tmp_path / "r.csv")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a fork of this process")
@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("count", [3, INLINE + 1])
def test_a_kill_at_every_write_in_turn_leaves_the_old_result_or_the_new(
    tmp_path, count, before, in_fork
):
    folder = tmp_path / "there"
    path, old, new = folder / "r.json", numbers(count, 1.0), numbers(count, 2.0)
    values = []
    for at in range(FAULTS):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        if before:
            old.save(path)
        was_killed = in_fork(lambda at=at: _save(new, path, at))
        tidy()
        values.append(float(load(path).tensor[0]) if path.exists() else 0.0)
        assert len(contents(folder)) <= 3  # the JSON, and at most the npz of each result
        new.save(path)
        assert set(contents(folder)) <= {"r.json", "r.npz"}
        if not was_killed:
            break
    assert values == sorted(values)
    assert set(values) == {1.0 if before else 0.0, 2.0}
    assert 3 < at < FAULTS


def _save(result: Result, path: Path, at: int) -> None:
    with failing(Disk(at, killed)):
        result.save(path)


@pytest.fixture
def in_fork() -> Callable[[Callable[[], None]], bool]:
    """Return a function that runs another in a fork and tells whether that was killed."""

    def runs(function: Callable[[], None]) -> bool:
        child = os.fork()
        if not child:
            try:
                function()
            finally:
                os._exit(0)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) < 0

    return runs


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Path]:
    """Return the folder of a disk of 256 kB, or skip the test where none can be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    try:
        done = subprocess.run(mount, check=False, capture_output=True, timeout=20)
    except OSError as error:
        pytest.skip(f"no disk can be mounted here: {error}")
    if done.returncode:
        pytest.skip(f"no disk can be mounted here: {done.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True, timeout=20)


@pytest.mark.parametrize("name", ["r.json", "r.csv", "r.npz"])
def test_a_disk_that_is_really_full_keeps_the_old_file_and_takes_the_new_one_later(
    small_disk, name
):
    count = 3 * INLINE
    make = trajectory if name == "r.npz" else lambda value: numbers(count, value)
    path = small_disk / name
    make(1.0).save(path)
    former = contents(small_disk)
    filler = small_disk.parent / "disk" / "filler"
    new = make(2.0)
    failures = 0
    for room in range(0, 64, 4):
        _fill(filler, room * 1024)
        error = raised(new, path)
        if error is None:
            break
        assert error.errno == errno.ENOSPC
        failures += 1
        filler.unlink()
        assert contents(small_disk) == former
    assert failures > 0
    filler.unlink()
    new.save(path)
    assert set(contents(small_disk)) == set(former)
    assert contents(small_disk) != former


def _fill(path: Path, room: int) -> None:
    """Write until the disk is full, then give back ``room`` bytes."""
    with path.open("wb", buffering=0) as file:
        with contextlib.suppress(OSError):
            while file.write(bytes(4096)) == 4096:
                pass
        file.truncate(max(0, file.tell() - room))
