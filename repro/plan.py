"""Turns an issue and what was asked of it into the list of trials to run. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import fixes
from repro.errors import UnsupportedError, UsageError
from repro.model import Arm, Case, Fault, Issue, Subject, Tier, Topology, TrialSpec


@dataclass(frozen=True)
class Options:
    """What the command line may change about a run; None and empty mean the issue's own choice.

    Attributes:
        faults: Fault ids to run; empty for all.
        arms: Arms to run; empty for unfixed and its controls.
        ranks: Ranks to start of a simulated world; empty for all.
        steps: Calls of each series of a growth measurement.
        timeout_s: Deadline of one trial in seconds.
        subject: Whose code is run.
        lacks: Why the checkout under test cannot be judged for a fault, by fault id.
    """

    faults: tuple[str, ...] = ()
    tier: Tier | None = None
    arms: tuple[Arm, ...] = ()
    topology: Topology | None = None
    ranks: tuple[int, ...] = ()
    trials: int | None = None
    steps: int | None = None
    timeout_s: float | None = None
    seed: int = 0
    subject: Subject = Subject.DISTILLED
    lacks: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class FaultPlan:
    """One fault on the tier that was chosen for it, with its trials; no tier if this machine has none of them."""

    fault: Fault
    tier: Tier | None
    trials: tuple[TrialSpec, ...]


def chosen_faults(issue: Issue, wanted: Sequence[str]) -> list[Fault]:
    """The faults asked for.

    Raises:
        UsageError: The issue has no such fault.
    """
    known = {fault.id: fault for fault in issue.faults}
    for name in wanted:
        if name not in known:
            raise UsageError(f"issue {issue.number} has no fault {name}", f"it has {', '.join(known)}")
    return [known[name] for name in wanted] if wanted else [fault for fault in issue.faults if not fault.on_request]


def with_mends(issue: Issue, wanted: str) -> tuple[str, ...]:
    """The faults of an issue that there are mends for, or the one asked for.

    Args:
        issue: The issue.
        wanted: One fault; empty for all that are not run on request alone.

    Raises:
        UsageError: The fault asked for has no mend, or none of the issue's has.
    """
    chosen = chosen_faults(issue, [wanted] if wanted else [])
    mended = tuple(fault.id for fault in chosen if fixes.has_mend(fault.id))
    if not mended:
        raise UsageError(f"there is no mend for {wanted or issue.number}", "`repro fixes list` says what is mended")
    return mended


def choose_tier(
    fault: Fault, asked: Tier | None, available: Sequence[Tier], subject: Subject = Subject.DISTILLED
) -> Tier | None:
    """The tier to judge the fault on: the one asked for, or the best that this machine has.

    Returns:
        None if the fault cannot be judged on any tier of this machine, or not on the one asked for.
    """
    able = {tier for case in fault.cases_of(subject) for tier in case.tiers}
    return next(
        (tier for tier in fault.prefer if tier in available and tier in able and asked in (None, tier)),
        None,
    )


def plan(issue: Issue, options: Options, available: Sequence[Tier]) -> list[FaultPlan]:
    """The trials of a run, controls between the trials of the case so that drift meets all arms alike.

    Raises:
        UsageError: An unknown fault, or a topology that no case can take.
    """
    plans = []
    for fault in chosen_faults(issue, options.faults):
        able = fault.id not in options.lacks
        tier = choose_tier(fault, options.tier, available, options.subject) if able else None
        plans.append(FaultPlan(fault, tier, tuple(_trials(issue, fault, tier, options)) if tier else ()))
    if not options.lacks and all(item.tier is None for item in plans):
        needed = sorted({tier.value for item in plans for tier in item.fault.prefer})
        asked = f"tier {options.tier}" if options.tier else f"this machine ({', '.join(available)})"
        raise UnsupportedError(
            f"{', '.join(item.fault.id for item in plans)}: not on {asked}",
            f"it can be judged on {', '.join(needed)}; `repro doctor` says what each tier needs",
        )
    _check_taken(options, [spec for item in plans for spec in item.trials])
    return plans


def _check_taken(options: Options, specs: Sequence[TrialSpec]) -> None:
    """An option that no trial takes would be lost without a word."""
    if options.topology and all(spec.topology != options.topology for spec in specs):
        raise UsageError(f"--topology {options.topology.label}: every case here has a single rank", "see `repro list`")
    if options.ranks and not any(spec.ranks for spec in specs):
        raise UsageError("--ranks: only a simulated world is started in part, and no case here is on tier sim")
    if options.steps and not any(spec.calls for spec in specs):
        raise UsageError("--steps: no case here measures growth", "see `repro list --cases`")


def _trials(issue: Issue, fault: Fault, tier: Tier, options: Options) -> list[TrialSpec]:
    arms = options.arms or (Arm.UNFIXED, Arm.CLEAN, Arm.PLANTED)
    cases = [case for case in fault.cases_of(options.subject) if tier in case.tiers and _arms_of(case, arms)]
    if not cases:
        raise UsageError(f"{fault.id} has no case for arm {', '.join(arms)} on tier {tier}", "see `repro list`")
    counts = {case.name: _count(case, options) for case in cases}
    rounds = range(max(counts.values()))
    return [
        trial_spec(issue, fault, case, tier, options, arm, index)
        for index in rounds
        for case in cases
        for arm in _arms_of(case, arms)
        if index < counts[case.name]
    ]


def _arms_of(case: Case, arms: Sequence[Arm]) -> list[Arm]:
    """The arms that a case is run in: a control in its own, the fault itself without and with its mend."""
    own = (Arm.UNFIXED, Arm.FIXED) if case.arm is Arm.UNFIXED else (case.arm,)
    return [arm for arm in own if arm in arms]


def _count(case: Case, options: Options) -> int:
    asked_for = case.arm is Arm.UNFIXED or case.arm in options.arms
    return options.trials if options.trials and asked_for else case.trials


def trial_spec(issue: Issue, fault: Fault, case: Case, tier: Tier, options: Options, arm: Arm, index: int) -> TrialSpec:
    """One trial of a case, its arm and its running number; a fixed one with the fault's own mend.

    Raises:
        UsageError: A rank was asked for that the case's world does not have.
    """
    # A single rank is a control of its own in some reports, so a topology asked for replaces only larger ones.
    topology = options.topology if options.topology and case.topology.world > 1 else case.topology
    spec = TrialSpec(
        issue=issue.number,
        fault=fault.id,
        case=case.name,
        arm=arm,
        tier=tier,
        subject=options.subject,
        launcher=case.launcher,
        topology=topology,
        program=case.program,
        args=dict(case.args),
        series=dict(case.series),
        calls=(options.steps or case.calls) if case.calls else 0,
        window=case.window,
        calls_per_step=case.calls_per_step,
        index=index,
        timeout_s=options.timeout_s or case.timeout_s,
        collectives=case.collectives,
        environment=dict(case.environment),
        seed=options.seed,
        fixes=_fixes(fault, case) if arm is Arm.FIXED else "none",
    )
    if tier is not Tier.SIM:
        return spec
    if not options.ranks:
        return replace(spec, ranks=case.ranks)
    outside = [rank for rank in options.ranks if rank >= topology.world]
    if outside and topology.world > 1:
        raise UsageError(f"--ranks {outside[0]}: the world of {case.name} has {topology.world} ranks")
    return replace(spec, ranks=tuple(rank for rank in options.ranks if rank < topology.world))


def _fixes(fault: Fault, case: Case) -> str:
    """The case's mends, or all of its fault's; a rank refuses what there is none for."""
    if case.mends:
        return ",".join(fixes.selected(",".join(case.mends)))
    return ",".join(fixes.selected(fault.id)) if fixes.has_mend(fault.id) else fault.id
