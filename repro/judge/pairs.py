"""Turns the windows of one process into paired differences a call: case and planted control less clean control."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from repro.evidence.types import Window
from repro.judge.series import drops, leading_outliers, settled_from

_SERIES = ("case", "clean", "planted")


@dataclass(frozen=True)
class Trial:
    """One process reduced to numbers; growth is in units of the measure a call.

    Attributes:
        case, planted: Growth above the clean control, one value a block, after warm-up.
        clean: The clean control's own growth in the same blocks.
        early: Like ``case``, for the blocks of the warm-up but the very first, where start-up costs hide everything.
        warmup: Blocks left out at the start.
        calls: Calls in a window (median).
        freed: What erased caches freed beyond all that the clean control's growth can have put there, in units.
        freed_calls: Calls of the case during which what was ``freed`` came together.
    """

    case: tuple[float, ...] = ()
    planted: tuple[float, ...] = ()
    clean: tuple[float, ...] = ()
    early: tuple[float, ...] = ()
    warmup: int = 0
    calls: float = 0.0
    freed: float = 0.0
    freed_calls: int = 0

    @property
    def least(self) -> float:
        """One byte or object in a window, as growth a call: the meter's own resolution."""
        return 1.0 / self.calls if self.calls else 0.0


def pair(windows: Sequence[Window], measure: str, floor: float = 0.0) -> Trial:
    """Pairs the series block by block, leaves out erased caches and finds the warm-up.

    A window that lies within ``floor`` of the usual is neither: where nearly all windows read exactly 0, as those of a
    collective on CPU do, any other reading would count as odd. Windows without the measure, and blocks without
    both the case and the clean control, are left out.
    """
    rows: dict[int, dict[str, Window]] = {}
    for window in windows:
        if window.calls > 0 and measure in window.start and measure in window.end:
            rows.setdefault(window.block, {})[window.series] = window
    rows = {b: rows[b] for b in sorted(rows) if "case" in rows[b] and "clean" in rows[b]}
    if not rows:
        return Trial()
    blocks = list(rows)
    calls = median(w.calls for row in rows.values() for w in row.values())
    slopes = {s: {b: row[s].slope(measure) for b, row in rows.items() if s in row} for s in _SERIES}
    least = max(1.0 / calls, floor)
    start = leading_outliers(*(tuple(found.values()) for found in slopes.values()), least=least)
    erased = {s: _erased(found, least) for s, found in slopes.items()}
    began = set(blocks[start:])

    def above_clean(series: str) -> dict[int, float]:
        gone = erased[series] | erased["clean"]
        return {b: v - slopes["clean"][b] for b, v in slopes[series].items() if b not in gone}

    case, planted = above_clean("case"), above_clean("planted")
    after = [b for b in case if b in began]
    settled = after[settled_from([case[b] for b in after])] if after else blocks[-1] + 1
    freed, freed_calls = _freed_beyond_shared(rows, slopes, {s: gone & began for s, gone in erased.items()})
    return Trial(
        case=tuple(v for b, v in case.items() if b >= settled),
        planted=tuple(v for b, v in planted.items() if b >= settled),
        clean=tuple(v for b, v in slopes["clean"].items() if b >= settled and b not in erased["clean"]),
        early=tuple(v for b, v in case.items() if blocks[0] < b < settled),
        warmup=sum(b < settled for b in blocks),
        calls=calls,
        freed=freed,
        freed_calls=freed_calls,
    )


def _erased(slopes: Mapping[int, float], least: float) -> set[int]:
    """The blocks in which this series' window shrank as only an erased cache shrinks."""
    blocks = list(slopes)
    return {blocks[i] for i in drops(list(slopes.values()), least)}


def _freed_beyond_shared(
    rows: Mapping[int, Mapping[str, Window]],
    slopes: Mapping[str, Mapping[int, float]],
    erased: Mapping[str, set[int]],
) -> tuple[float, int]:
    """What was freed that the clean control's kind of growth cannot have put there, and the case's calls meanwhile.

    A cache that every series fills may free as much as all of them filled in; only beyond that was something of the
    case's own (or planted) growth freed. Whole fillings lie between the first and the last time something was freed;
    when it was freed once, all since the start may have been in it. One window's filling is allowed for the phase.
    """
    events = sorted(set().union(*erased.values()))
    if not events:
        return 0.0, 0
    first, last = (events[0] + 1 if len(events) > 1 else min(rows)), events[-1]
    usual = {s: median(found.values()) for s, found in slopes.items() if found}
    window = max(w.calls for row in rows.values() for w in row.values()) * max(*usual.values(), 0.0)
    freed = shared = 0.0
    for block, row in rows.items():
        if first <= block <= last:
            shared += sum(w.calls for w in row.values()) * max(usual["clean"], 0.0)
            freed += sum((usual[s] - slopes[s][block]) * row[s].calls for s in usual if block in erased[s])
    return max(0.0, freed - shared - window), sum(row["case"].calls for b, row in rows.items() if first <= b <= last)
