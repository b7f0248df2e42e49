"""Judges one trial against an oracle of the yes-or-no kind: hit, miss, another failure, or infrastructure trouble."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from repro.evidence.types import RaisedError, RankEvidence, TrialEvidence
from repro.judge.infra import left_early, trouble
from repro.model import CrashOracle, ExceptionOracle, NumericOracle, Oracle, Phase, RankOutcome

# Of the stack of a crash, in the one line of a verdict; backtrace.txt has the rest.
FRAMES_TOLD = 4


class Kind(StrEnum):
    """What one trial says of the fault."""

    HIT = "hit"
    MISS = "miss"
    OTHER = "another failure"
    INFRA = "infrastructure"


@dataclass(frozen=True)
class Finding:
    """The judgement of one trial.

    Attributes:
        kind: What it says.
        why: One line for a reader, naming rank, phase and text.
        marks: Names of the case's deterministic checks that saw the fault's mechanism, whether or not it crashed.
    """

    kind: Kind
    why: str
    marks: tuple[str, ...] = ()


def judge_trial(trial: TrialEvidence, oracle: Oracle) -> Finding:
    """Judge a trial. Growth and ceiling oracles only learn here whether the trial ran to its end."""
    marks = tuple(sorted({str(c["name"]) for r in trial.ranks.values() for c in _checks(r) if c["fault"]}))
    hit = _hit(trial, oracle)
    if hit:
        return Finding(Kind.HIT, hit, marks)
    stood_in_the_way = trouble(trial)
    if stood_in_the_way:
        return Finding(Kind.INFRA, stood_in_the_way, marks)
    first, early = _first_failing(trial, oracle), left_early(trial.record)
    if early is not None and (first is None or early.end < first.end):
        return Finding(Kind.OTHER, f"{early.label} left with exit code 0 {early.phase}, before its end", marks)
    if first is not None:
        return Finding(Kind.OTHER, f"{first.label} {first.phase}: {first.reason}", marks)
    cut = [o for o in trial.record.ranks if o.killed and o.phase not in (Phase.BODY_DONE, Phase.FINALISING)]
    if cut:
        return Finding(Kind.OTHER, f"{cut[0].label} was ended {cut[0].phase} because another died", marks)
    wrong = [f"rank {rank}: {c['name']}" for rank, r in sorted(trial.ranks.items()) for c in _checks(r) if not c["ok"]]
    if wrong and not isinstance(oracle, CrashOracle):
        return Finding(Kind.OTHER, f"a check failed in another way than the fault would: {wrong[0]}", marks)
    if isinstance(oracle, NumericOracle) and not any(_checks(rank) for rank in trial.ranks.values()):
        return Finding(Kind.OTHER, "the case recorded no check, so there is nothing to compare", marks)
    return Finding(Kind.MISS, _passed(trial), marks)


def _checks(rank: RankEvidence) -> list[dict[str, Any]]:
    checks = [dict(event) for event in rank.events if event.get("event") == "check"]
    return [check for check in checks if check.keys() >= {"name", "ok", "fault"}]


def _died_after_its_body(outcome: RankOutcome) -> bool:
    return outcome.failed and outcome.signal is not None and outcome.phase in (Phase.BODY_DONE, Phase.FINALISING)


def _first_failing(trial: TrialEvidence, oracle: Oracle) -> RankOutcome | None:
    """The rank that failed first as far as the oracle is concerned.

    A crash after the body is a fault of its own, report 219's. It decides where the oracle asks for a crash; elsewhere
    the body has shown what it was to show, and the crash is only told of.
    """
    failed = [outcome for outcome in trial.record.ranks if outcome.failed]
    if not isinstance(oracle, CrashOracle):
        failed = [outcome for outcome in failed if not _died_after_its_body(outcome)]
    return min(failed, key=lambda outcome: outcome.end, default=None)


def _passed(trial: TrialEvidence) -> str:
    crashed = [outcome for outcome in trial.record.ranks if _died_after_its_body(outcome)]
    if not crashed:
        return "every rank passed its body and exited 0"
    which = ", ".join(f"{outcome.label} then died of {outcome.reason}, {outcome.phase}" for outcome in crashed)
    return f"every rank passed its body; {which}, which is another fault"


def _hit(trial: TrialEvidence, oracle: Oracle) -> str:
    match oracle:
        case ExceptionOracle():
            return _raised(trial, oracle)
        case NumericOracle():
            return _lost(trial)
        case CrashOracle():
            return _crashed(trial, oracle)
        case _:
            return ""


def _raised(trial: TrialEvidence, oracle: ExceptionOracle) -> str:
    first = _first_failing(trial, oracle)
    error = trial.ranks[first.rank].error if first is not None and first.rank in trial.ranks else None
    if first is None or error is None or error.type != oracle.type or oracle.text not in error.message:
        return ""
    if not error.frames or not _passes_through(error, oracle.frames):
        return ""
    surfaced = next((frame for frame in reversed(error.frames) if frame[2] in oracle.frames), error.frames[-1])
    said = error.message.strip().splitlines()[0]
    raised = f"{first.label} {first.phase}: {error.type}: {said} (in {_place(surfaced)})"
    if not error.issued_at:
        return raised
    issue = next((frame for frame in reversed(error.issued_at) if "/probes/" not in frame[0]), error.issued_at[-1])
    return f"{raised}; the call at fault was issued earlier, in {_place(issue)}"


def _passes_through(error: RaisedError, functions: tuple[str, ...]) -> bool:
    """True if the functions stand in the stack in this order, others between them allowed."""
    names = iter(name for _, _, name in error.frames)
    return all(any(name == wanted for name in names) for wanted in functions)


def _place(frame: tuple[str, int, str]) -> str:
    file, line, function = frame
    return f"{function}, {'/'.join(file.split('/')[-2:])}:{line}"


def _lost(trial: TrialEvidence) -> str:
    for rank, evidence in sorted(trial.ranks.items()):
        lost = [check for check in _checks(evidence) if check["fault"] and not check["ok"]]
        if lost:
            return f"rank {rank}: {lost[0]['name']}: {lost[0].get('says') or 'as the fault leaves it'}"
    return ""


def _crashed(trial: TrialEvidence, oracle: CrashOracle) -> str:
    first = _first_failing(trial, oracle)
    if first is None or first.signal not in oracle.signals or first.phase not in oracle.phases:
        return ""
    passed = first.phase in (Phase.BODY_DONE, Phase.FINALISING)
    job = "" if trial.record.launcher_code is None else f"; msrun exit code {trial.record.launcher_code}"
    inside = " <- ".join(trial.ranks[first.rank].crashed_in[:FRAMES_TOLD]) if first.rank in trial.ranks else ""
    where = f", in {inside}" if inside else ""
    died = f"died of {first.reason}, {first.phase}{where}{job}"
    return f"{first.label} {'passed its body, then ' if passed else ''}{died}"
