"""The built wheel works in an empty environment: it brings and names all that it needs.

The environment holds the wheel and, as links, the distributions that the wheel asks for and those
that these ask for: what is not named cannot be imported, and nothing is downloaded or unpacked.
"""

import json
import os
import subprocess
import sys
import zlib
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
#: What would lead out of the environment.
OUTSIDE = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")

pytestmark = pytest.mark.slow


def run(*words: object, cwd: Path) -> str:
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env={name: text for name, text in os.environ.items() if name not in OUTSIDE},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def asked_for(wheel: Distribution) -> Iterator[Distribution]:
    """Yield the distributions here that a wheel asks for, and those that they ask for."""
    waiting = [Requirement(text) for text in wheel.requires or ()]
    seen: set[str] = set()
    while waiting:
        wanted = waiting.pop()
        extras = {"", *wanted.extras}
        if str(wanted) in seen or not wanted_here(wanted):
            continue
        seen.add(str(wanted))
        given = distribution(wanted.name)
        assert wanted.specifier.contains(given.version, prereleases=True), wanted
        yield given
        for text in given.requires or ():
            inner = Requirement(text)
            if inner.marker is None or any(inner.marker.evaluate({"extra": e}) for e in extras):
                inner.marker = None
                waiting.append(inner)


def wanted_here(requirement: Requirement) -> bool:
    """Return whether a requirement holds on this machine, without extras."""
    return requirement.marker is None or requirement.marker.evaluate({"extra": ""})


def link(given: Distribution, packages: Path) -> None:
    """Link all that a distribution brings, but for its commands."""
    for top in {file.parts[0] for file in given.files or ()} - {"..", "__pycache__"}:
        source, target = Path(str(given.locate_file(top))), packages / top
        if not target.exists() and source.exists():
            target.symlink_to(source)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the bin folder of a new environment that holds only the wheel and what it asks for."""
    folder = tmp_path_factory.mktemp("wheel")
    build = (sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT)
    run(*build, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    run(sys.executable, "-m", "venv", "--without-pip", folder / "env", cwd=folder)
    pip = (sys.executable, "-m", "pip", "--python", folder / "env/bin/python")
    run(*pip, "install", "--quiet", "--no-index", "--no-deps", wheel, cwd=folder)
    (packages,) = folder.glob("env/lib/python*/site-packages")
    (metadata,) = packages.glob("inscape-*.dist-info")
    for given in asked_for(Distribution.at(metadata)):
        link(given, packages)
    return folder / "env/bin"


def test_wheel_works_alone(installed, tmp_path):
    """One test, so that one worker installs the wheel, once."""
    missing = "import importlib.util as u; print(u.find_spec('hypothesis'), u.find_spec('torch'))"
    assert run(installed / "python", "-c", missing, cwd=tmp_path).startswith("None ModuleSpec")
    assert "path_length" in run(installed / "inscape", "list", cwd=tmp_path)
    run(installed / "inscape", "doctor", cwd=tmp_path)
    out = run(installed / "inscape", "look", "--out", tmp_path, "--budget", "10", cwd=tmp_path)
    assert "gradient_norm" in out
    (page,) = tmp_path.glob("*.html")
    assert page.stat().st_size > 10_000
    (package,) = installed.parent.glob("lib/python*/site-packages/inscape")
    assert (package / "py.typed").exists()
    assert list(package.glob("report/templates/*.j2"))
    assert (package / "report/style.css").exists()
    kept = json.loads((package / "index.json").read_text())
    assert "smoothness/path_length.py" in kept
    for name, said in kept.items():
        assert said["checksum"] == zlib.crc32((package / name).read_bytes()), name
