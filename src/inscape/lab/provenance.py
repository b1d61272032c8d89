"""What made a record: commit, processor and linear algebra, as far as the machine says."""

import platform
import subprocess
from functools import cache
from pathlib import Path

#: What is said where a machine or an older record says nothing.
NOT_RECORDED = "not recorded"


@cache
def commit() -> str:
    """Return the commit of the sources, with a plus where files differ from it."""
    folder = Path(__file__).parent
    head = _git(folder, "rev-parse", "--short=12", "HEAD")
    if not head:
        return NOT_RECORDED
    return head + "+" * bool(_git(folder, "status", "--porcelain", "--", str(folder.parent)))


@cache
def processor() -> str:
    """Return the model of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return next(iter(models), "") or platform.processor() or NOT_RECORDED


@cache
def linear_algebra() -> str:
    """Return the BLAS libraries that are loaded, with version and kernels."""
    from threadpoolctl import threadpool_info

    libraries = {
        " ".join(
            str(library[part])
            for part in ("internal_api", "version", "architecture")
            if library.get(part)
        )
        for library in threadpool_info()
        if library.get("user_api") == "blas"
    }
    return ", ".join(sorted(libraries)) or NOT_RECORDED


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True, text=True, timeout=20, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
