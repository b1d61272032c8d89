"""When to stop cutting a plane."""

from dataclasses import dataclass
from typing import Literal

Ending = Literal["complete", "regions", "seconds", "memory"]


class SpentError(Exception):
    """A budget is spent before a window was covered."""

    def __init__(self, budget: Ending) -> None:
        super().__init__(budget)
        self.budget = budget


@dataclass(frozen=True, eq=False, kw_only=True)
class CutBudget:
    """Where to stop: a number of faces, and bytes.

    ``limit`` names the budget that the number of faces stands for. A ``strict`` one raises
    ``SpentError``; otherwise the faces that there was room for are kept.
    """

    regions: int
    memory: int = 2**33
    limit: Ending = "regions"
    strict: bool = False
