"""Evidence as read from disk: what a judge is given. Frozen data, no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from repro.model import TrialRecord


@dataclass(frozen=True)
class Window:
    """A row of samples.csv: one uninterrupted stretch of calls of one series, with readings before and after it.

    Attributes:
        block: Which round of the schedule; every series runs once a block, in an order that rotates.
        series: ``case``, ``clean`` or ``planted``.
        calls: Counted calls in this window.
        seconds: Wall time of the calls alone, without the readings.
        start, end: Readings by measure name: ``malloc_in_use`` and ``anonymous`` in bytes, ``python_blocks`` and the
            case's own counters in objects. A measure may be missing where it was not taken.
    """

    block: int
    series: str
    calls: int
    seconds: float
    start: Mapping[str, float]
    end: Mapping[str, float]

    def slope(self, measure: str) -> float:
        """Growth a call over this window, in the measure's unit.

        Raises:
            KeyError: The measure was not taken here.
        """
        return (self.end[measure] - self.start[measure]) / self.calls


@dataclass(frozen=True)
class RaisedError:
    """error.json: the exception that ended a rank's body, as the rank itself saw it.

    Attributes:
        frames: ``(file name, line, function)`` from the outermost to the innermost call.
        issued_at: For an asynchronous error, the frames of the call that issued it, if a probe recorded them.
    """

    type: str
    message: str
    frames: tuple[tuple[str, int, str], ...]
    issued_at: tuple[tuple[str, int, str], ...] = ()


@dataclass(frozen=True)
class RankEvidence:
    """All that one rank left behind.

    Attributes:
        crashed_in: Innermost functions of the thread that died, from the rank's core, where there was one.
    """

    rank: int
    events: tuple[Mapping[str, Any], ...] = ()
    windows: tuple[Window, ...] = ()
    error: RaisedError | None = None
    stderr_tail: str = ""
    stdout_tail: str = ""
    crashed_in: tuple[str, ...] = ()


@dataclass(frozen=True)
class TrialEvidence:
    """All that one trial left behind: its record and its ranks."""

    record: TrialRecord
    ranks: Mapping[int, RankEvidence] = field(default_factory=dict)
    scheduler_tail: str = ""
    launcher_tail: str = ""
