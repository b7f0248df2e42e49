"""Judges growth that is said to stop: one long series of consecutive windows in one process.

A bounded cache fills up to a threshold, then either stays there (a plateau) or is cut and fills again (a saw). What
tells it from a leak is what is left after that: the tops of a saw are the same phase of the same cache, so their trend
over calls is what goes on growing; on a plateau it is the growth of the windows after the change. A series that has
only grown so far is no leak until it has passed the number of calls by which a cache must have shown its threshold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf
from statistics import median

from repro.evidence.types import Window
from repro.judge.intervals import trend_interval
from repro.judge.series import FEWEST, drops, estimate, leading_outliers, settled_from
from repro.model import CeilingOracle

FEWEST_TOPS = 5  # the trend of 5 tops is the first to have a 95% interval
# MindSpore's operator cache is cut at 10,000 entries, and an operator may add one a call: half as much again is plenty.
SURE_CALLS = 15_000
_SIZE_TOLERANCE = 0.25


class CeilingState(StrEnum):
    """What one long series does in the end."""

    BOUNDED = "bounded"
    LEAK = "leak"
    FLAT = "flat"
    INCONCLUSIVE = "inconclusive"
    CONTROL_FAILED = "control failed"


@dataclass(frozen=True)
class CeilingFinding:
    """A judgement of a long run; levels in the oracle's unit (such as B), slopes in that unit a call.

    Attributes:
        slope, ci95: Growth a call that goes on after the ceiling was reached, with its 95% interval.
        filling: Growth a call in an ordinary window.
        ceiling: Highest reading less the reading after start-up; for BOUNDED, what the cache costs at most.
        reached: Calls after which the ceiling was first reached; None if it was not.
        period: Calls from one top of the saw to the next; None without a saw.
        tops: Tops seen.
        warmup_windows: Windows left out as start-up.
        needed: How many more calls an inconclusive run wants, else 0.
        why: One sentence.
    """

    state: CeilingState
    slope: float
    ci95: tuple[float, float]
    filling: float
    ceiling: float
    reached: float | None
    period: float | None
    tops: int
    warmup_windows: int
    needed: int
    why: str


@dataclass(frozen=True)
class _Series:
    """The windows after start-up, and the calls made before each of them and after the last."""

    windows: Sequence[Window]
    measure: str
    slopes: Sequence[float]
    calls: Sequence[int]
    start_up: int

    def level(self, i: int) -> float:
        """Reading before window ``i``, above the first reading after start-up."""
        return self.windows[i].start[self.measure] - self.windows[0].start[self.measure]

    @property
    def least(self) -> float:
        """One unit in a window, as growth a call."""
        return 1.0 / median(w.calls for w in self.windows)


def _series(windows: Sequence[Window], measure: str) -> _Series:
    """Sorts the windows and leaves out start-up; the calls of start-up still count, for they filled the cache too."""
    taken = sorted((w for w in windows if measure in w.start and measure in w.end), key=lambda w: w.block)
    if len({w.series for w in taken}) > 1:
        raise ValueError(f"a ceiling is judged on one series, got {sorted({w.series for w in taken})}")
    slopes = [w.slope(measure) for w in taken]
    # Against the first windows only: against all of them, a cache that fills for a while would itself be an outlier.
    start = leading_outliers(slopes[: 2 * FEWEST])
    calls = [sum(w.calls for w in taken[:i]) for i in range(start, len(taken) + 1)]
    return _Series(taken[start:], measure, slopes[start:], calls, start)


def stop_bound(oracle: CeilingOracle) -> float:
    """Largest upper end of the slope's interval that still counts as stopped: the floor or a quarter of the plant."""
    return max(oracle.floor, oracle.planted / 4)


