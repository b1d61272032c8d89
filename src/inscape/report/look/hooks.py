"""Hooks of a model stay as they were, also where a measurement is interrupted."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn

from inscape.report.look.watch import Interrupted

#: Where a module keeps its hooks.
KINDS = (
    "_forward_hooks",
    "_forward_pre_hooks",
    "_backward_hooks",
    "_backward_pre_hooks",
)


@contextmanager
def hooks_kept(model: nn.Module) -> Iterator[None]:
    """Remove the hooks that a block has added to a model, if it is interrupted.

    An interruption may come between adding a hook and noting that it is there.
    """
    before = [(hooks, set(hooks)) for hooks in _hooks(model)]
    try:
        yield
    except Interrupted:
        for hooks, known in before:
            for key in set(hooks) - known:
                del hooks[key]
        raise


def _hooks(model: nn.Module) -> Iterator[dict[int, Any]]:
    for module in model.modules():
        yield from (vars(module)[kind] for kind in KINDS if kind in vars(module))
