"""What one trial says of a fault: a hit, a miss, another failure, or trouble of the machine."""

from __future__ import annotations

import pytest
from made import ERROR, checked, died, raised, rank, said, trial

from repro.evidence.types import TrialEvidence
from repro.judge.trial import Kind, judge_trial
from repro.model import CrashOracle, Ending, NumericOracle, Oracle, Phase, Topology

NUMBERS = NumericOracle()
CRASH = CrashOracle()
BAD = rank(0, 1)
LATE = rank(1, 1, end=9.0)
CUT = rank(1, None, 9, killed=True, end=5.0)

TABLE: dict[str, tuple[Oracle, TrialEvidence, Kind, str]] = {
    "the error, through its functions": (ERROR, trial(BAD, CUT, evidence=raised(0)), Kind.HIT, "rank 0 in body: Val"),
    "names the innermost of the functions": (ERROR, trial(BAD, CUT, evidence=raised(0)), Kind.HIT, "module.py:4"),
    "the same text of another type": (ERROR, trial(BAD, evidence=raised(0, "TypeError")), Kind.OTHER, "exit code 1"),
    "the same type with another text": (ERROR, trial(BAD, evidence=raised(0, text="x")), Kind.OTHER, "exit code 1"),
    "another way through the code": (ERROR, trial(BAD, evidence=raised(0, frames=["send", "reduce"])), Kind.OTHER, ""),
    "an error without frames": (ERROR, trial(BAD, evidence=raised(0, frames=[])), Kind.OTHER, "exit code 1"),
    "a later rank raised it, the first another": (
        ERROR,
        trial(BAD, LATE, evidence={**raised(0, "KeyError", "x"), **raised(1)}),
        Kind.OTHER,
        "rank 0",
    ),
    "nothing happened": (ERROR, trial(), Kind.MISS, "every rank passed its body and exited 0"),
    "a crash in the body is not the error": (
        ERROR,
        trial(died(0, 11, Phase.IN_BODY), rank(1)),
        Kind.OTHER,
        "signal 11",
    ),
    "a crash after the body is another fault": (
        ERROR,
        trial(died(0, 11), rank(1)),
        Kind.MISS,
        "which is another fault",
    ),
    "a crash after the body hides no error": (
        ERROR,
        trial(died(0, 11, end=0.5), rank(1, 1), evidence=raised(1)),
        Kind.HIT,
        "rank 1 in body: Val",
    ),
    "a crash after the body that cut another short": (
        ERROR,
        trial(died(0, 11), CUT),
        Kind.OTHER,
        "because another died",
    ),
    "left with 0 in the body": (ERROR, trial(rank(0), rank(1, phase=Phase.IN_BODY)), Kind.OTHER, "rank 1 left with"),
    "left with 0 first, so another failed": (
        ERROR,
        trial(rank(0, phase=Phase.IN_BODY, end=1.5), rank(1, 1)),
        Kind.OTHER,
        "rank 0 left with exit code 0 in body",
    ),
    "left with 0 after another failed": (ERROR, trial(BAD, rank(1, phase=Phase.IN_BODY)), Kind.OTHER, "rank 0 in body"),
    "left with 0, so another waited for ever": (
        ERROR,
        trial(rank(0, phase=Phase.IN_BODY, end=1.5), CUT, ending=Ending.DEADLINE, detail="too long"),
        Kind.INFRA,
        "too long with rank 1 in body still running; before it, rank 0 left with exit code 0 in body",
    ),
    "left with 0 before the body": (CRASH, trial(rank(0, phase=Phase.BEFORE_BODY)), Kind.OTHER, "rank 0 left with"),
    "values as the fault leaves them": (NUMBERS, trial(evidence=checked(1, ("sum", False, True))), Kind.HIT, "rank 1"),
    "values wrong in another way": (NUMBERS, trial(evidence=checked(1, ("sum", False, False))), Kind.OTHER, "another"),
    "values right": (NUMBERS, trial(evidence=checked(0, ("sum", True, False))), Kind.MISS, ""),
    "no value compared": (NUMBERS, trial(), Kind.OTHER, "recorded no check"),
    "a broken record of a check": (NUMBERS, trial(evidence=checked(0)), Kind.OTHER, "recorded no check"),
    "a wrong value is another failure than the error": (
        ERROR,
        trial(evidence=checked(0, ("s", False, False))),
        Kind.OTHER,
        "",
    ),
    "died after its body": (CRASH, trial(rank(0), died(1, 11)), Kind.HIT, "rank 1 passed its body, then died of"),
    "died between body and exit": (CRASH, trial(died(0, 11, Phase.BODY_DONE)), Kind.HIT, "body done"),
    "died in its body": (CRASH, trial(died(0, 11, Phase.IN_BODY)), Kind.OTHER, "in body"),
    "died of another signal": (CRASH, trial(died(0, 6)), Kind.OTHER, "signal 6"),
    "died of one of several signals": (CrashOracle((6, 11)), trial(died(0, 6)), Kind.HIT, "signal 6"),
    "died second, the first raised": (CRASH, trial(BAD, died(1, 11)), Kind.OTHER, "rank 0"),
    "names the exit code of msrun": (CRASH, trial(died(0, 11), launcher_code=1), Kind.HIT, "msrun exit code 1"),
    "killed from outside": (
        CRASH,
        trial(rank(0), died(1, 9, Phase.IN_BODY)),
        Kind.INFRA,
        "killed from outside by signal 9",
    ),
    "ended from outside": (CRASH, trial(died(0, 15)), Kind.INFRA, "by signal 15, finalising"),
    "interrupted from outside": (ERROR, trial(died(0, 2, Phase.IN_BODY)), Kind.INFRA, "by signal 2"),
    "the deadline": (
        ERROR,
        trial(rank(0), CUT, ending=Ending.DEADLINE, detail="the deadline of 5 s passed"),
        Kind.INFRA,
        "the deadline of 5 s passed with rank 1 in body still running",
    ),
    "stopped": (CRASH, trial(CUT, ending=Ending.INTERRUPTED, detail="asked"), Kind.INFRA, "interrupted: asked"),
    "too much output": (CRASH, trial(CUT, ending=Ending.RUNAWAY_LOG, detail="stdout.log grew"), Kind.INFRA, "grew"),
    "port taken": (
        CRASH,
        trial(CUT, ending=Ending.LAUNCH_FAILED, detail="port 1"),
        Kind.INFRA,
        "launch failed: port 1",
    ),
    "hit, then the deadline": (
        NUMBERS,
        trial(CUT, evidence=checked(1, ("sum", False, True)), ending=Ending.DEADLINE),
        Kind.HIT,
        "",
    ),
    "a rank never started": (ERROR, trial(rank(0), topology=Topology(dp=2)), Kind.INFRA, "rank 1 was never started"),
    "ended without a reason": (ERROR, trial(rank(0), CUT), Kind.INFRA, "although none had failed"),
    "disk full": (
        ERROR,
        trial(BAD, evidence=raised(0, "OSError", "[Errno 28] No space left")),
        Kind.INFRA,
        "disk is full",
    ),
    "read-only": (
        ERROR,
        trial(BAD, evidence=said(0, "OSError: [Errno 30] Read-only file system")),
        Kind.INFRA,
        "read-only",
    ),
    "no memory": (CRASH, trial(BAD, evidence=said(0, "what(): std::bad_alloc")), Kind.INFRA, "out of memory"),
    "no package": (
        ERROR,
        trial(BAD, evidence=said(0, "ModuleNotFoundError: No module named 'x'")),
        Kind.INFRA,
        "make setup",
    ),
    "port taken late": (ERROR, trial(BAD, scheduler="Failed to init the tcp server"), Kind.INFRA, "port was taken"),
    "fell before its body": (ERROR, trial(rank(0, 1, phase=Phase.BEFORE_BODY)), Kind.INFRA, "did not reach its body"),
}


@pytest.mark.parametrize("name", TABLE)
def test_what_a_trial_says(name: str) -> None:
    oracle, evidence, kind, words = TABLE[name]
    found = judge_trial(evidence, oracle)
    assert found.kind is kind, found.why
    assert words in found.why
    assert "\n" not in found.why


def test_no_rank_at_all_is_the_machines_trouble() -> None:
    made = trial(rank(0))
    empty = TrialEvidence(
        type(made.record)(made.record.spec, 1.0, 2.0, Ending.COMPLETED, "", ()), {}, "", "usage: msrun\nno such option"
    )
    found = judge_trial(empty, ERROR)
    assert (found.kind, found.why) == (Kind.INFRA, "no rank started: no such option")


def test_marks_of_the_mechanism_are_kept_whatever_became_of_the_trial() -> None:
    found = judge_trial(trial(evidence=checked(0, ("queued twice", True, True))), CRASH)
    assert (found.kind, found.marks) == (Kind.MISS, ("queued twice",))
