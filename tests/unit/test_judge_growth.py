"""The judge of growth on made series, on resampled noise and on series recorded with MindSpore 2.10.0 on CPU."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from growth_runs import (
    BYTES,
    CALLS,
    TUPLES,
    Noise,
    as_recorded,
    constant,
    heavy_tailed,
    made,
    none,
    recorded,
    shared_cache,
)

from repro.evidence.types import Window
from repro.judge.growth import GrowthFinding, GrowthState, combine_ranks, judge_growth, pool
from repro.model import GrowthOracle


@pytest.mark.parametrize("size", [16, 104, 1000])
@pytest.mark.parametrize("seed", range(5))
def test_a_steady_leak_is_found_with_its_size(size: float, seed: int) -> None:
    found = judge_growth(made(40, lambda _: size, seed=seed), BYTES)
    assert found.state is GrowthState.LEAK
    assert found.ci95[0] <= found.slope <= found.ci95[1]
    assert found.slope == pytest.approx(size, abs=6)
    assert found.warmup_blocks == 1
    assert found.planted_found
    assert found.clean == pytest.approx(970, abs=6)


RUNS: dict[str, tuple[list[Window], GrowthState]] = {
    "one late cache fill is no leak": (made(40, lambda b: 5000 if b == 30 else 0), GrowthState.NO_LEAK),
    "a burst in every eighth window is one": (made(80, lambda b: 1600 if b % 8 == 5 else 0), GrowthState.LEAK),
    "a burst in every fourth window is one": (made(40, lambda b: 400 if b % 4 == 1 else 0), GrowthState.LEAK),
    "three bursts are too few to tell": (made(24, lambda b: 1600 if b % 8 == 5 else 0), GrowthState.INCONCLUSIVE),
    "growth that stops is bounded": (made(40, lambda b: 200 if b < 12 else 0), GrowthState.BOUNDED),
    "growth that fades is bounded": (made(60, lambda b: 300 * 0.85**b), GrowthState.BOUNDED),
    "growth that starts late is a leak": (made(40, lambda b: 100 if b >= 20 else 0), GrowthState.LEAK),
    "drift in all series is no leak": (made(40, clean=lambda b: 900 + 10 * b), GrowthState.NO_LEAK),
    "drift hides no leak": (made(40, lambda _: 16, clean=lambda b: 900 + 10 * b), GrowthState.LEAK),
    "a saw all series share is no leak": (made(80, erase=shared_cache(970)), GrowthState.NO_LEAK),
    "a saw all series share hides no leak": (made(80, lambda _: 16, erase=shared_cache(970)), GrowthState.LEAK),
    "a cache of the case's own is bounded": (
        made(60, lambda _: 200, clean=none, erase=lambda s, b: 1e5 if s == "case" and b % 10 == 9 else 0),
        GrowthState.BOUNDED,
    ),
    "too short": (made(5, lambda _: 104), GrowthState.INCONCLUSIVE),
    "the planted leak is missing": (made(40, lambda _: 104, planted=0), GrowthState.CONTROL_FAILED),
    "the planted leak is half its size": (made(40, planted=40), GrowthState.CONTROL_FAILED),
    "no planted control": ([w for w in made(40) if w.series != "planted"], GrowthState.CONTROL_FAILED),
    "no clean control": ([w for w in made(40) if w.series != "clean"], GrowthState.INCONCLUSIVE),
    "nothing": ([], GrowthState.INCONCLUSIVE),
}


@pytest.mark.parametrize("name", RUNS)
def test_what_a_run_is_judged(name: str) -> None:
    windows, state = RUNS[name]
    found = judge_growth(windows, BYTES)
    assert found.state is state, found.why
    assert (found.needed > 0) == (state is GrowthState.INCONCLUSIVE)


def test_bursts_belong_to_the_mean() -> None:
    found = judge_growth(made(80, lambda b: 1600 if b % 8 == 5 else 0), BYTES)
    assert found.slope == pytest.approx(200, abs=8)
    assert found.ci95[0] > 150


def test_needed_is_about_enough() -> None:
    shorts = [judge_growth(made(12, lambda _: 14, seed=s), BYTES) for s in range(40)]
    shorts = [f for f in shorts if f.state is GrowthState.INCONCLUSIVE]
    assert len(shorts) >= 10
    found = 0
    for seed, short in enumerate(shorts):
        assert f"{short.needed} more blocks" in short.why
        longer = made(12 + short.needed, lambda _: 14, seed=100 + seed)
        found += judge_growth(longer, BYTES).state is GrowthState.LEAK
    assert found >= 0.7 * len(shorts)


@pytest.mark.parametrize("noise", [as_recorded, heavy_tailed])
@pytest.mark.parametrize("blocks", [12, 20, 40])
def test_a_hundred_clean_runs_give_no_leak(noise: Noise, blocks: int) -> None:
    states = [judge_growth(made(blocks, noise=noise, seed=s), BYTES).state for s in range(100)]
    assert states.count(GrowthState.LEAK) == 0
    assert states.count(GrowthState.BOUNDED) == 0
    if noise is as_recorded and blocks >= 20:
        assert states.count(GrowthState.NO_LEAK) >= 95


def test_the_interval_holds_the_truth_19_times_of_20() -> None:
    found = [judge_growth(made(30, lambda _: 50, seed=s), BYTES) for s in range(200)]
    assert sum(f.ci95[0] <= 50 <= f.ci95[1] for f in found) >= 186


def test_the_detection_limit_is_one() -> None:
    """A leak of the size a clean run claims it would have found is found."""
    limits = [judge_growth(made(20, seed=seed), BYTES).detection_limit for seed in range(100)]
    leaking = [made(20, constant(limit), seed=1000 + seed) for seed, limit in enumerate(limits)]
    hits = sum(judge_growth(windows, BYTES).state is GrowthState.LEAK for windows in leaking)
    assert hits >= 90


def test_sixteen_bytes_a_call_are_found_within_a_thousand_calls() -> None:
    found = judge_growth(recorded("hooks", "malloc_in_use", "removed", blocks=20, add=16), BYTES)
    assert found.state is GrowthState.LEAK, found.why
    low = GrowthOracle("malloc_in_use", "B/call", floor=4, planted=80)
    states = [judge_growth(made(20, lambda _: 16, seed=s), low).state for s in range(100)]
    assert states.count(GrowthState.LEAK) >= 95


@pytest.mark.parametrize(("blocks", "slope"), [(10, (85, 110)), (40, (95, 110)), (80, (98, 108))])
def test_recorded_dropped_hooks_leak(blocks: int, slope: tuple[float, float]) -> None:
    found = judge_growth(recorded("hooks", "malloc_in_use", blocks=blocks), BYTES)
    assert found.state is GrowthState.LEAK, found.why
    assert slope[0] <= found.slope <= slope[1]
    assert found.planted == pytest.approx(80, rel=0.2)
    assert found.planted_found


def test_recorded_dropped_hooks_hold_104_bytes() -> None:
    low, high = judge_growth(recorded("hooks", "malloc_in_use"), BYTES).ci95
    assert low <= 104 <= high


@pytest.mark.parametrize("blocks", [20, 40, 80])
def test_recorded_removed_hooks_do_not_leak(blocks: int) -> None:
    found = judge_growth(recorded("hooks", "malloc_in_use", "removed", blocks=blocks), BYTES)
    assert found.state is GrowthState.NO_LEAK, found.why
    assert found.ci95[1] < 8


@pytest.mark.parametrize("blocks", [10, 20, 60])
def test_recorded_needs_input_grad_keeps_one_tuple_an_apply(blocks: int) -> None:
    found = judge_growth(recorded("needs_input_grad", "python_blocks", blocks=blocks), TUPLES)
    assert found.state is GrowthState.LEAK, found.why
    assert found.slope == pytest.approx(1.0, abs=0.1)
    assert found.ci95[0] <= 1.0 <= found.ci95[1]


def test_recorded_dropped_hooks_show_nothing_in_python() -> None:
    """They are native only: the right measure matters."""
    found = judge_growth(recorded("hooks", "python_blocks"), TUPLES)
    assert found.state is GrowthState.CONTROL_FAILED


def shuffled_control(seed: int) -> Sequence[Window]:
    """The recorded control alone, its windows dealt to the three series at random, with the planted leak added."""
    rng = random.Random(seed)
    windows = [w for w in recorded("control", "malloc_in_use", "clean") if w.block > 0]
    dealt = []
    for i, window in enumerate(rng.sample(windows, 120)):
        series = ("case", "clean", "planted")[i % 3]
        end = window.end["malloc_in_use"] + (80 * CALLS if series == "planted" else 0)
        dealt.append(Window(i // 3, series, CALLS, 1.0, window.start, {"malloc_in_use": end}))
    return dealt


def test_a_hundred_shuffles_of_the_recorded_control_give_no_leak() -> None:
    states = [judge_growth(shuffled_control(seed), BYTES).state for seed in range(100)]
    assert states.count(GrowthState.LEAK) == 0
    assert states.count(GrowthState.NO_LEAK) >= 97


def test_pooled_trials_are_narrower_and_must_agree() -> None:
    trials = [made(12, lambda _: 16, seed=s) for s in range(4)]
    alone, together = judge_growth(trials[0], BYTES), pool(trials, BYTES)
    assert together.state is GrowthState.LEAK
    assert together.ci95[1] - together.ci95[0] < alone.ci95[1] - alone.ci95[0]
    assert together.blocks_used == 44
    mixed = pool([*(made(12, lambda _: 104, seed=s) for s in range(3)), made(12, seed=9)], BYTES)
    assert mixed.state is GrowthState.INCONCLUSIVE
    assert "trial 4 of 4" in mixed.why


def test_one_leaking_rank_is_a_leak_and_all_must_be_clean_for_none() -> None:
    leak, clean = judge_growth(made(40, lambda _: 104), BYTES), judge_growth(made(40), BYTES)
    failed, short = judge_growth(made(40, planted=0), BYTES), judge_growth(made(5), BYTES)
    assert combine_ranks({0: clean, 1: leak, 2: failed}).state is GrowthState.LEAK
    assert combine_ranks({0: clean, 1: leak}).why.startswith("1 of 2 ranks: leak; rank 1: ")
    assert combine_ranks({0: clean, 1: failed}).state is GrowthState.CONTROL_FAILED
    assert combine_ranks({0: clean, 1: short}).state is GrowthState.INCONCLUSIVE
    assert combine_ranks({0: clean, 1: clean}).state is GrowthState.NO_LEAK
    assert combine_ranks({3: leak}) == leak
    with pytest.raises(ValueError, match="no rank"):
        combine_ranks({})


def test_order_of_windows_and_other_measures_do_not_matter() -> None:
    windows = made(20, lambda _: 104)
    extra = Window(3, "case", CALLS, 1.0, {"anonymous": 0.0}, {"anonymous": 4096.0})
    assert judge_growth([*reversed(windows), extra], BYTES) == judge_growth(windows, BYTES)


def test_exact_counters_have_no_noise() -> None:
    def count(blocks: int, kept: int) -> GrowthFinding:
        windows = []
        for b in range(blocks):
            for series, events in (("case", kept), ("clean", 0), ("planted", 1)):
                windows.append(Window(b, series, 10, 1.0, {"events": 0.0}, {"events": 10.0 * events}))
        return judge_growth(windows, GrowthOracle("events", "events/call", floor=0.01, planted=1.0))

    assert count(10, 1).state is GrowthState.LEAK
    assert count(10, 1).ci95 == (1.0, 1.0)
    assert count(10, 0).state is GrowthState.NO_LEAK
    assert math.isclose(count(10, 0).detection_limit, 0.01)


def test_recorded_collective_that_reads_zero_nearly_everywhere_is_judged() -> None:
    """Odd readings of 16 B in a series of zeros are no start-up."""
    found = judge_growth(recorded("collective_on_cpu", "malloc_in_use", "case"), BYTES)
    assert found.state is GrowthState.NO_LEAK
    assert found.warmup_blocks <= 2
    assert found.ci95[1] <= BYTES.floor
