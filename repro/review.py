"""Judges a run from its folder alone: reads the evidence, checks that it is whole, and applies the pure judge."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from repro import catalogue
from repro.errors import InfraError, ReproError
from repro.evidence import manifest
from repro.evidence.layout import RunFolder
from repro.evidence.read import finished_trials, read_run_json, read_trial
from repro.evidence.types import TrialEvidence
from repro.judge.fault import judge_fault
from repro.model import Arm, Fault, FaultVerdict, Issue, Subject, Tier, Verdict


@dataclass(frozen=True)
class Review:
    """A judged run.

    Attributes:
        run: Name of the run's folder.
        verdicts: One a fault, in the issue's order.
        trials: The evidence by trial folder name.
        unread: Trials whose evidence could not be used, with the reason.
    """

    run: str
    issue: Issue
    verdicts: tuple[FaultVerdict, ...]
    trials: dict[str, TrialEvidence]
    unread: dict[str, str]


def review(folder: Path) -> Review:
    """Judge a run.

    Raises:
        InfraError: The folder is no run, or its run.json is damaged.
        UsageError: Its issue.yaml has a mistake.
    """
    run = RunFolder(folder)
    record = read_run_json(run)
    manifest.check_run(run)
    issue = catalogue.parse(run.issue, catalogue.read(run.issue), None)
    done = finished_trials(run)
    trials: dict[str, TrialEvidence] = {}
    unread: dict[str, str] = {}
    for name, key in record["trials"].items():
        try:
            if name not in done:
                raise InfraError(f"trial {name} is not finished", f"run again with --out {folder} to finish it")
            manifest.check(done[name])
            trial = read_trial(done[name])
            if (trial.record.spec.folder, trial.record.spec.key) != (name, key):
                raise InfraError(f"{done[name].path} holds another trial", "restore it, or delete it and run again")
            trials[name] = trial
        except ReproError as error:
            unread[name] = str(error)
    tiers = {fault: Tier(tier) if tier else None for fault, tier in record["faults"].items()}
    verdicts = tuple(_judge(fault, tiers[fault.id], trials, unread) for fault in issue.faults if fault.id in tiers)
    return Review(record["run"], issue, verdicts, trials, unread)


def _judge(fault: Fault, tier: Tier | None, trials: dict[str, TrialEvidence], unread: dict[str, str]) -> FaultVerdict:
    mine = [trial for trial in trials.values() if trial.record.spec.fault == fault.id]
    lost = [why for name, why in unread.items() if name.startswith(f"{fault.id}-")]
    if tier is None:
        needed = " or ".join(fault.prefer)
        return _without(fault, fault.prefer[0], Verdict.UNSUPPORTED, f"needs tier {needed}, which is not here")
    if lost:
        return _without(fault, tier, Verdict.INFRA_ERROR, lost[0], len(mine))
    return judge_fault(fault, tier, mine, _arm(mine))


def _arm(trials: list[TrialEvidence]) -> Arm:
    arms = {trial.record.spec.arm for trial in trials}
    return Arm.UNFIXED if Arm.UNFIXED in arms or Arm.FIXED not in arms else Arm.FIXED


def _without(fault: Fault, tier: Tier, verdict: Verdict, why: str, trials: int = 0) -> FaultVerdict:
    return FaultVerdict(fault.id, verdict, tier, Subject.DISTILLED, trials, 0, fault.limits.get(tier, ""), why)
