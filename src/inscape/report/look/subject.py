"""The subject of a look: a model with its data, its speed, and the time budget."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from inscape._core import Instrument, NotApplicable, UnsupportedModelError
from inscape._core.arguments import in_float32
from inscape._core.unsupported_models import refuse_other_object, refuse_unreadable
from inscape.functional.final_activation import ends_in_probability
from inscape.functional.jacobians import MEMORY, Probe, probe
from inscape.loaders import Adapted, OpenedData, OpenedModel, arguments_of, open_data
from inscape.report.look.watch import BudgetWatch
from inscape.report.look.window import rectangle, slice_window
from inscape.report.words import one_line
from inscape.runtime.deadline import now
from inscape.runtime.threads import on_threads, quicker_threads

#: Seconds that one batch, with the gradients of up to ten outputs, should take at most.
BATCH = 0.4
#: Seconds of a trial batch that tell the pace well enough.
TOLD = 0.02
#: Seconds of a batch that tells on how many threads to compute.
TRIAL = 0.03
#: Said of a model in half precision.
HALF_MEASURED = "in half precision: measured as a copy in float32; yours is unchanged"
#: Seconds of a first call after which no second one is made to tell the pace.
LONG = 1.0


@dataclass(frozen=True, eq=False, kw_only=True)
class Subject:
    """The model and the data of a look, and its settings.

    ``work`` holds the numbers of examples of a look that is repeated; ``counts`` those of this one.
    ``tokens`` are the examples before a model of tokens embeds them, None for any other model;
    ``scalable`` tells whether one scale may apply to all of the input.
    ``wanted_threads`` is the user's word on how many threads to use.
    """

    model: nn.Module
    x: Tensor
    y: Tensor | None
    x_train: Tensor
    y_train: Tensor | None
    tokens: Tensor | None
    tokens_train: Tensor | None
    scalable: bool
    task: str
    loss: str | None
    probe: Probe
    clock: BudgetWatch
    seed: int
    command: str | None
    work: Mapping[str, int] | None = None
    wanted_threads: int | None = None
    counts: dict[str, int] = field(default_factory=dict)

    @cached_property
    def probability(self) -> bool:
        """Tell whether the model is seen to return the probability of one of two classes."""
        single = self.task == "classes" and self.probe.outputs == 1
        return single and ends_in_probability(self.model, self.x)

    @cached_property
    def threads(self) -> int:
        """Return on how many threads to compute: as many as make the model quickest now."""
        if self.wanted_threads is not None:
            count = self.wanted_threads
        elif self.work is not None:
            count = self.work.get("threads", torch.get_num_threads())
        else:
            count = self._quicker_threads()
        self.counts["threads"] = count
        return count

    def _quicker_threads(self) -> int:
        most = self.probe.rows(MEMORY)
        with on_threads(1):
            pace = seconds_per_row(self.model, self.x, most=most)
        rows = torch.arange(max(1, min(most, int(TRIAL / max(pace, 1e-9)))), device=self.x.device)
        batch = self.x[rows % len(self.x)]
        with torch.no_grad():
            return quicker_threads(lambda: float(self.model(batch).sum()))

    @cached_property
    def pace(self) -> float:
        """Return the seconds that one example takes forward through the model."""
        return seconds_per_row(self.model, self.x, most=self.probe.rows(MEMORY))

    @cached_property
    def rows(self) -> int:
        """Return how many examples a batch has, so that no step of an instrument is long."""
        passes = 1 + 2 * min(self.probe.outputs, 10)
        return max(1, self.affordable("batch", BATCH, self.probe.rows(MEMORY), passes=passes))

    @cached_property
    def plane(self) -> dict[str, Any]:
        """Return the plane and the domain of the slice, for instruments that cut a plane."""
        window = slice_window(self.x, self.y, classes=self.task == "classes")
        if isinstance(window, NotApplicable):
            return {}
        return {"plane": window[0], "domain": rectangle(window[2])}

    def affordable(self, name: str, seconds: float, most: int, *, passes: float = 1) -> int:
        """Return how many examples, at so many forward passes each, fit into some seconds.

        The number is kept under its name, and is the one kept where a look is repeated.
        """
        if name not in self.counts:
            if self.work is not None:
                rows = self.work.get(name, most)
            else:
                rows = int(seconds / (passes * max(self.pace, 1e-9)))
            self.counts[name] = max(0, min(most, rows))
        return self.counts[name]

    @property
    def labels(self) -> Tensor:
        """Return the labels of the measured examples, zeros where there are none."""
        return self.x.new_zeros(len(self.x)) if self.y is None else self.y

    def on_tokens(self, instrument: Instrument, model: nn.Module) -> "tuple[Subject, nn.Module]":
        """Return what an instrument is to see of a model of tokens, and the model.

        One that does not move through the input sees the tokens: embedded ones have left out the
        parameters of the embedding.
        """
        if not isinstance(model, Adapted) or model.embedding is None:
            return self, model
        if self.tokens is None or not instrument.discrete:
            return self, model
        tokens = model.on_tokens()
        train = self.tokens if self.x is self.x_train else self.tokens_train
        assert train is not None
        return replace(self, model=tokens, x=self.tokens, x_train=train), tokens

    def predicted(self, instrument: Instrument) -> float:
        """Return the seconds that an instrument is expected to take if it is given time."""
        n = len(self.x_train if instrument.of_training else self.x)
        return instrument.setup + instrument.work(n, self.probe.outputs) * self.pace

    def lacks(self, instrument: Instrument) -> NotApplicable | None:
        """Return what the data lack that an instrument needs, if anything."""
        labels = self.y_train if instrument.of_training else self.y
        if labels is None and instrument.wants_labels:
            reason = "it needs labels, the data have none"
        elif instrument.of_training and self.probability:
            reason = "the model returns a probability, and the loss of logits is not its own"
        elif (rows := len(self.arguments(instrument)[0])) < instrument.least_rows:
            reason = f"it needs at least {instrument.least_rows} examples, the data have {rows}"
        else:
            return None
        return NotApplicable(what=instrument.name, reason=reason)

    def arguments(self, instrument: Instrument) -> tuple[Tensor, Tensor, dict[str, Any]]:
        """Return the points, their labels, and the arguments beyond: example, seed, memory, plane.

        Instruments with separate queries get the training set as data and the test set as queries;
        those that cut a plane get that of the slice, those of training its set and its loss.
        """
        known = signature(instrument.function).parameters
        settings = dict(instrument.example(self.model, self.x, self.labels))
        if "seed" in known:
            settings["seed"] = self.seed
        if {"plane", "domain"} <= known.keys():
            settings |= self.plane
        if "memory" in known and self.clock.memory is not None:
            usual, allowed = known["memory"].default, max(2**20, self.clock.memory // 4)
            settings["memory"] = allowed if usual is None else min(usual, allowed)
        if instrument.of_training and self.y_train is not None:
            return self.x_train, *self._trained_loss(self.y_train, settings)
        if instrument.wants_queries and self.x is not self.x_train and self.y_train is not None:
            return self.x_train, self.y_train, {
                **settings, "queries": self.x, "answers": self.labels,
            }  # fmt: skip
        return self.x, self.labels, settings

    @property
    def trained_on(self) -> str:
        """Return on what the loss of training is measured, where the other rows are test ones."""
        return "" if self.x is self.x_train else f"on {len(self.x_train):,} training examples"

    def _trained_loss(self, y: Tensor, settings: dict[str, Any]) -> tuple[Tensor, dict[str, Any]]:
        """Return the labels as the loss of training takes them, and the settings with it."""
        if self.loss is None:
            return y, settings
        if self.loss != "cross_entropy" and not y.is_floating_point():
            classes = self.probe.outputs
            y = functional.one_hot(y, classes) if classes > 1 else y[:, None]
            y = y.to(self.x.dtype)
        return y, {**settings, "loss": self.loss}


@torch.no_grad()
def seconds_per_row(model: nn.Module, x: Tensor, *, most: int) -> float:
    """Time ever larger batches and return the least seconds per example.

    The first call of a model is often slow (libraries choose their kernels), and counts only where
    a second one would take long. A single call that takes long may have waited for the processor:
    two in a row are needed to tell.
    """
    rows, best, calls, long = 1, float("inf"), 0, 0
    while True:
        numbers = torch.arange(rows, device=x.device) % len(x)
        batch = x[numbers]
        start = now()
        float(evaluated(model, batch, numbers).sum())  # reading a number waits for the device
        took = now() - start
        best, calls = min(best, took / rows), calls + 1
        long = long + 1 if took > TOLD else 0
        if took > LONG or long > 1 or (rows >= most and calls > 3):
            return best
        rows = rows if calls == 1 or long else min(most, 4 * rows)


def evaluated(model: nn.Module, batch: Tensor, rows: Tensor) -> Tensor:
    """Return the outputs of a batch with these indices; name the example that a model refuses."""
    try:
        outputs: Tensor = model(batch)
    except Exception as error:
        raise UnsupportedModelError(
            f"the model must accept every example of the data, but it raised "
            f"{_refusal(model, batch, rows, error)}: leave such examples out, or fix the model."
        ) from error
    return outputs


def _refusal(model: nn.Module, batch: Tensor, rows: Tensor, error: Exception) -> str:
    """Return what a model raises, and at which single example, or that it is at all together."""
    for row, number in enumerate(rows.tolist()):
        try:
            model(batch[row : row + 1].clone())
        except Exception as alone:
            return f"{type(alone).__name__} at example {number} ({one_line(alone)})"
    together = f"a batch of {len(rows)} examples" if len(rows) > 1 else f"example {int(rows[0])}"
    return f"{type(error).__name__} at {together} ({one_line(error)})"


def subject_of(
    model: nn.Module,
    data: OpenedData,
    *,
    clock: BudgetWatch,
    seed: int,
    command: str | None,
    work: Mapping[str, int] | None = None,
    wanted_threads: int | None = None,
) -> Subject:
    """Check model and data, and put together what the instruments need."""
    x, y = data.measured
    return Subject(
        model=model,
        x=x,
        y=y,
        x_train=data.x,
        y_train=data.y,
        tokens=data.tokens if data.x_test is None else data.tokens_test,
        tokens_train=data.tokens,
        scalable=not data.parts,
        task=data.task,
        loss=data.loss,
        probe=probe(model, x),
        clock=clock,
        seed=seed,
        command=command,
        work=work,
        wanted_threads=wanted_threads,
    )


def opened_model(model: nn.Module | OpenedModel) -> OpenedModel:
    """Return a module as an opened one."""
    refuse_other_object("model", model)
    if isinstance(model, nn.Module):
        source = "a module in Python"
        refuse_unreadable(model)
        single, was_training = in_float32(model), model.training
        notes = () if single is model else (HALF_MEASURED,)
        model = OpenedModel(model=single, source=source, was_training=was_training, notes=notes)
    if not isinstance(model, OpenedModel):
        raise TypeError(
            f"model must be a torch.nn.Module, found {type(model).__name__}: open it first with "
            "inscape.loaders.open_model."
        )
    return model


def opened_data(data: object, model: nn.Module) -> OpenedData:
    """Return data as opened ones, in the precision of the model and where it lies."""
    if isinstance(data, OpenedData):
        return data
    inputs = data[0] if isinstance(data, tuple) and data else getattr(data, "x", data)
    known = [*model.parameters(), *([inputs] if isinstance(inputs, Tensor) else [])]
    reference = next((tensor for tensor in known if tensor.is_floating_point()), torch.empty(0))
    return open_data(
        data, dtype=reference.dtype, device=reference.device, arguments=arguments_of(model)
    )
