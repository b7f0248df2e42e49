"""Small parts of the supervisor: names of signals, the first failing rank, logs that are cut."""

from __future__ import annotations

from pathlib import Path

import pytest
from made import died, rank

from repro.evidence.layout import TrialFolder
from repro.launch import outcomes
from repro.launch.outcomes import first_failing, flooded_log, signal_name, trim_logs
from repro.launch.process import Exit


@pytest.mark.parametrize(("number", "name"), [(11, "SIGSEGV"), (6, "SIGABRT"), (40, "SIGRTMIN+6"), (64, "SIGRTMAX")])
def test_every_signal_has_a_name(number: int, name: str) -> None:
    assert signal_name(number) == name


def test_the_first_failing_rank_is_first_in_time() -> None:
    late, early = rank(0, 1, end=9.0), died(1, 11, end=3.0)
    cut = died(2, 9, end=1.0, killed=True)
    assert first_failing([late, early, cut]) == 1
    assert first_failing([rank(0), cut]) is None


@pytest.fixture
def folder(tmp_path: Path) -> TrialFolder:
    made = TrialFolder(tmp_path)
    made.rank(0).path.mkdir()
    return made


@pytest.mark.parametrize("extra", [0, 1, 5000])
def test_a_flooded_log_keeps_its_ends(extra: int, folder: TrialFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "KEPT_OF_A_FLOODED_LOG", 100)
    text = b"first" + b"x" * (391 + extra) + b"last"
    folder.rank(0).stdout.write_bytes(text)
    trim_logs(folder)
    kept = folder.rank(0).stdout.read_bytes()
    assert kept.startswith(b"first")
    assert kept.endswith(b"last")
    assert (kept == text) == (extra == 0)
    if extra:
        assert f"[hyper-repro: {len(text) - 200} bytes dropped here]".encode() in kept
        assert len(kept) < len(text)


def test_a_flooded_log_is_named(folder: TrialFolder) -> None:
    assert flooded_log(folder, 10) == ""
    folder.rank(0).stderr.write_bytes(b"x" * 11)
    assert flooded_log(folder, 10) == "rank-0/stderr.log"
    assert flooded_log(folder, 11) == ""
    folder.rank(0).events.write_bytes(b"x" * 12)
    assert flooded_log(folder, 11) == "rank-0/events.jsonl"


def test_a_rank_cut_while_writing_its_error_is_still_recorded(folder: TrialFolder) -> None:
    folder.rank(0).error.write_text('{"type": "Val')
    folder.rank(0).stderr.write_text("Traceback\nValueError: the end\n")
    ended = Exit(1, 2.0, 1, None)
    assert outcomes._reason(folder.rank(0), ended, killed=False) == "exit code 1: ValueError: the end"


def test_a_failed_start_leaves_the_specification_alone(folder: TrialFolder) -> None:
    folder.spec.write_text("{}")
    folder.scheduler_log.write_text("x")
    outcomes.clear(folder)
    assert [path.name for path in folder.path.iterdir()] == ["spec.json"]