def judge_ceiling(windows: Sequence[Window], oracle: CeilingOracle, sure_calls: int = SURE_CALLS) -> CeilingFinding:
    """Judges one series of one process.

    Args:
        windows: Consecutive windows of one series, in any order.
        oracle: What is measured and which slope still counts as flat.
        sure_calls: Calls by which a bounded cache must have shown its ceiling.

    Raises:
        ValueError: The windows are of more than one series.
    """
    s = _series(windows, oracle.measure)
    if len(s.windows) < FEWEST:
        calls = max((w.calls for w in s.windows), default=0) * (FEWEST - len(s.windows))
        why = f"{len(s.windows)} windows after start-up, at least {FEWEST} are needed"
        return _finding(s, CeilingState.INCONCLUSIVE, (0.0, -inf, inf), why, needed=max(calls, 1))
    cut = drops(s.slopes, s.least)
    # A cut without filling in between is a single release, such as a heap trimmed; it makes no saw.
    saw = cut and median(s.slopes) > oracle.floor
    return _judge_saw(s, cut, oracle) if saw else _judge_plateau(s, oracle, sure_calls)


def _judge_saw(s: _Series, cut: Sequence[int], oracle: CeilingOracle) -> CeilingFinding:
    """Compares the tops, which lie somewhere inside the windows in which the cache was cut."""
    at, spread = _cuts(s, cut)
    filling = median(s.slopes)
    tops = [s.level(i) + filling * (x - s.calls[i]) for i, x in zip(cut, at, strict=True)]
    period = (at[-1] - at[0]) / (len(at) - 1) if len(at) > 1 else None
    if len(tops) < FEWEST_TOPS:
        state, ends = CeilingState.INCONCLUSIVE, (0.0, -inf, inf)
        needed = math.ceil((period or at[0]) * (FEWEST_TOPS - len(tops)))
        why = f"{len(tops)} tops of a saw, {FEWEST_TOPS} are needed to see whether they rise"
    else:
        slope, interval = trend_interval(at, tops)
        low, high = interval or (-inf, inf)
        ends = (slope, low - filling * spread, high + filling * spread)
        state, needed, why = _weigh(ends, oracle, at[-1])
        why = f"a saw of {len(tops)} tops {period:.0f} calls apart, from call {at[0]:.0f} on, the tops {why}"
    finding = _finding(s, state, ends, why, needed)
    return replace(finding, ceiling=max(tops), reached=at[0], period=period, tops=len(tops))


def _cuts(s: _Series, cut: Sequence[int]) -> tuple[list[float], float]:
    """After how many calls the cache was cut each time, and the relative error of the period that is left.

    A window of 200 calls hides where in it the cut fell, and so up to 200 calls of filling. But a cache that is cut at
    a count and filled evenly is cut at equal distances: the period and the first cut that fit into every one of the
    windows leave far less room. When no even period fits, the middle of each window is taken, and the trend's own
    interval has to show the scatter.
    """
    spans = [(s.calls[i], s.calls[i + 1]) for i in cut]
    middles = [(low + high) / 2 for low, high in spans]
    pairs = [(i, j) for i in range(len(spans)) for j in range(i + 1, len(spans))]
    if not pairs:
        return middles, 0.0
    shortest = max((spans[j][0] - spans[i][1]) / (j - i) for i, j in pairs)
    longest = min((spans[j][1] - spans[i][0]) / (j - i) for i, j in pairs)
    if shortest > longest:
        return middles, 0.0
    period = (shortest + longest) / 2
    first = max(low - k * period for k, (low, _) in enumerate(spans))
    first = (first + min(high - k * period for k, (_, high) in enumerate(spans))) / 2
    return [first + k * period for k in range(len(spans))], (longest - shortest) / 2 / period


