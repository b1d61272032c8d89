"""The built wheel works in an empty environment: it brings and names all that it needs."""

import json
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.slow


def run(*words: object, cwd: Path) -> str:
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the bin folder of a new environment that holds only the wheel and what it asks for."""
    folder = tmp_path_factory.mktemp("wheel")
    build = (sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT)
    run(*build, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    run(sys.executable, "-m", "venv", folder / "env", cwd=folder)
    pip = (folder / "env/bin/python", "-m", "pip", "install", "--quiet")
    run(*pip, "--constraint", ROOT / "constraints.txt", wheel, cwd=folder)
    return folder / "env/bin"


def test_wheel_works_alone(installed, tmp_path):
    """One test, so that one worker installs the wheel, once."""
    assert "path_length" in run(installed / "inscape", "list", cwd=tmp_path)
    run(installed / "inscape", "doctor", cwd=tmp_path)
    out = run(installed / "inscape", "look", "--out", tmp_path, "--budget", "20", cwd=tmp_path)
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
