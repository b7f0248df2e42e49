"""The table of mends against faults: which trials it takes, what each cell says, and how it is told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from made import fault as made_fault
from made import raised, rank, trial

import fixes
from repro import ablation
from repro.catalogue import find
from repro.errors import UnsupportedError, UsageError
from repro.evidence.types import RankEvidence, TrialEvidence
from repro.model import Ablation, Arm, Fault, Issue, Tier, Verdict
from repro.plan import Options
from repro.report import mends as report

OWN, OTHER = "9001.1", "9001.2"
FAULT = replace(made_fault(), ablation=Ablation(("shape",), trials=2))
ISSUE = Issue(9001, "a report", "https://example.org", (FAULT,), "", "")


def test_choices_are_each_alone_all_but_each_and_all() -> None:
    assert ablation.choices(("a", "b", "c")) == (
        ("a",), ("b",), ("c",), ("b", "c"), ("a", "c"), ("a", "b"), ("a", "b", "c"),
    )  # fmt: skip
    assert ablation.choices(("a", "b")) == (("a",), ("b",), ("a", "b"))
    assert ablation.choices(("a",)) == (("a",),)


def test_every_fault_with_a_mend_says_how_it_is_run_so() -> None:
    issues = {number: find(number) for number in (134, 219, 301)}
    said = {fault.id for issue in issues.values() for fault in issue.faults if fault.ablation}
    assert said == set(fixes.MODULES)


def test_the_plan_shares_what_has_no_mend() -> None:
    (plan,) = ablation.plan(ISSUE, "", (OWN, OTHER), Options(), [Tier.CPU])
    by_arm = {arm: [spec for spec in plan.trials if spec.arm is arm] for arm in Arm}
    assert {arm: len(specs) for arm, specs in by_arm.items()} == {
        Arm.UNFIXED: 2,
        Arm.FIXED: 6,
        Arm.CLEAN: 1,
        Arm.PLANTED: 1,
    }
    assert [spec.fixes for spec in by_arm[Arm.FIXED]] == [OWN, OWN, OTHER, OTHER, *[f"{OWN},{OTHER}"] * 2]
    assert len({spec.folder for spec in plan.trials}) == len(plan.trials)


def test_growth_is_measured_by_the_short_form_and_by_its_controls_alone() -> None:
    (plan,) = ablation.plan(find(301), "301.1", ("301.1",), Options(), [Tier.CPU])
    assert {(spec.calls, spec.window, *spec.series) for spec in plan.trials} == {(1000, 50, "case", "clean", "planted")}


def test_what_cannot_be_run_so_is_said() -> None:
    with pytest.raises(UsageError, match=r"301\.4 is not run against every mend"):
        ablation.plan(find(301), "301.4", (OWN,), Options(), [Tier.CPU])
    with pytest.raises(UnsupportedError, match=r"301\.3: not on this machine"):
        ablation.plan(find(301), "301.3", (OWN,), Options(), [Tier.CPU])


def told(shows: bool, index: int, *, mends: tuple[str, ...], used: Mapping[str, int]) -> TrialEvidence:
    said = [{"fault": mend, "met": ["a:b"], "missed": [], "uses": used.get(mend, 0)} for mend in mends]
    events = {n: RankEvidence(n, ({"event": "mends", "mends": said},)) for n in (0, 1)}
    spec: dict[str, Any] = {"arm": Arm.FIXED, "index": index, "fixes": ",".join(mends)}
    if not shows:
        return trial(evidence=events, **spec)
    left = {n: replace(events[n], error=raised(0)[0].error if n == 0 else None) for n in events}
    return trial(rank(0, 1), rank(1), evidence=left, **spec)


SHARED = [
    trial(rank(0, 1), evidence=raised(0)),
    trial(case="well", arm=Arm.CLEAN),
    trial(rank(0, 1), evidence=raised(0), case="known", arm=Arm.PLANTED),
]


def table(*fixed: TrialEvidence, of: Fault = FAULT) -> ablation.Table:
    issue = replace(ISSUE, faults=(of,))
    return ablation.judge(issue, {of.id: Tier.CPU}, [*SHARED, *fixed], {})


GOOD = (
    told(False, 0, mends=(OWN,), used={OWN: 1}),
    told(True, 1, mends=(OTHER,), used={}),
    # Beside its own mend another may well have nothing to do.
    told(False, 2, mends=(OWN, OTHER), used={OWN: 1}),
)


def test_a_mend_mends_its_own_fault_alone() -> None:
    found = table(*GOOD)
    assert [(found.name(cell.mends), cell.found.verdict) for cell in found.cells] == [
        (f"{OWN} alone", Verdict.FIXED),
        (f"{OTHER} alone", Verdict.NOT_FIXED),
        ("all", Verdict.FIXED),
    ]
    assert all(cell.as_wanted for cell in found.cells)
    assert report.exit_code(found) == 0
    assert "3 of 3 cells are as they should be" in report.markdown(found)
    assert json.loads(json.dumps(report.to_json("run", found)))["cells"][1]["wanted"] == "NOT_FIXED"


@pytest.mark.parametrize(
    ("changed", "at", "verdict", "code"),
    [
        (told(True, 0, mends=(OWN,), used={OWN: 1}), 0, Verdict.NOT_FIXED, 1),
        (told(False, 0, mends=(OWN,), used={}), 0, Verdict.INCONCLUSIVE, 3),
        # Another mend makes the fault go away: that is a verdict, and not the wanted one.
        (told(False, 1, mends=(OTHER,), used={}), 1, Verdict.FIXED, 1),
        (told(True, 2, mends=(OWN, OTHER), used={OWN: 1}), 2, Verdict.NOT_FIXED, 1),
    ],
)
def test_a_cell_that_is_not_as_it_should_be(changed: TrialEvidence, at: int, verdict: Verdict, code: int) -> None:
    found = table(*(changed if index == at else each for index, each in enumerate(GOOD)))
    assert [cell.as_wanted for cell in found.cells] == [index != at for index in range(3)]
    assert found.cells[at].found.verdict is verdict
    assert report.exit_code(found) == code
    assert f"| **{verdict}** |" in report.markdown(found)


def test_what_was_lost_or_is_not_here_is_told() -> None:
    lost = ablation.judge(ISSUE, {OWN: Tier.CPU}, [*SHARED, *GOOD], {f"{OWN}-shape-0-fixed-dp2": "it was edited"})
    assert (lost.cells, lost.lost, report.exit_code(lost)) == ((), {OWN: "it was edited"}, 4)
    absent = ablation.judge(ISSUE, {OWN: None}, [], {})
    assert absent.missing == {OWN: "needs tier cpu, which is not here"}
    both = ablation.joined([table(*GOOD), absent])
    assert (len(both.cells), report.exit_code(both)) == (3, 5)


def test_runs_of_different_mends_make_no_table() -> None:
    with pytest.raises(UsageError, match="chose from different mends"):
        ablation.joined([table(*GOOD), table(GOOD[0])])


def test_a_case_without_a_trial_of_a_choice_is_no_verdict() -> None:
    found = table(GOOD[0], GOOD[2])
    assert found.cells[1].found.why == "was not run"
    assert report.exit_code(found) == 4
