"""A trial as asked for, and as its supervisor saw it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from repro.model.issue import Scalar
from repro.model.node import HostPart
from repro.model.words import Arm, Ending, Launcher, Phase, Subject, Tier, Topology


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
    def label(self) -> str:
        """Its name for a reader, with its host where that is another machine."""
        return f"rank {self.rank}" if self.host == "local" else f"rank {self.rank} on {self.host}"

    @property
    def failed(self) -> bool:
        """True if the rank ended badly by itself."""
        return not self.killed and (self.signal is not None or self.code != 0)


@dataclass(frozen=True)
class TrialRecord:
    """trial.json: one trial as its supervisor saw it.

    Attributes:
        hosts: Where it ran, if that was not this machine.
        given_up: Why earlier attempts at it came to nothing, a line each: hosts that were lost.
    """

    spec: TrialSpec
    start: float
    end: float
    ending: Ending
    detail: str
    ranks: tuple[RankOutcome, ...]
    launcher_code: int | None = None
    first_failing: int | None = None
    hosts: tuple[HostPart, ...] = ()
    given_up: tuple[str, ...] = ()

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
        values["hosts"] = tuple(HostPart.from_json(part) for part in values.get("hosts", ()))
        values["given_up"] = tuple(values.get("given_up", ()))
        return cls(**values)
