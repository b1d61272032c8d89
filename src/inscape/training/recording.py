"""Records a training loop of the user's, so that it can be replayed and explained."""

import contextlib
import functools
import math
import random
import shutil
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec

import torch
from torch import nn

from inscape._core import checks
from inscape.training.batch_finder import BatchFinder
from inscape.training.forward_watch import ForwardWatch
from inscape.training.gradient_watch import GradientWatch
from inscape.training.loop_description import LoopDescription
from inscape.training.loop_log import LoggedBatch, LoggedUpdate, LoopLog
from inscape.training.losses import Loss, loss_function
from inscape.training.recording_checks import bare_model, bare_optimizer, tensors_of
from inscape.training.recording_folder import check_new, is_recording
from inscape.training.recording_report import say, statement
from inscape.training.recording_writer import DiskBudgetError, RecordingWriter
from inscape.training.trajectory import Trajectory
from inscape.training.verification import Probes, Verified, verified

#: Bytes that a recording may take on disk unless the caller says otherwise.
DISK = 10**9

Given = ParamSpec("Given")


@dataclass(frozen=True, kw_only=True)
class RecordingOptions:
    """The arguments of :func:`record_training` beside model and optimizer."""

    loss: str | Loss
    data: Any = None
    every: int = 100
    to: str | Path = "run"
    disk: int = DISK
    accumulate: int = 1
    scaler: Any = None
    overwrite: bool = False


def record_training(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    loss: str | Loss,
    data: Any = None,
    every: int = 100,
    to: str | Path = "run",
    disk: int = DISK,
    accumulate: int = 1,
    scaler: Any = None,
    overwrite: bool = False,
) -> "Recording":
    """Return a context that records the training loop inside it to a folder.

    Call ``run.step(indices)`` after each ``optimizer.step()``, or ``run.step(xb, yb)`` where the
    loop has no indices: rows are then found in ``data`` by a hash of their values. The folder opens
    with ``Trajectory.load``, and ``inscape look --trajectory`` takes it. Parameter groups,
    schedules, momentum, Adam's moments, clipping, accumulation, dropout, batch normalisation and
    autocast are replayed; at the end up to three updates are, to see that they come out the same.

    Each checkpoint costs a copy of weights and optimiser state, each update some 0.1 ms. Errors
    of the recording and a full disk end it with one warning; the training goes on.

    Args:
        model: The module that is trained; it returns one tensor.
        optimizer: Its optimizer.
        loss: Name of the loss, or a function of outputs and targets that returns their mean loss.
        data: Inputs and targets of the training set, as the model receives them; None keeps every
            batch in the recording.
        every: Updates between two checkpoints.
        to: Folder to write.
        disk: Bytes that the folder may take. Beyond, checkpoints thin out; where updates alone
            would exceed it, the recording stops, and both are said.
        accumulate: Batches whose gradients are accumulated for one update. Above 1, call
            ``run.step`` after every batch.
        scaler: The ``torch.amp.GradScaler`` of the loop, if it has one.
        overwrite: Whether to delete a recording that is there already.
    """
    options = RecordingOptions(
        loss=loss, data=data, every=every, to=to, disk=disk, accumulate=accumulate, scaler=scaler,
        overwrite=overwrite,
    )  # fmt: skip
    return Recording(model, optimizer, options)


def _guarded(
    method: Callable[Concatenate["Recording", Given], None],
) -> Callable[Concatenate["Recording", Given], None]:
    """Let no error of a recording reach the training: it ends the recording, with one warning."""

    @functools.wraps(method)
    def safe(self: "Recording", *args: Given.args, **kwargs: Given.kwargs) -> None:
        if not self.recording:
            return
        begin = time.perf_counter()
        try:
            method(self, *args, **kwargs)
        except DiskBudgetError as error:
            self.stop(str(error))
        except Exception as error:
            self.stop(f"{type(error).__name__}: {error}")
        self.seconds += time.perf_counter() - begin

    return safe  # type: ignore[return-value]


