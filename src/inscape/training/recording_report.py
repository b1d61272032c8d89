"""What a recording says in the terminal."""

import sys
from collections.abc import Sequence
from pathlib import Path

from torch import Tensor, nn

from inscape.runtime.progress import is_quiet, shown


def say(text: str) -> None:
    """Write a line to stderr, unless INSCAPE_QUIET is set."""
    if not is_quiet():
        sys.stderr.write(shown(text) + "\n")
        sys.stderr.flush()


def statement(
    path: Path, parameters: Sequence[Tensor], model: nn.Module, every: int, disk: int
) -> str:
    """Return what a recording will take on disk."""
    weights = sum(t.numel() * t.element_size() for t in model.state_dict().values())
    moments = 2 * sum(p.numel() * p.element_size() for p in parameters)
    return (
        f"recording to {path}: a checkpoint every {every:,} updates takes {weights / 1e6:.2f} to "
        f"{(weights + moments) / 1e6:.2f} MB, an update 16 bytes a row and 5 kB where it draws "
        f"random numbers; at most {disk / 1e6:,.0f} MB in all, then checkpoints thin out"
    )
