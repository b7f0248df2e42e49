"""Following logs: every line once, whatever is renamed on the way, and no flood."""

from __future__ import annotations

from pathlib import Path

import pytest

from repro.collect.follow import MOST, Follower
from repro.evidence.layout import RunFolder

TRIAL = "9001.1-shape-0-unfixed-single"


def log(folder: Path, attempt: str = "", rank: int = 0, stream: str = "stdout") -> Path:
    path = folder / "trials" / f".{TRIAL}.0a1b2c.part" / attempt / f"rank-{rank}" / f"{stream}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


@pytest.mark.parametrize("attempt", ["", "attempt-1"])
def test_every_line_comes_once_with_its_rank_though_the_trial_is_renamed(attempt: str, tmp_path: Path) -> None:
    said: list[str] = []
    follower = Follower(RunFolder(tmp_path), said.append)
    path = log(tmp_path, attempt, rank=3)
    path.write_text("one\nha", encoding="utf-8")
    follower.look()
    with path.open("a", encoding="utf-8") as file:
        file.write("lf\n形状\n")
        follower.look()
    part = tmp_path / "trials" / f".{TRIAL}.0a1b2c.part"
    (part / attempt).rename(tmp_path / "trials" / TRIAL)
    follower.look()
    follower.look(last=True)
    follower.close()
    assert said == [f"[{TRIAL} rank 3] {line}" for line in ("one", "half", "形状")]


def test_what_was_there_before_is_not_shown_and_a_last_line_without_end_is(tmp_path: Path) -> None:
    said: list[str] = []
    log(tmp_path).write_text("old\n", encoding="utf-8")
    follower = Follower(RunFolder(tmp_path), said.append)
    log(tmp_path, stream="stderr").write_text("new", encoding="utf-8")
    follower.look()
    assert said == []
    follower.look(last=True)
    follower.close()
    assert said == [f"[{TRIAL} rank 0] new"]


def test_a_flood_is_passed_over(tmp_path: Path) -> None:
    said: list[str] = []
    follower = Follower(RunFolder(tmp_path), said.append)
    log(tmp_path).write_bytes(b"x" * (3 * MOST) + b"\nlast\n")
    follower.look()
    follower.close()
    assert "bytes passed over" in said[0]
    assert said[-1].endswith("] last")
    assert sum(map(len, said)) < 2 * MOST
