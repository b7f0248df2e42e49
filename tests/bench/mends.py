"""What the mends cost: step time without and with all of them in one process, and their growth over 10,000 steps."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from repro.evidence.layout import TrialFolder
from repro.evidence.read import read_events, read_windows
from repro.judge.growth import judge_growth
from repro.judge.intervals import centre_interval
from repro.model import GrowthOracle

HERE = Path(__file__).resolve().parent
SIZES = ((8, 2), (256, 64), (1024, 128))
ORACLE = GrowthOracle("malloc_in_use", "B", floor=4, planted=64)
Trial = Callable[..., TrialFolder]
Row = tuple[str, str, str]


def step_time() -> Iterator[Row]:
    """Paired ratios of neighbouring steps, all mends on to none."""
    for width, rows in SIZES:
        command = [sys.executable, str(HERE / "mended_step.py"), str(width), str(rows)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=HERE.parents[1])
        for line in done.stdout.strip().splitlines():
            taken = json.loads(line)
            ratios = [on / off for off, on in zip(taken["off"], taken["on"], strict=True)]
            low, high = centre_interval(ratios) or (0.0, float("inf"))
            off, on = (median(taken[key]) * 1e3 for key in ("off", "on"))
            yield (
                f"all mends to none, a step of 122 units of {width} by {width}, {taken['clock']} clock",
                f"{median(ratios):.3f} times, 95% {low:.3f} to {high:.3f}",
                f"{off:.1f} ms without, {on:.1f} ms with, {len(ratios)} pairs; goal 1.02",
            )


def own_growth(work: Path, trial: Trial) -> Iterator[Row]:
    """10,000 steps with all mends on, beside as many with none and the faults worked around by hand; and meshes."""
    for what, case, clean, planted in (
        ("steps", "mended", "by-hand", "planted"),
        ("meshes", "mesh", "nothing", "leak"),
    ):
        roles = {"case": case, "clean": clean, "planted": planted}
        program = HERE / "mended_layer.py"
        folder = trial(work / what, program, series=roles, calls=10_000, window=250, fixes="all")
        found = judge_growth(read_windows(folder.rank(0).samples), ORACLE)
        said = [mend for e in read_events(folder.rank(0).events) if e["event"] == "mends" for mend in e["mends"]]
        used = ", ".join(f"{mend['fault']} {mend['uses']}" for mend in said if mend["uses"])
        yield (
            f"growth of the mends themselves over 10,000 {what}",
            f"{found.state}: {found.slope:+.2f} B each, 95% {found.ci95[0]:+.2f} to {found.ci95[1]:+.2f}",
            f"planted {ORACLE.planted:g} B read {found.planted:.0f}"
            + (f"; uses since switched on: {used}" if used else ""),
        )
