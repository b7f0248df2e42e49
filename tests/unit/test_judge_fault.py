"""What all trials of a fault say together: hits against controls, and what a clean row of trials excludes."""

from __future__ import annotations

from typing import Any

import pytest
from made import ERROR, case, checked, died, fault, raised, rank, trial

from repro.evidence.types import TrialEvidence
from repro.judge.fault import judge_fault
from repro.model import Arm, CrashOracle, Fault, FaultVerdict, NumericOracle, Phase, Tier, Verdict


def unfixed(kind: str, **spec: Any) -> TrialEvidence:
    """A trial of the case itself."""
    match kind:
        case "hit":
            return trial(rank(0, 1), evidence=raised(0), **spec)
        case "miss":
            return trial(**spec)
        case "other":
            return trial(rank(0, 1), evidence=raised(0, "KeyError", "'x'"), **spec)
        case _:
            return trial(rank(0), died(1, 9, Phase.IN_BODY), **spec)


def clean(kind: str = "miss") -> TrialEvidence:
    return unfixed(kind, case="well", arm=Arm.CLEAN)


def planted(kind: str = "hit") -> TrialEvidence:
    return unfixed(kind, case="known", arm=Arm.PLANTED)


def verdict(kinds: str, *controls: TrialEvidence, of: Fault | None = None) -> FaultVerdict:
    trials = [unfixed(kind, index=i) for i, kind in enumerate(kinds.split())]
    return judge_fault(of or fault(), Tier.CPU, [*trials, *(controls or (clean(), planted()))])


@pytest.mark.parametrize(
    ("kinds", "expected", "words"),
    [
        ("hit", Verdict.REPRODUCED, "not-contiguous"),
        ("miss hit miss", Verdict.REPRODUCED, "not-contiguous"),
        ("infra hit", Verdict.REPRODUCED, "not-contiguous"),
        ("other hit", Verdict.REPRODUCED, "not-contiguous"),
        ("miss", Verdict.NOT_REPRODUCED, "0 of 1: a rate above 95% is excluded at 95%"),
        ("miss " * 5, Verdict.NOT_REPRODUCED, "0 of 5: a rate above 45% is excluded at 95%"),
        ("miss " * 59, Verdict.NOT_REPRODUCED, "0 of 59: a rate above 5% is excluded at 95%"),
        ("other", Verdict.INCONCLUSIVE, "another failure did: rank 0 in body"),
        ("miss other miss", Verdict.INCONCLUSIVE, "another failure did"),
        ("infra", Verdict.INFRA_ERROR, "killed from outside"),
        ("infra miss", Verdict.INFRA_ERROR, "killed from outside"),
        ("miss " * 20 + "infra", Verdict.INFRA_ERROR, "killed from outside"),
        ("infra other", Verdict.INCONCLUSIVE, "another failure did"),
    ],
)
def test_hits_misses_and_trouble(kinds: str, expected: Verdict, words: str) -> None:
    found = verdict(kinds)
    assert found.verdict is expected, found.why
    assert words in found.why
    assert found.trials == len(kinds.split())
    assert found.hits == kinds.split().count("hit")


@pytest.mark.parametrize("kinds", ["hit", "miss", "hit miss", "other"])
@pytest.mark.parametrize(
    ("controls", "expected", "words"),
    [
        ((clean("hit"), planted()), Verdict.INCONCLUSIVE, "the clean control well should be a miss"),
        ((clean("other"), planted()), Verdict.INCONCLUSIVE, "the clean control well should be a miss"),
        ((clean(), planted("miss")), Verdict.INCONCLUSIVE, "the planted control known should be a hit"),
        ((clean("infra"), planted()), Verdict.INFRA_ERROR, "infrastructure trouble in control well"),
        ((clean(), planted("infra")), Verdict.INFRA_ERROR, "infrastructure trouble in control known"),
    ],
)
def test_nothing_is_claimed_with_a_control_that_failed(
    kinds: str, controls: tuple[TrialEvidence, ...], expected: Verdict, words: str
) -> None:
    found = verdict(kinds, *controls)
    assert (found.verdict, words in found.why) == (expected, True), found.why


def test_only_controls_say_nothing_of_the_fault() -> None:
    found = judge_fault(fault(), Tier.CPU, [clean(), planted()])
    assert (found.verdict, found.why) == (Verdict.INCONCLUSIVE, "only controls were run")


@pytest.mark.parametrize(
    ("signal", "phase", "expected"),
    [
        (11, Phase.FINALISING, Verdict.REPRODUCED),
        (11, Phase.BODY_DONE, Verdict.REPRODUCED),
        (11, Phase.IN_BODY, Verdict.INCONCLUSIVE),
        (11, Phase.BEFORE_BODY, Verdict.INCONCLUSIVE),
        (6, Phase.FINALISING, Verdict.INCONCLUSIVE),
        (9, Phase.FINALISING, Verdict.INFRA_ERROR),
    ],
)
def test_a_crash_counts_only_with_its_signal_in_its_phase(signal: int, phase: Phase, expected: Verdict) -> None:
    of = fault(CrashOracle(), case("shape", Arm.UNFIXED), case("well", Arm.CLEAN))
    found = judge_fault(of, Tier.CPU, [trial(rank(0), died(1, signal, phase)), clean()])
    assert found.verdict is expected, found.why
    assert (found.measure is None) == (expected is Verdict.INFRA_ERROR)
    if expected is Verdict.REPRODUCED:
        assert found.first_failure == "9001.1-shape-0-unfixed-dp2/rank-1"


def test_the_rate_of_crashes_has_its_interval() -> None:
    of = fault(CrashOracle(), case("shape", Arm.UNFIXED), case("well", Arm.CLEAN))
    trials = [trial(died(0, 11), index=i) if i < 16 else trial(index=i) for i in range(20)]
    found = judge_fault(of, Tier.CPU, [*trials, clean()])
    assert found.measure is not None
    assert found.measure.value == pytest.approx(0.8)
    assert found.measure.ci95 == pytest.approx((0.563, 0.943), abs=0.001)


def test_a_cases_own_oracle_is_the_one_it_is_judged_by() -> None:
    second = case("layer", Arm.UNFIXED, type(ERROR)("KeyError", "'x'"))
    of = fault(ERROR, case("shape", Arm.UNFIXED), second, case("well", Arm.CLEAN))
    found = judge_fault(of, Tier.CPU, [unfixed("other", case="layer"), clean()])
    assert found.verdict is Verdict.REPRODUCED


def test_numbers_are_judged_by_their_checks() -> None:
    of = fault(NumericOracle(), case("shape", Arm.UNFIXED), case("well", Arm.CLEAN))
    right = trial(evidence=checked(0, ("sum", True, False)), case="well", arm=Arm.CLEAN)
    lost = trial(evidence=checked(0, ("sum", False, True)))
    assert judge_fault(of, Tier.CPU, [lost, right]).verdict is Verdict.REPRODUCED
    assert judge_fault(of, Tier.CPU, [lost, lost, right]).hits == 2
    silent = trial(case="well", arm=Arm.CLEAN)
    assert judge_fault(of, Tier.CPU, [lost, silent]).verdict is Verdict.INCONCLUSIVE


def test_limits_of_the_tier_go_with_every_verdict() -> None:
    assert {verdict(kinds).limits for kinds in ("hit", "miss", "other", "infra")} == {"numbers are real"}
