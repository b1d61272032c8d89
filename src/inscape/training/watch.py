"""Measures of a network while it is trained, as a live line, a table or in a logger."""

import random
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from inscape._core import checks, instruments
from inscape._core.instrument import Instrument
from inscape.runtime.progress import silence
from inscape.training.random_state import private_random_state
from inscape.training.watch_outputs import Output, outputs_of

#: What is measured unless somebody says otherwise: cheap, and of the function alone.
CHEAP = ("gradient_norm", "path_length")
#: Samples of an estimate: few, since it is the course over training that is looked at.
SAMPLES = 16
#: What instruments may read that are measured at one moment of a training.
AT_ONE_MOMENT = ("function", "parameters")


def watch(
    model: nn.Module,
    x: Tensor,
    y: Tensor | None = None,
    *,
    every: int = 100,
    measures: Sequence[str] = CHEAP,
    optimizer: torch.optim.Optimizer | None = None,
    to: Any = "terminal",
    samples: int = SAMPLES,
    settings: dict[str, dict[str, Any]] | None = None,
) -> "Watch":
    """Return a context that measures a network every so many updates of its training.

    With ``optimizer`` updates are counted by themselves, else call ``step()`` after each. The
    network is measured in eval mode; its mode, its gradients and all random states are as before
    afterwards, so that the training is the same bit for bit. What it cost is in the live line and
    in ``seconds``.

    Args:
        model: The module that is trained.
        x: Inputs at which it is measured.
        y: Their targets, for measures that need labels.
        every: Updates between two measurements; the first is made at once.
        measures: Names of instruments, see ``inscape list``.
        optimizer: The optimizer of the loop.
        to: ``"terminal"`` for a live line, a path ending in ``.csv``, ``"tensorboard:folder"``,
            ``"wandb"`` for its active run, an object with ``add_scalar`` or ``log``, or a list of
            these.
        samples: Samples (pairs, points, lines) of measures that are estimates.
        settings: Settings of instruments by name, such as ``{"path_length": {"knots": 50}}``.
    """
    return Watch(
        model, x, y, every=every, measures=measures, optimizer=optimizer, to=to,
        samples=samples, settings=settings or {},
    )  # fmt: skip


class Watch:
    """Measures a network during its training; made by :func:`watch`.

    Attributes:
        rows: What was measured: for every measurement the step and the values by name.
        seconds: Time that measuring took so far.
    """

    def __init__(
        self,
        model: nn.Module,
        x: Tensor,
        y: Tensor | None,
        *,
        every: int,
        measures: Sequence[str],
        optimizer: torch.optim.Optimizer | None,
        to: Any,
        samples: int,
        settings: dict[str, dict[str, Any]],
    ) -> None:
        checks.module(model)
        checks.points(x)
        checks.whole(1, every=every)
        checks.whole(2, samples=samples)
        self._model, self._x, self._y = model, x.detach(), y
        self._every, self._optimizer, self._settings = every, optimizer, settings
        self._samples = samples
        self._measures = [_instrument(name, y) for name in measures]
        self._outputs: list[Output] = outputs_of(to, [measure.name for measure in self._measures])
        self._failed: set[str] = set()
        self._handle: Any = None
        self._begin = time.perf_counter()
        self.rows: list[dict[str, float]] = []
        self.steps, self.seconds = 0, 0.0

    @property
    def share(self) -> float:
        """Return the fraction of the time since the start that measuring took."""
        return self.seconds / max(time.perf_counter() - self._begin, 1e-9)

    def __enter__(self) -> "Watch":
        self._begin = time.perf_counter()
        if self._optimizer is not None:
            self._handle = self._optimizer.register_step_post_hook(lambda *_: self._count())
        self.measure()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._handle is not None:
            self._handle.remove()
        if self.steps % self._every and error is None:
            self.measure()
        for output in self._outputs:
            output.close(self.steps, self.seconds, self.share)

    def step(self) -> None:
        """Count an update, and measure if it is time to; not needed with ``optimizer``."""
        if self._handle is None:
            self._count()

    def measure(self) -> dict[str, float]:
        """Measure now, write it, and return the values by name."""
        begin = time.perf_counter()
        values: dict[str, float] = {"step": self.steps}
        with _untouched(self._model, self._x.device), silence():
            for measure in self._measures:
                if measure.name not in self._failed:
                    self._measure(measure, values)
        self.rows.append(values)
        self.seconds += time.perf_counter() - begin
        for output in list(self._outputs):
            try:
                output.write(values, self.share)
            except Exception as error:
                self._outputs.remove(output)
                _warn(f"watch no longer writes to {output.name} ({_line(error)})")
        return values

    def _count(self) -> None:
        self.steps += 1
        if self.steps % self._every == 0:
            self.measure()

    def _measure(self, instrument: Instrument, values: dict[str, float]) -> None:
        y = self._x.new_zeros(len(self._x)) if self._y is None else self._y
        own = {instrument.samples: self._samples} if instrument.samples else {}
        own |= self._settings.get(instrument.name, {})
        try:
            result = instrument.measure(self._model, self._x, y, **own)
            summary = result.summary() if hasattr(result, "summary") else None
        except Exception as error:
            self._failed.add(instrument.name)
            _warn(f"watch leaves out {instrument.name} from step {self.steps} on ({_line(error)})")
            return
        if summary is None:
            reason = getattr(result, "reason", None) or getattr(result, "status", "no number")
            self._failed.add(instrument.name)
            _warn(f"watch leaves out {instrument.name} from step {self.steps} on ({reason})")
            return
        values[instrument.name] = summary.value


def _instrument(name: str, y: Tensor | None) -> Instrument:
    known = {
        key: instrument
        for key, instrument in instruments().items()
        if instrument.reads in AT_ONE_MOMENT
    }
    checks.one_of(tuple(known), measures=name)
    if known[name].wants_labels and y is None:
        raise ValueError(
            f"{name} needs labels, found none: pass watch(model, x, y), or leave {name} out."
        )
    return known[name]


@contextmanager
def _untouched(model: nn.Module, device: torch.device) -> Iterator[None]:
    """Put a model into eval mode, and afterwards modes and all random states back."""
    modes = [(module, module.training) for module in model.modules()]
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        with private_random_state(device), torch.enable_grad():
            model.eval()
            yield
    finally:
        for module, mode in modes:
            module.training = mode
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _warn(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=3)
