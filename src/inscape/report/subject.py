"""What is looked at: a model with its data, the pace at which it runs, and the time there is."""

from dataclasses import dataclass, field
from functools import cached_property
from inspect import signature
from time import perf_counter
from typing import Any

import torch
from torch import Tensor, nn

from inscape._core import Instrument, NotApplicable, Result
from inscape._core.endings import ends_in_probability
from inscape._core.functional import MEMORY, Probe, probe
from inscape.intake import OpenedData, OpenedModel, open_data


class Clock:
    """A time budget that runs from now on."""

    def __init__(self, budget: float) -> None:
        self.budget = budget
        self.start = perf_counter()

    @property
    def spent(self) -> float:
        """Return the seconds since the start."""
        return perf_counter() - self.start

    def allows(self, predicted: float) -> bool:
        """Tell whether so many seconds more would stay within the budget."""
        return self.spent + predicted <= self.budget


#: With fewer samples than this a mean says too little.
FEWEST = 30


@dataclass(frozen=True, eq=False, kw_only=True)
class Subject:
    """What is looked at, and with which settings."""

    model: nn.Module
    x: Tensor
    y: Tensor | None
    x_train: Tensor
    y_train: Tensor | None
    task: str
    probe: Probe
    clock: Clock
    seed: int
    command: str | None
    counts: dict[str, int] = field(default_factory=dict)

    @cached_property
    def probability(self) -> bool:
        """Tell whether the model is seen to return the probability of one of two classes."""
        single = self.task == "classes" and self.probe.outputs == 1
        return single and ends_in_probability(self.model, self.x)

    @cached_property
    def pace(self) -> float:
        """Return the seconds that one row takes forward through the model."""
        return seconds_per_row(self.model, self.x, self.probe)

    def predicted(self, instrument: Instrument) -> float:
        """Return the seconds that an instrument is expected to take."""
        return instrument.setup + instrument.work(len(self.x), self.probe.outputs) * self.pace

    def fewer(self, instrument: Instrument) -> bool:
        """Take fewer samples of an instrument, so that it fits half of what is left; False if none.

        The other half is for what the number is held against, with as few samples.
        """
        left = (self.clock.budget - self.clock.spent) / 2 - instrument.setup
        predicted = self.predicted(instrument) - instrument.setup
        if not instrument.samples or left <= 0:
            return False
        usual = signature(instrument.function).parameters[instrument.samples].default
        usual = min(usual, len(self.x)) if instrument.samples == "points" else usual
        count = int(usual * left / predicted)
        if count < FEWEST:
            return False
        self.counts[instrument.name] = min(usual, count)
        return True

    def settings(self, instrument: Instrument) -> dict[str, Any]:
        """Return the arguments beyond model and data: example, seed, and a smaller sample."""
        labels = self.x.new_zeros(len(self.x)) if self.y is None else self.y
        settings = dict(instrument.example(self.model, self.x, labels))
        if "seed" in signature(instrument.function).parameters:
            settings["seed"] = self.seed
        if instrument.name in self.counts:
            settings[instrument.samples] = self.counts[instrument.name]
        return settings

    def result(self, instrument: Instrument, model: nn.Module) -> Result:
        """Measure ``model``, this one or one to compare it with, with the same settings.

        Instruments that tell data from queries get the training rows, and the test rows to answer.
        """
        if self.y is None and instrument.wants_labels:
            return NotApplicable(what=instrument.name, reason="it needs labels, the data have none")
        settings = self.settings(instrument)
        labels = self.x.new_zeros(len(self.x)) if self.y is None else self.y
        x, y = self.x, labels
        if instrument.wants_queries and self.x is not self.x_train and self.y_train is not None:
            settings |= {"queries": self.x, "answers": labels}
            x, y = self.x_train, self.y_train
        result: Result = instrument.measure(model, x, y, **settings)
        return result


def seconds_per_row(model: nn.Module, x: Tensor, found: Probe) -> float:
    """Time a full batch, as instruments use them, and return the seconds for one row of it."""
    rows = found.rows(MEMORY)
    batch = x[torch.arange(rows, device=x.device) % len(x)]
    times: list[float] = []
    with torch.no_grad():
        model(batch)
        while len(times) < 3 or (sum(times) < 0.02 and len(times) < 50):
            start = perf_counter()
            float(model(batch).sum())  # reading a number waits for the device
            times.append(perf_counter() - start)
    return min(times) / rows


def subject_of(
    model: nn.Module, data: OpenedData, *, clock: Clock, seed: int, command: str | None
) -> Subject:
    """Check model and data, and put together what the instruments need."""
    x, y = data.measured
    return Subject(
        model=model,
        x=x,
        y=y,
        x_train=data.x,
        y_train=data.y,
        task=data.task,
        probe=probe(model, x),
        clock=clock,
        seed=seed,
        command=command,
    )


def opened_model(model: nn.Module | OpenedModel) -> OpenedModel:
    """Return a module as an opened one."""
    if isinstance(model, nn.Module):
        source = "a module in Python"
        model = OpenedModel(model=model, source=source, was_training=model.training)
    if not isinstance(model, OpenedModel):
        raise TypeError(
            f"model must be a torch.nn.Module, found {type(model).__name__}: open it first with "
            "inscape.intake.open_model."
        )
    return model


def opened_data(data: object, model: nn.Module) -> OpenedData:
    """Return data as opened ones, in the precision of the model and where it lies."""
    if isinstance(data, OpenedData):
        return data
    held = data[0] if isinstance(data, tuple) else getattr(data, "x", data)
    known = [*model.parameters(), *([held] if isinstance(held, Tensor) else [])]
    like = next((tensor for tensor in known if tensor.is_floating_point()), torch.empty(0))
    return open_data(data, dtype=like.dtype, device=like.device)
