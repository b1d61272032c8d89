"""How soon the command line answers, in fresh processes run in turn.

    python benchmarks/startup.py             # make index first, as an installation does
    python benchmarks/startup.py --no-look

Bars: `inscape --help` within half a second, `inscape list` within 1.5 times that, `inscape look` on
the embedded digits, page and all, within 75 s. For scale, an empty Python process is timed as well.
"""

import argparse
import subprocess
import sys
import tempfile
from functools import partial

from bars import bar, times

from inscape import index


def run(*words: str, folder: str) -> None:
    subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--no-look", action="store_true", help="leave out inscape look")
    options = parser.parse_args()
    if not index.FILE.exists():
        print("index.json was not built: inscape list will read all sources (make index)")
    with tempfile.TemporaryDirectory() as folder:
        inscape = partial(run, "-m", "inscape", folder=folder)
        taken = times(
            options.rounds,
            python=lambda: run("-c", "pass", folder=folder),
            help=lambda: inscape("--help"),
            list=lambda: inscape("list"),
        )
        print(f"an empty Python process: {taken['python']:.3f} s")
        bar("inscape --help", taken["help"], at_most=0.5, unit="s")
        bar("inscape list against --help", taken["list"] / taken["help"], at_most=1.5)
        if not options.no_look:
            look = times(1, 0, look=lambda: inscape("look", "--quiet"))
            bar("inscape look on the digits", look["look"], at_most=75, unit="s")


if __name__ == "__main__":
    main()
