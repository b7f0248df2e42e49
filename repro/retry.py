"""Sets trials aside that ended as infrastructure trouble, so that the same run can run them again; nothing is lost."""

from __future__ import annotations

from pathlib import Path

from repro.evidence.layout import RunFolder
from repro.evidence.types import TrialEvidence
from repro.judge.trial import Kind, judge_trial
from repro.matrix import matrix_of
from repro.model import Issue, Oracle
from repro.review import gathered


def set_aside_trouble(folder: Path) -> list[str]:
    """Move every finished trial that says nothing but infrastructure trouble to ``set-aside/``; returns their names.

    Raises:
        InfraError: The run is damaged.
    """
    issue, trials = gathered(folder)
    moved = []
    for name, trial in trials.items():
        if judge_trial(trial, _oracle(issue, trial)).kind is not Kind.INFRA:
            continue
        aside = folder / "set-aside"
        aside.mkdir(exist_ok=True)
        number = sum(1 for _ in aside.glob(f"{name}.*")) + 1
        RunFolder(folder).trial(name).path.rename(aside / f"{name}.{number}")
        moved.append(name)
    return moved


def _oracle(issue: Issue, trial: TrialEvidence) -> Oracle:
    spec = trial.record.spec
    fault = next(fault for fault in issue.faults if fault.id == spec.fault)
    case = next((case for case in fault.cases if case.name == spec.case), None)
    if case is not None:
        return fault.oracle_of(case)
    columns = matrix_of(issue).columns
    return next(column.oracle for column in columns if column.fault == spec.fault)
