"""A full disk leaves whole pages and whole records, and the next run goes on."""

import errno
import shutil
from pathlib import Path

import pytest

import fake_paper
from faults import Disk, contents, failing
from inscape.lab import Store, plan, run
from inscape.lab.index_file import NAME
from inscape.report.look import page
from inscape.report.paper.page import write_pages

FAULTS = 300  # more than any of these writes; reaching it fails the test


@pytest.fixture
def store(tmp_path, monkeypatch) -> Store:
    """Return a store with the records of a small paper."""
    fake_paper.install(tmp_path / "papers", monkeypatch)
    made = Store(tmp_path / "results")
    for id in ("fake/table-1.1", "fake/counting"):
        fake_paper.fill(made, id, "laptop")
    return made


@pytest.mark.parametrize("name", ["a.html", "a.json"])
def test_every_write_of_a_report_fails_in_turn(seen, tmp_path, name, monkeypatch):
    path = tmp_path / "there" / name
    text = page.page(seen)
    monkeypatch.setattr(page, "page", lambda look: text)  # it takes long, and nothing is written
    seen.save(path)
    expected = contents(path.parent)
    for before in (False, True):
        for at in range(FAULTS):
            shutil.rmtree(path.parent)
            if before:
                path.parent.mkdir()
                path.write_text("old")
            former = contents(tmp_path)
            with failing(Disk(at)) as disk:
                error = raised(seen.save, path)
            assert error is None or "no space left on device" in error
            assert (
                contents(path.parent) == expected if error is None else contents(tmp_path) == former
            )
            if not disk.failed:
                break
            seen.save(path)
        assert 3 < at < FAULTS


def raised(save, path: Path) -> str | None:
    """Save something and return what stood in the way."""
    try:
        save(path)
    except OSError as error:
        return str(error)
    return None


def test_every_write_of_the_pages_fails_in_turn(store, tmp_path):
    out = tmp_path / "pages"
    write_pages(store, out)
    expected = contents(out)
    assert len(expected) == 2
    for at in range(FAULTS):
        shutil.rmtree(out, ignore_errors=True)
        with failing(Disk(at)) as disk:
            error = raised(lambda out: write_pages(store, out), out)
        assert error is None or "no space left on device" in error
        assert contents(out).items() <= expected.items()
        if not disk.failed:
            break
    assert contents(out) == expected
    assert 6 < at < FAULTS


@pytest.mark.parametrize("stays", [True, False])
def test_every_write_of_a_run_fails_in_turn_and_the_next_run_goes_on(
    store, tmp_path, monkeypatch, stays
):
    def numbers(found: Store) -> dict[str, object]:
        return {r.key: r.values for r in found.records("fake/counting", "paper")}

    calm, rough = Store(tmp_path / "calm"), Store(tmp_path / "rough")
    run(plan("fake/counting", scale="paper", store=calm), store=calm, quiet=True)
    expected = numbers(calm)
    assert len(expected) == 3
    for at in range(FAULTS):
        shutil.rmtree(rough.root, ignore_errors=True)
        todo = plan("fake/counting", scale="paper", store=rough)
        with failing(Disk(at, stays=stays)) as disk:
            error = None
            try:
                run(todo, store=rough, quiet=True)
            except OSError as caught:
                error = caught
        assert error is None or error.errno == errno.ENOSPC
        done = numbers(rough)
        assert done.items() <= expected.items()
        assert error is not None or len(done) == 3
        assert {Path(name).suffix for name in contents(rough.root) if name != NAME} <= {".json"}
        again = plan("fake/counting", scale="paper", store=rough)
        assert len(again.missing) == 3 - len(done)  # nothing that was done is done again
        run(again, store=rough, quiet=True)
        assert numbers(rough) == expected
        assert rough.notices == []
        if not disk.failed:
            break
    assert 15 < at < FAULTS
