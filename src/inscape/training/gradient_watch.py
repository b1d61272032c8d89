"""Sees whether gradients are changed between the backward pass and the update, as clipping does."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from inscape.training.loop_update import total_norm

#: Updates at the beginning of which all gradients are compared by value.
FIRST = 32


class Mark(NamedTuple):
    """A gradient after the backward pass: how often it was written to, its memory, its norm."""

    version: int
    address: int
    norm: Tensor


class GradientWatch:
    """Returns the norms of gradients that a replay cannot compute from the batch alone.

    Most loops leave the gradients of the backward pass as they are, and then no norm is needed. An
    in-place operation on a gradient increases its version. Operations on ``p.grad.data`` do not,
    so all gradients of the first updates are compared by norm and address too, and later on the
    smallest one by its values.
    """

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self._parameters = parameters
        self._marks: dict[int, Mark] = {}
        self._handles: list[Any] = []
        self._updates = 0
        self._usual: list[int] | None = None
        self._always = False
        self._smallest: Tensor = min(parameters, key=Tensor.numel)
        self._copy: tuple[Tensor, Tensor] | None = None
        self._peaks: list[float] = []

    @property
    def largest(self) -> float | None:
        """Return to what entries of gradients were clipped: a largest that comes back exactly."""
        top = max(self._peaks, default=0.0)
        return top if top > 0 and sum(peak == top for peak in self._peaks) >= 3 else None

    def attach(self) -> None:
        """Begin to look on."""
        for p in self._parameters:
            self._hook(p, self._mark)

    def detach(self) -> None:
        """Cease to look on."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._marks.clear()

    def norm(self, *, peak: bool = False) -> Tensor:
        """Return the norm of the gradients of an update, NaN where the batch determines it.

        Args:
            peak: Whether to keep the largest entry too, from which clipping by value is seen.
        """
        self._updates += 1
        versions = [-1 if (g := p.grad) is None else g._version for p in self._parameters]
        if self._updates <= FIRST or peak:
            gradients = [p.grad for p in self._parameters]
            entries = [float(g.abs().max()) for g in gradients if g is not None]
            self._peaks.append(max(entries, default=0.0))
        if self._updates <= FIRST:
            self._compare(versions)
        elif not self._always and versions == self._usual and self._smallest_is_unchanged():
            return _UNCHANGED
        return total_norm(self._parameters)

    def _hook(self, parameter: Tensor, function: Callable[[Tensor], None]) -> None:
        handle = parameter.register_post_accumulate_grad_hook(function)  # type: ignore[no-untyped-call]
        self._handles.append(handle)

    def _mark(self, parameter: Tensor) -> None:
        """Note a gradient right after the backward pass."""
        gradient = parameter.grad
        assert gradient is not None
        address = 0 if gradient.is_sparse else gradient.data_ptr()
        self._marks[id(parameter)] = Mark(gradient._version, address, gradient.norm())

    def _compare(self, versions: list[int]) -> None:
        """Learn how often the backward pass writes to gradients, and find silent changes."""
        marks = [self._marks.get(id(p)) for p in self._parameters]
        usual = [-1 if mark is None else mark.version for mark in marks]
        if self._usual is None:
            self._usual = usual
        silent = usual == versions and any(
            mark is not None and p.grad is not None and self._changed(mark, p.grad)
            for mark, p in zip(marks, self._parameters, strict=True)
        )
        self._always |= silent or usual != self._usual
        self._marks.clear()
        if self._updates == FIRST:
            self.detach()
            self._hook(self._smallest, self._keep)

    @staticmethod
    def _changed(mark: Mark, gradient: Tensor) -> bool:
        moved = not gradient.is_sparse and gradient.data_ptr() != mark.address
        return moved or not torch.equal(gradient.norm(), mark.norm)

    def _keep(self, parameter: Tensor) -> None:
        """Keep the smallest gradient as the backward pass left it."""
        gradient = parameter.grad
        assert gradient is not None
        self._copy = gradient, gradient.clone()

    def _smallest_is_unchanged(self) -> bool:
        copy, self._copy = self._copy, None
        if copy is None:
            return self._smallest.grad is None
        if self._smallest.grad is copy[0] and torch.equal(*copy):
            return True
        self._always = True
        return False


_UNCHANGED = torch.tensor(math.nan)
