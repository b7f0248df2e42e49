"""Judges a fault of growth from its trials: the case's slope against the controls, with the interval it rests on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from repro.evidence.types import TrialEvidence, Window
from repro.judge.ceiling import CeilingState, judge_ceiling, with_control
from repro.judge.growth import GrowthFinding, GrowthState, combine_ranks, pool
from repro.judge.pairs import pair
from repro.judge.series import estimate
from repro.judge.trial import Finding, Kind
from repro.model import Arm, Case, CeilingOracle, Fault, FaultVerdict, GrowthOracle, Measure, Subject, Tier, Verdict

Judged = Mapping[str, tuple[Case, Sequence[TrialEvidence], Sequence[Finding]]]

_VERDICTS = {
    GrowthState.LEAK: Verdict.REPRODUCED,
    GrowthState.NO_LEAK: Verdict.NOT_REPRODUCED,
    GrowthState.BOUNDED: Verdict.BOUNDED,
    GrowthState.INCONCLUSIVE: Verdict.INCONCLUSIVE,
    GrowthState.CONTROL_FAILED: Verdict.INCONCLUSIVE,
}
# The case of a fault that says most: a leak in one of several is the fault; no leak needs all of them.
_PRESSING = (
    GrowthState.LEAK,
    GrowthState.CONTROL_FAILED,
    GrowthState.INCONCLUSIVE,
    GrowthState.BOUNDED,
    GrowthState.NO_LEAK,
)


_PRESSING_OF_LONG_RUNS = (
    CeilingState.LEAK,
    CeilingState.CONTROL_FAILED,
    CeilingState.INCONCLUSIVE,
    CeilingState.BOUNDED,
    CeilingState.FLAT,
)


_CONTROLS = ("clean", "planted")
BYTES = "malloc_in_use"
# What every meter reads of a process's memory, for a reader beside a count.
_MEMORY = {BYTES: "bytes of malloc in use", "python_blocks": "blocks of Python's allocator"}


@dataclass(frozen=True)
class _Result:
    """What a judge of growth concluded, before it is dressed as a fault's verdict."""

    verdict: Verdict
    why: str
    hits: int = 0
    measure: Measure | None = None
    controls: tuple[str, ...] = ()


def judge(fault: Fault, tier: Tier, judged: Judged) -> FaultVerdict:
    """The verdict on a fault whose oracle is a quantity.

    Args:
        fault: The fault.
        tier: Where the trials ran.
        judged: By case name: the case, its trials, and what the yes-or-no judge says of each, which for growth is
            whether the trial ran to its end.
    """
    result = _cut_short(judged) or _measured(fault, judged)
    subject = next((t.record.spec.subject for _, trials, _ in judged.values() for t in trials), Subject.DISTILLED)
    return FaultVerdict(
        id=fault.id,
        verdict=result.verdict,
        tier=tier,
        subject=subject,
        trials=sum(
            len(t) for case, t, _ in judged.values() if case.series and case.arm not in (Arm.CLEAN, Arm.PLANTED)
        ),
        hits=result.hits,
        limits=fault.limits_of(subject, tier),
        why=result.why,
        measure=result.measure,
        controls=result.controls,
    )


def _cut_short(judged: Judged) -> _Result | None:
    """A trial that did not run to its end decides: its series is not what was asked for."""
    for case, _, findings in judged.values():
        for finding in findings:
            if finding.kind is Kind.INFRA:
                return _Result(Verdict.INFRA_ERROR, f"{case.name}: {finding.why}")
            if finding.kind is Kind.OTHER:
                return _Result(Verdict.INCONCLUSIVE, f"{case.name}: another failure: {finding.why}")
    return None


def _measured(fault: Fault, judged: Judged) -> _Result:
    if isinstance(fault.oracle, GrowthOracle):
        return _growth(fault, judged)
    if isinstance(fault.oracle, CeilingOracle):
        return _ceiling(fault.oracle, judged)
    raise TypeError(f"{fault.id}: {fault.oracle.kind} is not an oracle of growth")


def _series(trial: TrialEvidence, rank: int) -> tuple[Window, ...]:
    return trial.ranks[rank].windows


def _finding(trials: Sequence[TrialEvidence], oracle: GrowthOracle, role: str = "case") -> GrowthFinding:
    """The finding on one series of the trials, the case itself or another that was measured beside it."""
    ranks = sorted(trials[0].ranks)
    return combine_ranks({rank: pool([_as_case(_series(t, rank), role) for t in trials], oracle) for rank in ranks})


def _as_case(windows: Sequence[Window], role: str) -> list[Window]:
    kept = [window for window in windows if window.series in (role, *_CONTROLS)]
    return [replace(window, series="case") if window.series == role else window for window in kept]


@dataclass(frozen=True)
class _Measured:
    """A case with series, and what they say."""

    case: Case
    trials: int
    oracle: GrowthOracle
    finding: GrowthFinding
    lines: tuple[str, ...]


def _measure(fault: Fault, case: Case, trials: Sequence[TrialEvidence]) -> _Measured:
    oracle = fault.oracle_of(case)
    if not isinstance(oracle, GrowthOracle):
        raise TypeError(f"{case.name}: {oracle.kind} is not an oracle of growth, but the case has series")
    finding = _finding(trials, oracle)
    lines = [_line(case, finding, oracle)]
    left = finding.slope
    for role in case.series:
        if role in ("case", *_CONTROLS):
            continue
        other = _finding(trials, oracle, role)
        line = f"{case.name}, {role}: {_signed(other.slope)} {oracle.unit} {_interval(other)}"
        if role in oracle.beside:
            known = oracle.beside[role]
            line += f"; the report has {known.reported:g}; so {known.removes} makes {_signed(left - other.slope)}"
            left = other.slope
        lines.append(line)
    if oracle.measure != BYTES:
        lines.append(_beside(case, trials, oracle.measure))
    return _Measured(case, len(trials), oracle, finding, tuple(lines))


