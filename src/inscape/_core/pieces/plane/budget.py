"""When to stop cutting a plane."""

import time
from dataclasses import dataclass


@dataclass(frozen=True, eq=False, kw_only=True)
class Budget:
    """Where to stop: a number of faces, a time, and bytes."""

    regions: int
    until: float = float("inf")
    memory: int = 2**33

    def share(self, at: int, bends: int) -> float:
        """Return when the cutting by bend ``at`` has to stop: some is kept for those after it."""
        left = self.until - time.monotonic()
        return time.monotonic() + (0.4 if at + 1 < bends else 0.6) * left
