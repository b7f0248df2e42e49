"""A point in time by which something must be over; a run's bounds each host's."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Deadline:
    """Seconds of the monotonic clock; infinity for none."""

    at: float = math.inf
    what: str = "the deadline"

    @classmethod
    def after(cls, seconds: float | None, what: str = "the deadline") -> Deadline:
        """So many seconds from now, or never for None."""
        if seconds is None or math.isinf(seconds):
            return cls()
        return cls(time.monotonic() + seconds, f"{what} of {seconds:g} s")

    def sooner(self, other: Deadline) -> Deadline:
        """Whichever comes first."""
        return self if self.at <= other.at else other

    @property
    def left(self) -> float:
        """Seconds that are left, 0 once it has passed."""
        return max(0.0, self.at - time.monotonic())

    @property
    def passed(self) -> bool:
        """True once it has passed."""
        return time.monotonic() >= self.at
