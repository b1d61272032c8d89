"""The schedule of a look: every task gets a first slice, then the one that gains most goes on.

The order in which things are lost as time gets short is the reverse of the order in which they are
run: further draws at initialisation and finer intervals first, then the extras of the page, then
the baselines, and the measurements of the network itself last.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from inscape._core.anytime import step_within
from inscape.report.look.watch import BudgetWatch, Interrupted
from inscape.runtime.deadline import now

#: A first slice takes at most so many seconds.
SLICE = 1.0
#: After the first slice a task goes on for at least so many seconds at a time.
TURN = 0.5
#: A step should end within so many turns of its task, or this fraction of the budget.
SLICES, FRACTION = 5, 0.06
#: It is interrupted, which loses its work, only after so many times that.
AMID = 2.5
#: Yet after so many times its fair part of what is left, so that those behind it are not lost.
FAIR = 4.0
#: An interrupted task begins anew if so many times the time that it has taken is left.
AGAIN = 4.0
#: A task that is not finished gains at least this much by going on.
LEAST = 1e-3
#: Seconds that a task may take where time does not count; a finite number, so that it is watched.
FOREVER = 1e9
#: So many steps in a row, each under this time, that answer nothing new, wait for a longer turn.
IDLE, INSTANT = 20, 1e-3


@dataclass(eq=False, kw_only=True)
class LookTask:
    """A task of a look: a generator of ever better answers.

    Attributes:
        name: The instrument or the part of the page.
        role: Of which model: the network, the linear model, or a draw at initialisation.
        start: Makes the generator; called when the task is first given time.
        gain: How much an answer still has to gain, 0 for nothing: its relative width.
        weight: How much its gain counts beside that of other tasks.
        most: How many answers to take, None for all; repeating a look fixes it.
        answer: The best answer so far.
        taken: How many different answers there were.
        seconds: Time that it has taken.
        ended: Whether nothing more will come.
        complete: Whether its last answer is the best that there is.
        error: What it raised.
        turn: Seconds of its next turn; more where the last one was too short for a step.
        idle: Steps in a row that came back at once with nothing new.
        like: A task that takes as long, and has begun.
    """

    name: str
    role: str
    start: Callable[[], Iterator[Any]]
    gain: Callable[[Any], float] = lambda answer: 0.0
    weight: float = 1.0
    most: int | None = None
    answer: Any = None
    taken: int = 0
    seconds: float = 0.0
    ended: bool = False
    complete: bool = False
    error: Exception | None = None
    turn: float = TURN
    idle: int = 0
    like: "LookTask | None" = None
    _steps: Iterator[Any] | None = field(default=None, init=False)

    def step(self, seconds: float) -> None:
        """Take one step, which knows that it has so many seconds."""
        if self.most is not None and self.taken >= self.most:
            self.ended = True
            return
        begun, before = now(), self.taken
        try:
            with step_within(seconds):
                if self._steps is None:
                    self._steps = iter(self.start())
                answer = next(self._steps)
            if answer is not None and answer is not self.answer:
                self.answer = answer
                self.taken += 1
        except StopIteration:
            self.ended = self.complete = True
        except Interrupted:
            self.ended = True
            raise
        except Exception as error:
            self.ended, self.error = True, error
        finally:
            took = now() - begun
            self.seconds += took
            self.idle = self.idle + 1 if self.taken == before and took < INSTANT else 0

    @property
    def waits(self) -> bool:
        """Tell whether steps come back at once with the old answer: they need more time."""
        return self.answer is not None and self.idle >= IDLE

    def again(self) -> None:
        """Begin anew, after an interruption that left no answer."""
        self.ended, self._steps = False, None

    @property
    def priority(self) -> float:
        """Return what a second more would gain: an interval narrows as the root of the time."""
        known = 0.0 if self.like is None else self.like.seconds
        spent = max(self.seconds, known, self.turn - TURN, 0.01)
        return self.weight * max(LEAST, self.gain(self.answer)) / spent


class TaskSchedule:
    """Tasks that share one time budget.

    Args:
        watch: Knows how much time there is, and interrupts what takes too long.
        slice: Seconds of the first slice of each task.
        announce: Called with the name of the task that is about to run.
    """

    def __init__(
        self,
        watch: BudgetWatch,
        *,
        slice: float,
        announce: Callable[[LookTask], None] = lambda task: None,
    ) -> None:
        self.watch = watch
        self.slice = slice
        self._announce = announce

    def first(self, tasks: Sequence[LookTask], seconds: float | None = None) -> None:
        """Give each task its first slice, in order: at least one step, and an answer if it can.

        A task without an answer pauses between two steps when its slice is over, and goes on once
        all others had theirs, in turns that double: what answers soon is not kept waiting by what
        answers late. One that had to be interrupted amid a step begins anew at the end, if there is
        much more time for it. Part of the time is left for what comes after these tasks.
        """
        slice = self.slice if seconds is None else seconds
        interrupted: list[LookTask] = []
        for place, task in enumerate(tasks):
            if not self.watch.over and self._first(task, slice, slice, len(tasks) - place):
                interrupted.append(task)
        self._answer_late(tasks, slice, interrupted)
        for place, task in enumerate(interrupted):
            if self.watch.left > AGAIN * task.seconds:
                task.again()
                self._run(task, slice, self.watch.left / (1 + len(interrupted) - place))

    def _answer_late(
        self, tasks: Sequence[LookTask], slice: float, interrupted: list[LookTask]
    ) -> None:
        """Let tasks that have no answer yet go on in turns, each twice as long as the last."""
        turn, spare = slice, math.nan
        while not self.watch.over:
            waiting = [task for task in tasks if task.answer is None and not task.ended]
            spare = self.watch.left / (1 + len(waiting)) if math.isnan(spare) else spare
            turn *= 2
            for place, task in enumerate(waiting):
                if self.watch.left <= spare:
                    return
                longest = min(turn, self.watch.left - spare)
                if self._first(task, slice, longest, len(waiting) - place):
                    interrupted.append(task)
            if not waiting:
                return

    def _first(self, task: LookTask, slice: float, longest: float, waiting: int) -> bool:
        """Let a task run until it has an answer, or a turn is over; tell if it was interrupted."""
        fair = max(longest, FAIR * self.watch.left / waiting)
        amid = AMID * min(max(SLICES * longest, FRACTION * self.watch.budget), fair)
        return self._run(task, slice, longest, amid=amid) and task.answer is None

    def refine(self, tasks: Sequence[LookTask]) -> None:
        """Let tasks go on until all have ended or time is over, those first that gain most."""
        while not self.watch.over:
            waiting = [task for task in tasks if not task.ended]
            if not waiting:
                return
            task = max(waiting, key=lambda task: task.priority)
            available = self.watch.left
            task.idle = 0
            self._run(task, min(task.turn, available), math.inf)
            if task.waits and not task.ended:
                task.ended = task.turn >= available  # all the time there is does not do for a step
                task.turn *= 2

    def finish(self, tasks: Sequence[LookTask]) -> None:
        """Let each task take all the answers it may, whatever time that takes, not what memory."""
        for task in tasks:
            self._announce(task)
            try:
                with self.watch.limit(FOREVER):
                    while not task.ended:
                        task.step(math.inf)
            except Interrupted as stop:
                task.error = MemoryError(stop.why)

    def _run(
        self, task: LookTask, seconds: float, longest: float, *, amid: float | None = None
    ) -> bool:
        """Let a task run for so many seconds; tell whether it was interrupted amid a step.

        Without an answer it may run for ``longest``; ``amid`` is when a step is interrupted.
        """
        self._announce(task)
        begun = now()
        try:
            with self.watch.limit(AMID * longest if amid is None else amid):
                while not task.ended:
                    task.step(max(begun + seconds - now(), 0.05))
                    if task.waits:
                        break
                    enough = seconds if task.answer is not None else longest
                    if now() - begun >= enough or self.watch.over:
                        break
        except Interrupted as stop:
            if stop.why:
                task.error = MemoryError(stop.why)
                return False
            return True
        return False
