"""From an issue and options to trials: order, counts, tiers, and no option that is lost without a word."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made import ERROR, case, fault

from repro.errors import ReproError, UnsupportedError, UsageError
from repro.model import Arm, Fault, GrowthOracle, Issue, Tier, Topology, TrialSpec
from repro.plan import Options, plan

EVERY = (Tier.SIM, Tier.CPU)
SINGLE = replace(case("alone", Arm.CLEAN), topology=Topology())
MATRIX = fault(ERROR, case("shape", Arm.UNFIXED), case("well", Arm.CLEAN), SINGLE)
SIM = replace(MATRIX, id="9001.2", prefer=EVERY, cases=tuple(replace(c, tiers=EVERY) for c in MATRIX.cases), limits={})
GROWING = replace(case("grow", Arm.UNFIXED), series={"case": "a"}, calls=100, window=10, topology=Topology())
GROWTH = Fault("9001.3", "grows", GrowthOracle("m", "B", 1, 2), (Tier.CPU,), (GROWING,))
ISSUE = Issue(9001, "t", "https://example.org", (MATRIX, SIM, GROWTH), "folder", "digest")


def specs(options: Options, available: tuple[Tier, ...] = EVERY) -> list[TrialSpec]:
    return [spec for item in plan(ISSUE, options, available) for spec in item.trials]


def test_controls_stand_between_the_trials_of_the_case() -> None:
    names = [s.folder for s in specs(Options(faults=("9001.1",), trials=3))]
    assert names == [
        "9001.1-shape-0-unfixed-dp2",
        "9001.1-well-0-clean-dp2",
        "9001.1-alone-0-clean-single",
        "9001.1-shape-1-unfixed-dp2",
        "9001.1-shape-2-unfixed-dp2",
    ]


def test_folders_are_the_trials_own() -> None:
    names = [s.folder for s in specs(Options(trials=4))]
    assert len(names) == len(set(names))


def test_every_fault_takes_the_best_tier_it_can() -> None:
    assert [item.tier for item in plan(ISSUE, Options(), EVERY)] == [Tier.CPU, Tier.SIM, Tier.CPU]
    assert [item.tier for item in plan(ISSUE, Options(), (Tier.CPU,))] == [Tier.CPU] * 3
    assert [item.tier for item in plan(ISSUE, Options(tier=Tier.SIM), EVERY)] == [None, Tier.SIM, None]


@pytest.mark.parametrize("arms", [(Arm.CLEAN,), (Arm.UNFIXED,), (Arm.FIXED,), (Arm.UNFIXED, Arm.FIXED)])
def test_arms(arms: tuple[Arm, ...]) -> None:
    found = specs(Options(faults=("9001.1",), arms=arms))
    assert {s.arm for s in found} <= set(arms)
    assert all((s.fixes != "none") == (s.arm is Arm.FIXED) for s in found)


def test_trials_of_an_arm_that_was_named() -> None:
    assert len(specs(Options(faults=("9001.1",), arms=(Arm.CLEAN,), trials=3))) == 6


def test_a_topology_replaces_those_of_several_ranks_alone() -> None:
    found = specs(Options(faults=("9001.1",), topology=Topology(tp=2, ep=2)))
    assert [s.topology.world for s in found] == [4, 4, 1]


def test_ranks_are_those_of_the_simulated_world() -> None:
    found = specs(Options(faults=("9001.2",), ranks=(0, 3), topology=Topology(dp=4)))
    assert [s.ranks for s in found] == [(0, 3), (0, 3), (0,)]
    assert all(s.ranks == () for s in specs(Options(faults=("9001.1", "9001.2"), ranks=(1,))) if s.tier is Tier.CPU)


def test_steps_change_growth_alone() -> None:
    assert {s.fault: s.calls for s in specs(Options(steps=40))} == {"9001.1": 0, "9001.2": 0, "9001.3": 40}


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        (Options(faults=("9001.9",)), UsageError, "issue 9001 has no fault 9001.9; it has 9001.1, 9001.2, 9001.3"),
        (Options(tier=Tier.NPU), UnsupportedError, "not on tier npu; it can be judged on cpu, sim"),
        (Options(faults=("9001.1",), tier=Tier.SIM), UnsupportedError, "9001.1: not on tier sim"),
        (Options(faults=("9001.3",), arms=(Arm.PLANTED,)), UsageError, "no case for arm planted"),
        (Options(faults=("9001.2",), ranks=(7,)), UsageError, "--ranks 7: the world of shape has 2 ranks"),
        (
            Options(faults=("9001.3",), topology=Topology(tp=2)),
            UsageError,
            "--topology tp2: every case here has a single",
        ),
        (Options(faults=("9001.1",), ranks=(0,)), UsageError, "--ranks: only a simulated world"),
        (Options(faults=("9001.1",), steps=10), UsageError, "--steps: no case here measures growth"),
    ],
)
def test_what_cannot_be_run_is_said(options: Options, error: type[ReproError], words: str) -> None:
    with pytest.raises(error) as caught:
        specs(options)
    assert words in str(caught.value)


def test_no_tier_at_all() -> None:
    with pytest.raises(UnsupportedError, match="repro doctor"):
        specs(Options(), ())


def test_a_case_may_name_its_mends() -> None:
    both = replace(MATRIX, id="301.6", cases=(replace(MATRIX.cases[0], mends=("301.2",)), *MATRIX.cases[1:]))
    issue = replace(ISSUE, number=301, faults=(both,))
    (item,) = plan(issue, Options(arms=(Arm.FIXED,)), EVERY)
    assert [spec.fixes for spec in item.trials] == ["301.2"]
    (item,) = plan(replace(issue, faults=(replace(both, cases=MATRIX.cases),)), Options(arms=(Arm.FIXED,)), EVERY)
    assert [spec.fixes for spec in item.trials] == ["301.1,301.2,301.3"]
