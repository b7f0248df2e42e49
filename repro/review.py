"""Judges a run from its folder alone: reads the evidence, checks that it is whole, and applies the pure judge."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from repro import ablation, catalogue, matrix
from repro.errors import InfraError, ReproError
from repro.evidence import manifest
from repro.evidence.layout import RunFolder, TrialFolder
from repro.evidence.read import finished_trials, read_run_json, read_trial, tail
from repro.evidence.types import TrialEvidence
from repro.judge.fault import judge_fault
from repro.judge.trial import Kind, judge_trial
from repro.judge.verify import judge_mend
from repro.matrix import Cell
from repro.model import Arm, Fault, FaultVerdict, Issue, MatrixColumn, Subject, Tier, Topology, Verdict
from repro.yaml_lines import read


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


@dataclass(frozen=True)
class _Gathered:
    """A run's folder, read and checked."""

    record: dict[str, Any]
    issue: Issue
    trials: dict[str, TrialEvidence]
    unread: dict[str, str]


def _gather(folder: Path) -> _Gathered:
    run = RunFolder(folder)
    record = read_run_json(run)
    manifest.check_run(run)
    issue = catalogue.parse(run.issue, read(run.issue), None)
    done = finished_trials(run)
    trials: dict[str, TrialEvidence] = {}
    unread: dict[str, str] = {}
    for name, key in record["trials"].items():
        try:
            if name not in done:
                raise InfraError(
                    f"trial {name} is not finished{_trouble(run, name)}", f"run again with --out {folder} to finish it"
                )
            manifest.check(done[name])
            trial = read_trial(done[name])
            if (trial.record.spec.folder, trial.record.spec.key) != (name, key):
                raise InfraError(f"{done[name].path} holds another trial", "restore it, or delete it and run again")
            trials[name] = trial
        except ReproError as error:
            unread[name] = str(error)
    return _Gathered(record, issue, trials, unread)


def _trouble(run: RunFolder, name: str) -> str:
    """What the engine said of the attempt that was cut; empty if it could say nothing."""
    said = [TrialFolder(attempt).trouble for attempt in run.attempts(name)]
    text = next((tail(path).strip() for path in said if path.exists()), "")
    return f": {text.removeprefix(f'trial {name}: ')}" if text else ""


def gathered(folder: Path) -> tuple[Issue, dict[str, TrialEvidence]]:
    """The issue and the trials of a run whose evidence can be used, by folder name.

    Raises:
        InfraError: The folder is no run, or its run.json is damaged.
        UsageError: Its issue.yaml has a mistake.
    """
    found = _gather(folder)
    return found.issue, found.trials


def kind_of(folder: Path) -> str:
    """What the run is: ``run``, ``verify``, ``matrix`` for a table of topologies, ``ablation`` for one of mends.

    Raises:
        InfraError: The folder is no run.
    """
    if ablation_parts(folder):
        return "ablation"
    return str(read_run_json(RunFolder(folder)).get("kind"))


def ablation_parts(folder: Path) -> list[Path]:
    """The runs, one a report, of a folder that holds several; empty if it is a run itself or holds none."""
    if RunFolder(folder).run.exists() or not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if RunFolder(path).run.exists())


def review(folder: Path) -> Review:
    """Judge a run.

    Raises:
        InfraError: The folder is no run, or its run.json is damaged.
        UsageError: Its issue.yaml has a mistake.
    """
    found = _gather(folder)
    tiers = {fault: Tier(tier) if tier else None for fault, tier in found.record["faults"].items()}
    asked = [fault for fault in found.issue.faults if fault.id in tiers]
    verdicts = tuple(_judge(fault, tiers[fault.id], found) for fault in asked)
    return Review(found.record["run"], found.issue, verdicts, found.trials, found.unread)


def review_matrix(folder: Path) -> tuple[Issue, list[Cell]]:
    """Judge the table of a matrix run.

    Raises:
        InfraError: The folder is no run, or its run.json is damaged.
        UsageError: Its issue.yaml has a mistake or no table.
    """
    found = _gather(folder)
    trials = {trial.record.spec.case: trial for trial in found.trials.values()}
    subject = Subject.UPSTREAM if found.record.get("upstream") else Subject.DISTILLED
    table = matrix.matrix_of(found.issue, subject)
    return replace(found.issue, matrix=table), matrix.judge(table, trials, found.unread)


def review_cells(folder: Path, column: MatrixColumn) -> dict[Topology, bool | None]:
    """Judge trials of one column of a table, whatever their topologies: shows, does not, or decides nothing.

    Raises:
        InfraError: The folder is no run, or its run.json is damaged.
        UsageError: Its issue.yaml has a mistake.
    """
    shows = {Kind.HIT: True, Kind.MISS: False}
    trials = _gather(folder).trials.values()
    return {trial.record.spec.topology: shows.get(judge_trial(trial, column.oracle).kind) for trial in trials}


def review_ablation(folder: Path) -> ablation.Table:
    """Judge every choice of mends of an ablation run, or of a folder of several.

    Raises:
        InfraError: The folder is no run, or its run.json is damaged.
        UsageError: Its issue.yaml has a mistake.
    """
    tables = []
    for part in ablation_parts(folder) or [folder]:
        found = _gather(part)
        tiers = {fault: Tier(tier) if tier else None for fault, tier in found.record["faults"].items()}
        tables.append(ablation.judge(found.issue, tiers, list(found.trials.values()), found.unread))
    return ablation.joined(tables)


def _judge(fault: Fault, tier: Tier | None, found: _Gathered) -> FaultVerdict:
    mine = [trial for trial in found.trials.values() if trial.record.spec.fault == fault.id]
    lost = [why for name, why in found.unread.items() if name.startswith(f"{fault.id}-")]
    upstream = found.record.get("upstream")
    subject = Subject.UPSTREAM if upstream else Subject.DISTILLED
    if tier is None:
        needed = " or ".join(fault.prefer)
        lacking = (upstream or {}).get("lacks", {}).get(fault.id)
        why = lacking or f"needs tier {needed}, which is not here"
        verdict = _without(fault, subject, fault.prefer[0], Verdict.UNSUPPORTED, why)
        # What a tier cannot show is beside the point where the version has nothing to show.
        return replace(verdict, limits="") if lacking else verdict
    if lost:
        return _without(fault, subject, tier, Verdict.INFRA_ERROR, lost[0], len(mine))
    if any(trial.record.spec.arm is Arm.FIXED for trial in mine):
        return judge_mend(fault, tier, mine)
    return judge_fault(fault, tier, mine)


def _without(fault: Fault, subject: Subject, tier: Tier, verdict: Verdict, why: str, trials: int = 0) -> FaultVerdict:
    return FaultVerdict(fault.id, verdict, tier, subject, trials, 0, fault.limits_of(subject, tier), why)
