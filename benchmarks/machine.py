"""The conditions under which a benchmark ran: date, commit, machine, versions, load."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path


def conditions(before: float) -> dict[str, str]:
    """Return what figures were taken on; ``before`` is the load before they were."""
    import torch

    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=Path(__file__).parent,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit.stdout.strip() or "unknown",
        "machine": f"{processor()}, {os.cpu_count()} cores, {platform.system()}, Python "
        f"{platform.python_version()}, PyTorch {torch.__version__}, NumPy {version('numpy')}",
        "load": f"{before:.1f} to {os.getloadavg()[0]:.1f}",
    }


def processor() -> str:
    """Return the name of the processor as Linux reports it."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
