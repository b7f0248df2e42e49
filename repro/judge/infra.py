"""Tells trouble of the machine from faults of the code under test.

The rule: a trial is infrastructure trouble only if something outside the code under test is seen to have failed, by one
of the patterns below, by an ending that the supervisor forced, or by a signal that nobody of ours sent. Such a trial is
never counted as "not reproduced", and an oracle that was hit before the trouble came still counts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from repro.evidence.types import TrialEvidence
from repro.model import Ending, Phase, RankOutcome, TrialRecord

# SIGHUP, SIGINT, SIGKILL, SIGTERM: a program does not die of these by its own fault.
SENT_FROM_OUTSIDE = (1, 2, 9, 15)
SIGKILL = 9


@dataclass(frozen=True)
class Pattern:
    """A text that names trouble outside the code under test.

    Attributes:
        reason: What it means, for the reader.
        where: ``rank`` or ``scheduler``: whose words are searched.
        text: A regular expression.
        next_step: What to do about it.
    """

    reason: str
    where: str
    text: str
    next_step: str


PATTERNS = (
    Pattern(
        "the case reads a number that a simulated device never computed",
        "rank",
        r"SimulatedNumberError",
        "run it on tier cpu or npu, or mark what it reads as metadata",
    ),
    Pattern("the disk is full", "rank", r"No space left on device|Errno 28", "free space, or choose another --out"),
    Pattern("the file system is read-only", "rank", r"Read-only file system|Errno 30", "choose another --out"),
    Pattern(
        "out of memory", "rank", r"MemoryError|std::bad_alloc|Cannot allocate memory", "free memory or use fewer ranks"
    ),
    Pattern("a package is missing", "rank", r"ModuleNotFoundError: No module named", "run `make setup`"),
    Pattern(
        "the scheduler's port was taken", "scheduler", r"Failed to init the tcp server", "see `ss -ltn`; run again"
    ),
    Pattern(
        "the cluster did not form",
        "rank",
        r"Topology build timed out.{0,40}retry\(60/60\)|Failed to build|Failed to initialize distributed job cluster",
        "see scheduler.log",
    ),
)


def trouble(trial: TrialEvidence) -> str:
    """One line on what stood in the way of this trial; empty if nothing did."""
    record = trial.record
    first = next((outcome for outcome in record.ranks if outcome.rank == record.first_failing), None)
    if record.ending is Ending.DEADLINE:
        stuck = ", ".join(f"{o.label} {o.phase}" for o in record.ranks if o.killed) or "the launcher"
        early = left_early(record)
        before = f"; before it, {first.label} failed {first.phase}: {first.reason}" if first else ""
        if early and not first:
            before = f"; before it, {early.label} left with exit code 0 {early.phase}"
        return f"{record.detail} with {stuck} still running{before}; see stderr.log for stacks"
    if record.ending is not Ending.COMPLETED:
        return f"{record.ending}: {record.detail}"
    if not record.ranks:
        return f"no rank started: {_last_line(trial.launcher_tail) or 'see launcher.log'}"
    if first is not None:
        return _trouble_of(trial, first)
    started = {outcome.rank for outcome in record.ranks}
    missing = [rank for rank in record.spec.ranks or range(record.spec.topology.world) if rank not in started]
    if missing:
        return f"rank {missing[0]} was never started: {_last_line(trial.launcher_tail) or 'see launcher.log'}"
    unexplained = [outcome for outcome in record.ranks if outcome.killed]
    if unexplained:
        return f"{unexplained[0].label} was ended although none had failed before it"
    return ""


def left_early(record: TrialRecord) -> RankOutcome | None:
    """The first rank that left with exit code 0 although it was not through its body: others may wait for it."""
    unfinished = (Phase.BEFORE_BODY, Phase.IN_BODY)
    left = [o for o in record.ranks if o.code == 0 and not o.killed and o.phase in unfinished]
    return min(left, key=lambda outcome: outcome.end, default=None)


def _trouble_of(trial: TrialEvidence, first: RankOutcome) -> str:
    if first.signal in SENT_FROM_OUTSIDE:
        killed = f"{first.label} was killed from outside by signal {first.signal}, {first.phase}"
        return f"{killed}; out of memory? see dmesg" if first.signal == SIGKILL else killed
    evidence = trial.ranks.get(first.rank)
    words = {"rank": "", "scheduler": trial.scheduler_tail}
    if evidence is not None:
        said = f"{evidence.error.type}: {evidence.error.message}" if evidence.error else evidence.stderr_tail
        words["rank"] = said
    for pattern in PATTERNS:
        if re.search(pattern.text, words[pattern.where]):
            return f"{first.label}: {pattern.reason}; {pattern.next_step}"
    if first.phase is Phase.BEFORE_BODY and first.signal is None:
        return f"{first.label} did not reach its body: {first.reason}"
    return ""


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""
