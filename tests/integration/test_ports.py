"""The scheduler's port: taken by a stranger, and never by two of our own trials."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from harness import ISSUES, PATIENCE_S, Cli

from repro import catalogue
from repro.evidence.layout import TrialFolder
from repro.evidence.read import read_trial
from repro.evidence.write import write_json
from repro.judge.trial import Kind, judge_trial
from repro.launch.ports import is_free, reserved_port
from repro.model import Tier
from repro.plan import Options, plan


def supervise(cli: Cli, times: int) -> tuple[TrialFolder, list[str]]:
    """Run a trial of two ranks that form a group, with its port taken so many times."""
    issue = catalogue.load(ISSUES / "9002")
    [item] = plan(issue, Options(faults=("9002.14",)), [Tier.CPU])
    folder = TrialFolder(cli.folder / "trial")
    folder.path.mkdir()
    write_json(folder.spec, item.trials[0].to_json())
    driver = Path(__file__).with_name("taken_port.py")
    command = [sys.executable, str(driver), str(times), str(folder.path), str(ISSUES / "9002" / "misbehave.py"), "2"]
    done = subprocess.run(command, env=cli.environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    cli.nothing_left()
    return folder, [line.split()[1] for line in done.stderr.splitlines() if line.startswith("taken:")]


def record(folder: TrialFolder) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(folder.record.read_text(encoding="utf-8"))
    return data


def test_another_port_is_tried(cli: Cli) -> None:
    folder, taken = supervise(cli, 1)
    assert len(taken) == 1
    assert record(folder)["ending"] == "completed"
    assert [rank["code"] for rank in record(folder)["ranks"]] == [0, 0]
    for number in (0, 1):
        assert folder.rank(number).stdout.read_text(encoding="utf-8").splitlines().count("well") == 1


def test_no_port_at_all_is_the_machines_trouble(cli: Cli) -> None:
    folder, taken = supervise(cli, 9)
    assert len(set(taken)) == 3
    found = record(folder)
    assert found["ending"] == "launch failed"
    assert found["detail"] == f"port {taken[-1]} was taken by another program, 3 times"
    finding = judge_trial(read_trial(folder), catalogue.load(ISSUES / "9002").faults[0].oracle)
    assert (finding.kind, finding.why) == (Kind.INFRA, f"launch failed: {found['detail']}")
    assert folder.scheduler_log.exists(), "what the scheduler said is gone"


def test_a_taken_port_is_not_free() -> None:
    with reserved_port() as port, socket.create_server(("", port)):
        assert not is_free(port)


def test_two_trials_never_share_a_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("repro.launch.ports.FIRST", 31_000)
    monkeypatch.setattr("repro.launch.ports.LAST", 31_000 + 300)
    with reserved_port() as one, reserved_port() as other, reserved_port(frozenset({one})) as third:
        assert len({one, other, third}) == 3
