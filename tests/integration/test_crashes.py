"""Ranks that really die of a signal: the backtrace of their own core arrives, the core itself if it is asked for."""

from __future__ import annotations

import json
import resource
from pathlib import Path
from typing import Any

import pytest
import zstandard
from harness import Cli, verdict

from repro.collect import core_pattern
from repro.collect.core_file import read_core

PATTERN = core_pattern.of_this_host()
NO_CORES = (
    f"cores of this host go to {PATTERN.collector}; sysctl kernel.core_pattern=core"
    if PATTERN.collector
    else "the hard limit on cores is 0; ulimit -Hc unlimited"
    if resource.getrlimit(resource.RLIMIT_CORE)[1] == 0
    else ""
)
pytestmark = pytest.mark.skipif(bool(NO_CORES), reason=NO_CORES)
CRASHED = "9002.9-case-0-unfixed-single"


def crash(rank: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((rank / "crash.json").read_text(encoding="utf-8"))
    return data


def no_core_lies_about(cli: Cli) -> None:
    assert not [path for path in cli.folder.rglob("core*") if path.is_file() and path.suffix != ".zst"]


def test_the_backtrace_of_a_segfault_arrives(cli: Cli) -> None:
    done = cli.run("9002.9")
    assert (done.code, verdict(done)["verdict"]) == (0, "REPRODUCED")
    rank = cli.trial(CRASHED) / "rank-0"
    found = crash(rank)
    assert found["signal"] == 11
    assert found["pid"] == cli.record(CRASHED)["ranks"][0]["pid"]
    assert "string_at" in found["top"]
    # Whoever judges again sees it in the verdict's line.
    assert f"in {found['top'][0]} <- " in verdict(done)["why"]
    text = (rank / "backtrace.txt").read_text(encoding="utf-8")
    dead = text.split("\n\n")[1]
    assert dead.startswith("thread ")
    assert "(died here)" in dead
    assert "Python  string_at (" in dead
    assert "PyCFuncPtr_call" in dead or "ffi_call" in dead
    assert text.count("\nthread ") > 1, "all threads, MindSpore's own among them"
    assert not (rank / "core.zst").exists()
    no_core_lies_about(cli)
    assert cli("judge", str(cli.out), "--json").out == done.out


def test_two_ranks_of_msrun_keep_each_its_own_core(cli: Cli) -> None:
    done = cli.run("9002.10", "--cores", "always")
    assert (done.code, verdict(done)["verdict"]) == (0, "REPRODUCED")
    trial = cli.trial("9002.10-case-0-unfixed-dp2")
    died = [outcome for outcome in cli.record(trial.name)["ranks"] if outcome["signal"] == 11]
    assert [outcome["rank"] for outcome in died] == [1]
    rank = trial / "rank-1"
    with (rank / "core.zst").open("rb") as packed, (cli.folder / "unpacked").open("wb") as plain:
        zstandard.ZstdDecompressor().copy_stream(packed, plain)
    core = read_core(cli.folder / "unpacked")
    assert (core.pid, core.signal) == (died[0]["pid"], 11)
    assert core.build_id == crash(rank)["build_id"]
    no_core_lies_about(cli)


@pytest.mark.parametrize("cores", ["never", "below=1"])
def test_a_core_that_nobody_wants_is_not_kept(cores: str, cli: Cli) -> None:
    done = cli.run("9002.8", "--cores", cores)
    assert (done.code, verdict(done)["verdict"]) == (0, "REPRODUCED")
    rank = cli.trial("9002.8-case-0-unfixed-single") / "rank-0"
    assert not (rank / "core.zst").exists()
    assert (rank / "backtrace.txt").exists() is (cores != "never")
    no_core_lies_about(cli)
