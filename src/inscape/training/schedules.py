"""Schedules: the factor of the learning rate at each step, counted from 0.

Any function of the step is a schedule. The repr of those here shows their parameters, which a
training records, and they can be multiplied: ``warmup(100) * cosine(10_000)``.
"""

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field

from inscape._core import checks
from inscape.training.function_names import own_name

ScheduleFunction = Callable[[int], float]


class Schedule:
    """A factor of the learning rate that depends on the step; its repr shows its parameters."""

    def __call__(self, step: int) -> float:
        """Return the factor of update ``step``."""
        raise NotImplementedError

    @property
    def listens(self) -> bool:
        """Whether the factor depends on the losses of the training as well."""
        return False

    def begin(self) -> "Schedule":
        """Return a copy of the schedule for one training, without losses."""
        return self

    def hear(self, loss: float) -> None:
        """Receive the loss of the epoch that has ended."""

    def __mul__(self, other: "Schedule") -> "Schedule":
        return Product(self, other)


def steps(at: tuple[int, ...], factor: float) -> Schedule:
    """Multiply by ``factor`` at each of the steps ``at``.

    >>> [steps((2, 3), 0.5)(step) for step in range(5)]
    [1.0, 1.0, 0.5, 0.25, 0.25]
    """
    if list(at) != sorted(at):
        raise ValueError(f"the steps must be in rising order, found {at}: sort them.")
    checks.at_least(0, factor=factor)
    return Steps(tuple(at), factor)


def decay(factor: float, every: int) -> Schedule:
    """Multiply by ``factor`` once in ``every`` steps; Klindt uses 0.9 every 500.

    >>> decay(0.9, every=500)(1500) == 0.9**3
    True
    """
    checks.at_least(0, factor=factor)
    checks.at_least(1, every=every)
    return Decay(factor, every)


def cosine(total: int) -> Schedule:
    """Fall from 1 to 0 along half a cosine within ``total`` steps, and stay there.

    >>> [round(cosine(4)(step), 3) for step in range(6)]
    [1.0, 0.854, 0.5, 0.146, 0.0, 0.0]
    """
    checks.at_least(1, total=total)
    return Cosine(total)


def warmup(n: int) -> Schedule:
    """Rise in ``n`` equal steps to 1, and stay there.

    >>> [warmup(4)(step) for step in range(5)]
    [0.25, 0.5, 0.75, 1.0, 1.0]
    """
    checks.at_least(1, n=n)
    return Warmup(n)


def plateau(factor: float = 0.1, patience: int = 10, threshold: float = 1e-4) -> Schedule:
    """Multiply by ``factor`` when the loss has not fallen for more than ``patience`` epochs.

    It falls when it is below the best so far by the fraction ``threshold`` of it. The loss is that
    of ``Fit.losses``. The rates are recorded, so that a replay has them again.
    """
    checks.at_least(0, factor=factor, patience=patience, threshold=threshold)
    return Plateau(factor, patience, threshold)


def begun(schedule: ScheduleFunction | None) -> ScheduleFunction | None:
    """Return the schedule of one training."""
    return schedule.begin() if isinstance(schedule, Schedule) else schedule


def tell(schedule: ScheduleFunction | None, loss: float) -> None:
    """Pass the loss of an epoch to a schedule that depends on losses."""
    if isinstance(schedule, Schedule):
        schedule.hear(loss)


def factor(schedule: ScheduleFunction | None, step: int) -> float:
    """Return the factor of update ``step``: 1 where there is no schedule."""
    if schedule is None:
        return 1.0
    value = float(schedule(step))
    if not 0 <= value < math.inf:
        raise ValueError(
            f"a schedule must return finite factors of at least 0, found {value} at step {step}: "
            "mend the schedule."
        )
    return value


def description(schedule: ScheduleFunction | None) -> str | None:
    """Return the schedule as text, for the settings of a training."""
    if schedule is None:
        return None
    return repr(schedule) if isinstance(schedule, Schedule) else own_name(schedule)


@dataclass(frozen=True)
class Steps(Schedule):
    """See :func:`steps`."""

    at: tuple[int, ...]
    factor: float

    def __call__(self, step: int) -> float:
        """Return the factor of update ``step``."""
        return float(self.factor ** bisect_right(self.at, step))


@dataclass(frozen=True)
class Decay(Schedule):
    """See :func:`decay`."""

    factor: float
    every: int

    def __call__(self, step: int) -> float:
        """Return the factor of update ``step``."""
        return float(self.factor ** (step // self.every))


@dataclass(frozen=True)
class Cosine(Schedule):
    """See :func:`cosine`."""

    total: int

    def __call__(self, step: int) -> float:
        """Return the factor of update ``step``."""
        return (1 + math.cos(math.pi * min(step / self.total, 1.0))) / 2


@dataclass(frozen=True)
class Warmup(Schedule):
    """See :func:`warmup`."""

    n: int

    def __call__(self, step: int) -> float:
        """Return the factor of update ``step``."""
        return min((step + 1) / self.n, 1.0)


@dataclass
class Plateau(Schedule):
    """See :func:`plateau`."""

    factor: float
    patience: int
    threshold: float
    _now: float = field(default=1.0, init=False, repr=False, compare=False)
    _best: float = field(default=math.inf, init=False, repr=False, compare=False)
    _waited: int = field(default=0, init=False, repr=False, compare=False)

    @property
    def listens(self) -> bool:
        """Whether the factor depends on the losses of the training as well."""
        return True

    def begin(self) -> "Plateau":
        """Return a copy of the schedule for one training, without losses."""
        return Plateau(self.factor, self.patience, self.threshold)

    def hear(self, loss: float) -> None:
        """Receive the loss of the epoch that has ended."""
        if loss < self._best * (1 - self.threshold):
            self._best, self._waited = loss, 0
            return
        self._waited += 1
        if self._waited > self.patience:
            self._now, self._waited = self._now * self.factor, 0

    def __call__(self, step: int) -> float:
        """Return the factor of update ``step``, the next one."""
        return self._now


@dataclass(frozen=True)
class Product(Schedule):
    """Two schedules, multiplied."""

    one: Schedule
    two: Schedule

    @property
    def listens(self) -> bool:
        """Whether the factor depends on the losses of the training as well."""
        return self.one.listens or self.two.listens

    def begin(self) -> "Product":
        """Return a copy of the schedule for one training, without losses."""
        return Product(self.one.begin(), self.two.begin())

    def hear(self, loss: float) -> None:
        """Receive the loss of the epoch that has ended."""
        self.one.hear(loss)
        self.two.hear(loss)

    def __call__(self, step: int) -> float:
        """Return the factor of update ``step``."""
        return self.one(step) * self.two(step)
