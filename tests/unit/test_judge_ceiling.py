"""The judge of a ceiling on made saws and plateaus and on 24,000 recorded calls of ops.norm (MindSpore 2.10.0, CPU)."""

from __future__ import annotations

import csv
import random
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import pytest

from repro.evidence.types import Window
from repro.judge.ceiling import CeilingState, judge_ceiling, with_control
from repro.model import CeilingOracle

RECORDED = Path(__file__).parents[1] / "data" / "recorded"
CALLS = 200
ORACLE = CeilingOracle("malloc_in_use", "B", floor=8, planted=64)


@cache
def recorded(name: str, windows: int = 1000) -> tuple[Window, ...]:
    with (RECORDED / f"{name}.csv").open() as file:
        rows = list(csv.DictReader(file))[:windows]
    return tuple(
        Window(
            int(r["block"]),
            r["series"],
            int(r["calls"]),
            float(r["seconds"]),
            {"malloc_in_use": float(r["malloc_in_use_start"])},
            {"malloc_in_use": float(r["malloc_in_use_end"])},
        )
        for r in rows
    )


def made(
    windows: int, held: Callable[[int], float], leak: float = 0.0, noise: float = 500.0, seed: int = 0
) -> list[Window]:
    """Windows of a program that holds ``held(calls)`` bytes, and leaks; 10 MB of start-up in the first window."""
    rng = random.Random(seed)

    def reading(calls: int) -> float:
        return 1e8 + held(calls) + leak * calls + rng.gauss(0, noise) + (1e7 if calls else 0)

    levels = [reading(i * CALLS) for i in range(windows + 1)]
    return [
        Window(i, "case", CALLS, 1.0, {"malloc_in_use": levels[i]}, {"malloc_in_use": levels[i + 1]})
        for i in range(windows)
    ]


def saw(calls: int, first: int = 5000, period: int = 2500, rate: float = 1300) -> float:
    """A cache cut from ``first`` calls' worth by ``period`` calls' worth whenever it is full."""
    return rate * (calls if calls < first else first - period + (calls - first) % period)


def plateau(calls: int, full: int = 5000, rate: float = 1300) -> float:
    """A cache that replaces entry by entry once it is full."""
    return rate * min(calls, full)


def test_recorded_norm_is_bounded_at_20000_calls() -> None:
    found = judge_ceiling(recorded("norm", 101), ORACLE)
    assert found.state is CeilingState.BOUNDED, found.why
    assert found.ci95[0] < 0 < found.ci95[1] < 16
    assert found.reached == pytest.approx(5000, abs=200)
    assert found.period == pytest.approx(2500, rel=0.01)
    assert found.ceiling == pytest.approx(6.3e6, rel=0.02)
    assert found.filling == pytest.approx(1294, abs=2)
    assert found.warmup_windows == 1


@pytest.mark.parametrize("windows", [80, 101, 120])
def test_recorded_norm_with_a_planted_leak_is_one(windows: int) -> None:
    found = judge_ceiling(recorded("norm_planted", windows), ORACLE)
    assert found.state is CeilingState.LEAK, found.why
    assert found.slope == pytest.approx(64, abs=4)
    assert found.ci95[0] <= 64 <= found.ci95[1]


@pytest.mark.parametrize("windows", [5, 20, 40, 70])
def test_recorded_norm_is_undecided_before_five_tops(windows: int) -> None:
    found = judge_ceiling(recorded("norm", windows), ORACLE)
    assert found.state is CeilingState.INCONCLUSIVE
    assert found.needed > 0
    assert f"{found.needed} more calls" in found.why


@pytest.mark.parametrize("period", [2500, 1700, 3333])
@pytest.mark.parametrize("leak", [0.0, 64.0, 200.0])
def test_a_saw_is_bounded_unless_its_tops_rise(period: int, leak: float) -> None:
    found = judge_ceiling(made(170, lambda c: saw(c, period=period), leak), ORACLE)
    assert found.state is (CeilingState.LEAK if leak else CeilingState.BOUNDED), found.why
    assert found.ci95[0] <= leak <= found.ci95[1]
    assert found.slope == pytest.approx(leak, abs=8)


def test_a_hundred_saws_of_any_period_give_no_leak() -> None:
    rng = random.Random(1)
    shapes = [(rng.randint(3000, 9000), rng.randint(1500, 2900), rng.uniform(100, 2000)) for _ in range(100)]
    found = []
    for seed, (first, period, rate) in enumerate(shapes):
        held = partial(saw, first=first, period=period, rate=rate)
        found.append(judge_ceiling(made(100, held, seed=seed), ORACLE))
    assert [f.why for f in found if f.state is CeilingState.LEAK] == []


@pytest.mark.parametrize(
    ("windows", "held", "leak", "state"),
    [
        (60, plateau, 0.0, CeilingState.BOUNDED),
        (60, plateau, 64.0, CeilingState.LEAK),
        (60, lambda _: 0.0, 0.0, CeilingState.FLAT),
        (100, lambda _: 0.0, 64.0, CeilingState.LEAK),
        (40, lambda _: 0.0, 64.0, CeilingState.INCONCLUSIVE),
        (20, plateau, 0.0, CeilingState.INCONCLUSIVE),
        (0, plateau, 0.0, CeilingState.INCONCLUSIVE),
    ],
)
def test_plateaus_and_lines(windows: int, held: Callable[[int], float], leak: float, state: CeilingState) -> None:
    found = judge_ceiling(made(windows, held, leak), ORACLE)
    assert found.state is state, found.why
    assert (found.needed > 0) == (state is CeilingState.INCONCLUSIVE)


def test_a_plateau_tells_where_and_how_high_it_is() -> None:
    found = judge_ceiling(made(60, plateau), ORACLE)
    assert found.reached == pytest.approx(5000, abs=400)
    assert found.ceiling == pytest.approx(4800 * 1300, rel=0.01)  # the first window, 200 calls, is start-up


def test_a_heap_trimmed_once_is_no_saw() -> None:
    found = judge_ceiling(made(60, lambda c: 0.0 if c < 6000 else -1e6), ORACLE)
    assert found.state is CeilingState.FLAT, found.why


def test_the_planted_control_must_hold() -> None:
    case, planted = judge_ceiling(recorded("norm"), ORACLE), judge_ceiling(recorded("norm_planted"), ORACLE)
    assert with_control(case, planted, ORACLE) == case
    assert with_control(case, case, ORACLE).state is CeilingState.CONTROL_FAILED
    twice = CeilingOracle("malloc_in_use", "B", floor=8, planted=128)
    assert with_control(case, planted, twice).state is CeilingState.CONTROL_FAILED
    short = judge_ceiling(recorded("norm_planted", 40), ORACLE)
    undecided = with_control(case, short, ORACLE)
    assert undecided.state is CeilingState.INCONCLUSIVE
    assert undecided.needed == short.needed


def test_two_series_are_refused() -> None:
    with pytest.raises(ValueError, match="one series"):
        judge_ceiling(recorded("hooks"), ORACLE)
