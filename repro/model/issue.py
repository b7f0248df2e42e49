"""An issue as data: its faults, their oracles, the cases that show them, and the table of topologies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from repro.model.words import Arm, Launcher, Phase, Subject, Tier, Topology


@dataclass(frozen=True)
class ExceptionOracle:
    """Hit when the first failing rank raised this error, through these functions."""

    type: str
    text: str
    frames: tuple[str, ...] = ()
    kind: str = "exception"


@dataclass(frozen=True)
class NumericOracle:
    """Hit when a recorded check fails and the value equals what the fault would leave there."""

    kind: str = "numeric"


@dataclass(frozen=True)
class CrashOracle:
    """Hit when a rank dies of one of these signals in one of these phases."""

    signals: tuple[int, ...] = (11,)
    phases: tuple[Phase, ...] = (Phase.BODY_DONE, Phase.FINALISING)
    kind: str = "crash"


@dataclass(frozen=True)
class Beside:
    """A further series of a growth measurement: the case with one more cause taken away.

    Attributes:
        removes: The cause that is taken away, beyond what the series before it takes away.
        reported: The report's own figure for what is left, in the oracle's unit.
    """

    removes: str
    reported: float


@dataclass(frozen=True)
class GrowthOracle:
    """Hit when the interval of growth a call, above the clean control, lies above ``floor``.

    Attributes:
        measure: Column of samples.csv, such as ``malloc_in_use`` or ``python_blocks``.
        unit: Unit of the slope as printed, such as ``B/call``.
        floor: Slopes at or below this are no leak, in ``unit``.
        planted: Size of the planted leak, in ``unit``; it must be found for any verdict to stand.
        reported: The report's own figure, in ``unit``; None if it gave none.
        beside: Further series by role, in the order in which causes are taken away.
    """

    measure: str
    unit: str
    floor: float
    planted: float
    reported: float | None = None
    beside: Mapping[str, Beside] = field(default_factory=dict)
    kind: str = "growth"


@dataclass(frozen=True)
class CeilingOracle:
    """For growth that is said to stop: BOUNDED when it does, REPRODUCED when it goes on.

    Attributes:
        measure: Column of samples.csv.
        unit: Unit of the measure, such as ``B``.
        floor: Slope a call, in ``unit`` a call, at or below which the long run counts as flat.
        planted: Slope a call of the planted control's leak.
    """

    measure: str
    unit: str
    floor: float
    planted: float
    kind: str = "ceiling"


Oracle = ExceptionOracle | NumericOracle | CrashOracle | GrowthOracle | CeilingOracle


Scalar = str | int | float | bool


@dataclass(frozen=True)
class Case:
    """A program and how to run it; one arm of one fault.

    Attributes:
        program: File name in the issue's folder.
        args: Passed to the program as ``context.args``.
        series: For growth: which of the program's named loops is the case, the clean and the planted control.
        calls: For growth and ceiling: calls of each series in all.
        window: Calls between two samples.
        calls_per_step: How many of the counted calls one step of the loop makes, such as 133 applies.
        environment: Variables of the ranks, beyond what the launcher sets.
        ranks: Ranks of a simulated world to start where the command line names none; empty for all.
        collectives: False where the ranks need no communication, so that no scheduler is started for them.
        subjects: Whose code it runs: our own, or a checkout of hyper-parallel.
        mends: Those of the fault's mends that the fixed arm of this case is run with; empty for all.
        keep: Globs of files that the ranks leave where they work and that are evidence.
        oracle: Overrides the fault's oracle for this case; None to use the fault's.
        says: One line on what the case is.
    """

    name: str
    arm: Arm
    tiers: tuple[Tier, ...]
    launcher: Launcher
    topology: Topology
    program: str
    args: Mapping[str, Scalar] = field(default_factory=dict)
    series: Mapping[str, str] = field(default_factory=dict)
    calls: int = 0
    window: int = 0
    calls_per_step: int = 1
    trials: int = 1
    timeout_s: float = 60.0
    ranks: tuple[int, ...] = ()
    collectives: bool = True
    environment: Mapping[str, str] = field(default_factory=dict)
    subjects: tuple[Subject, ...] = (Subject.DISTILLED,)
    mends: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    oracle: Oracle | None = None
    says: str = ""


@dataclass(frozen=True)
class Ablation:
    """The cheap form in which a fault is run against every choice of mends.

    Attributes:
        cases: The unfixed cases that are enough to show it; those of the tier at hand are run.
        trials: Of each of them, for each choice of mends.
        calls, window: As of a case, for cases that measure growth; 0 keeps the case's own.
    """

    cases: tuple[str, ...]
    trials: int = 1
    calls: int = 0
    window: int = 0


@dataclass(frozen=True)
class Upstream:
    """What a version of hyper-parallel must have for a fault to be in it, and for our cases to drive it.

    Names are ``file::qualified.name``, the file below the checkout.

    Attributes:
        carried_by: Any of these carries the fault.
        lacks: Why a version with none of them cannot have it.
        driven_by: All of these are used by the cases.
        limits: What the run on the library cannot show, by tier; printed with the verdict.
    """

    carried_by: tuple[str, ...]
    lacks: str
    driven_by: tuple[str, ...] = ()
    limits: Mapping[Tier, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Fault:
    """One root cause in a report, with its own oracle.

    Attributes:
        id: Such as ``134.1``.
        prefer: Tiers on which it can be judged, best first.
        limits: What a tier cannot show of it.
        on_request: True if it is run only when it is named.
        ablation: How it is run against every choice of mends; None if it is not.
        upstream: Which versions of the real library can have it; None if no case runs on them.
    """

    id: str
    title: str
    oracle: Oracle
    prefer: tuple[Tier, ...]
    cases: tuple[Case, ...]
    limits: Mapping[Tier, str] = field(default_factory=dict)
    on_request: bool = False
    ablation: Ablation | None = None
    upstream: Upstream | None = None

    def cases_of(self, subject: Subject) -> tuple[Case, ...]:
        """The cases that run the code of this subject."""
        return tuple(case for case in self.cases if subject in case.subjects)

    def limits_of(self, subject: Subject, tier: Tier) -> str:
        """What cannot be shown of it there."""
        own = self.upstream.limits if subject is Subject.UPSTREAM and self.upstream else {}
        return own.get(tier) or self.limits.get(tier, "")

    def oracle_of(self, case: Case) -> Oracle:
        """The oracle that a case is judged by: its own, or the fault's."""
        return case.oracle or self.oracle


