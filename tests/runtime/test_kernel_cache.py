"""Compiled kernels on disk: never read by other code than wrote them, shared by equal code."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from inscape.runtime import kernel_cache

SHAPES = """
from typing import NamedTuple

class {name}(NamedTuple):
    {first}: float
    {second}: float
"""
KERNEL = """
import shapes_of_test.shapes as shapes
from inscape.runtime.compilation import compiled
from shapes_of_test.shapes import {name}
from shapes_of_test.factor import FACTOR

@compiled
def width(box):
    return FACTOR * box.wide

@compiled
def turned(box):
    return {name}(box.high, box.wide)

def both(box):
    return width(box), turned(box)[0]
"""


def package(folder: Path, name: str, fields: tuple[str, str] = ("wide", "high"), factor: int = 1):
    """Write a package whose kernels take and return a named tuple, and return its folder."""
    root = folder / "shapes_of_test"
    root.mkdir(parents=True, exist_ok=True)
    (root / "__init__.py").write_text("")
    (root / "shapes.py").write_text(SHAPES.format(name=name, first=fields[0], second=fields[1]))
    (root / "kernel.py").write_text(KERNEL.format(name=name))
    (root / "factor.py").write_text(f"FACTOR = {factor}\n")
    return folder


def answers(folder: Path, cache: Path, name: str) -> list[float]:
    """Return what the kernels of a package say of Box(2, 3), in a process of their own."""
    code = (
        f"from shapes_of_test.kernel import both; from shapes_of_test.shapes import {name}\n"
        f"print(*both({name}(2.0, 3.0)))"
    )
    path = os.pathsep.join([str(folder), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": path, "XDG_CACHE_HOME": str(cache)}
    process = subprocess.run(
        [sys.executable, "-B", "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return [float(word) for word in process.stdout.split()]


def kernels(cache: Path) -> dict[Path, int]:
    """Return the files of compiled kernels, and when each was written."""
    return {path: path.stat().st_mtime_ns for path in cache.rglob("*.nb*")}


def test_a_renamed_class_and_changed_fields_are_compiled_anew(tmp_path):
    cache = tmp_path / "cache"
    assert answers(package(tmp_path, "Box"), cache, "Box") == [2.0, 3.0]
    assert answers(package(tmp_path, "Crate"), cache, "Crate") == [2.0, 3.0]
    swapped = package(tmp_path, "Crate", ("high", "wide"))
    assert answers(swapped, cache, "Crate") == [3.0, 2.0]


def test_a_changed_constant_of_another_module_is_compiled_anew(tmp_path):
    cache = tmp_path / "cache"
    assert answers(package(tmp_path, "Box"), cache, "Box") == [2.0, 3.0]
    assert answers(package(tmp_path, "Box", factor=10), cache, "Box") == [20.0, 3.0]


def test_equal_sources_elsewhere_share_their_kernels(tmp_path):
    cache = tmp_path / "cache"
    here = package(tmp_path / "here", "Box")
    assert answers(here, cache, "Box") == [2.0, 3.0]
    written = kernels(cache)
    assert len(written) == 4  # an index and a kernel for each of two functions
    there = tmp_path / "there"
    shutil.copytree(here, there)
    shutil.rmtree(here)
    for path in there.rglob("*.py"):
        os.utime(path, (1e9, 1e9))
    assert answers(there, cache, "Box") == [2.0, 3.0]
    assert kernels(cache) == written


def test_folders_that_were_not_used_for_longest_are_removed(tmp_path):
    for age in range(kernel_cache.FOLDERS_PER_MODULE + 3):
        folder = tmp_path / f"{age:02}"
        folder.mkdir()
        (folder / "kernel.nbc").write_text("")
        os.utime(folder, (1e9 - age, 1e9 - age))
    kernel_cache.tidy(tmp_path)
    remaining = sorted(path.name for path in tmp_path.iterdir())
    assert remaining == [f"{age:02}" for age in range(kernel_cache.FOLDERS_PER_MODULE)]


def test_the_hash_follows_every_module_that_is_imported():
    import inscape.ensembles.tiles.kernel as kernel

    def imported(module: str) -> set[str]:
        source = Path(sys.modules[module].__file__).read_bytes()
        return set(kernel_cache._imports(module, source))

    direct = imported(kernel.__name__)
    assert "inscape.ensembles.tiles.steps" in direct
    assert "inscape.runtime.denormals" in direct
    assert "inscape.ensembles.lanes.vectors" in imported("inscape.ensembles.tiles.steps")


@pytest.mark.parametrize("file", ["<string>", "/no/such/file.py"])
def test_a_function_without_a_source_has_no_place_in_the_cache(file):
    assert kernel_cache._Locator.from_function(package, file) is None
