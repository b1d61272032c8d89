"""Records a training loop of the user's, so that it can be replayed and explained."""

import contextlib
import functools
import math
import random
import shutil
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec

import torch
from torch import Tensor, nn

from inscape._core import checks
from inscape.training.batch_finder import BatchFinder
from inscape.training.forward_watch import ForwardWatch
from inscape.training.loop_log import (
    LoopLog,
    MadeUpdate,
    ToldBatch,
    option_values,
    plain_options,
    split_names,
)
from inscape.training.loop_update import optimizer_name, total_norm
from inscape.training.losses import Loss, loss_function
from inscape.training.recording_checks import (
    bare_model,
    bare_optimizer,
    loss_name,
    tensors_of,
    trained_names,
)
from inscape.training.recording_folder import ABOUT, RecordingFolder, is_recording
from inscape.training.recording_report import say, statement
from inscape.training.trajectory import SCHEMA, Settings, Trajectory, fingerprint
from inscape.training.verification import Probes, Verified, verified

#: Bytes that a recording may take on disk unless the caller says otherwise.
DISK = 10**9
#: Bytes of updates in memory above which they are written without a checkpoint.
PENDING = 2**25
#: Updates at the beginning whose largest gradient entry is looked at, to see clipping by value.
FIRST = 32

