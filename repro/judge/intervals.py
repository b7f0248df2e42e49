"""Exact intervals for rates, medians and trends, in the standard library alone.

The controller that judges must stay small and quick to start, so nothing here needs numpy or scipy; the tests compare
every function with scipy's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import combinations, combinations_with_replacement, pairwise
from statistics import median

_BISECTIONS = 60  # halves [0, 1] below the resolution of a double near 1e-17


def _tail_at_most(k: int, n: int, p: float) -> float:
    """P(X <= k) for X binomial(n, p), summed in logarithms so that n in the thousands neither over- nor underflows."""
    if k < 0:
        return 0.0
    if k >= n or p <= 0.0:
        return 1.0
    if p >= 1.0:
        return 0.0
    log_p, log_q = math.log(p), math.log1p(-p)
    whole = math.lgamma(n + 1)
    logs = (whole - math.lgamma(i + 1) - math.lgamma(n - i + 1) + i * log_p + (n - i) * log_q for i in range(k + 1))
    return min(1.0, math.fsum(math.exp(value) for value in logs))


def _rate_where_tail_is(target: float, k: int, n: int) -> float:
    """The rate p at which P(X <= k) falls to ``target``; that tail falls steadily as p rises, so halving finds it."""
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if _tail_at_most(k, n, middle) > target:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _check_confidence(confidence: float) -> None:
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence is {confidence}, must lie between 0 and 1, such as 0.95")


def clopper_pearson(hits: int, runs: int, confidence: float = 0.95) -> tuple[float, float]:
    """Exact two-sided interval of a rate (Clopper and Pearson, 1934) from ``hits`` in ``runs``.

    Returns:
        Lower and upper rate, 0 to 1. No runs say nothing: (0, 1).

    Raises:
        ValueError: ``hits`` is not within 0 and ``runs``, or the confidence is not within 0 and 1.
    """
    _check_confidence(confidence)
    if not 0 <= hits <= runs:
        raise ValueError(f"{hits} hits of {runs} runs: hits must lie between 0 and the number of runs")
    if runs == 0:
        return 0.0, 1.0
    tail = (1.0 - confidence) / 2
    low = 0.0 if hits == 0 else _rate_where_tail_is(1.0 - tail, hits - 1, runs)
    high = 1.0 if hits == runs else _rate_where_tail_is(tail, hits, runs)
    return low, high


def rate_bound_without_hits(runs: int, confidence: float = 0.95) -> float:
    """One-sided upper bound of a rate of which ``runs`` runs showed no hit: ``1 - (1 - confidence) ** (1 / runs)``."""
    _check_confidence(confidence)
    if runs < 0:
        raise ValueError(f"{runs} runs: must be 0 or more")
    return 1.0 if runs == 0 else 1.0 - (1.0 - confidence) ** (1.0 / runs)


def runs_needed(rate: float, confidence: float = 0.95) -> int:
    """Runs after which a fault that hits at ``rate`` a run has shown itself at least once, with this confidence."""
    _check_confidence(confidence)
    if not 0.0 < rate <= 1.0:
        raise ValueError(f"rate is {rate}, must lie above 0 and at most 1")
    if rate == 1.0:
        return 1
    # The small allowance keeps runs_needed(rate_bound_without_hits(n)) at n in spite of rounding.
    return max(1, math.ceil(math.log(1.0 - confidence) / math.log1p(-rate) - 1e-9))


def values_needed_for_median(confidence: float = 0.95) -> int:
    """The fewest values whose smallest and largest hold the median with this confidence: 6 for 95%."""
    _check_confidence(confidence)
    return math.ceil(math.log2(2.0 / (1.0 - confidence)) - 1e-9)


@cache
def _median_rank(n: int, confidence: float) -> int:
    """Largest r such that the r-th smallest and r-th largest of n values hold the median; 0 if not even r = 1 does."""
    allowed = (1.0 - confidence) / 2
    tail, rank = 0.0, 0
    while rank < n // 2:
        tail += math.comb(n, rank) / 2**n
        if tail > allowed:
            break
        rank += 1
    return rank


def median_interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float] | None:
    """Interval of the median from order statistics: no distribution assumed, coverage by the exact binomial.

    Returns:
        Two of the values themselves, in their unit, or None when there are fewer than ``values_needed_for_median``.
    """
    _check_confidence(confidence)
    rank = _median_rank(len(values), confidence)
    if rank == 0:
        return None
    ordered = sorted(values)
    return ordered[rank - 1], ordered[-rank]


@cache
def _signed_rank(n: int, confidence: float) -> int:
    """Which smallest and largest Walsh average bound the centre, by the exact null distribution of Wilcoxon's W."""
    ways = [1]
    for rank in range(1, n + 1):
        longer = ways + [0] * rank
        for total, count in enumerate(ways):
            longer[total + rank] += count
        ways = longer
    allowed = (1.0 - confidence) / 2
    tail, position = 0, 0
    for count in ways:
        tail += count
        if tail / 2**n > allowed:
            break
        position += 1
    return position