@dataclass(frozen=True)
class MatrixColumn:
    """One question that a matrix asks of every topology: does this fault show in its program, run so?

    Attributes:
        upstream: The arguments of the program that runs the real library; None if it does not answer this question.
    """

    name: str
    fault: str
    args: Mapping[str, Scalar]
    oracle: Oracle
    upstream: Mapping[str, Scalar] | None = None


@dataclass(frozen=True)
class MatrixOnUpstream:
    """How the table is found on the real library."""

    tiers: tuple[Tier, ...]
    program: str
    says: str


@dataclass(frozen=True)
class MatrixRow:
    """One topology, and what the report says of it, an answer a column."""

    name: str
    topology: Topology
    reported: tuple[bool, ...]


@dataclass(frozen=True)
class Matrix:
    """The report's table of topologies, to be found by running."""

    tiers: tuple[Tier, ...]
    program: str
    timeout_s: float
    columns: tuple[MatrixColumn, ...]
    rows: tuple[MatrixRow, ...]
    says: str
    upstream: MatrixOnUpstream | None = None


@dataclass(frozen=True)
class Issue:
    """A public report and the faults found in it."""

    number: int
    title: str
    url: str
    faults: tuple[Fault, ...]
    folder: str
    digest: str
    matrix: Matrix | None = None
