"""Judges whether memory grows with every call: the case against a clean and a planted control of the same process.

How a verdict is reached, a trial being the windows of one process:

1. A block's ``case - clean`` is a paired difference: what both share (a growing cache, drift, a busy machine) cancels.
2. A window in which memory shrank far below the usual is an erased cache. It frees what any series had added, so it
   says nothing of the series it struck: that block is left out of the pair. What was freed is added up apart.
3. Start-up and early changes of level are found from the series (``series.leading_outliers``, ``settled_from``).
4. The rest gives a mean and an interval (``series.estimate``). The mean, not the median, is the headline, because a
   leaked entry also makes its hash table grow now and then; a single one-off is set aside.
5. LEAK: the interval lies above the floor, and so does the mean of each half of the run (or of each pooled trial).
   NO_LEAK: its upper end is at most the floor, or it holds 0 and its upper end is at most ``no_leak_bound``.
   BOUNDED: growth that stopped, or that is freed again.
6. None of these stands unless the same blocks show the planted control, about as large as it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import median

from repro.evidence.types import Window
from repro.judge.pairs import Trial, pair
from repro.judge.series import FEWEST, Estimate, estimate, mean_of
from repro.model import GrowthOracle

_SIZE_TOLERANCE = 0.25  # of the planted size: malloc rounds up, and a run's mean is off by some noise
_FEWEST_EARLY = 4  # blocks
_MOST_BLOCKS_TIMES = 20  # never ask for more than this many times the blocks there are: the estimate is not that good


class GrowthState(StrEnum):
    """What the windows say of one case."""

    LEAK = "leak"
    NO_LEAK = "no leak"
    BOUNDED = "bounded"
    INCONCLUSIVE = "inconclusive"
    CONTROL_FAILED = "control failed"


@dataclass(frozen=True)
class GrowthFinding:
    """A judgement of growth with all it rests on; slopes and limits are in the oracle's unit (such as B/call).

    Attributes:
        slope, ci95: Mean growth a call above the clean control and its 95% interval; infinite ends if too short.
        warmup_blocks: Blocks left out at the start. blocks_used: Blocks the slope comes from.
        detection_limit: The smallest leak that nine such runs in ten would have found, from this run's own noise: the
            floor and the whole width of the interval (half for the mean's error, half for the interval to clear the
            floor). When the case leaks, the width is the planted control's, for the case's own bursts are no noise.
        planted, planted_ci95, planted_found: The planted leak as this run sees it, and whether it is the known one.
        clean, clean_ci95: Growth a call of the clean control itself.
        needed: How many more blocks an inconclusive run wants, else 0.
        why: One sentence.
    """

    state: GrowthState
    slope: float
    ci95: tuple[float, float]
    warmup_blocks: int
    blocks_used: int
    detection_limit: float
    planted: float
    planted_ci95: tuple[float, float]
    planted_found: bool
    clean: float
    clean_ci95: tuple[float, float]
    needed: int
    why: str


def no_leak_bound(oracle: GrowthOracle) -> float:
    """Largest upper end of an interval around 0 that counts as no leak: the floor, or a quarter of the known sizes.

    A run that excludes a quarter of the planted leak and of what the report saw has excluded the reported leak.
    """
    known = [oracle.planted, *([oracle.reported] if oracle.reported else [])]
    return max(oracle.floor, min(known) / 4)


def _freed_again(trials: Sequence[Trial], slope: float) -> bool:
    """True if a trial freed at least half of what the case's own growth had added by then."""
    return any(t.freed > 0 and t.freed >= slope * t.freed_calls / 2 for t in trials)


def _died_out(early: Sequence[float], above: float) -> bool:
    """True if the warm-up was growth of the case: it began with several blocks that all grew, not with a slow start."""
    return len(early) >= _FEWEST_EARLY and all(v > above for v in early[:_FEWEST_EARLY])


