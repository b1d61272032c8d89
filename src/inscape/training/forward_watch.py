"""Looks on at forward passes: the input, the random state before them, mode and number type."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from inscape.training.random_state import global_generators, random_state

#: Passes that drew random numbers, after which all are taken to do so.
ALWAYS = 16


@dataclass(eq=False)
class Forward:
    """A forward pass: its input if the recorded module was called, and the state it drew from."""

    x: Tensor | None
    state: Tensor
    drew: bool = False


class ForwardWatch:
    """Keeps the first pass of the model in training mode since it was last asked."""

    def __init__(self, model: nn.Module, note: Callable[[str], None]) -> None:
        self._model, self._note = model, note
        self._forward: Forward | None = None
        self._handles: list[Any] = []
        self._modes: frozenset[str] | None = None
        self.autocast: str | None = None
        self._device = next(model.parameters()).device
        self._generators = global_generators(self._device)
        self._drawing = 0

    @property
    def evaluated(self) -> tuple[str, ...]:
        """Return the names of modules in eval mode while the model was trained."""
        return tuple(sorted(self._modes or ()))

    def attach(self) -> None:
        """Begin to look on. Where a wrapper is recorded, what it wraps may be called instead."""
        inner = getattr(self._model, "model", None)
        parts = [inner] if isinstance(inner, nn.Module) else []
        if hasattr(self._model, "training_step"):  # of Lightning: it may call its parts
            parts = list(self._model.children())
        for module in (self._model, *parts):
            self._handles += [
                module.register_forward_pre_hook(self._before, with_kwargs=True),
                module.register_forward_hook(self._after),
            ]

    def detach(self) -> None:
        """Cease to look on."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def take(self) -> Forward | None:
        """Return the pass, and wait for the next."""
        forward, self._forward = self._forward, None
        return forward

    def check_modes(self) -> None:
        """Note a change of modes of single modules since the first pass."""
        if self._modes is not None and self._model.training and self._now() != self._modes:
            self._note(
                "modules changed between training and eval mode while the model was trained; "
                "updates are replayed with the modes of the first."
            )

    def _before(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        if self._forward is not None or not module.training or not torch.is_grad_enabled():
            return
        x = args[0] if args and isinstance(args[0], Tensor) else None
        own = x if module is self._model else None
        self._forward = Forward(own, random_state(self._generators))
        if self._drawing >= ALWAYS:
            self._forward.drew = True
        if self._modes is None:
            self._modes = self._now()
            self.autocast = self._number_type()

    def _after(self, module: nn.Module, *_: Any) -> None:
        forward = self._forward
        if forward is not None and not forward.drew:
            after = random_state(self._generators)
            forward.drew = forward.state.numpy().tobytes() != after.numpy().tobytes()
            self._drawing += forward.drew

    def _now(self) -> frozenset[str]:
        named = self._model.named_modules()
        return frozenset(name for name, module in named if name and not module.training)

    def _number_type(self) -> str | None:
        kind = self._device.type
        if not torch.is_autocast_enabled(kind):
            return None
        return str(torch.get_autocast_dtype(kind)).removeprefix("torch.")
