"""Made-up evidence for the tests of the judge, the reports and the reader: short ways to say what a trial left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from repro.evidence.types import RaisedError, RankEvidence, TrialEvidence
from repro.model import (
    Arm,
    Case,
    Ending,
    ExceptionOracle,
    Fault,
    Launcher,
    Oracle,
    Phase,
    RankOutcome,
    Subject,
    Tier,
    Topology,
    TrialRecord,
    TrialSpec,
)

ERROR = ExceptionOracle("ValueError", "not-contiguous", ("reduce", "send"))

SPEC = TrialSpec(
    issue=9001,
    fault="9001.1",
    case="shape",
    arm=Arm.UNFIXED,
    tier=Tier.CPU,
    subject=Subject.DISTILLED,
    launcher=Launcher.RANKS,
    topology=Topology(dp=2),
    program="tiny.py",
    args={"what": "raise"},
    environment={},
    series={},
    calls=0,
    window=0,
    calls_per_step=1,
    index=0,
    timeout_s=30.0,
    collectives=False,
    seed=0,
)


def rank(number: int, code: int | None = 0, signal: int | None = None, **changes: Any) -> RankOutcome:
    """How a rank ended; one that ended well unless told otherwise."""
    phase = Phase.FINALISING if code == 0 else Phase.IN_BODY
    reason = "" if code == 0 else f"signal {signal}" if signal else f"exit code {code}: it said so"
    outcome = RankOutcome(number, "local", 1000 + number, 1.0, 2.0 + number, code, signal, phase, False, reason)
    return replace(outcome, **changes)


def died(number: int, signal: int, phase: Phase = Phase.FINALISING, **changes: Any) -> RankOutcome:
    """A rank that died of a signal."""
    return rank(number, None, signal, phase=phase, **changes)


def trial(
    *ranks: RankOutcome,
    evidence: Mapping[int, RankEvidence] | None = None,
    ending: Ending = Ending.COMPLETED,
    detail: str = "",
    launcher_code: int | None = None,
    scheduler: str = "",
    **spec: Any,
) -> TrialEvidence:
    """A trial of as many ranks as are given, two that ended well if none are."""
    outcomes = ranks or (rank(0), rank(1))
    world = spec.pop("topology", Topology(dp=len(outcomes)))
    failed = [outcome for outcome in outcomes if outcome.failed]
    first = min(failed, key=lambda outcome: outcome.end).rank if failed else None
    made = replace(SPEC, topology=world, **spec)
    record = TrialRecord(made, 1.0, 9.0, ending, detail, outcomes, launcher_code, first)
    left = {outcome.rank: RankEvidence(outcome.rank) for outcome in outcomes}
    return TrialEvidence(record, {**left, **(evidence or {})}, scheduler)


def raised(
    number: int,
    type_: str = "ValueError",
    text: str = "DistCommAllReduce does not support not-contiguous tensor",
    frames: Sequence[str] = ("case", "reduce", "wrap", "send"),
    stderr: str = "",
) -> dict[int, RankEvidence]:
    """A rank's error.json."""
    stack = tuple(("/far/away/module.py", line, name) for line, name in enumerate(frames, 1))
    return {number: RankEvidence(number, error=RaisedError(type_, text, stack), stderr_tail=stderr)}


def checked(number: int, *checks: tuple[str, bool, bool]) -> dict[int, RankEvidence]:
    """A rank's recorded comparisons: name, ok, fault."""
    return {
        number: RankEvidence(number, tuple({"event": "check", "name": n, "ok": o, "fault": f} for n, o, f in checks))
    }


def said(number: int, stderr: str) -> dict[int, RankEvidence]:
    """A rank that raised nothing it could write down, but said something."""
    return {number: RankEvidence(number, stderr_tail=stderr)}


def case(name: str, arm: Arm, oracle: Oracle | None = None) -> Case:
    """A case of the made-up fault."""
    return Case(name, arm, (Tier.CPU,), Launcher.RANKS, Topology(dp=2), "tiny.py", oracle=oracle)


def fault(oracle: Oracle = ERROR, *cases: Case) -> Fault:
    """The made-up fault, with an unfixed case, a clean and a planted control unless told otherwise."""
    usual = (case("shape", Arm.UNFIXED), case("well", Arm.CLEAN), case("known", Arm.PLANTED))
    return Fault(
        "9001.1", "形状不符 (shapes differ)", oracle, (Tier.CPU,), cases or usual, {Tier.CPU: "numbers are real"}
    )
