"""When to stop cutting a plane."""

from dataclasses import dataclass
from typing import Literal

from inscape._core.deadline import NEVER, Deadline

Ending = Literal["complete", "regions", "seconds", "memory"]


class SpentError(Exception):
    """A budget is spent before a window was covered."""

    def __init__(self, budget: Ending) -> None:
        super().__init__(budget)
        self.budget = budget


@dataclass(frozen=True, eq=False, kw_only=True)
class Budget:
    """Where to stop: a number of faces, a time, and bytes.

    ``limit`` names the budget that the number of faces stands for. A ``strict`` one raises
    ``SpentError``; otherwise the faces that there was time or room for are kept.
    """

    regions: int
    deadline: Deadline = NEVER
    memory: int = 2**33
    limit: Ending = "regions"
    strict: bool = False

    def share(self, at: int, bends: int) -> Deadline:
        """Return when the cutting by bend ``at`` has to stop: some is kept for those after it."""
        if self.strict:
            return self.deadline
        return self.deadline.part(0.4 if at + 1 < bends else 0.6)
