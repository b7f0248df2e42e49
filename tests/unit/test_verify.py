"""The judge of a mend: FIXED only where the fault shows without it, not with it, and the mend was in use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from growth_runs import BYTES, constant, made
from made import case, checked, died, fault, raised, rank, trial

from repro.evidence.types import RankEvidence, TrialEvidence
from repro.judge.verify import judge_mend
from repro.model import Arm, CrashOracle, Fault, FaultVerdict, NumericOracle, Phase, Tier, Verdict

FAULT = "9001.1"


def told(number: int, uses: int = 3, met: tuple[str, ...] = ("a.module:name",), mended: str = FAULT) -> RankEvidence:
    """A rank that recorded what its mends did."""
    mends = [{"fault": mended, "met": list(met), "missed": [], "uses": uses}]
    return RankEvidence(number, ({"event": "mends", "mends": mends},))


def joined(ranks: Mapping[int, RankEvidence], more: Mapping[int, RankEvidence]) -> dict[int, RankEvidence]:
    """Both; a rank of both keeps the events of the first."""
    events = {n: ranks[n].events if n in ranks else () for n in more}
    return {**ranks, **{n: replace(evidence, events=events[n]) for n, evidence in more.items()}}


def one(kind: str, arm: Arm, index: int = 0) -> TrialEvidence:
    """A trial of the fault's case; with the mend, every rank says that it was used unless told otherwise."""
    spec: dict[str, Any] = {"arm": arm, "index": index, "fixes": FAULT if arm is Arm.FIXED else "none"}
    ranks = {0: told(0), 1: told(1)} if arm is Arm.FIXED else {}
    match kind:
        case "hit":
            return trial(rank(0, 1), evidence=joined(ranks, raised(0)), **spec)
        case "miss":
            return trial(evidence=ranks, **spec)
        case "unused":
            return trial(evidence={0: told(0), 1: told(1, uses=0)}, **spec)
        case "unmet":
            return trial(evidence={0: told(0), 1: told(1, uses=0, met=())}, **spec)
        case "silent":
            return trial(**spec)
        case "other":
            return trial(rank(0, 1), evidence=joined(ranks, raised(0, "KeyError", "'x'")), **spec)
        case _:
            return trial(rank(0), died(1, 9, Phase.IN_BODY), evidence=ranks, **spec)


def control(name: str, arm: Arm, kind: str) -> TrialEvidence:
    """A control, run without any mend."""
    return trial(rank(0, 1), evidence=raised(0), case=name, arm=arm) if kind == "hit" else trial(case=name, arm=arm)


def verdict(unfixed: str, fixed: str, *, clean: str = "miss", of: Fault | None = None) -> FaultVerdict:
    trials = [one(kind, Arm.UNFIXED, i) for i, kind in enumerate(unfixed.split())]
    trials += [one(kind, Arm.FIXED, i) for i, kind in enumerate(fixed.split())]
    trials += [control("well", Arm.CLEAN, clean), control("known", Arm.PLANTED, "hit")]
    return judge_mend(of or fault(), Tier.CPU, trials)


@pytest.mark.parametrize(
    ("unfixed", "fixed", "expected", "words"),
    [
        ("hit hit", "miss miss", Verdict.FIXED, "unfixed it shows in 2 of 2 trials, fixed in 0 of 2"),
        ("hit miss", "miss miss", Verdict.FIXED, "unfixed it shows in 1 of 2 trials, fixed in 0 of 2"),
        ("hit", "hit", Verdict.NOT_FIXED, "with the mend it still shows"),
        ("hit", "miss hit", Verdict.NOT_FIXED, "with the mend it still shows"),
        ("hit", "other", Verdict.NOT_FIXED, "another one stands behind it: shape: rank 0 in body: exit code 1"),
        ("miss", "miss", Verdict.INCONCLUSIVE, "nothing shows the mend"),
        ("miss", "hit", Verdict.INCONCLUSIVE, "nothing shows the mend"),
        ("other", "miss", Verdict.INCONCLUSIVE, "nothing shows the mend"),
        ("", "miss", Verdict.INCONCLUSIVE, "the unfixed arm was not run"),
        ("hit", "", Verdict.INCONCLUSIVE, "the fixed arm was not run"),
        ("infra", "miss", Verdict.INFRA_ERROR, "unfixed: rank 1 was killed from outside"),
        ("hit", "infra", Verdict.INFRA_ERROR, "fixed: rank 1 was killed from outside"),
        ("hit", "miss infra", Verdict.INFRA_ERROR, "fixed: rank 1 was killed from outside"),
        ("hit", "unused", Verdict.INCONCLUSIVE, "mend 9001.1 met its target, but was never used in"),
        ("hit", "unmet", Verdict.INCONCLUSIVE, "mend 9001.1 never met its target in"),
        ("hit", "miss silent", Verdict.INCONCLUSIVE, "mend 9001.1 never met its target in"),
    ],
)
def test_the_difference_decides(unfixed: str, fixed: str, expected: Verdict, words: str) -> None:
    found = verdict(unfixed, fixed)
    assert (found.verdict, words in found.why) == (expected, True), found


