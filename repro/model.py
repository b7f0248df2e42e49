"""The words of the project as frozen data: issues, faults, cases, topologies, trials and verdicts. No I/O."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


class Tier(StrEnum):
    """Where the code under test runs, and so what a run can claim."""

    CPU = "cpu"
    SIM = "sim"
    NPU = "npu"


class Arm(StrEnum):
    """What a trial is for: the fault itself, with and without mends, or a control that proves the oracle."""

    UNFIXED = "unfixed"
    FIXED = "fixed"
    CLEAN = "clean"
    PLANTED = "planted"


class Launcher(StrEnum):
    """How the ranks of a trial are started."""

    PLAIN = "plain"
    RANKS = "ranks"
    MSRUN = "msrun"


class Subject(StrEnum):
    """Whose code shows the fault: our own distilled program or a real hyper-parallel checkout."""

    DISTILLED = "distilled"
    UPSTREAM = "upstream"


class Phase(StrEnum):
    """How far a rank came, by its own account written before each step."""

    BEFORE_BODY = "before body"
    IN_BODY = "in body"
    BODY_DONE = "body done"
    FINALISING = "finalising"


class Verdict(StrEnum):
    """What the evidence says of one fault."""

    REPRODUCED = "REPRODUCED"
    NOT_REPRODUCED = "NOT_REPRODUCED"
    BOUNDED = "BOUNDED"
    FIXED = "FIXED"
    NOT_FIXED = "NOT_FIXED"
    INCONCLUSIVE = "INCONCLUSIVE"
    INFRA_ERROR = "INFRA_ERROR"
    UNSUPPORTED = "UNSUPPORTED"


class Ending(StrEnum):
    """How a trial as a whole came to its end, seen by its supervisor."""

    COMPLETED = "completed"
    DEADLINE = "deadline"
    INTERRUPTED = "interrupted"
    RUNAWAY_LOG = "runaway log"
    LAUNCH_FAILED = "launch failed"


@dataclass(frozen=True)
class Topology:
    """A split of the world into tensor, expert, fully-sharded and plain data parallel ranks."""

    tp: int = 1
    ep: int = 1
    fsdp: int = 1
    dp: int = 1

    @property
    def world(self) -> int:
        """Number of ranks: the product of the four degrees."""
        return self.tp * self.ep * self.fsdp * self.dp

    @property
    def label(self) -> str:
        """A short name fit for a folder, such as ``tp2-ep2`` or ``single``."""
        parts = [f"{name}{size}" for name, size in asdict(self).items() if size > 1]
        return "-".join(parts) or "single"

    @classmethod
    def parse(cls, text: str) -> Topology:
        """Read ``tp=2,ep=2,fsdp=2``.

        Raises:
            ValueError: A key that is not tp, ep, fsdp or dp, or a degree below 1.
        """
        degrees: dict[str, int] = {}
        for part in filter(None, (piece.strip() for piece in text.split(","))):
            name, _, size = part.partition("=")
            whole = size.isascii() and size.isdigit() and int(size) >= 1
            if name not in ("tp", "ep", "fsdp", "dp") or not whole or name in degrees:
                raise ValueError(
                    f"topology {text!r}: {part!r} is not one of tp=N, ep=N, fsdp=N, dp=N given once, N >= 1"
                )
            degrees[name] = int(size)
        return cls(**degrees)


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
class GrowthOracle:
    """Hit when the interval of growth a call, above the clean control, lies above ``floor``.

    Attributes:
        measure: Column of samples.csv, such as ``malloc_in_use`` or ``python_blocks``.
        unit: Unit of the slope as printed, such as ``B/call``.
        floor: Slopes at or below this are no leak, in ``unit``.
        planted: Size of the planted leak, in ``unit``; it must be found for any verdict to stand.
        reported: The report's own figure, in ``unit``; None if it gave none.
    """

    measure: str
    unit: str
    floor: float
    planted: float
    reported: float | None = None
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
        collectives: False where the ranks need no communication, so that no scheduler is started for them.
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
    collectives: bool = True
    environment: Mapping[str, str] = field(default_factory=dict)
    oracle: Oracle | None = None
    says: str = ""


@dataclass(frozen=True)
class Fault:
    """One root cause in a report, with its own oracle.

    Attributes:
        id: Such as ``134.1``.
        prefer: Tiers on which it can be judged, best first.
        limits: What a tier cannot show of it.
        on_request: True if it is run only when it is named.
    """

    id: str
    title: str
    oracle: Oracle
    prefer: tuple[Tier, ...]
    cases: tuple[Case, ...]
    limits: Mapping[Tier, str] = field(default_factory=dict)
    on_request: bool = False

    def oracle_of(self, case: Case) -> Oracle:
        """The oracle that a case is judged by: its own, or the fault's."""
        return case.oracle or self.oracle


