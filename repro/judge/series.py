"""A noisy series of growth a call, read robustly: its outliers, the end of its warm-up, its mean with an interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from statistics import fmean, median

from repro.judge.intervals import centre_interval, change_point

# A normal value lies more than 6 standard deviations out once in half a billion; a rehash or an erased cache always.
_OUTLIER_SIGMAS = 6.0
_SIGMA_OF_MAD = 1.4826  # a normal distribution's standard deviation over its median absolute deviation
# A change of level is believed at this p; a false alarm only costs blocks, it never makes a leak.
_CHANGE_P = 0.001
# Fewer values than this after a change say nothing about what goes on.
FEWEST = 8
_MOST_SIZES = 6  # 8 groups carry an interval of 1 - 0.05 / 6, and no more
_MOST_GROUPS = 256  # the interval takes time with the square of this


@dataclass(frozen=True)
class Estimate:
    """Mean growth a call with its 95% interval; infinite ends when there are too few values.

    Attributes:
        value: Mean without what was set aside, in the unit of the values.
        low, high: Ends of the interval; ``value`` lies within.
        lone: The one value set aside as a one-off, or None.
    """

    value: float
    low: float
    high: float
    lone: float | None = None

    @property
    def width(self) -> float:
        """Length of the interval."""
        return self.high - self.low


def tolerance(values: Sequence[float], least: float = 0.0) -> float:
    """How far from the median a value may lie and still be ordinary, never under ``least``."""
    middle = median(values)
    return max(_OUTLIER_SIGMAS * _SIGMA_OF_MAD * median(abs(v - middle) for v in values), least)


def drops(values: Sequence[float], least: float = 0.0) -> list[int]:
    """Indexes of values below zero and far below the median: something that had been kept was freed in one go."""
    if not values:
        return []
    edge = median(values) - tolerance(values, least)
    return [i for i, v in enumerate(values) if v < 0.0 and v < edge]


def leading_outliers(*series: Sequence[float], least: float = 0.0) -> int:
    """Length of the start-up: the longest beginning that ends in an outlier and half of which are outliers.

    Start-up costs (lazy imports, arenas, kernel selection) are thousands of times what follows and strike whichever
    series runs first, so a block counts if any of the series is out there.
    """
    odd: set[int] = set()
    for values in filter(None, series):
        middle, edge = median(values), tolerance(values, least)
        odd.update(i for i, v in enumerate(values) if abs(v - middle) > edge)
    return max((i + 1 for seen, i in enumerate(sorted(odd), 1) if 2 * seen >= i + 1), default=0)


def settled_from(values: Sequence[float]) -> int:
    """Index from which the series keeps its level: after the last change of level with ``FEWEST`` values behind it."""
    start = 0
    while True:
        at, p = change_point(values[start:])
        if p > _CHANGE_P or len(values) - start - at < FEWEST:
            return start
        start += at


def mean_of(values: Sequence[float], least: float = 0.0) -> tuple[float, float | None]:
    """Mean that keeps bursts which recur and sets aside what does not.

    A median would miss a hash table that grows in every eighth window, a plain mean would take one late cache fill
    for a leak. So: outliers on both sides pair off, largest with largest (noise); one that is left alone is a one-off;
    two or more left on one side are bursts and belong to the average.

    Returns:
        The mean, and the lone value that was set aside or None.
    """
    ordered = sorted(values)
    middle, edge = median(ordered), tolerance(ordered, least)
    below = sum(v < middle - edge for v in ordered)
    above = sum(v > middle + edge for v in ordered)
    pairs, lone = min(below, above), None
    kept = ordered[pairs : len(ordered) - pairs]
    if above - below == 1:
        lone = kept.pop()
    elif below - above == 1:
        lone = kept.pop(0)
    return fmean(kept), lone


def estimate(values: Sequence[float], least: float = 0.0) -> Estimate:
    """Mean growth and a 95% interval for it that assumes no distribution.

    The values are averaged in groups of 1, 2, 4, ... consecutive ones while 8 groups remain. For each group size the
    signed ranks of the group means give an interval; together they hold at 95% (each at 1 - 0.05 / sizes). Bursts
    that recur within a group move its mean, a one-off moves one group only. An interval that
    misses the mean of ``mean_of`` is stretched until the mean is its middle. The narrowest is taken: that of the group
    size which explains the mean best. A series that none explains gets a wide one, which is what is known of it.

    Args:
        values: Growth a call, one value a block, in order.
        least: Distance from the median below which no value is an outlier.
    """
    if not values:
        return Estimate(0.0, -inf, inf)
    value, lone = mean_of(values, least)
    first = next(i for i in range(64) if len(values) >> i <= _MOST_GROUPS)
    sizes = [2**i for i in range(first, first + _MOST_SIZES) if i == 0 or len(values) >> i >= FEWEST]
    found: list[tuple[float, float]] = []
    for size in sizes:
        groups = len(values) // size
        skip = len(values) - groups * size  # from the front, nearest to the warm-up
        means = [fmean(values[skip + g * size : skip + (g + 1) * size]) for g in range(groups)]
        interval = centre_interval(means, 1.0 - 0.05 / len(sizes))
        if interval is not None:
            found.append(interval)
    if not found:
        return Estimate(value, -inf, inf, lone)
    reaching = [
        (low, 2 * value - low) if value > high else (2 * value - high, high) if value < low else (low, high)
        for low, high in found
    ]
    low, high = min(reaching, key=lambda ends: ends[1] - ends[0])
    return Estimate(value, low, high, lone)
