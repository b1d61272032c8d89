"""Where measures of a training go: a live line, a table on disk, TensorBoard or W&B."""

import csv
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from inscape.runtime.extras import need
from inscape.runtime.progress import is_quiet, shown

TENSORBOARD = "tensorboard:"


@runtime_checkable
class Output(Protocol):
    """Takes the measures of one moment after the other."""

    name: str

    def write(self, values: Mapping[str, float], share: float) -> None:
        """Take the measures of a step, and the fraction of the time that measuring took."""
        ...

    def close(self, steps: int, seconds: float, share: float) -> None:
        """End after so many steps."""
        ...


class TerminalLine:
    """One line that is written over in a terminal, lines elsewhere; silent by INSCAPE_QUIET."""

    name = "the terminal"

    def write(self, values: Mapping[str, float], share: float) -> None:
        """Write the measures."""
        parts = [f"{key} {value:.4g}" for key, value in values.items()]
        self._show(f"{' | '.join(parts)} | measuring {share:.1%} of the time", over=True)

    def close(self, steps: int, seconds: float, share: float) -> None:
        """Write what it cost."""
        self._show(
            f"watched {steps:,} updates; measuring took {seconds:.1f} s, {share:.1%} of the time",
            over=False,
        )

    def _show(self, text: str, *, over: bool) -> None:
        if is_quiet():
            return
        line = shown(text)
        live = sys.stderr.isatty()
        ending = "" if live and over else "\n"
        sys.stderr.write(f"\r\x1b[K{line}{ending}" if live else f"{line}\n")
        sys.stderr.flush()


class Table:
    """A CSV file with one row for each measurement, whole after each."""

    def __init__(self, path: Path, names: Sequence[str]) -> None:
        self.name = str(path)
        self._path, self._names = path, ("step", *names)
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerow(self._names)

    def write(self, values: Mapping[str, float], share: float) -> None:
        """Append a row; a measure that is missing is an empty cell."""
        with self._path.open("a", newline="", encoding="utf-8") as file:
            csv.writer(file).writerow([values.get(name, "") for name in self._names])

    def close(self, steps: int, seconds: float, share: float) -> None:
        """Do nothing: the file is whole."""


class Logger:
    """An object with ``add_scalar`` (TensorBoard) or ``log`` (W&B)."""

    def __init__(self, target: Any, *, own: bool = False) -> None:
        self.name, self._target, self._own = type(target).__name__, target, own

    def write(self, values: Mapping[str, float], share: float) -> None:
        """Log the measures under ``inscape/<name>``."""
        step = int(values["step"])
        named = {f"inscape/{key}": value for key, value in values.items() if key != "step"}
        if not hasattr(self._target, "add_scalar"):
            self._target.log(named, step=step)
            return
        for key, value in named.items():
            self._target.add_scalar(key, value, step)

    def close(self, steps: int, seconds: float, share: float) -> None:
        """Close a writer that was opened here, not one of the user's."""
        if self._own:
            self._target.close()


def outputs_of(to: Any, names: Sequence[str]) -> list[Output]:
    """Return where measures go; ``to`` as :func:`inscape.watch` takes it."""
    return [_output(target, names) for target in (to if isinstance(to, list | tuple) else [to])]


def _output(target: Any, names: Sequence[str]) -> Output:
    if target == "terminal":
        return TerminalLine()
    if isinstance(target, str) and target.startswith(TENSORBOARD):
        why = "writing measures for TensorBoard"
        need("tensorboard", extra="tensorboard", why=why)
        board = need("torch.utils.tensorboard", extra="tensorboard", why=why)
        return Logger(board.SummaryWriter(target.removeprefix(TENSORBOARD)), own=True)
    if target == "wandb":
        wandb = need("wandb", extra="wandb", why="logging measures to Weights & Biases")
        if wandb.run is None:
            raise ValueError(
                "to='wandb' logs to the active run, found none: call wandb.init(...) first."
            )
        return Logger(wandb.run)
    if isinstance(target, str | Path) and str(target).endswith(".csv"):
        return Table(Path(target), names)
    if hasattr(target, "add_scalar") or hasattr(target, "log"):
        return Logger(target)
    raise ValueError(
        "to must be 'terminal', a path ending in .csv, 'tensorboard:folder', 'wandb', or an object "
        f"with add_scalar or log, found {target!r}: choose one of these."
    )
