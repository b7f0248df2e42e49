"""The intervals against scipy's and against closed forms."""

from __future__ import annotations

import math
import random

import pytest

from repro.judge.intervals import (
    centre_interval,
    change_point,
    clopper_pearson,
    median_interval,
    rate_bound_without_hits,
    runs_needed,
    trend_interval,
    values_needed_for_median,
)

stats = pytest.importorskip("scipy.stats")


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
@pytest.mark.parametrize(
    ("hits", "runs"), [(0, 1), (1, 1), (0, 20), (16, 20), (20, 20), (1, 3), (50, 1000), (999, 3000)]
)
def test_clopper_pearson_is_scipys_exact_interval(hits: int, runs: int, confidence: float) -> None:
    exact = stats.binomtest(hits, runs).proportion_ci(confidence, method="exact")
    assert clopper_pearson(hits, runs, confidence) == pytest.approx((exact.low, exact.high), abs=1e-9)


def test_no_runs_say_nothing() -> None:
    assert clopper_pearson(0, 0) == (0.0, 1.0)
    assert rate_bound_without_hits(0) == 1.0


@pytest.mark.parametrize(("hits", "runs"), [(-1, 5), (6, 5)])
def test_impossible_counts_are_refused(hits: int, runs: int) -> None:
    with pytest.raises(ValueError, match="hits"):
        clopper_pearson(hits, runs)


def test_bound_without_hits_and_the_runs_for_it() -> None:
    assert rate_bound_without_hits(20) == pytest.approx(1 - 0.05 ** (1 / 20))
    assert rate_bound_without_hits(20) == pytest.approx(0.1391, abs=1e-4)
    assert [runs_needed(rate) for rate in (1.0, 0.8, 0.1, 0.01)] == [1, 2, 29, 299]
    for runs in (1, 7, 20, 300):
        assert runs_needed(rate_bound_without_hits(runs)) == runs


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.1])
def test_runs_needed_refuses_what_is_no_rate(rate: float) -> None:
    with pytest.raises(ValueError, match="rate"):
        runs_needed(rate)


def test_median_needs_six_values_for_95_percent() -> None:
    assert values_needed_for_median(0.95) == 6
    assert median_interval([1, 2, 3, 4, 5]) is None
    assert median_interval([6, 5, 4, 3, 2, 1]) == (1, 6)


@pytest.mark.parametrize("n", [6, 8, 17, 40, 101])
def test_median_interval_has_the_widest_rank_that_still_covers(n: int) -> None:
    interval = median_interval(range(n))
    assert interval is not None
    rank = int(interval[0]) + 1
    assert interval[1] == n - rank
    assert 1 - 2 * stats.binom.cdf(rank - 1, n, 0.5) >= 0.95 > 1 - 2 * stats.binom.cdf(rank, n, 0.5)


@pytest.mark.parametrize("n", [6, 9, 20, 60])
def test_centre_interval_holds_exactly_what_the_signed_rank_test_does_not_reject(n: int) -> None:
    rng = random.Random(n)
    values = [rng.gauss(3, 2) for _ in range(n)]
    interval = centre_interval(values)
    assert interval is not None
    for end, inwards in ((interval[0], 1e-9), (interval[1], -1e-9)):
        inside = stats.wilcoxon([v - end - inwards for v in values], method="exact").pvalue
        outside = stats.wilcoxon([v - end + inwards for v in values], method="exact").pvalue
        assert outside <= 0.05 < inside


def test_centre_interval_of_too_few_values() -> None:
    assert centre_interval([1, 2, 3, 4, 5]) is None


def test_trend_is_scipys_and_its_interval_covers() -> None:
    rng = random.Random(1)
    inside = 0
    for _ in range(300):
        ys = [2.0 * x + rng.gauss(0, 3) for x in range(8)]
        slope, interval = trend_interval(range(8), ys)
        assert slope == pytest.approx(stats.theilslopes(ys, range(8)).slope)
        assert interval is not None
        inside += interval[0] <= 2.0 <= interval[1]
    assert 0.93 <= inside / 300 <= 1.0


def test_trend_of_few_points() -> None:
    assert trend_interval([0, 1, 2, 3], [0, 2, 4, 6]) == (2, None)
    assert trend_interval([0, 1, 2, 3, 4], [0, 2, 4, 6, 8]) == (2, (2, 2))
    with pytest.raises(ValueError, match="rising"):
        trend_interval([0, 0], [1, 2])


def test_change_point_is_found_where_it_is_and_not_where_none_is() -> None:
    rng = random.Random(2)
    at, p = change_point([rng.gauss(10 if i < 15 else 0, 1) for i in range(40)])
    assert at == 15
    assert p < 1e-4
    assert sum(change_point([rng.gauss(0, 1) for _ in range(40)])[1] < 0.001 for _ in range(200)) <= 1
    outlier = [rng.gauss(0, 1) for _ in range(40)]
    outlier[20] = 1e6
    assert change_point(outlier)[1] > 0.001
    assert change_point([1.0]) == (0, 1.0)
    assert math.isclose(change_point([5.0] * 30)[1], 1.0)