def _unsteady(trials: Sequence[Trial], floor: float) -> str:
    """Names a half of the run, or one of several pooled trials, that alone shows no leak; empty if all do."""
    parts, name = [t.case for t in trials], "trial"
    if len(parts) == 1:
        half = len(parts[0]) // 2
        parts, name = [parts[0][:half], parts[0][half:]], "half"
    for number, part in enumerate(parts, 1):
        mean = mean_of(part, trials[0].least)[0] if part else 0.0
        if mean <= floor:
            return f"{name} {number} of {len(parts)} alone grows {mean:.4g}, not above the floor of {floor:.4g}"
    return ""


@dataclass(frozen=True)
class _Reading:
    """What the trials say together, before it is weighed."""

    trials: Sequence[Trial]
    oracle: GrowthOracle
    case: Estimate
    planted: Estimate
    clean: Estimate
    used: int

    @property
    def right_size(self) -> bool:
        """True if the planted control reads about as large as it is."""
        size = self.oracle.planted
        near = abs(self.planted.value - size) <= _SIZE_TOLERANCE * size
        return near or self.planted.low <= size <= self.planted.high

    @property
    def planted_found(self) -> bool:
        """True if the planted control has the right size and would itself be called a leak."""
        return self.right_size and self.planted.low > self.oracle.floor

    def more_blocks(self, spread: float, distance: float) -> int:
        """Blocks to add until an interval this wide is as narrow as the distance asks, as noise averages out."""
        times = (spread / distance) ** 2 if distance > 0 and math.isfinite(spread) else _MOST_BLOCKS_TIMES
        return max(FEWEST, math.ceil(self.used * min(times, _MOST_BLOCKS_TIMES)) - self.used)


def _read(trials: Sequence[Trial], oracle: GrowthOracle) -> _Reading:
    """Joins the trials' differences and estimates each series."""
    least = max((t.least for t in trials), default=0.0)
    case = estimate([v for t in trials for v in t.case], least)
    planted = estimate([v for t in trials for v in t.planted], least)
    clean = estimate([v for t in trials for v in t.clean], least)
    return _Reading(trials, oracle, case, planted, clean, sum(len(t.case) for t in trials))


_Decision = tuple[GrowthState, int, str]


def _doubt_the_controls(r: _Reading) -> _Decision | None:
    """Why no verdict can stand, or None if the run is long enough and its planted control was found."""
    size, unit, seen = r.oracle.planted, r.oracle.unit, r.planted
    if r.used and not any(t.planted for t in r.trials):
        return GrowthState.CONTROL_FAILED, 0, "no window of the planted control was measured, so no verdict can stand"
    if r.used < FEWEST:
        why = f"{r.used} blocks with case and clean control after warm-up, at least {FEWEST} are needed"
        return GrowthState.INCONCLUSIVE, FEWEST - r.used, why
    if not r.right_size:
        why = f"the planted leak of {size:.4g} {unit} reads {seen.value:.4g} (95%: {seen.low:.4g} to {seen.high:.4g})"
        return GrowthState.CONTROL_FAILED, 0, why
    if not r.planted_found:
        why = (
            f"the planted leak of {size:.4g} {unit} cannot be told from the floor of {r.oracle.floor:.4g} in this noise"
        )
        return GrowthState.INCONCLUSIVE, r.more_blocks(seen.width, 2 * (size - r.oracle.floor)), why
    return None