class Recording:
    """A training loop while it is recorded; made by :func:`record_training`.

    Attributes:
        path: The folder.
        recording: Whether updates are still recorded.
        notes: What a reader should know: what was not recorded or cannot be replayed, and why.
        verdict: What replaying some updates at the end has shown.
        seconds: Time that recording took so far.
    """

    def __init__(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, options: RecordingOptions
    ) -> None:
        checks.whole(1, every=options.every, disk=options.disk, accumulate=options.accumulate)
        self.path, self._options = Path(options.to), options
        self.model, self.optimizer = bare_model(model), bare_optimizer(optimizer)
        loss_function(options.loss)
        data = tensors_of(options.data)
        self._loop = LoopDescription(self.model, self.optimizer, options.loss, data)
        check_new(self.path, overwrite=options.overwrite)
        self._data, self._accumulate = data, options.accumulate
        self._log = LoopLog()
        self._writer = RecordingWriter(
            self.path, self._log, every=options.every, disk=options.disk, note=self.note
        )
        self._finder = BatchFinder(data, self._log, self.note, options.disk // 2)
        self._forward = ForwardWatch(self.model, self.note)
        self._gradients = GradientWatch(self._loop.parameters)
        self._probes = Probes(random.Random(0))
        self._updates: list[LoggedUpdate] = []
        self._batches: list[LoggedBatch] = []
        self._handle: Any = None
        self._replayable = True
        self.recording, self.closed = False, False
        self.notes: list[str] = []
        self.verdict = "not verified"
        self.seconds = 0.0

    @property
    def trainable(self) -> tuple[str, ...]:
        """Return the names of the parameters that the optimizer updates."""
        return self._loop.trainable

    @property
    def steps(self) -> int:
        """Return how many updates were recorded."""
        return self._log.steps

    @property
    def bytes(self) -> int:
        """Return the bytes on disk."""
        return self._writer.folder.bytes

    @property
    def trajectory(self) -> Trajectory:
        """Return what was recorded, read from the folder."""
        return Trajectory.load(self.path, max_size=2 * self._options.disk)

    def __enter__(self) -> "Recording":
        if self._options.overwrite and is_recording(self.path):
            shutil.rmtree(self.path)
        self.path.mkdir(parents=True, exist_ok=True)
        self.recording = True
        self._start()
        self._forward.attach()
        self._gradients.attach()
        self._handle = self.optimizer.register_step_post_hook(self._after_update)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @_guarded
    def step(self, *batch: Any) -> None:
        """Record the update just made with the rows of a batch.

        Args:
            batch: Numbers of the rows in the data; or inputs and targets.
        """
        self._batches.append(self._finder.logged(batch, self._forward.take()))
        updates, self._updates = self._updates, []
        if not updates:
            self._skipped()
            return
        if len(updates) > 1:
            self._note_gap(len(updates) - 1)
        for unseen in updates[:-1]:
            self._log.add(unseen, ())
        self._log.add(updates[-1], self._batches)
        self._batches = []
        self._probes.after(self.steps, self._loop.parameters)
        if len(updates) > 1 or self.steps % self._writer.every == 0:
            self._checkpoint()
        else:
            self._writer.flush_if_large(self._loop.options_shape)

    def note(self, text: str) -> None:
        """Keep a note, once, and warn of it."""
        if text not in self.notes:
            self.notes.append(text)
            warnings.warn(f"recording to {self.path}: {text}", RuntimeWarning, stacklevel=4)

    def stop(self, reason: str) -> None:
        """End the recording with a warning; the training goes on."""
        if not self.recording:
            return
        self.recording = False
        self.note(
            f"stopped at update {self.steps} ({reason}); the training goes on, and what was "
            f"recorded up to update {self._writer.last or 0} can be opened."
        )

    def close(self) -> None:
        """Write what is left, replay some updates, and say what came out; call it once."""
        if self.closed:
            return
        self.closed = True
        self._forward.detach()
        self._gradients.detach()
        if self._handle is not None:
            self._handle.remove()
        self._finish()
        self.recording = False
        with contextlib.suppress(OSError):
            self._writer.folder.describe(self._about())
        say(
            f"recorded {self.steps:,} updates and {len(self._writer.folder.checkpoints)} "
            f"checkpoints in {self.path} ({self.bytes / 1e6:.1f} MB, {self.seconds:.1f} s); "
            f"{self.verdict}"
        )

    @_guarded
    def _start(self) -> None:
        self._writer.folder.describe(self._about())
        options, parameters = self._options, self._loop.parameters
        say(statement(self.path, parameters, self.model, options.every, options.disk))
        self._checkpoint()

    @_guarded
    def _finish(self) -> None:
        if self._updates:
            self._note_gap(len(self._updates))
            for unseen in self._updates:
                self._log.add(unseen, ())
        if self.steps and self._writer.last != self.steps:
            self._checkpoint()
        if self.steps:
            self._finder.write(self.path)
            self._verify()

    def _verify(self) -> None:
        try:
            replayed = verified(
                self._probes, self.path, self._about(), self.model, self._data, self._options.loss
            )
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            replayed = Verified(f"no update could be replayed ({reason})", False, self._accumulate)
        self.verdict, self._accumulate = replayed.verdict, replayed.accumulate
        self._replayable = replayed.replayable
        if not replayed.replayable:
            self.note(f"{self.verdict}; explanations are first order only.")

    @_guarded
    def _after_update(self, *_: Any) -> None:
        """Log hyper-parameters and the gradient's norm of the update that was just made."""
        scaler = self._options.scaler
        scale = math.nan if scaler is None else float(scaler.get_scale())
        norm = self._gradients.norm(peak=self.steps % self._writer.every == 0)
        self._updates.append(LoggedUpdate(options=self._loop.options(), norm=norm, scale=scale))

    def _skipped(self) -> None:
        """Deal with a batch that no update followed."""
        if self._options.accumulate > 1:
            return
        self._batches.clear()
        if self._options.scaler is None:
            self.note(
                "run.step was called without an optimizer.step() since the last call: that batch "
                "is not recorded. If the loop accumulates gradients over k batches, pass "
                "accumulate=k."
            )

    def _note_gap(self, many: int) -> None:
        self.note(
            f"optimizer.step() was called without run.step: {many} update{'s' * (many > 1)} of "
            f"unknown batches, first before update {self.steps + many}; call run.step after each."
        )

    def _checkpoint(self) -> None:
        self._writer.flush(self._loop.options_shape)
        self._writer.checkpoint(self.model, self.optimizer, self._loop.parameters)
        self._probes.at(self.steps)
        self._forward.check_modes()

    def _about(self) -> dict[str, Any]:
        """Return what about.json says."""
        loop = {
            "evaluated": self._forward.evaluated,
            "autocast": self._forward.autocast,
            "accumulate": self._accumulate,
            "largest": self._gradients.largest,
            "replayable": self._replayable,
            "verdict": self.verdict,
            "notes": tuple(self.notes),
        }
        return self._loop.about(
            batch=self._finder.size, record=self._writer.every,
            collected=self._finder.fingerprint, loop=loop,
        )  # fmt: skip
