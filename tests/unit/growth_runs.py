"""Runs for the tests of the judge of growth: made ones, and those recorded with MindSpore 2.10.0 on CPU."""

from __future__ import annotations

import csv
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path

from repro.evidence.types import Window
from repro.model import GrowthOracle

RECORDED = Path(__file__).parents[1] / "data" / "recorded"
CALLS = 50
BYTES = GrowthOracle("malloc_in_use", "B/call", floor=8, planted=80, reported=104)
TUPLES = GrowthOracle("python_blocks", "objects/apply", floor=0.1, planted=1.0, reported=1.0)

Noise = Callable[[random.Random], float]
Extra = Callable[[int], float]


@cache
def recorded(name: str, measure: str, case: str = "case", blocks: int = 1000, add: float = 0.0) -> tuple[Window, ...]:
    """A recorded run; series ``case`` is judged as the case, with ``add`` more growth a call."""
    rename = {case: "case", "clean": "clean", "planted": "planted"}
    windows = []
    with (RECORDED / f"{name}.csv").open() as file:
        for row in csv.DictReader(file):
            if row["series"] not in rename or int(row["block"]) >= blocks:
                continue
            more = add * int(row["calls"]) if row["series"] == case else 0.0
            start, end = float(row[f"{measure}_start"]), float(row[f"{measure}_end"]) + more
            window = (int(row["block"]), rename[row["series"]], int(row["calls"]), float(row["seconds"]))
            windows.append(Window(*window, {measure: start}, {measure: end}))
    return tuple(windows)


@cache
def recorded_noise() -> tuple[float, ...]:
    """What recorded windows without a leak differ from their mean, in bytes a call."""
    windows = [w for w in recorded("hooks", "malloc_in_use", "removed") if w.block > 0 and w.series != "planted"]
    slopes = [w.slope("malloc_in_use") for w in windows]
    return tuple(v - sum(slopes) / len(slopes) for v in slopes)


def as_recorded(rng: random.Random) -> float:
    return rng.choice(recorded_noise())


def heavy_tailed(rng: random.Random) -> float:
    return rng.gauss(0, 5) / abs(rng.gauss(0, 1))  # Cauchy: no mean, no variance


def none(_: int) -> float:
    return 0.0


def constant(size: float) -> Extra:
    return lambda _: size


def made(
    blocks: int,
    case: Extra = none,
    noise: Noise = as_recorded,
    seed: int = 0,
    planted: float = 80,
    clean: Extra = lambda _: 970.0,
    erase: Callable[[str, int], float] = lambda *_: 0.0,
) -> list[Window]:
    """A run as the meter makes it: rotating order, start-up of 10 MB in the first block; slopes in bytes a call."""
    rng, level, windows = random.Random(seed), 1e9, []
    for block in range(blocks):
        order = ["case", "clean", "planted"]
        for series in order[block % 3 :] + order[: block % 3]:
            extra = {"case": case(block), "clean": 0.0, "planted": planted}[series]
            delta = (clean(block) + extra + noise(rng)) * CALLS - erase(series, block)
            delta += 1e7 if block == 0 and series == order[0] else 0.0
            windows.append(
                Window(block, series, CALLS, 1.0, {"malloc_in_use": level}, {"malloc_in_use": level + delta})
            )
            level += delta
    return windows


def shared_cache(rate: float) -> Callable[[str, int], float]:
    """A cache all series fill at ``rate`` bytes a call, cut to half at 5,000 calls: strikes whichever series runs."""
    calls = 0

    def erase(_series: str, _block: int) -> float:
        nonlocal calls
        calls += CALLS
        if calls < 5000:
            return 0.0
        calls -= 2500
        return 2500 * rate

    return erase