def _weigh(r: _Reading) -> _Decision:
    """The decision when the controls hold."""
    case, floor, unit, bound = r.case, r.oracle.floor, r.oracle.unit, no_leak_bound(r.oracle)
    grows = f"grows {case.value:.4g} {unit} (95%: {case.low:.4g} to {case.high:.4g})"
    aside = f", one window of {case.lone:+.4g} set aside" if case.lone is not None else ""
    if case.low > floor:
        if _freed_again(r.trials, case.value):
            return GrowthState.BOUNDED, 0, f"{grows}, but a cache frees that again: a longer run shows its ceiling"
        if doubt := _unsteady(r.trials, floor):
            return GrowthState.INCONCLUSIVE, r.used, f"{grows}, but {doubt}"
        return GrowthState.LEAK, 0, f"{grows} in {r.used} blocks, above the floor of {floor:.4g}{aside}"
    if case.high <= (bound if case.low <= 0 else floor):
        for early in (t.early for t in r.trials if _died_out(t.early, max(floor, case.high))):
            why = f"grew {median(early):.4g} {unit} over the first {len(early)} blocks, then stopped: {grows}"
            return GrowthState.BOUNDED, 0, why
        return GrowthState.NO_LEAK, 0, f"{grows} in {r.used} blocks: more than {case.high:.4g} is excluded{aside}"
    # The interval must shrink until it fits on one side: twice the distance to the nearer decision.
    distance = 2 * max(case.value - floor, bound - case.value)
    why = f"{grows}: neither above the floor of {floor:.4g} nor surely below {bound:.4g}{aside}"
    return GrowthState.INCONCLUSIVE, r.more_blocks(case.width, distance), why


def _judge(trials: Sequence[Trial], oracle: GrowthOracle) -> GrowthFinding:
    """Reads, weighs and writes down."""
    r = _read(trials, oracle)
    state, needed, why = _doubt_the_controls(r) or _weigh(r)
    if needed:
        calls = needed * max(t.calls for t in trials) if trials else 0
        why += f"; about {needed} more blocks" + (f" ({calls:.0f} calls of each series)" if calls else "")
    return GrowthFinding(
        state=state,
        slope=r.case.value,
        ci95=(r.case.low, r.case.high),
        warmup_blocks=max((t.warmup for t in trials), default=0),
        blocks_used=r.used,
        detection_limit=oracle.floor + (r.planted.width if state is GrowthState.LEAK else r.case.width),
        planted=r.planted.value,
        planted_ci95=(r.planted.low, r.planted.high),
        planted_found=r.planted_found,
        clean=r.clean.value,
        clean_ci95=(r.clean.low, r.clean.high),
        needed=needed,
        why=why,
    )


def judge_growth(windows: Sequence[Window], oracle: GrowthOracle) -> GrowthFinding:
    """Judges one process: windows of the series ``case``, ``clean`` and ``planted``, in any order."""
    return _judge([pair(windows, oracle.measure, oracle.floor)], oracle)


def pool(trials: Sequence[Sequence[Window]], oracle: GrowthOracle) -> GrowthFinding:
    """Judges several trials of the same case as one: each loses its own warm-up, then the differences are joined.

    A LEAK must show in every trial; one that grows in some only is inconclusive, and the reason names the trial.
    """
    return _judge([pair(windows, oracle.measure, oracle.floor) for windows in trials], oracle)


def combine_ranks(findings: Mapping[int, GrowthFinding]) -> GrowthFinding:
    """The finding of a trial with many ranks: that of the rank that decides, and how many ranks agree.

    One leaking rank is a leak (each stands on its own controls); no leak needs every rank.

    Raises:
        ValueError: No findings.
    """
    if not findings:
        raise ValueError("no rank left windows to judge: check the trial's ranks for an early end")
    order = (GrowthState.LEAK, GrowthState.CONTROL_FAILED, GrowthState.INCONCLUSIVE, GrowthState.BOUNDED)
    state = next((s for s in order if any(f.state is s for f in findings.values())), GrowthState.NO_LEAK)
    agreeing = {rank: f for rank, f in findings.items() if f.state is state}
    rank = max(sorted(agreeing), key=lambda k: agreeing[k].ci95[1])
    chosen = agreeing[rank]
    if len(findings) == 1:
        return chosen
    return replace(chosen, why=f"{len(agreeing)} of {len(findings)} ranks: {state}; rank {rank}: {chosen.why}")