def centre_interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float] | None:
    """Interval of the centre of a symmetric distribution: Hodges and Lehmann's, by the exact signed-rank distribution.

    Needs symmetry, which a difference of two interleaved series of one process has when neither leaks, and is then
    nearly as narrow as the t interval on normal noise, while outliers cannot blow it up. Time and memory grow with the
    square of the number of values: meant for at most a few hundred.

    Returns:
        The interval in the values' unit, or None when there are fewer than ``values_needed_for_median``.
    """
    _check_confidence(confidence)
    position = _signed_rank(len(values), confidence)
    if position == 0:
        return None
    walsh = sorted((a + b) / 2 for a, b in combinations_with_replacement(values, 2))
    return walsh[position - 1], walsh[-position]


@cache
def _inversion_counts(n: int) -> tuple[int, ...]:
    """How many orders of n things have 0, 1, 2, ... inversions: the exact null distribution of Kendall's statistic."""
    counts = [1]
    for size in range(2, n + 1):
        longer = [0] * (len(counts) + size - 1)
        for have, ways in enumerate(counts):
            for more in range(size):
                longer[have + more] += ways
        counts = longer
    return tuple(counts)


def trend_interval(
    xs: Sequence[float], ys: Sequence[float], confidence: float = 0.95
) -> tuple[float, tuple[float, float] | None]:
    """Theil-Sen slope of y over x and its interval by Sen's method with the exact Kendall distribution.

    Returns:
        The median of the slopes of all pairs, and the interval in the same unit; None when there are too few points
        (fewer than 5 for 95%).

    Raises:
        ValueError: Fewer than two points, or x does not rise strictly.
    """
    _check_confidence(confidence)
    points = list(zip(xs, ys, strict=True))
    if len(points) <= 1 or any(a[0] >= b[0] for a, b in pairwise(points)):
        raise ValueError("a trend needs at least two points with rising x")
    slopes = sorted((b[1] - a[1]) / (b[0] - a[0]) for a, b in combinations(points, 2))
    allowed = (1.0 - confidence) / 2
    orders = math.factorial(len(points))
    tail, rank = 0, 0
    for ways in _inversion_counts(len(points)):
        tail += ways
        if tail / orders > allowed:
            break
        rank += 1
    return median(slopes), (slopes[rank - 1], slopes[-rank]) if rank else None


def change_point(values: Sequence[float]) -> tuple[int, float]:
    """Where a series changes its level, by Pettitt's rank test (1979): a single outlier cannot move it.

    Returns:
        Index of the first value of the later part, and the approximate two-sided p of there being no change
        (``2 exp(-6 K^2 / (n^3 + n^2))``), 1 for very few values.
    """
    n = len(values)
    if n <= 1:
        return 0, 1.0
    best, best_at, running = 0, 0, 0
    for t, value in enumerate(values[:-1]):
        running += sum((value > other) - (value < other) for other in values)
        if abs(running) > best:
            best, best_at = abs(running), t + 1
    return best_at, min(1.0, 2.0 * math.exp(-6.0 * best**2 / (n**3 + n**2)))
