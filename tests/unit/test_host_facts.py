"""What of an environment may be shown, and npu-smi, of which one call at a time is all that it bears."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import pytest

from repro.collect import host_facts


def test_only_what_bears_on_a_fault_is_shown() -> None:
    shown = {"MS_ENABLE_X": "1", "ASCEND_HOME_PATH": "/a", "HCCL_IF_IP": "10.0.0.7", "PATH": "/bin", "LC_ALL": "C"}
    hidden = {
        "GITCODE_TOKEN": "x",
        "MS_SECRET": "x",
        "ASCEND_PASSWORD": "x",
        "SSH_AUTH_SOCK": "x",
        "HOME": "x",
        "USER": "x",
    }
    assert host_facts.environment({**shown, **hidden}) == shown


@pytest.fixture
def npu_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in that fails where it is called while it runs, as the real one is said to do; there is none here."""
    program = tmp_path / "npu-smi"
    program.write_text(
        f'#!/bin/sh\nmkdir "{tmp_path}/busy" || exit 9\nsleep 0.1\nrmdir "{tmp_path}/busy"\necho "| 910B3 | OK |"\n',
        encoding="utf-8",
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return program


def test_npu_smi_is_asked_by_one_at_a_time(npu_smi: Path) -> None:
    assert npu_smi.exists()
    said: list[str] = []
    threads = [threading.Thread(target=lambda: said.append(host_facts.npu_smi())) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == ["| 910B3 | OK |\n"] * 5


def test_why_npu_smi_says_nothing_is_said(npu_smi: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (npu_smi.parent / "busy").mkdir()
    assert host_facts.npu_smi().startswith("npu-smi info ended with 9: ")
    monkeypatch.setenv("PATH", "")
    assert host_facts.npu_smi() == "npu-smi is not installed here\n"


def test_logs_of_cann_are_named_if_they_are_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "debug" / "plog" / "plog-1.log"
    log.parent.mkdir(parents=True)
    log.touch()
    monkeypatch.setenv("ASCEND_PROCESS_LOG_PATH", str(tmp_path))
    written = log.stat().st_mtime
    assert host_facts.cann_logs(written - 1) == [str(tmp_path)]
    assert host_facts.cann_logs(written + 1) == []
