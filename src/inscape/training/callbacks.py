"""Callbacks that record trainings by Lightning and by the Trainer of Hugging Face.

Both packages are imported when a callback is made. A loop of accelerate needs none: pass the
prepared model and optimizer to :func:`inscape.record_training`.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from inscape.runtime.extras import need
from inscape.training.losses import Loss
from inscape.training.recording import DISK, Recording, RecordingOptions

#: Turns what a data loader yields into inputs and targets.
BatchReader = Callable[[Any], tuple[Tensor, Tensor]]


def lightning_callback(
    *,
    loss: str | Loss,
    data: Any = None,
    model: Callable[[Any], nn.Module] | None = None,
    batch: BatchReader | None = None,
    every: int = 100,
    to: str | Path = "run",
    disk: int = DISK,
    overwrite: bool = False,
) -> Any:
    """Return a callback for ``lightning.Trainer`` that records the training.

    Args:
        loss: As in :func:`inscape.record_training`.
        data: As there.
        model: From the LightningModule to the module that is recorded, such as ``lambda m:
            m.net``; by default the LightningModule, whose ``forward`` returns the outputs.
        batch: From a batch of the data loader to inputs and targets; by default a pair of tensors
            or a dictionary with labels.
        every: As there.
        to: As there.
        disk: As there.
        overwrite: As there.
    """
    options = RecordingOptions(
        loss=loss, data=data, every=every, to=to, disk=disk, overwrite=overwrite
    )
    kind = type("LightningRecording", (_LightningHooks, _lightning().Callback), {})
    return kind(options, model, batch or read_batch)


class _LightningHooks:
    """Records the training of a LightningModule; ``run`` is the recording."""

    def __init__(
        self,
        options: RecordingOptions,
        model: Callable[[Any], nn.Module] | None,
        read: BatchReader,
    ) -> None:
        self._options, self._model, self._read = options, model, read
        self.run: Recording | None = None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        if len(trainer.optimizers) != 1:
            raise ValueError(
                "a recording is of one optimizer, found "
                f"{len(trainer.optimizers)}: record such a training by hand."
            )
        options = replace(
            self._options,
            accumulate=trainer.accumulate_grad_batches,
            scaler=getattr(trainer.precision_plugin, "scaler", None),
        )
        module = pl_module if self._model is None else self._model(pl_module)
        self.run = Recording(module, trainer.optimizers[0], options).__enter__()

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if self.run is not None:
            self.run.step(*self._read(batch))

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._close(pl_module)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._close(pl_module)

    def _close(self, pl_module: Any) -> None:
        trainer, pl_module._trainer = pl_module._trainer, None  # a copy would copy the trainer
        try:
            if self.run is not None:
                self.run.close()
        finally:
            pl_module._trainer = trainer


def trainer_callback(
    *,
    loss: str | Loss,
    data: Any = None,
    model: nn.Module | None = None,
    batch: BatchReader | None = None,
    every: int = 100,
    to: str | Path = "run",
    disk: int = DISK,
    overwrite: bool = False,
) -> Any:
    """Return a callback for the Trainer of Hugging Face that records the training.

    Args:
        loss: As in :func:`inscape.record_training`; what the model computes from its labels.
        data: As there.
        model: A module of one tensor in, one tensor out, with the weights of the model that is
            trained: ``inscape.adapt(model, take="logits")``.
        batch: From the arguments of the model by name to inputs and targets; by default the first
            tensor that is not called labels, and ``labels``.
        every: As there.
        to: As there.
        disk: As there.
        overwrite: As there.
    """
    options = RecordingOptions(
        loss=loss, data=data, every=every, to=to, disk=disk, overwrite=overwrite
    )
    base = need("transformers", extra="zoo", why="a callback for the Trainer").TrainerCallback
    kind = type("TrainerRecording", (_TrainerHooks, base), {})
    return kind(options, model, batch or read_batch)


class _TrainerHooks:
    """Records the training of a Trainer; ``run`` is the recording."""

    def __init__(
        self, options: RecordingOptions, model: nn.Module | None, read: BatchReader
    ) -> None:
        self._options, self._model, self._read = options, model, read
        self.run: Recording | None = None
        self._inputs: Mapping[str, Any] | None = None
        self._handle: Any = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        trained = kwargs["model"]
        self._handle = trained.register_forward_pre_hook(self._before, with_kwargs=True)
        options = replace(self._options, accumulate=args.gradient_accumulation_steps)
        module = trained if self._model is None else self._model
        self.run = Recording(module, kwargs["optimizer"], options).__enter__()

    def on_substep_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._step()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._step()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self._handle is not None:
            self._handle.remove()
        if self.run is not None:
            self.run.close()

    def _before(self, module: nn.Module, args: Any, kwargs: Mapping[str, Any]) -> None:
        if module.training:
            self._inputs = dict(kwargs)

    def _step(self) -> None:
        if self.run is not None and self._inputs is not None:
            self.run.step(*self._read(self._inputs))
            self._inputs = None


def read_batch(batch: Any) -> tuple[Tensor, Tensor]:
    """Return inputs and targets of a pair of tensors, or of a dictionary with labels."""
    if isinstance(batch, Mapping):
        labels = next((batch[key] for key in ("labels", "label", "y") if key in batch), None)
        inputs = [t for t in batch.values() if isinstance(t, Tensor) and t is not labels]
        if isinstance(labels, Tensor) and inputs:
            return inputs[0], labels
    elif isinstance(batch, tuple | list) and len(batch) == 2:
        x, y = batch
        if isinstance(x, Tensor) and isinstance(y, Tensor):
            return x, y
    raise TypeError(
        "a batch must be inputs and targets, or a dictionary with labels, found "
        f"{type(batch).__name__}: pass batch=... that returns a pair of tensors."
    )


def _lightning() -> Any:
    try:
        return import_module("lightning.pytorch")
    except ImportError:
        return need("pytorch_lightning", extra="zoo", why="a callback for Lightning")