@dataclass(frozen=True)
class MatrixColumn:
    """One question that a matrix asks of every topology: does this fault show in its program, run so?"""

    name: str
    fault: str
    args: Mapping[str, Scalar]
    oracle: Oracle


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


@dataclass(frozen=True)
class TrialSpec:
    """Everything a supervisor needs to run one trial, on any host that has the project."""

    issue: int
    fault: str
    case: str
    arm: Arm
    tier: Tier
    subject: Subject
    launcher: Launcher
    topology: Topology
    program: str
    args: Mapping[str, Scalar]
    series: Mapping[str, str]
    calls: int
    window: int
    calls_per_step: int
    index: int
    timeout_s: float
    collectives: bool
    environment: Mapping[str, str]
    seed: int
    fixes: str = "none"
    ranks: tuple[int, ...] = ()

    @property
    def key(self) -> str:
        """A digest of the whole specification: the same key means the same trial."""
        text = json.dumps(asdict(self), sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def folder(self) -> str:
        """Name of the trial's folder in a run."""
        return f"{self.fault}-{self.case}-{self.index}-{self.arm}-{self.topology.label}"

    def to_json(self) -> dict[str, Any]:
        """The specification as plain JSON data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TrialSpec:
        """The inverse of ``to_json``.

        Raises:
            TypeError, ValueError, KeyError: The data is not a specification.
        """
        values = dict(data)
        values["arm"] = Arm(values["arm"])
        values["tier"] = Tier(values["tier"])
        values["subject"] = Subject(values["subject"])
        values["launcher"] = Launcher(values["launcher"])
        values["topology"] = Topology(**values["topology"])
        values["ranks"] = tuple(values["ranks"])
        return cls(**values)


@dataclass(frozen=True)
class RankOutcome:
    """How one rank ended, from the operating system's wait status and the rank's own phase marks.

    Attributes:
        code: Exit code, or None if it died of a signal or never ended by itself.
        signal: Number of the signal it died of, or None.
        killed: True if the supervisor or msrun ended it because of another rank or of the deadline.
        start, end: Seconds since the epoch.
        reason: One line: the exception, the signal, or what the log says.
    """

    rank: int
    host: str
    pid: int
    start: float
    end: float
    code: int | None
    signal: int | None
    phase: Phase
    killed: bool
    reason: str = ""

    @property
    def failed(self) -> bool:
        """True if the rank ended badly by itself."""
        return not self.killed and (self.signal is not None or self.code != 0)


@dataclass(frozen=True)
class TrialRecord:
    """trial.json: one trial as its supervisor saw it."""

    spec: TrialSpec
    start: float
    end: float
    ending: Ending
    detail: str
    ranks: tuple[RankOutcome, ...]
    launcher_code: int | None = None
    first_failing: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The record as plain JSON data."""
        return {"schema_version": 1, **asdict(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TrialRecord:
        """The inverse of ``to_json``.

        Raises:
            TypeError, ValueError, KeyError: The data is not a trial record of this version.
        """
        values = dict(data)
        if values.pop("schema_version") != 1:
            raise ValueError(f"schema_version is {data['schema_version']!r}, this version reads 1")
        values["spec"] = TrialSpec.from_json(values["spec"])
        values["ending"] = Ending(values["ending"])
        values["ranks"] = tuple(RankOutcome(**{**r, "phase": Phase(r["phase"])}) for r in values["ranks"])
        return cls(**values)


@dataclass(frozen=True)
class Measure:
    """A quantity with its 95% interval."""

    name: str
    value: float
    ci95: tuple[float, float]
    unit: str


@dataclass(frozen=True)
class FaultVerdict:
    """The judgement of one fault, ready to print."""

    id: str
    verdict: Verdict
    tier: Tier
    subject: Subject
    trials: int
    hits: int
    limits: str
    why: str
    measure: Measure | None = None
    controls: tuple[str, ...] = ()
    first_failure: str = ""
