"""Judges a fault from all its trials: hits counted, controls checked, and what the count can and cannot exclude."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from repro.evidence.types import TrialEvidence
from repro.judge import growth_fault
from repro.judge.intervals import clopper_pearson, rate_bound_without_hits
from repro.judge.trial import Finding, Kind, judge_trial
from repro.model import (
    Arm,
    Case,
    CeilingOracle,
    CrashOracle,
    Fault,
    FaultVerdict,
    GrowthOracle,
    Measure,
    Subject,
    Tier,
    Verdict,
)


@dataclass(frozen=True)
class Judged:
    """The trials of one case with what each says."""

    case: Case
    trials: tuple[TrialEvidence, ...]
    findings: tuple[Finding, ...]

    def count(self, kind: Kind) -> int:
        """How many trials say this."""
        return sum(finding.kind is kind for finding in self.findings)

    def first(self, kind: Kind) -> str:
        """Why the first trial of this kind says so; empty if there is none."""
        return next((finding.why for finding in self.findings if finding.kind is kind), "")


def judge_fault(fault: Fault, tier: Tier, trials: Sequence[TrialEvidence], arm: Arm = Arm.UNFIXED) -> FaultVerdict:
    """The verdict on one fault.

    Args:
        fault: The fault and its oracle.
        tier: Where the trials ran.
        trials: All trials of the fault, controls included.
        arm: Whose verdict is wanted; unfixed, unless only controls were run.
    """
    by_case: dict[str, list[TrialEvidence]] = {}
    for trial in trials:
        by_case.setdefault(trial.record.spec.case, []).append(trial)
    judged = [_judge_case(fault, case, by_case[case.name]) for case in fault.cases if case.name in by_case]
    verdict = _judge(fault, tier, judged, arm)
    return replace(verdict, controls=(*verdict.controls, *_metadata(trials)))


def _metadata(trials: Sequence[TrialEvidence]) -> list[str]:
    """What the cases declared to be metadata, and so were allowed to read from a simulated device."""
    events = [event for trial in trials for rank in trial.ranks.values() for event in rank.events]
    reasons = {str(event.get("reason")) for event in events if event.get("event") == "metadata"}
    return [f"read on the simulated device as metadata: {reason}" for reason in sorted(reasons)]


def subject_of(trials: Iterable[TrialEvidence]) -> Subject:
    """Whose code the trials ran; one run has one subject."""
    return next((trial.record.spec.subject for trial in trials), Subject.DISTILLED)


def _judge(fault: Fault, tier: Tier, judged: Sequence[Judged], arm: Arm) -> FaultVerdict:
    if isinstance(fault.oracle, GrowthOracle | CeilingOracle):
        return growth_fault.judge(fault, tier, judged_as_growth(judged))
    return _count(fault, tier, judged, arm)


def judged_as_growth(judged: Sequence[Judged]) -> Mapping[str, tuple[Case, Sequence[TrialEvidence], Sequence[Finding]]]:
    """The same trials as the judge of growth takes them."""
    return {item.case.name: (item.case, item.trials, item.findings) for item in judged}


def _judge_case(fault: Fault, case: Case, trials: Sequence[TrialEvidence]) -> Judged:
    oracle = fault.oracle_of(case)
    return Judged(case, tuple(trials), tuple(judge_trial(trial, oracle) for trial in trials))


def _count(fault: Fault, tier: Tier, judged: Sequence[Judged], arm: Arm) -> FaultVerdict:
    subject = subject_of(trial for item in judged for trial in item.trials)
    cases = [item for item in judged if item.case.arm is arm]
    hits = sum(item.count(Kind.HIT) for item in cases)
    misses = sum(item.count(Kind.MISS) for item in cases)
    others = sum(item.count(Kind.OTHER) for item in cases)
    failed_control = _failed_control(judged)
    verdict, why = _decide(cases, hits, misses, others, failed_control)
    total = hits + misses + others
    measure = None
    if isinstance(fault.oracle, CrashOracle) and total:
        low, high = clopper_pearson(hits, total)
        measure = Measure("crash rate", hits / total, (low, high), "of trials")
    return FaultVerdict(
        id=fault.id,
        verdict=verdict,
        tier=tier,
        subject=subject,
        trials=sum(len(item.trials) for item in cases),
        hits=hits,
        limits=fault.limits_of(subject, tier),
        why=why,
        measure=measure,
        controls=tuple(_summary(item) for item in judged),
        first_failure=_first_failure(cases),
    )


def _decide(cases: Sequence[Judged], hits: int, misses: int, others: int, failed_control: str) -> tuple[Verdict, str]:
    infra = next((item.first(Kind.INFRA) for item in cases if item.count(Kind.INFRA)), "")
    if not cases:
        return Verdict.INCONCLUSIVE, "only controls were run"
    if hits + misses + others == 0:
        return Verdict.INFRA_ERROR, infra
    if failed_control:
        infrastructure = failed_control.startswith("infrastructure")
        return (Verdict.INFRA_ERROR if infrastructure else Verdict.INCONCLUSIVE), failed_control
    if hits:
        why = next(item.first(Kind.HIT) for item in cases if item.count(Kind.HIT))
        not_shown = [item.case.name for item in cases if not item.count(Kind.HIT)]
        return Verdict.REPRODUCED, f"{why}; not by {', '.join(not_shown)}" if not_shown else why
    if others:
        seen = next(item.first(Kind.OTHER) for item in cases if item.count(Kind.OTHER))
        return Verdict.INCONCLUSIVE, f"the fault did not show, but another failure did: {seen}"
    if infra:
        return Verdict.INFRA_ERROR, infra
    # Cases are different programs: what many runs of one exclude, few runs of another do not.
    fewest = min(item.count(Kind.MISS) for item in cases)
    bound = f"a rate above {rate_bound_without_hits(fewest):.0%} is excluded at 95%"
    return Verdict.NOT_REPRODUCED, f"0 of {misses}: {bound}{' in each case' if len(cases) > 1 else ''}"


def _failed_control(judged: Sequence[Judged]) -> str:
    for item in judged:
        wanted = {Arm.CLEAN: Kind.MISS, Arm.PLANTED: Kind.HIT}.get(item.case.arm)
        if wanted is None:
            continue
        for finding in item.findings:
            if finding.kind is Kind.INFRA:
                return f"infrastructure trouble in control {item.case.name}: {finding.why}"
            if finding.kind is not wanted:
                return f"the {item.case.arm} control {item.case.name} should be a {wanted}, but: {finding.why}"
    return ""


def _summary(item: Judged) -> str:
    counts = ", ".join(f"{item.count(kind)} {kind}" for kind in Kind if item.count(kind))
    marks = sorted({mark for finding in item.findings for mark in finding.marks})
    seen = f"; mechanism seen: {', '.join(marks)}" if marks else ""
    return f"{item.case.name} ({item.case.arm}): {counts} of {len(item.trials)}{seen}"


def _first_failure(cases: Sequence[Judged]) -> str:
    for item in cases:
        for trial, finding in zip(item.trials, item.findings, strict=True):
            if finding.kind in (Kind.HIT, Kind.OTHER) and trial.record.first_failing is not None:
                return f"{trial.record.spec.folder}/rank-{trial.record.first_failing}"
    return ""
