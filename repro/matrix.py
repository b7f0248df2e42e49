"""The report's table of topologies, found by running: its trials, and what each cell came to. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress

from repro.errors import UnsupportedError, UsageError
from repro.evidence.types import TrialEvidence
from repro.judge.trial import Finding, Kind, judge_trial
from repro.model import Arm, Fault, Issue, Launcher, Matrix, MatrixColumn, MatrixRow, Subject, Tier, TrialSpec
from repro.plan import FaultPlan


@dataclass(frozen=True)
class Cell:
    """One topology against one fault.

    Attributes:
        reported: What the report says: it shows, or it does not.
        ran: How many ranks of the topology were started.
        finding: What the trial says; None if there is no evidence of it.
        why: One line.
    """

    row: MatrixRow
    column: MatrixColumn
    reported: bool
    ran: int
    finding: Finding | None
    why: str

    @property
    def shows(self) -> bool | None:
        """True or false as found; None where the trial decides nothing."""
        if self.finding is None or self.finding.kind not in (Kind.HIT, Kind.MISS):
            return None
        return self.finding.kind is Kind.HIT

    @property
    def agrees(self) -> bool | None:
        """True if it was found as the report says."""
        return None if self.shows is None else self.shows is self.reported


def matrix_of(issue: Issue, subject: Subject = Subject.DISTILLED) -> Matrix:
    """The issue's table; for the real library, the columns that it answers.

    Raises:
        UsageError: The report has none, or none for this subject.
    """
    if issue.matrix is None:
        raise UsageError(f"report {issue.number} has no table of topologies", "see `repro list`")
    if subject is Subject.DISTILLED:
        return issue.matrix
    return _on_upstream(issue.number, issue.matrix)


def _on_upstream(number: int, matrix: Matrix) -> Matrix:
    how = matrix.upstream
    asked = [column.upstream is not None for column in matrix.columns]
    if how is None or not any(asked):
        raise UsageError(f"the table of report {number} is found on our own subject alone", "leave --upstream out")
    columns = tuple(replace(column, args=column.upstream) for column in matrix.columns if column.upstream is not None)
    rows = tuple(replace(row, reported=tuple(compress(row.reported, asked))) for row in matrix.rows)
    return replace(matrix, tiers=how.tiers, program=how.program, says=how.says, columns=columns, rows=rows)


def plan(
    issue: Issue,
    asked: Tier | None,
    available: Sequence[Tier],
    ranks: Sequence[int],
    seed: int,
    subject: Subject = Subject.DISTILLED,
) -> list[FaultPlan]:
    """The trials of the table, one a cell.

    Args:
        issue: The issue.
        asked: The tier asked for; None for the best there is.
        available: The tiers of this machine, best first.
        ranks: Which ranks of the simulated world to start; empty for all.
        seed: Seed of the ranks.
        subject: Whose code is run.

    Raises:
        UsageError: The report has no table.
        UnsupportedError: It can not be run on the tier asked for, or on this machine.
    """
    matrix = matrix_of(issue, subject)
    able = [tier for tier in available if tier in matrix.tiers and asked in (None, tier)]
    if not able:
        wanted = f"tier {asked}" if asked else f"this machine ({', '.join(available)})"
        raise UnsupportedError(f"the table of report {issue.number} cannot be run on {wanted}", "see `repro doctor`")
    tier = next(each for each in (Tier.NPU, Tier.SIM, Tier.CPU) if each in able)
    faults = {fault.id: fault for fault in issue.faults}
    plans = [_plan_column(matrix, column, faults[column.fault], tier, ranks, seed) for column in matrix.columns]
    return [replace(each, trials=tuple(replace(spec, subject=subject) for spec in each.trials)) for each in plans]


def _plan_column(
    matrix: Matrix, column: MatrixColumn, fault: Fault, tier: Tier, ranks: Sequence[int], seed: int
) -> FaultPlan:
    number = int(fault.id.partition(".")[0])
    trials = tuple(_spec(matrix, column, row, number, tier, ranks, seed) for row in matrix.rows)
    return FaultPlan(fault, tier, trials)


def _spec(
    matrix: Matrix, column: MatrixColumn, row: MatrixRow, number: int, tier: Tier, ranks: Sequence[int], seed: int
) -> TrialSpec:
    world = row.topology.world
    return TrialSpec(
        issue=number,
        fault=column.fault,
        case=_cell_name(column, row),
        arm=Arm.UNFIXED,
        tier=tier,
        subject=Subject.DISTILLED,
        launcher=Launcher.RANKS if world > 1 else Launcher.PLAIN,
        topology=row.topology,
        program=matrix.program,
        args=dict(column.args),
        series={},
        calls=0,
        window=0,
        calls_per_step=1,
        index=0,
        timeout_s=matrix.timeout_s,
        collectives=True,
        environment={},
        seed=seed,
        ranks=tuple(rank for rank in ranks if rank < world) if tier is Tier.SIM else (),
    )


def _cell_name(column: MatrixColumn, row: MatrixRow) -> str:
    return re.sub(r"[^a-z0-9]+", "-", f"{column.name} {row.name}".lower()).strip("-")


def judge(matrix: Matrix, trials: Mapping[str, TrialEvidence], unread: Mapping[str, str]) -> list[Cell]:
    """Every cell, row by row.

    Args:
        matrix: The table.
        trials: Evidence by case name of the cell.
        unread: Why there is no evidence, by folder name of the trial.
    """
    return [
        _judge_cell(row, column, reported, trials, unread)
        for row in matrix.rows
        for column, reported in zip(matrix.columns, row.reported, strict=True)
    ]


def _judge_cell(
    row: MatrixRow,
    column: MatrixColumn,
    reported: bool,
    trials: Mapping[str, TrialEvidence],
    unread: Mapping[str, str],
) -> Cell:
    name = _cell_name(column, row)
    if name not in trials:
        why = next((why for folder, why in unread.items() if f"-{name}-" in folder), "was not run")
        return Cell(row, column, reported, 0, None, why)
    finding = judge_trial(trials[name], column.oracle)
    return Cell(row, column, reported, len(trials[name].record.ranks), finding, finding.why)
