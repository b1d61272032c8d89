"""Imports point one way, and light commands stay light; the checks themselves are checked."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import inscape

PACKAGE = Path(inscape.__file__).parent

#: The packages in order: each may import those of the rows above, and of its own row only itself.
LAYERS = (
    ("errors", "escaping", "index"),
    ("files", "runtime"),
    ("_core",),
    ("selection",),
    ("functional",),
    ("piecewise",),
    ("data", "models", "training"),
    ("loaders",),
    ("ensembles",),
    (
        "boolean",
        "controls",
        "extrapolation",
        "kernels",
        "landscape",
        "pruning",
        "regions",
        "robustness",
        "sensitivity",
        "similarity",
        "smoothness",
        "spectra",
    ),
    ("lab",),
    ("figures",),
    ("environment", "papers", "report"),
    ("explorer",),
    ("cli",),
    ("__init__", "__main__"),
)
#: Families may not import each other, but for these.
BESIDE = {
    "smoothness": {"kernels"},  # a Gaussian process as second opinion
    "extrapolation": {"kernels"},  # a Gaussian process beside the network
    "controls": {"robustness", "smoothness", "spectra"},  # attacks, penalties and norms in training
    "similarity": {"regions"},  # the regions of two networks together
}
#: Exceptions to the order: a result imports figures when it is drawn.
UPWARD = {"_core": {"figures"}}
#: What no layer above it needs: the lab runs on machines that draw and show nothing.
NEVER = {"lab": {"figures", "report", "cli"}, "loaders": {"models", "training"}}


def allowed(part: str) -> set[str]:
    """Return the parts of Inscape that a part may import beside itself."""
    level = next(k for k, layer in enumerate(LAYERS) if part in layer)
    below = {name for layer in LAYERS[:level] for name in layer}
    return (below | BESIDE.get(part, set()) | UPWARD.get(part, set())) - NEVER.get(part, set())


@cache
def tree(source: str) -> ast.Module:
    return ast.parse(source)


def imported(source: str) -> set[str]:
    """Return the parts of Inscape that a source imports."""
    names = []
    for node in ast.walk(tree(source)):
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


def wrong_imports(source: str, part: str) -> set[str]:
    """Return the parts that a source of a part imports and may not import."""
    return imported(source) - allowed(part) - {part} - {"__version__"}


def test_imports_point_one_way():
    wrong = {path: wrong_imports(path.read_text(), part_of(path)) for path in FILES}
    assert not any(wrong.values()), "; ".join(
        f"{path.relative_to(PACKAGE)} may not import {', '.join(sorted(parts))}"
        for path, parts in wrong.items()
        if parts
    )


def test_an_import_of_a_part_above_is_seen():
    source = "import inscape.report.look\nfrom inscape import kernels\nimport torch"
    assert wrong_imports(source, "lab") == {"report"}
    assert wrong_imports(source, "_core") == {"report", "kernels"}


def test_no_part_is_forgotten():
    assert {part_of(path) for path in FILES} == {part for layer in LAYERS for part in layer}


def private_imports(text: str, part: str) -> list[str]:
    """Return the private modules and names of other parts that a source imports."""
    private = []
    for node in ast.walk(tree(text)):
        if not isinstance(node, ast.ImportFrom) or not node.module:
            continue
        first, *inner = node.module.removeprefix("inscape.").split(".")
        if not node.module.startswith("inscape.") or first == part:
            continue
        names = [*inner, *(alias.name for alias in node.names)]
        private += [f"{node.module}: {name}" for name in names if name.startswith("_")]
    return private


def test_nothing_private_of_another_part_is_imported():
    private = {path: private_imports(path.read_text(), part_of(path)) for path in FILES}
    assert not any(private.values()), "make it public where it is, or move it down: " + "; ".join(
        f"{path.relative_to(PACKAGE)} imports {', '.join(names)}"
        for path, names in private.items()
        if names
    )


def test_a_private_import_is_seen():
    source = "from inscape.regions._faces import faces\nfrom inscape._core.checks import _rows"
    assert private_imports(source, "figures") == [
        "inscape.regions._faces: _faces",
        "inscape._core.checks: _rows",
    ]
    assert private_imports(source, "regions") == ["inscape._core.checks: _rows"]


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
