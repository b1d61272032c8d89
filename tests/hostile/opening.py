"""Opens files in a process of its own, under limits, and tells how each of them ended.

``python opening.py MANIFEST``: a JSON list of ``[opened_as, path]``. Writes one line of JSON for
each: how it was opened, its path, ``opened``, ``refused`` or ``foreign``, the text, seconds of
processor time and the megabytes that the process has taken at most so far.
"""

import json
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import torch
from torch import nn

import inscape
from inscape._core import checks
from inscape.errors import BudgetError
from inscape.loaders import open_data, open_model
from inscape.training import Trajectory

SECONDS = 30
_OURS = str(Path(inscape.__file__).parent)


def _open(opened_as: str, path: str) -> Any:
    if opened_as == "data":
        return open_data(path)
    if opened_as == "trajectory":
        return Trajectory.load(path)
    weights = path if opened_as == "weights" else None
    model = open_model(nn.Linear(6, 3) if weights else path, weights=weights).model
    return checks.call(model, torch.ones(4, 6))


def ending(opened_as: str, path: str) -> tuple[str, str]:
    """Return how the opening of a file ended, and what was said."""
    try:
        _open(opened_as, path)
    except (ValueError, TypeError, OSError, BudgetError) as error:
        last = traceback.extract_tb(error.__traceback__)[-1].filename
        ours = last.startswith(_OURS) or isinstance(error, OSError)
        return "refused" if ours else "foreign", f"{type(error).__name__}: {error}"
    except Exception as error:
        return "foreign", f"{type(error).__name__}: {error}"
    return "opened", ""


def _peak() -> int:
    """Return the megabytes that this program has taken at most.

    The system's own figure (``ru_maxrss``) is not below that of the process that started it.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024


def main(manifest: str) -> None:
    """Open what the manifest lists."""
    for opened_as, path in json.loads(Path(manifest).read_text()):
        signal.alarm(4 * SECONDS)  # by the clock; the processor's time is what is compared
        began = time.process_time()
        how, text = ending(opened_as, path)
        spent = time.process_time() - began
        peak = _peak()
        sys.stdout.write(json.dumps([opened_as, path, how, text, spent, peak]) + "\n")
        sys.stdout.flush()
    signal.alarm(0)


if __name__ == "__main__":
    main(sys.argv[1])
