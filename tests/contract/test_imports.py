"""Imports point one way, and light commands stay light; the checks themselves are checked."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import inscape

PACKAGE = Path(inscape.__file__).parent

#: What each package may import beside itself. Families may not import each other.
ALLOWED = {
    "_core": {"escaping", "index", "figures"},  # figures only when a result is drawn
    "escaping": set(),
    "index": set(),
    "data": {"_core"},
    "models": {"_core"},
    "training": {"_core"},
    "intake": {"_core", "data"},
    "boolean": {"_core", "data", "training"},
    "kernels": {"_core", "training"},
    "pruning": {"_core", "training"},
    "regions": {"_core"},
    "robustness": {"_core"},
    "smoothness": {"_core", "kernels"},  # a Gaussian process as second opinion
    "spectra": {"_core"},
    "extrapolation": {"_core", "kernels"},
    "landscape": {"_core", "training"},
    "controls": {"_core", "robustness", "smoothness", "spectra", "training"},
    "figures": {
        "_core",
        "escaping",
        "boolean",
        "controls",
        "extrapolation",
        "kernels",
        "landscape",
        "pruning",
        "regions",
        "robustness",
        "smoothness",
        "spectra",
    },
    "lab": {"_core", "index", "data", "training"},
    "papers": {
        "_core",
        "index",
        "data",
        "models",
        "training",
        "boolean",
        "controls",
        "extrapolation",
        "kernels",
        "landscape",
        "pruning",
        "regions",
        "robustness",
        "smoothness",
        "spectra",
        "figures",
        "lab",
    },
    "report": {
        "_core",
        "escaping",
        "data",
        "models",
        "training",
        "intake",
        "boolean",
        "extrapolation",
        "kernels",
        "regions",
        "robustness",
        "smoothness",
        "figures",
        "lab",
    },
    "cli": {
        "_core",
        "escaping",
        "index",
        "boolean",
        "data",
        "models",
        "training",
        "intake",
        "lab",
        "report",
    },
    "__main__": {"cli"},
    "__init__": {
        "_core",
        "boolean",
        "controls",
        "data",
        "extrapolation",
        "figures",
        "intake",
        "kernels",
        "lab",
        "landscape",
        "models",
        "pruning",
        "regions",
        "report",
        "robustness",
        "smoothness",
        "spectra",
        "training",
    },
}


def imported(path: Path) -> set[str]:
    """Return the parts of Inscape that a file imports."""
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module == "inscape":
            names += [f"inscape.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.append(node.module)
    return {name.split(".")[1] for name in names if name.startswith("inscape.")}


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_one_way(path):
    part = part_of(path)
    wrong = imported(path) - ALLOWED[part] - {part} - {"__version__"}
    assert not wrong, f"{part} may not import {', '.join(sorted(wrong))}"


def test_no_part_is_forgotten():
    assert {part_of(path) for path in FILES} == set(ALLOWED)


def loaded_by(code: str) -> set[str]:
    """Return the top-level modules that a fresh process has loaded after ``code``."""
    show = f"{code}\nimport sys; print(' '.join(m.split('.')[0] for m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_a_family_loads_no_tables_pictures_or_terminal():
    loaded = loaded_by("import inscape; inscape.smoothness.path_length; inscape.instruments()")
    assert "torch" in loaded
    assert not loaded & {"pandas", "matplotlib", "rich", "sklearn", "typer", "jinja2"}


def test_the_index_loads_no_torch():
    loaded = loaded_by("import inscape.index; assert inscape.index.entries()")
    assert not loaded & {"torch", "numpy"}


def test_the_check_can_fail():
    assert "csv" in loaded_by("import csv")
