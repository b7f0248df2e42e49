"""The meter: runs a case's series in rotating blocks and writes samples.csv, a row a window of calls."""

from __future__ import annotations

import csv
import gc
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from repro.model import Tier, TrialSpec
from repro.probes import memory
from repro.probes.context import Context

Loop = Callable[[], object]

# smaps_rollup walks the page tables; it may take this share of the run and no more.
ANONYMOUS_BUDGET = 0.004


def schedule(series: list[str], blocks: int) -> Iterator[tuple[int, str]]:
    """Every series once a block, in an order that rotates and turns round, so that none always follows the same other.

    Rotation alone leaves each series with the same predecessor, and what that leaves behind would be charged to it. The
    order depends on the block alone: all ranks of a trial run the same series at the same time, and collectives
    inside them match.
    """
    for block in range(blocks):
        shift = block % len(series)
        order = series[shift:] + series[:shift]
        for name in order if block // len(series) % 2 == 0 else reversed(order):
            yield block, name


def wait(tier: Tier) -> None:
    """Wait until nothing is in flight: queued operators, and on Ascend the device's work.

    Without this, operators still in MindSpore's queue make readings jump by kilobytes either way.
    """
    from mindspore.graph.api import _pynative_executor

    _pynative_executor.sync()
    if tier is not Tier.CPU:
        import mindspore

        mindspore.runtime.synchronize()


def settle(tier: Tier) -> None:
    """Free garbage in cycles, and wait for what its finalisers may have queued."""
    gc.collect()
    wait(tier)


class Meter:
    """Takes the readings of one rank.

    Args:
        spec: The trial; its ``series``, ``calls``, ``window`` and ``calls_per_step`` are the schedule.
        context: Holds the case's own counters.
        path: Where samples.csv goes.
    """

    def __init__(self, spec: TrialSpec, context: Context, path: Path) -> None:
        self._spec = spec
        self._context = context
        self._path = path
        self._spent_on_anonymous = 0.0
        self._spent = 0.0
        self._spent_on_calls = 0.0
        self._began = time.perf_counter()

    def run(self, loops: Mapping[str, Loop]) -> None:
        """Run the whole schedule.

        Args:
            loops: The program's named loops; one call of a loop is one step of ``calls_per_step`` counted calls.

        Raises:
            KeyError: issue.yaml names a series that the program does not have.
        """
        spec = self._spec
        steps = max(1, spec.window // spec.calls_per_step)
        blocks = max(1, spec.calls // (steps * spec.calls_per_step))
        chosen = {role: loops[name] for role, name in spec.series.items()}
        measures = ["malloc_in_use", "python_blocks", *self._context.counters]
        settle(spec.tier)
        # What is alive now stays out of later collections, which then take microseconds, not tens of milliseconds.
        gc.freeze()
        with self._path.open("w", newline="", buffering=1) as file:
            writer = csv.writer(file)
            edges = [f"{measure}_{edge}" for measure in [*measures, "anonymous"] for edge in ("start", "end")]
            writer.writerow(["block", "series", "calls", "seconds", *edges])
            for block, role in schedule(list(chosen), blocks):
                loop = chosen[role]
                with_anonymous = self._may_read_anonymous()
                before = time.perf_counter()
                start = self._read(with_anonymous)
                begin = time.perf_counter()
                for _ in range(steps):
                    loop()
                # The calls are over when their operators are: a collective may only have been queued so far.
                wait(spec.tier)
                seconds = time.perf_counter() - begin
                self._spent_on_calls += seconds
                settle(spec.tier)
                end = self._read(with_anonymous)
                cells = [value for pair in zip(start, end, strict=True) for value in pair]
                writer.writerow([block, role, steps * spec.calls_per_step, f"{seconds:.6f}", *cells])
                self._spent += time.perf_counter() - before - seconds
        self._context.record("meter", calls_s=self._spent_on_calls, meter_s=self._spent)

    def _read(self, with_anonymous: bool) -> list[int | str]:
        # The case's counters first: one that holds what it counts lets go of it there.
        counted = [counter() for counter in self._context.counters.values()]
        readings: list[int | str] = [memory.malloc_in_use(), memory.python_blocks(), *counted]
        if not with_anonymous:
            return [*readings, ""]
        begin = time.perf_counter()
        readings.append(memory.anonymous())
        self._spent_on_anonymous += time.perf_counter() - begin
        return readings

    def _may_read_anonymous(self) -> bool:
        elapsed = time.perf_counter() - self._began
        return self._spent_on_anonymous <= ANONYMOUS_BUDGET * elapsed
