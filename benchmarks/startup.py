"""How soon the command line answers: best of several fresh processes.

    python benchmarks/startup.py

Bars: `inscape --help` and `inscape list` within 0.5 s; `inscape look` on the embedded digits, page
and all, within 60 s. For scale, an empty Python process is timed beside them.
"""

import subprocess
import sys
import tempfile
import time

RUNS = {
    "python -c pass": (7, None, ("-c", "pass")),
    "inscape --help": (7, 0.5, ("-m", "inscape", "--help")),
    "inscape list": (7, 0.5, ("-m", "inscape", "list")),
    "inscape look": (1, 60.0, ("-m", "inscape", "look", "--quiet")),
}


def seconds(words: tuple[str, ...], folder: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, check=True)
    return time.perf_counter() - start


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        for name, (rounds, bar, words) in RUNS.items():
            best = min(seconds(words, folder) for _ in range(rounds))
            print(f"{name:16s} {best:6.2f} s" + (f"   (bar {bar:g} s)" if bar else ""))
