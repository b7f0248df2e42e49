"""Every mend against every fault: each alone, each left out, all together. The trials, and what each came to. Pure.

A mend is for one fault, and is shown to be so both ways: with it alone its fault is FIXED and every other is not; with
all the others its fault, and only it, is NOT_FIXED. The trials without any mend and the controls are shared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from repro.errors import UnsupportedError, UsageError
from repro.evidence.types import TrialEvidence
from repro.judge.verify import judge_mend
from repro.model import Ablation, Arm, Case, Fault, FaultVerdict, Issue, Subject, Tier, TrialSpec, Verdict
from repro.plan import FaultPlan, Options, trial_spec

Mends = tuple[str, ...]
_MEASURED = ("case", "clean", "planted")


@dataclass(frozen=True)
class Cell:
    """One fault with one choice of mends.

    Attributes:
        mends: Those that were on.
        found: The verdict.
        wanted: FIXED if the fault's own mend is among them, else NOT_FIXED.
    """

    fault: str
    mends: Mends
    found: FaultVerdict
    wanted: Verdict

    @property
    def as_wanted(self) -> bool:
        """True if the mends do what they are for, and no more."""
        return self.found.verdict is self.wanted


@dataclass(frozen=True)
class Table:
    """The cells of one or more reports.

    Attributes:
        mends: All that were tried.
        choices: The rows, in order: each alone, all but each, all.
        missing: Faults that could not be run here, with the reason.
        lost: Faults whose evidence is not whole, with the reason.
    """

    mends: Mends
    choices: tuple[Mends, ...]
    cells: tuple[Cell, ...]
    missing: Mapping[str, str]
    lost: Mapping[str, str]

    def name(self, choice: Mends) -> str:
        """Such as ``134.1 alone``, ``all but 134.1``, ``all``."""
        if len(choice) == 1:
            return f"{choice[0]} alone"
        if choice == self.mends:
            return "all"
        return f"all but {', '.join(mend for mend in self.mends if mend not in choice)}"

    def cell(self, fault: str, choice: Mends) -> Cell | None:
        """The cell of a fault and a choice; None if it was not run."""
        return next((cell for cell in self.cells if (cell.fault, cell.mends) == (fault, choice)), None)


def choices(mends: Sequence[str]) -> tuple[Mends, ...]:
    """Each mend alone, all but each, all; every choice once, none of them empty."""
    alone = [(mend,) for mend in mends]
    all_but = [tuple(other for other in mends if other != mend) for mend in mends]
    return tuple(dict.fromkeys(choice for choice in (*alone, *all_but, tuple(mends)) if choice))


def plan(
    issue: Issue, wanted: str, mends: Sequence[str], options: Options, available: Sequence[Tier]
) -> list[FaultPlan]:
    """The trials of a report's faults, for every choice of mends.

    Args:
        issue: The report.
        wanted: One fault of it; empty for all that say how they are run so.
        mends: The mends to choose from.
        options: Tier and seed are taken from it.
        available: The tiers of this machine.

    Raises:
        UsageError: The fault does not say how it is run against mends.
        UnsupportedError: None can be run here.
    """
    faults = [fault for fault in issue.faults if fault.ablation is not None and wanted in ("", fault.id)]
    if not faults:
        raise UsageError(
            f"{wanted or issue.number} is not run against every mend", "see `repro list` for those that are"
        )
    plans = []
    for fault in faults:
        tier = next((each for each in _tiers(fault) if each in available and options.tier in (None, each)), None)
        plans.append(FaultPlan(fault, tier, tuple(_trials(issue, fault, tier, mends, options)) if tier else ()))
    if all(item.tier is None for item in plans):
        names = ", ".join(item.fault.id for item in plans)
        raise UnsupportedError(f"{names}: not on this machine", "`repro doctor` says what each tier needs")
    return plans


def _tiers(fault: Fault) -> list[Tier]:
    cases = _cases(fault)
    return [tier for tier in fault.prefer if any(tier in case.tiers for case in cases)]


def _cases(fault: Fault) -> list[Case]:
    named = fault.ablation.cases if fault.ablation else ()
    return [case for case in fault.cases_of(Subject.DISTILLED) if case.name in named]


def _trials(issue: Issue, fault: Fault, tier: Tier, mends: Sequence[str], options: Options) -> list[TrialSpec]:
    how = fault.ablation
    if how is None:
        raise TypeError(f"{fault.id} is not run against mends")
    cases = [case for case in _cases(fault) if tier in case.tiers]
    ours = [case for case in fault.cases_of(Subject.DISTILLED) if tier in case.tiers]
    controls = [case for case in ours if case.arm is not Arm.UNFIXED]
    specs = [trial_spec(issue, fault, case, tier, options, case.arm, 0) for case in controls]
    for case in cases:
        unfixed = [trial_spec(issue, fault, case, tier, options, Arm.UNFIXED, index) for index in range(how.trials)]
        specs += [_sized(spec, how) for spec in unfixed]
        fixed = [(choice, trial) for choice in choices(mends) for trial in range(how.trials)]
        for index, (choice, _) in enumerate(fixed):
            spec = trial_spec(issue, fault, case, tier, options, Arm.FIXED, index)
            specs.append(_sized(replace(spec, fixes=",".join(choice)), how))
    return specs


def _sized(spec: TrialSpec, how: Ablation) -> TrialSpec:
    if not spec.calls:
        return spec
    series = {role: name for role, name in spec.series.items() if role in _MEASURED}
    return replace(spec, series=series, calls=how.calls or spec.calls, window=how.window or spec.window)


def judge(
    issue: Issue, tiers: Mapping[str, Tier | None], trials: Sequence[TrialEvidence], unread: Mapping[str, str]
) -> Table:
    """Every cell of one report.

    Args:
        issue: The report.
        tiers: Where each of its faults was run; None if it could not be.
        trials: All evidence of the run.
        unread: Why there is no evidence of a trial, by its folder's name.
    """
    found = {tuple(t.record.spec.fixes.split(",")) for t in trials if t.record.spec.arm is Arm.FIXED}
    # The largest choice has them all, in their order.
    mends = max(found, key=len, default=())
    cells: list[Cell] = []
    missing: dict[str, str] = {}
    gone: dict[str, str] = {}
    for fault in issue.faults:
        if fault.id not in tiers:
            continue
        tier = tiers[fault.id]
        mine = [trial for trial in trials if trial.record.spec.fault == fault.id]
        lost = [why for name, why in unread.items() if name.startswith(f"{fault.id}-")]
        if tier is None:
            missing[fault.id] = f"needs tier {' or '.join(_tiers(fault))}, which is not here"
        elif lost:
            gone[fault.id] = lost[0]
        else:
            cells += [_cell(fault, tier, choice, mine) for choice in choices(mends)]
    return Table(mends, choices(mends), tuple(cells), missing, gone)


def _cell(fault: Fault, tier: Tier, choice: Mends, trials: Sequence[TrialEvidence]) -> Cell:
    asked = ",".join(choice)
    chosen = [t for t in trials if t.record.spec.arm is not Arm.FIXED or t.record.spec.fixes == asked]
    wanted = Verdict.FIXED if fault.id in choice else Verdict.NOT_FIXED
    if all(trial.record.spec.arm is not Arm.FIXED for trial in chosen):
        why = "was not run"
        return Cell(fault.id, choice, _nothing(fault, tier, why), wanted)
    return Cell(fault.id, choice, judge_mend(fault, tier, chosen, {fault.id}), wanted)


def _nothing(fault: Fault, tier: Tier, why: str) -> FaultVerdict:
    return FaultVerdict(fault.id, Verdict.INFRA_ERROR, tier, Subject.DISTILLED, 0, 0, fault.limits.get(tier, ""), why)


def joined(tables: Sequence[Table]) -> Table:
    """The tables of several reports as one.

    Raises:
        UsageError: They were made with different mends.
    """
    if len({table.mends for table in tables if table.mends}) > 1:
        raise UsageError("the runs in this folder chose from different mends", "judge each of them by itself")
    first = next((table for table in tables if table.mends), tables[0])
    missing = {fault: why for table in tables for fault, why in table.missing.items()}
    lost = {fault: why for table in tables for fault, why in table.lost.items()}
    return replace(first, cells=tuple(cell for table in tables for cell in table.cells), missing=missing, lost=lost)
