"""Judges a mend: the same cases without and with it, and FIXED only where the difference itself is shown. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from repro.evidence.types import TrialEvidence
from repro.judge.fault import judge_fault
from repro.judge.intervals import rate_bound_without_hits
from repro.judge.trial import Finding, Kind, judge_trial
from repro.model import Arm, CrashOracle, Fault, FaultVerdict, GrowthOracle, Tier, Verdict

# What a rank records of the mends it was asked to install, at the end of its body.
EVENT = "mends"


def judge_mend(
    fault: Fault, tier: Tier, trials: Sequence[TrialEvidence], needed: Collection[str] | None = None
) -> FaultVerdict:
    """The verdict on the mend of one fault.

    The order of the questions: does the fault show without the mend, case by case; was the mend in use; does the fault
    show with it; does anything else. Whoever fails the first gets no verdict on the mend at all.

    Args:
        fault: The fault and its oracle.
        tier: Where the trials ran.
        trials: Both arms and the controls.
        needed: The mends without whose effect the fixed arm shows nothing; None for all that it was asked for.
    """
    arms = {arm: [trial for trial in trials if trial.record.spec.arm is arm] for arm in Arm}
    controls = [*arms[Arm.CLEAN], *arms[Arm.PLANTED]]
    before = judge_fault(fault, tier, [*arms[Arm.UNFIXED], *controls])
    after = judge_fault(_as_fixed(fault), tier, [*arms[Arm.FIXED], *controls], Arm.FIXED)
    verdict, why = _decide(fault, before, after, arms[Arm.UNFIXED], arms[Arm.FIXED], needed)
    lines = [*before.controls, *(line for line in after.controls if line not in before.controls)]
    return replace(after, verdict=verdict, why=why, controls=tuple(lines))


def _as_fixed(fault: Fault) -> Fault:
    cases = tuple(replace(case, arm=Arm.FIXED) if case.arm is Arm.UNFIXED else case for case in fault.cases)
    return replace(fault, cases=cases)


def _decide(
    fault: Fault,
    before: FaultVerdict,
    after: FaultVerdict,
    unfixed: Sequence[TrialEvidence],
    fixed: Sequence[TrialEvidence],
    needed: Collection[str] | None,
) -> tuple[Verdict, str]:
    if stood_in_the_way := _without_answer(before, after, unfixed, fixed):
        return stood_in_the_way
    if after.verdict is Verdict.REPRODUCED:
        return Verdict.NOT_FIXED, f"with the mend it still shows: {after.why}"
    if idle := _idle(fixed, needed):
        return Verdict.INCONCLUSIVE, idle
    pairs = _Pairs(fault, unfixed, fixed)
    if quiet := _not_measured(fault, before.tier, unfixed):
        return Verdict.INCONCLUSIVE, f"unfixed, case {quiet} did not show the fault, so it shows no mend"
    if pairs.not_shown:
        return Verdict.INCONCLUSIVE, f"unfixed, case {pairs.not_shown} did not show the fault, so it shows no mend"
    if pairs.still:
        return Verdict.NOT_FIXED, f"with the mend it still shows: {pairs.still}"
    if pairs.other:
        return Verdict.NOT_FIXED, f"the reported failure is gone, but another one stands behind it: {pairs.other}"
    if after.verdict is not Verdict.NOT_REPRODUCED:
        return Verdict.INCONCLUSIVE, f"with the mend: {after.why}"
    return Verdict.FIXED, _shown(fault, before, after, unfixed, fixed)


def _without_answer(
    before: FaultVerdict, after: FaultVerdict, unfixed: Sequence[TrialEvidence], fixed: Sequence[TrialEvidence]
) -> tuple[Verdict, str] | None:
    """Why nothing can be said of the mend; None if something can."""
    for name, arm, found in (("unfixed", unfixed, before), ("fixed", fixed, after)):
        if not arm:
            return Verdict.INCONCLUSIVE, f"the {name} arm was not run, so there is no difference to show"
        if found.verdict is Verdict.INFRA_ERROR:
            return Verdict.INFRA_ERROR, f"{name}: {found.why}"
    if before.verdict is not Verdict.REPRODUCED:
        return Verdict.INCONCLUSIVE, f"unfixed, the fault did not show here, so nothing shows the mend: {before.why}"
    return None


def _not_measured(fault: Fault, tier: Tier, unfixed: Sequence[TrialEvidence]) -> str:
    """A case of several that are measured whose own growth was not found unfixed; empty if there is none."""
    names = [case.name for case in fault.cases if case.series and case.arm is Arm.UNFIXED]
    for name in names:
        trials = [trial for trial in unfixed if trial.record.spec.case == name]
        if trials and judge_fault(fault, tier, trials).verdict is not Verdict.REPRODUCED:
            return name
    return ""


class _Pairs:
    """The yes-or-no cases of both arms, case by case.

    Attributes:
        not_shown: A case in which the fault did not show without the mend; empty if it did in all.
        still: How it shows with the mend.
        other: What else fails with the mend.
    """

    def __init__(self, fault: Fault, unfixed: Sequence[TrialEvidence], fixed: Sequence[TrialEvidence]) -> None:
        before, after = _findings(fault, unfixed), _findings(fault, fixed)
        self.not_shown = next((name for name, found in before.items() if not _first(found, Kind.HIT)), "")
        self.still = next((f"{n}: {why}" for n, found in after.items() if (why := _first(found, Kind.HIT))), "")
        self.other = next((f"{n}: {why}" for n, found in after.items() if (why := _first(found, Kind.OTHER))), "")


def _findings(fault: Fault, trials: Sequence[TrialEvidence]) -> dict[str, list[Finding]]:
    """By case name, for the cases that no quantity is measured in: those are judged by their slopes."""
    cases = {case.name: case for case in fault.cases if not case.series}
    found: dict[str, list[Finding]] = {}
    for trial in trials:
        case = cases.get(trial.record.spec.case)
        if case is not None:
            found.setdefault(case.name, []).append(judge_trial(trial, fault.oracle_of(case)))
    return found


def _first(findings: Sequence[Finding], kind: Kind) -> str:
    return next((finding.why for finding in findings if finding.kind is kind), "")


def _idle(fixed: Sequence[TrialEvidence], needed: Collection[str] | None) -> str:
    """Names a rank in which a mend that was asked for and needed had no effect; empty if there is none."""
    for trial in fixed:
        asked = set(trial.record.spec.fixes.split(","))
        asked = asked if needed is None else asked & set(needed)
        for rank, evidence in sorted(trial.ranks.items()):
            said = [mend for event in evidence.events if event.get("event") == EVENT for mend in event["mends"]]
            used = {mend["fault"] for mend in said if mend["uses"]}
            met = {mend["fault"] for mend in said if mend["met"]}
            for fault in sorted(asked - used):
                why = "met its target, but was never used" if fault in met else "never met its target"
                return f"mend {fault} {why} in {trial.record.spec.folder}, rank {rank}: this shows nothing of it"
    return ""


def _shown(
    fault: Fault,
    before: FaultVerdict,
    after: FaultVerdict,
    unfixed: Sequence[TrialEvidence],
    fixed: Sequence[TrialEvidence],
) -> str:
    if isinstance(fault.oracle, GrowthOracle) and before.measure and after.measure:
        slopes = [f"{m.value:.2f} [{m.ci95[0]:.2f}, {m.ci95[1]:.2f}]" for m in (before.measure, after.measure)]
        return f"unfixed {slopes[0]}, fixed {slopes[1]} {after.measure.unit} above the clean control; {after.why}"
    shows = f"unfixed it shows in {before.hits} of {len(unfixed)} trials, fixed in 0 of {len(fixed)}"
    if isinstance(fault.oracle, CrashOracle):
        bound = rate_bound_without_hits(len(fixed))
        return f"{shows}, which excludes a rate above {bound:.0%} at 95%; unfixed: {before.why}"
    return f"{shows}, each through its end with every check as the reference; unfixed: {before.why}"
