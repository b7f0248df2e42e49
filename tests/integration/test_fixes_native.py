"""Mend 301.3's native code under many threads: each event destroyed once, pending ones kept, bounded, and reaped."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from harness import REPOSITORY

from fixes.mend import MendError
from fixes.native import build as native
from repro.sim.wheel import Wheel

NATIVE = REPOSITORY / "fixes" / "native"
STAND_IN = Path(__file__).parent / "native" / "stand_in.cc"
CXX = ["g++", "-std=c++17", "-D_GLIBCXX_USE_CXX11_ABI=0", "-O1", "-g", "-fsanitize=thread", f"-I{NATIVE}", "-pthread"]
MOST_PENDING = 4096


def test_events_under_many_threads(tmp_path: Path) -> None:
    if shutil.which("g++") is None:
        pytest.skip("g++ is missing: apt-get install g++")
    mend, program = tmp_path / "libmend.so", tmp_path / "stand-in"
    shared = ["-fPIC", "-shared"]
    for command in (
        [*shared, "-o", mend, NATIVE / "comm_handle_events.cc", "-ldl"],
        [*shared, "-DSTAND_IN_MANAGER", "-o", tmp_path / "libmindspore_ascend_res_manager.so", STAND_IN],
        [*shared, "-DSTAND_IN_HANDLE", "-o", tmp_path / "libmindspore_pyboost.so", STAND_IN],
        ["-rdynamic", "-o", program, STAND_IN, "-ldl"],
    ):
        subprocess.run([*CXX, *map(str, command)], check=True)
    done = subprocess.run(
        [str(program), str(mend)],
        env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path), "TSAN_OPTIONS": "exitcode=66"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = {name: list(map(int, counts)) for name, *counts in (line.split() for line in done.stdout.splitlines())}
    for name, (destroyed, deferred, left, pending, by_manager, twice, original) in found.items():
        assert (by_manager, twice) == (destroyed, 0), (name, found)
        assert pending <= MOST_PENDING, (name, found)
        # Every event that came is destroyed, still waits, or was left to the original destructor.
        assert destroyed + pending + left == original - (800 if name == "off" else 0), (name, found)
        assert deferred >= pending, (name, found)
    # 16,000 handles, every second one pending, and never over: far more than the list holds.
    assert found["pending"][0] == 8000
    assert found["pending"][2:4] == [8000 - MOST_PENDING, MOST_PENDING]
    # Each of 1,600 later deaths looks at 8 of them.
    assert found["over"][3] == 0, found
    # Switched off it only passes calls on.
    assert found["off"][:4] == found["over"][:4]


def test_another_mindspore_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(native, "find_wheel", lambda: Wheel("2.9.0", tmp_path, "x"))
    with pytest.raises(
        MendError, match=r"mend 301\.3 is for MindSpore 2\.10\.0, this is 2\.9\.0; leave it out of HYPER"
    ):
        native.build()