Given = ParamSpec("Given")


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
    return Recording(
        model, optimizer, loss=loss, data=data, every=every, to=to, disk=disk,
        accumulate=accumulate, scaler=scaler, overwrite=overwrite,
    )  # fmt: skip


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
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        *,
        loss: str | Loss,
        data: Any,
        every: int,
        to: str | Path,
        disk: int,
        accumulate: int,
        scaler: Any,
        overwrite: bool,
    ) -> None:
        checks.whole(1, every=every, disk=disk, accumulate=accumulate)
        self.path = Path(to)
        self.model, self.optimizer = bare_model(model), bare_optimizer(optimizer)
        self.trainable = trained_names(self.model, self.optimizer)
        loss_function(loss)
        self._check_folder(overwrite)
        self._loss, self._scaler, self._accumulate = loss, scaler, accumulate
        self._tells_all = accumulate > 1
        self._every, self._disk, self._overwrite = every, disk, overwrite
        named = dict(self.model.named_parameters())
        self._parameters = [named[name] for name in self.trainable]
        self._data = tensors_of(data)
        self._settings = self._described()
        options = plain_options(self.optimizer.param_groups[0])
        self._names, self._keys = tuple(options), split_names(tuple(options))
        self._kinds = tuple(kind for kind, _ in options.values())
        self._log, self._folder = LoopLog(), RecordingFolder(self.path)
        self._finder = BatchFinder(self._data, self._log, self.note, disk // 2)
        self._watch = ForwardWatch(self.model, self.note)
        self._probes = Probes(random.Random(0))
        self._made: list[MadeUpdate] = []
        self._told: list[ToldBatch] = []
        self._peaks: list[float] = []
        self._handle: Any = None
        self._versions: int | None = None
        self.recording, self.closed = False, False
        self.notes: list[str] = []
        self.verdict = "not verified"
        self.seconds = 0.0

    @property
    def steps(self) -> int:
        """Return how many updates were recorded."""
        return self._log.steps

    @property
    def bytes(self) -> int:
        """Return the bytes on disk."""
        return self._folder.bytes

    @property
    def trajectory(self) -> Trajectory:
        """Return what was recorded, read from the folder."""
        return Trajectory.load(self.path, max_size=2 * self._disk)

    def __enter__(self) -> "Recording":
        if self._overwrite and is_recording(self.path):
            shutil.rmtree(self.path)
        self.path.mkdir(parents=True, exist_ok=True)
        self.recording = True
        self._start()
        self._watch.attach()
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
        forward = self._watch.taken()
        self._told.append(self._finder.told(batch, forward))
        made, self._made = self._made, []
        if not made:
            self._skipped()
            return
        if len(made) > 1:
            self._note_gap(len(made) - 1)
        for unseen in made[:-1]:
            self._log.add(unseen, ())
        self._log.add(made[-1], self._told)
        self._told = []
        self._probes.after(self.steps, self._parameters)
        if len(made) > 1 or self.steps % self._every == 0:
            self._checkpoint()
        elif self._log.bytes > PENDING:
            self._flush()

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
        last = max(self._folder.checkpoints, default=0)
        self.note(
            f"stopped at update {self.steps} ({reason}); the training goes on, and what was "
            f"recorded up to update {last} can be opened."
        )

    def close(self) -> None:
        """Write what is left, replay some updates, and say what came out; call it once."""
        if self.closed:
            return
        self.closed = True
        self._watch.detach()
        if self._handle is not None:
            self._handle.remove()
        self._finish()
        self.recording = False
        with contextlib.suppress(OSError):
            self._folder.describe(self._about())
        say(
            f"recorded {self.steps:,} updates and {len(self._folder.checkpoints)} checkpoints in "
            f"{self.path} ({self.bytes / 1e6:.1f} MB, {self.seconds:.1f} s); {self.verdict}"
        )

    @_guarded
    def _start(self) -> None:
        self._folder.describe(self._about())
        say(statement(self.path, self._parameters, self.model, self._every, self._disk))
        self._checkpoint()

    @_guarded
    def _finish(self) -> None:
        if self._made:
            self._note_gap(len(self._made))
            for unseen in self._made:
                self._log.add(unseen, ())
        if self.steps and self._folder.checkpoints[-1:] != [self.steps]:
            self._checkpoint()
        if self.recording and self.steps:
            self._finder.write(self.path)
            self._verify()

    def _verify(self) -> None:
        try:
            replayed = verified(
                self._probes, self.path, self._about(), self.model, self._data, self._loss
            )
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            replayed = Verified(f"no update could be replayed ({reason})", False, self._accumulate)
        self.verdict, self._accumulate = replayed.verdict, replayed.accumulate
        self._replayable = replayed.replayable
        if not replayed.replayable:
            self.note(f"{self.verdict}; explanations are first order only.")

    _replayable = True

    @_guarded
    def _after_update(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        """Keep hyper-parameters and the gradient's norm of the update that was just made."""
        values = [option_values(group, self._keys) for group in optimizer.param_groups]
        scale = math.nan if self._scaler is None else float(self._scaler.get_scale())
        norm = total_norm(self._parameters)
        if self.steps < FIRST or self.steps % self._every == 0:
            entries = [float(p.grad.abs().max()) for p in self._parameters if p.grad is not None]
            self._peaks.append(max(entries, default=0.0))
        self._made.append(MadeUpdate(options=values, norm=norm, scale=scale))

    def _skipped(self) -> None:
        """Deal with a batch that no update followed."""
        if self._tells_all:
            return
        self._told.clear()
        if self._scaler is None:
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
        self._flush()
        if not self.recording:
            return
        arrays = {f"states/{k}": _copy(t) for k, t in self.model.state_dict().items()}
        for number, parameter in enumerate(self._parameters):
            for key, value in self.optimizer.state.get(parameter, {}).items():
                if isinstance(value, Tensor | int | float):
                    arrays[f"memory/{number}.{key}"] = _copy(torch.as_tensor(value))
        size = sum(t.numel() * t.element_size() for t in arrays.values())
        if not self._fits(size):
            return
        self._folder.checkpoint(self.steps, arrays)
        self._probes.at(self.steps)
        self._watch.check_modes()

    def _flush(self) -> None:
        if self._log.first == self._log.steps:
            return
        first = self._log.first
        arrays = self._log.flush(len(self._names), len(self.optimizer.param_groups))
        if self._fits(sum(t.numel() * t.element_size() for t in arrays.values())):
            self._folder.steps(first, arrays)

    def _fits(self, size: int) -> bool:
        """Thin out checkpoints until another one fits; stop where that does not help."""
        while self.recording and self._folder.bytes + size > self._disk:
            if len(self._folder.checkpoints) < 2:
                self.stop(f"{size:,} bytes more would exceed disk={self._disk:,} bytes")
                return False
            self._folder.thin()
            self._every *= 2
            self.note(
                f"disk={self._disk:,} bytes were reached: every other checkpoint is deleted, and "
                "the next ones are twice as far apart."
            )
        return self.recording

    def _check_folder(self, overwrite: bool) -> None:
        if is_recording(self.path) and not overwrite:
            raise ValueError(
                f"to must be a new folder, found a recording in {self.path}: choose another name, "
                "or pass overwrite=True to delete it."
            )
        if (
            self.path.exists()
            and (not self.path.is_dir() or any(self.path.iterdir()))
            and not (is_recording(self.path))
        ):
            raise ValueError(
                f"to must be a new or empty folder, found {self.path} in use (no {ABOUT} in it): "
                "choose another name."
            )

    def _described(self) -> Settings:
        groups = self.optimizer.param_groups
        first = groups[0]
        return Settings(
            loss=loss_name(self._loss),
            optimizer=optimizer_name(self.optimizer),
            lr=max(float(group["lr"]) for group in groups),
            momentum=max(float(group.get("momentum", 0.0)) for group in groups),
            nesterov=any(bool(group.get("nesterov")) for group in groups),
            weight_decay=max(float(group.get("weight_decay", 0.0)) for group in groups),
            betas=first.get("betas", (0.9, 0.999)),
            batch=None, epochs=1, schedule=None, stop_loss=None, stop_on="running", penalties=(),
            seed=0, record=self._every,
        )  # fmt: skip

    def _about(self) -> dict[str, Any]:
        """Return what about.json says."""
        settings = asdict(self._settings) | {"batch": self._finder.size, "record": self._every}
        named = {id(p): name for name, p in self.model.named_parameters()}
        groups = tuple(
            tuple(named[id(p)] for p in group["params"] if id(p) in named)
            for group in self.optimizer.param_groups
        )
        loop = {
            "option_names": self._names,
            "option_kinds": self._kinds,
            "groups": groups,
            "evaluated": self._watch.evaluated,
            "autocast": self._watch.autocast,
            "accumulate": self._accumulate,
            "largest": _largest(self._peaks),
            "replayable": self._replayable,
            "verdict": self.verdict,
            "notes": tuple(self.notes),
        }
        return {
            "schema": SCHEMA,
            "settings": settings,
            "trainable": self.trainable,
            "data": self._fingerprint,
            "loop": loop,
        }

    @functools.cached_property
    def _own_fingerprint(self) -> str:
        return "" if self._data is None else fingerprint(*self._data)

    @property
    def _fingerprint(self) -> str:
        return self._finder.fingerprint or self._own_fingerprint


def _copy(tensor: Tensor) -> Tensor:
    return tensor.detach().to("cpu", copy=True)


def _largest(peaks: Sequence[float]) -> float | None:
    """Return to what entries of gradients were clipped: a largest one that comes back exactly."""
    top = max(peaks, default=0.0)
    return top if top > 0 and sum(peak == top for peak in peaks) >= 3 else None