def _beside(case: Case, trials: Sequence[TrialEvidence], measure: str) -> str:
    """What the case adds to the process's memory, beside the count that its verdict rests on."""
    said = []
    rank = min(trials[0].ranks)
    for name, unit in _MEMORY.items():
        if name == measure:
            continue
        pairs = [pair(_as_case(_series(trial, rank), "case"), name) for trial in trials]
        grown = estimate([value for trial in pairs for value in trial.case])
        said.append(f"{unit} {_signed(grown.value)} [{_signed(grown.low)}, {_signed(grown.high)}]")
    return f"{case.name}: with each, {', '.join(said)}"


def _growth(fault: Fault, judged: Judged) -> _Result:
    measured = [_measure(fault, case, trials) for case, trials, _ in judged.values() if case.series]
    lines = tuple(line for item in measured for line in item.lines)
    lines += tuple(_witness(case, findings) for case, _, findings in judged.values() if not case.series)
    cases = [item for item in measured if item.case.arm is not Arm.CLEAN]
    if not cases:
        return _Result(Verdict.INCONCLUSIVE, "only controls were run", controls=lines)
    for item in measured:
        if item.case.arm is Arm.CLEAN and item.finding.state is GrowthState.LEAK:
            why = f"the clean control {item.case.name} grows too: {item.finding.why}"
            return _Result(Verdict.INCONCLUSIVE, why, controls=lines)
    first = min(cases, key=lambda item: _PRESSING.index(item.finding.state))
    oracle, finding = first.oracle, first.finding
    why = f"{first.case.name}: {finding.why}"
    if finding.state is GrowthState.NO_LEAK:
        # Nothing below the floor is called a leak, so nothing below it is excluded either.
        bound = max(oracle.floor, *(item.finding.ci95[1] for item in cases))
        why = f"growth above {bound:.2f} {oracle.unit} is excluded at 95%; {why}"
    elif finding.state is GrowthState.LEAK and oracle.reported is not None:
        why = f"{why}; the report has {oracle.reported:g} {oracle.unit}"
    hits = sum(item.trials for item in cases if item.finding.state is GrowthState.LEAK)
    measure = Measure(f"{oracle.measure} a call above the clean control", finding.slope, finding.ci95, oracle.unit)
    return _Result(_VERDICTS[finding.state], why, hits, measure, lines)


def _witness(case: Case, findings: Sequence[Finding]) -> str:
    """A case that measures no series but shows something else of the fault, such as the native site."""
    return f"{case.name} ({case.arm}): {findings[0].kind}: {findings[0].why}"


def _line(case: Case, finding: GrowthFinding, oracle: GrowthOracle) -> str:
    return (
        f"{case.name} ({case.arm}): {_signed(finding.slope)} {oracle.unit}; planted {oracle.planted:g} was seen as "
        f"{_signed(finding.planted)}; clean control itself {_signed(finding.clean)}; "
        f"{finding.blocks_used} blocks after {finding.warmup_blocks} of warm-up; "
        f"would have found {finding.detection_limit:.2f}"
    )


def _interval(finding: GrowthFinding) -> str:
    return f"[{_signed(finding.ci95[0])}, {_signed(finding.ci95[1])}]"


def _signed(value: float) -> str:
    return f"{value:+.2f}" if math.isfinite(value) else "unknown"


def _ceiling(oracle: CeilingOracle, judged: Judged) -> _Result:
    runs = [
        (case, judge_ceiling(_series(trial, min(trial.ranks)), oracle))
        for case, trials, _ in judged.values()
        for trial in trials
    ]
    lines = tuple(f"{case.name} ({case.arm}): {found.state}: {found.why}" for case, found in runs)
    cases = [found for case, found in runs if case.arm in (Arm.UNFIXED, Arm.FIXED)]
    if not cases:
        return _Result(Verdict.INCONCLUSIVE, "only controls were run", controls=lines)
    found = min(cases, key=lambda each: _PRESSING_OF_LONG_RUNS.index(each.state))
    planted = next((each for case, each in runs if case.arm is Arm.PLANTED), None)
    # The control that is least flat decides.
    clean = min(
        (each for case, each in runs if case.arm is Arm.CLEAN),
        key=lambda each: _PRESSING_OF_LONG_RUNS.index(each.state),
        default=None,
    )
    if planted is None or clean is None:
        return _Result(Verdict.INCONCLUSIVE, "a control was not run", controls=lines)
    if clean.state is not CeilingState.FLAT:
        return _Result(
            Verdict.INCONCLUSIVE, f"the clean control came out as {clean.state}: {clean.why}", controls=lines
        )
    found = with_control(found, planted, oracle)
    measure = Measure("growth that goes on", found.slope, found.ci95, f"{oracle.unit}/call")
    match found.state:
        case CeilingState.BOUNDED:
            ceiling = f"the ceiling is {found.ceiling:,.0f} {oracle.unit} above the start"
            return _Result(Verdict.BOUNDED, f"{ceiling}; {found.why}", 0, measure, lines)
        case CeilingState.LEAK:
            return _Result(Verdict.REPRODUCED, found.why, 1, measure, lines)
        case CeilingState.FLAT:
            bound = f"growth above {found.ci95[1]:.2f} {oracle.unit}/call is excluded at 95%; {found.why}"
            return _Result(Verdict.NOT_REPRODUCED, bound, 0, measure, lines)
        case _:
            return _Result(Verdict.INCONCLUSIVE, found.why, 0, measure, lines)