def _judge_plateau(s: _Series, oracle: CeilingOracle, sure_calls: int) -> CeilingFinding:
    """Looks for the window after which growth changed, and judges what comes after it."""
    settled = settled_from(s.slopes)
    tail = estimate(s.slopes[settled:], s.least)
    ends = (tail.value, tail.low, tail.high)
    ceiling = max(s.level(i) for i in range(len(s.windows))) + max(s.slopes[-1], 0.0) * s.windows[-1].calls
    state, needed, why = _weigh(ends, oracle, s.calls[-1] - s.calls[settled])
    slowed = settled > 0 and median(s.slopes[:settled]) > max(oracle.floor, tail.high)
    if slowed:
        tells = f"grew {median(s.slopes[:settled]):.4g} a call up to call {s.calls[settled]}; then {why}"
        return replace(_finding(s, state, ends, tells, needed), ceiling=ceiling, reached=float(s.calls[settled]))
    tells = f"no ceiling in {s.calls[-1]} calls: {why}"
    if state is CeilingState.BOUNDED:
        state, tells = CeilingState.FLAT, f"never grew in {s.calls[-1]} calls: {why}"
    elif state is CeilingState.LEAK and s.calls[-1] < sure_calls:
        state, needed = CeilingState.INCONCLUSIVE, sure_calls - s.calls[-1]
        tells = f"only grew in {s.calls[-1]} calls ({why}); a cache may still show its ceiling by call {sure_calls}"
    return replace(_finding(s, state, ends, tells, needed), ceiling=ceiling)


def _weigh(ends: tuple[float, float, float], oracle: CeilingOracle, calls: float) -> tuple[CeilingState, int, str]:
    """The decision on the slope that goes on: value, lower and upper end."""
    slope, low, high = ends
    bound = stop_bound(oracle)
    why = f"growing by {slope:.4g} {oracle.unit} a call (95%: {low:.4g} to {high:.4g})"
    if low > oracle.floor:
        return CeilingState.LEAK, 0, f"{why}, above the floor of {oracle.floor:.4g}"
    if high <= bound:
        return CeilingState.BOUNDED, 0, f"{why}, so no more than {high:.4g}"
    # The phase error of a top stays while the distance grows, so the interval shrinks at least as calls do.
    distance = 2 * max(slope - oracle.floor, bound - slope)
    times = min(20.0, (high - low) / distance) if distance > 0 and math.isfinite(high - low) else 2.0
    return CeilingState.INCONCLUSIVE, math.ceil(calls * max(times - 1.0, 0.25)), f"{why}, which decides nothing"


def _finding(
    s: _Series, state: CeilingState, ends: tuple[float, float, float], why: str, needed: int = 0
) -> CeilingFinding:
    """A finding without a ceiling yet."""
    return CeilingFinding(
        state=state,
        slope=ends[0],
        ci95=(ends[1], ends[2]),
        filling=median(s.slopes) if s.slopes else 0.0,
        ceiling=0.0,
        reached=None,
        period=None,
        tops=0,
        warmup_windows=s.start_up,
        needed=needed,
        why=f"{why}; about {needed} more calls" if needed else why,
    )


def with_control(case: CeilingFinding, planted: CeilingFinding, oracle: CeilingOracle) -> CeilingFinding:
    """The case's finding if the planted control of the same length was found to leak by its known size.

    The control is the same program with a leak of ``oracle.planted`` a call, so its slope less the case's must be that.

    Returns:
        The case's finding unchanged, or one that says the control failed, or that the control's run was too short.
    """
    if planted.state is CeilingState.INCONCLUSIVE:
        why = f"the planted control was not decided: {planted.why}"
        return replace(case, state=CeilingState.INCONCLUSIVE, needed=max(case.needed, planted.needed), why=why)
    off = planted.slope - case.slope - oracle.planted
    holds = planted.ci95[0] - case.slope <= oracle.planted <= planted.ci95[1] - case.slope
    if planted.state is CeilingState.LEAK and (holds or abs(off) <= _SIZE_TOLERANCE * oracle.planted):
        return case
    why = f"the planted leak of {oracle.planted:.4g} {oracle.unit} a call reads {planted.slope:.4g}: {planted.why}"
    return replace(case, state=CeilingState.CONTROL_FAILED, needed=0, why=why)
