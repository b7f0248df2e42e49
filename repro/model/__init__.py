"""The words of the project as frozen data: issues, faults, cases, topologies, trials and verdicts. No I/O."""

from repro.model.issue import (
    Ablation,
    Beside,
    Case,
    CeilingOracle,
    CrashOracle,
    ExceptionOracle,
    Fault,
    GrowthOracle,
    Issue,
    Matrix,
    MatrixColumn,
    MatrixRow,
    NumericOracle,
    Oracle,
    Scalar,
    Upstream,
)
from repro.model.node import HostPart, Node
from repro.model.trial import (
    RankOutcome,
    TrialRecord,
    TrialSpec,
)
from repro.model.verdict import (
    FaultVerdict,
    Measure,
)
from repro.model.words import (
    Arm,
    Ending,
    Launcher,
    Phase,
    Subject,
    Tier,
    Topology,
    Verdict,
)

__all__ = [
    "Ablation",
    "Arm",
    "Beside",
    "Case",
    "CeilingOracle",
    "CrashOracle",
    "Ending",
    "ExceptionOracle",
    "Fault",
    "FaultVerdict",
    "GrowthOracle",
    "HostPart",
    "Issue",
    "Launcher",
    "Matrix",
    "MatrixColumn",
    "MatrixRow",
    "Measure",
    "Node",
    "NumericOracle",
    "Oracle",
    "Phase",
    "RankOutcome",
    "Scalar",
    "Subject",
    "Tier",
    "Topology",
    "TrialRecord",
    "TrialSpec",
    "Upstream",
    "Verdict",
]
