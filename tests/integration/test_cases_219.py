"""The case programs of report 219 as real trials: planted and clean controls, contrasts, and the oracles' records.

Where a crash is a matter of timing, the record that precedes it in every run is asserted, not the crash.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from repro.evidence.layout import TrialFolder
from repro.evidence.read import read_events, tail
from repro.model import Arm, Launcher, Phase, Scalar, Subject, Tier, Topology, TrialRecord, TrialSpec
from repro.probes import teardown as names

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAMS = REPOSITORY / "repro" / "issues" / "219"
CASE = "replicate_prefetch.py"
PLANTED = "first_operator_in_finaliser.py"
CONTROL = "hsdp_state_visible.py"
TRIAL_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Trial:
    """A finished trial."""

    folder: TrialFolder
    record: TrialRecord

    def checks(self, name: str, rank: int = 0) -> list[Mapping[str, Any]]:
        """The checks of that name that a rank recorded."""
        events = read_events(self.folder.rank(rank).events)
        return [event for event in events if event["event"] == "check" and event["name"] == name]

    def printed(self, rank: int = 0) -> str:
        """The end of what a rank wrote to standard output."""
        return tail(self.folder.rank(rank).stdout)

    def explain(self) -> str:
        """What a reader of a failed test needs."""
        return f"{self.record}\n" + "\n".join(tail(self.folder.rank(o.rank).stderr, 2000) for o in self.record.ranks)


def left_running(folder: Path) -> list[psutil.Process]:
    """Processes of the trial in that folder which outlived its supervisor."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("HYPER_REPRO_TRIAL") == str(folder):
                found.append(process)
        except psutil.Error:
            continue
    return found


@pytest.fixture
def run(tmp_path: Path) -> Any:
    """Runs a program through the supervisor, as an engine does."""

    def start(program: str, args: Mapping[str, Scalar], ranks: int = 1, launcher: Launcher = Launcher.RANKS) -> Trial:
        spec = TrialSpec(
            issue=219,
            fault="219.1",
            case=Path(program).stem,
            arm=Arm.UNFIXED,
            tier=Tier.CPU,
            subject=Subject.DISTILLED,
            launcher=launcher,
            topology=Topology(dp=ranks),
            program=program,
            args=args,
            series={},
            calls=0,
            window=0,
            calls_per_step=1,
            index=0,
            timeout_s=TRIAL_TIMEOUT_S,
            collectives=ranks > 1,
            environment={},
            seed=0,
        )
        folder = TrialFolder(tmp_path)
        folder.spec.write_text(json.dumps(spec.to_json()), encoding="utf-8")
        command = [sys.executable, "-m", "repro.launch.supervisor", str(tmp_path), str(PROGRAMS / program), "2"]
        ended = subprocess.run(
            command, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=TRIAL_TIMEOUT_S + 60
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        assert not left_running(tmp_path)
        return Trial(folder, TrialRecord.from_json(json.loads(folder.record.read_text(encoding="utf-8"))))

    return start


def test_under_msrun_the_planted_control_passes_then_dies_of_sigsegv_and_fails_the_job(run: Any) -> None:
    trial = run(PLANTED, {}, ranks=2, launcher=Launcher.MSRUN)

    assert trial.record.first_failing is not None, trial.explain()
    first = trial.record.ranks[trial.record.first_failing]
    assert (first.signal, first.phase) == (11, Phase.FINALISING), trial.explain()
    assert "1 passed" in trial.printed(first.rank)
    assert trial.record.launcher_code == 1
    said = tail(trial.folder.launcher_log)
    assert "Error code: -11" in said
    assert "Distributed job exited with exception" in said
    stderr = tail(trial.folder.rank(first.rank).stderr)
    assert "Current thread" in stderr
    assert "  Garbage-collecting\n  <no Python frame>" in stderr


def test_the_hsdp_control_passes_and_both_ranks_exit_well(run: Any) -> None:
    trial = run(CONTROL, {}, ranks=2)

    assert [(o.code, o.signal, o.phase) for o in trial.record.ranks] == [(0, None, Phase.FINALISING)] * 2, (
        trial.explain()
    )
    # Two layers of ones, 4 wide, on 7 rows of ones: 7 * 4 * (4 * 4).
    assert "rank: 0, max_logits_sum_after_backward: 448.0" in trial.printed()
    for name in (names.QUEUED_INSIDE, names.UNRUN):
        assert [check["ok"] for check in trial.checks(name)] == [True]
    assert [check["value"] for check in trial.checks("reduced gradient visible", rank=1)] == [56.0, 56.0]


@pytest.mark.parametrize(
    ("mechanism", "queued_inside", "unrun"),
    [("none", False, 0), ("queued-in-final", True, 1), ("raise-in-backward", False, 1), ("cached-raise", False, 1)],
)
def test_what_precedes_the_crash_is_recorded_in_every_run(
    run: Any, mechanism: str, queued_inside: bool, unrun: int
) -> None:
    trial = run(CASE, {"mechanism": mechanism, "probe": True})

    (inside,) = trial.checks(names.QUEUED_INSIDE)
    (left,) = trial.checks(names.UNRUN)
    assert (inside["ok"], inside["fault"]) == (not queued_inside, queued_inside)
    assert (left["ok"], left["fault"], left["unrun"]) == (unrun == 0, unrun > 0, unrun)


def test_a_cached_callback_is_left_unrun_all_the_same_and_does_not_crash(run: Any) -> None:
    trial = run(CASE, {"mechanism": "cached-final", "probe": True}, ranks=2)

    assert [(o.code, o.signal) for o in trial.record.ranks] == [(0, None)] * 2, trial.explain()
    assert "regression step loss" in trial.printed()
    assert [check["unrun"] for check in trial.checks(names.UNRUN)] == [1]


def test_units_left_to_the_exit_are_finalised_after_mindspores_own_teardown(run: Any) -> None:
    trial = run(CASE, {"mechanism": "none", "sentinel": True})

    checks = trial.checks(names.LATE_FINALISER)
    assert sorted((check["on"], check["fault"]) for check in checks) == [(f"unit {i}", True) for i in range(3)]


def test_after_an_ordered_teardown_nothing_is_left_for_the_exit(run: Any) -> None:
    trial = run(CASE, {"mechanism": "none", "sentinel": True, "teardown": "ordered"})

    (released,) = trial.checks(names.RELEASED)
    assert (released["ok"], released["alive"]) == (True, []), trial.explain()
    assert [check["fault"] for check in trial.checks(names.LATE_FINALISER)] == [False] * 3


def test_a_forked_child_that_leaves_by_the_ordinary_exit_dies_but_its_rank_does_not(run: Any) -> None:
    trial = run(CASE, {"mechanism": "fork-exit"})

    (rank,) = trial.record.ranks
    assert (rank.code, rank.phase) == (0, Phase.FINALISING), trial.explain()
    events = read_events(trial.folder.rank(0).events)
    assert [event["code"] for event in events if event["event"] == "forked child ended"] == [-11]
