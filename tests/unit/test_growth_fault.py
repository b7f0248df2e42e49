"""From recorded series to the verdict on a fault of growth: leak, none, bounded, and all that forbids one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from growth_runs import BYTES, TUPLES, recorded
from made import case, rank, trial

from repro.evidence.types import RankEvidence, TrialEvidence, Window
from repro.judge.fault import judge_fault
from repro.model import Arm, CeilingOracle, Fault, FaultVerdict, Oracle, RankOutcome, Tier, Topology, Verdict

CEILING = CeilingOracle("malloc_in_use", "B", floor=8, planted=64)
ROLES = {"case": "case", "clean": "clean", "planted": "planted"}
NAMED = (("hook", Arm.UNFIXED), ("removed", Arm.CLEAN), ("leak", Arm.PLANTED))
CASES = tuple(replace(case(name, arm), series=ROLES) for name, arm in NAMED)


def measured(
    windows: Sequence[Window],
    name: str = "hook",
    arm: Arm = Arm.UNFIXED,
    outcome: RankOutcome | None = None,
    index: int = 0,
) -> TrialEvidence:
    evidence = {0: RankEvidence(0, windows=tuple(windows))}
    return trial(
        outcome or rank(0), evidence=evidence, topology=Topology(), case=name, arm=arm, series=ROLES, index=index
    )


def judged(oracle: Oracle, *trials: TrialEvidence) -> FaultVerdict:
    return judge_fault(Fault("9001.1", "grows", oracle, (Tier.CPU,), CASES), Tier.CPU, trials)


LEAK = recorded("hooks", "malloc_in_use", blocks=40)
NO_LEAK = recorded("hooks", "malloc_in_use", "removed", blocks=40)
TUPLE_LEAK = recorded("needs_input_grad", "python_blocks", blocks=40)
CLEAN = ("removed", Arm.CLEAN)


@pytest.mark.parametrize(
    ("trials", "verdict", "words"),
    [
        ([measured(LEAK)], Verdict.REPRODUCED, "; the report has 104 B/call"),
        ([measured(LEAK), measured(NO_LEAK, *CLEAN)], Verdict.REPRODUCED, "hook: "),
        ([measured(NO_LEAK)], Verdict.NOT_REPRODUCED, "growth above 8.00 B/call is excluded at 95%; hook: "),
        ([measured(LEAK[:9])], Verdict.INCONCLUSIVE, "more blocks"),
        ([measured([])], Verdict.INCONCLUSIVE, "hook: "),
        ([measured([w for w in LEAK if w.series != "planted"])], Verdict.INCONCLUSIVE, "planted"),
        ([measured(NO_LEAK), measured(LEAK, *CLEAN)], Verdict.INCONCLUSIVE, "the clean control removed grows too"),
        ([measured(LEAK, *CLEAN)], Verdict.INCONCLUSIVE, "only controls were run"),
        ([measured(LEAK, outcome=rank(0, None, 9))], Verdict.INFRA_ERROR, "hook: rank 0 was killed from outside"),
        (
            [measured(LEAK), measured(NO_LEAK, *CLEAN, rank(0, None, 9))],
            Verdict.INFRA_ERROR,
            "removed: rank 0 was killed",
        ),
        ([measured(NO_LEAK, outcome=rank(0, 1))], Verdict.INCONCLUSIVE, "hook: another failure: rank 0 in body"),
        ([measured(LEAK, outcome=rank(0, None, 11))], Verdict.INCONCLUSIVE, "another failure"),
    ],
)
def test_what_becomes_of_a_growth_fault(trials: list[TrialEvidence], verdict: Verdict, words: str) -> None:
    found = judged(BYTES, *trials)
    assert found.verdict is verdict, found.why
    assert words in found.why
    assert "\n" not in found.why


def test_a_leak_carries_its_measure_and_its_controls() -> None:
    found = judged(BYTES, measured(LEAK), measured(LEAK, index=1))
    assert found.measure is not None
    assert found.measure.value == pytest.approx(104, abs=4)
    assert found.measure.ci95[0] <= found.measure.value <= found.measure.ci95[1]
    assert (found.trials, found.hits) == (2, 2)
    assert "planted 80 was seen as +7" in found.controls[0]
    assert "would have found" in found.controls[0]


def test_no_leak_claims_nothing_below_its_floor() -> None:
    found = judged(replace(BYTES, floor=50), measured(NO_LEAK))
    assert "growth above 50.00 B/call is excluded" in found.why


def test_objects_are_counted_too() -> None:
    found = judged(TUPLES, measured(TUPLE_LEAK))
    assert found.verdict is Verdict.REPRODUCED
    assert found.measure is not None
    assert found.measure.value == pytest.approx(1.0, abs=0.1)


NORM = recorded("norm", "malloc_in_use")
NORM_LEAK = recorded("norm_planted", "malloc_in_use", "planted")


def with_leak(windows: Sequence[Window], size: float) -> list[Window]:
    """The same long run with ``size`` bytes a call more."""
    made, calls = [], 0
    for window in windows:
        start = window.start["malloc_in_use"] + size * calls
        calls += window.calls
        end = window.end["malloc_in_use"] + size * calls
        made.append(replace(window, start={"malloc_in_use": start}, end={"malloc_in_use": end}))
    return made


TWICE = with_leak(NORM_LEAK, 64)
FLAT = tuple(
    Window(b, "case", 200, 0.1, {"malloc_in_use": 1e6 + 16 * (b % 2)}, {"malloc_in_use": 1e6 + 16 * ((b + 1) % 2)})
    for b in range(100)
)


@pytest.mark.parametrize(
    ("unfixed", "clean", "planted", "verdict", "words"),
    [
        (NORM, FLAT, NORM_LEAK, Verdict.BOUNDED, ""),
        (NORM_LEAK, FLAT, TWICE, Verdict.REPRODUCED, ""),
        (FLAT, FLAT, NORM_LEAK, Verdict.NOT_REPRODUCED, "is excluded at 95%"),
        (NORM, NORM_LEAK, NORM_LEAK, Verdict.INCONCLUSIVE, "the clean control came out as"),
        (NORM, None, NORM_LEAK, Verdict.INCONCLUSIVE, "a control was not run"),
        (NORM, FLAT, None, Verdict.INCONCLUSIVE, "a control was not run"),
        (None, FLAT, NORM_LEAK, Verdict.INCONCLUSIVE, "only controls were run"),
        (NORM, FLAT, FLAT, Verdict.INCONCLUSIVE, ""),
        (NORM[:5], FLAT, NORM_LEAK, Verdict.INCONCLUSIVE, ""),
    ],
)
def test_what_becomes_of_a_bounded_cache(
    unfixed: Sequence[Window] | None,
    clean: Sequence[Window] | None,
    planted: Sequence[Window] | None,
    verdict: Verdict,
    words: str,
) -> None:
    runs = ((unfixed, "hook", Arm.UNFIXED), (clean, *CLEAN), (planted, "leak", Arm.PLANTED))
    found = judged(CEILING, *(measured(windows, name, arm) for windows, name, arm in runs if windows is not None))
    assert found.verdict is verdict, found.why
    assert words in found.why


def test_one_of_several_long_runs_that_leaks_is_a_leak() -> None:
    controls = (measured(FLAT, *CLEAN), measured(TWICE, "leak", Arm.PLANTED))
    found = judged(CEILING, measured(NORM), measured(NORM_LEAK, index=1), *controls)
    assert found.verdict is Verdict.REPRODUCED, found.why