def test_a_failed_control_ends_it() -> None:
    found = verdict("hit", "miss", clean="hit")
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "the clean control well should be a miss" in found.why


def test_every_case_must_have_shown_the_fault() -> None:
    of = fault(CrashOracle(), case("shape", Arm.UNFIXED), case("second", Arm.UNFIXED))
    crash = trial(rank(0), died(1, 11))
    mended = [
        one("miss", Arm.FIXED),
        trial(evidence={0: told(0), 1: told(1)}, arm=Arm.FIXED, case="second", fixes=FAULT),
    ]
    found = judge_mend(of, Tier.CPU, [crash, trial(case="second"), *mended])
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "case second did not show the fault" in found.why
    found = judge_mend(of, Tier.CPU, [crash, trial(rank(0), died(1, 11), case="second"), *mended])
    assert found.verdict is Verdict.FIXED


def test_a_crash_that_is_gone_states_the_rate_it_excludes() -> None:
    of = fault(CrashOracle(), case("shape", Arm.UNFIXED), case("well", Arm.CLEAN))
    crashes = [trial(rank(0), died(1, 11), index=i) for i in range(5)]
    trials = [*crashes, *(one("miss", Arm.FIXED, i) for i in range(5)), trial(case="well", arm=Arm.CLEAN)]
    found = judge_mend(of, Tier.CPU, trials)
    assert found.verdict is Verdict.FIXED
    assert "5 of 5 trials, fixed in 0 of 5, which excludes a rate above 45% at 95%" in found.why
    assert (found.trials, found.hits, found.measure is not None) == (5, 0, True)
    assert any("(unfixed)" in line for line in found.controls)
    assert any("(fixed)" in line for line in found.controls)


def test_numbers_are_fixed_when_they_equal_the_reference() -> None:
    of = fault(NumericOracle(), case("shape", Arm.UNFIXED))
    lost = trial(evidence=checked(0, ("sum", False, True)))
    for check, expected in (
        (("sum", True, False), Verdict.FIXED),
        (("sum", False, True), Verdict.NOT_FIXED),
        (("sum", False, False), Verdict.NOT_FIXED),
    ):
        right = {n: RankEvidence(n, (*told(n).events, *checked(n, check)[n].events)) for n in (0, 1)}
        assert judge_mend(of, Tier.CPU, [lost, trial(evidence=right, arm=Arm.FIXED, fixes=FAULT)]).verdict is expected


@pytest.mark.parametrize(
    ("before", "after", "expected", "words"),
    [
        (104.0, 0.0, Verdict.FIXED, "B/call above the clean control; growth above"),
        (104.0, 52.0, Verdict.NOT_FIXED, "with the mend it still shows"),
        (0.0, 0.0, Verdict.INCONCLUSIVE, "nothing shows the mend"),
    ],
)
def test_growth_is_fixed_at_the_level_of_the_clean_control(
    before: float, after: float, expected: Verdict, words: str
) -> None:
    of = fault(BYTES, case("shape", Arm.UNFIXED))
    of = replace(of, cases=(replace(of.cases[0], series={"case": "a"}),))
    windows = {arm: tuple(made(20, constant(size))) for arm, size in ((Arm.UNFIXED, before), (Arm.FIXED, after))}
    trials = [
        trial(rank(0), evidence={0: replace(told(0), windows=windows[arm])}, arm=arm, fixes=fixes)
        for arm, fixes in ((Arm.UNFIXED, "none"), (Arm.FIXED, FAULT))
    ]
    found = judge_mend(of, Tier.CPU, trials)
    assert (found.verdict, words in found.why) == (expected, True), found


def test_every_measured_case_must_have_grown_unfixed() -> None:
    shape = replace(case("shape", Arm.UNFIXED), series={"case": "a"})
    of = fault(BYTES, shape, replace(shape, name="second"))

    def run(name: str, size: float, arm: Arm) -> TrialEvidence:
        evidence = {0: replace(told(0), windows=tuple(made(20, constant(size))))}
        fixes = FAULT if arm is Arm.FIXED else "none"
        return trial(rank(0), evidence=evidence, arm=arm, fixes=fixes, case=name)

    fixed = [run(name, 0.0, Arm.FIXED) for name in ("shape", "second")]
    unfixed = [run("shape", 104.0, Arm.UNFIXED)]
    found = judge_mend(of, Tier.CPU, [*unfixed, run("second", 0.0, Arm.UNFIXED), *fixed])
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "case second did not show the fault" in found.why
    assert judge_mend(of, Tier.CPU, [*unfixed, run("second", 104.0, Arm.UNFIXED), *fixed]).verdict is Verdict.FIXED
