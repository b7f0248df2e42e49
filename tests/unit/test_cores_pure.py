"""Core patterns of every kind, gdb's words, and what is wanted: pure, no crash."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from repro.collect import find_core
from repro.collect.backtrace import parse_gdb, top_frames
from repro.collect.core_pattern import CorePattern
from repro.errors import InfraError, UnsupportedError
from repro.model.wants import Cores, Wants, parse_cores

HERE = Path("/here")


@pytest.mark.parametrize(
    ("pattern", "uses_pid", "glob"),
    [
        ("core", False, "/here/core"),
        ("core", True, "/here/core.7"),
        ("core.%p", True, "/here/core.7"),
        ("/var/cores/core-%e-%p-%t", False, "/var/cores/core-*-7-*"),
        ("/var/cores/%E.%P.core", False, "/var/cores/*.*.core"),
        ("100%%[a]%", False, "/here/100%[[]a]"),
    ],
)
def test_where_the_kernel_puts_it(pattern: str, uses_pid: bool, glob: str) -> None:
    assert CorePattern(pattern, uses_pid).globs(7, HERE) == glob


@pytest.mark.parametrize(
    ("pattern", "collector", "shared"),
    [
        ("|/usr/lib/systemd/systemd-coredump %P %u %g %s %t %c %h", "systemd-coredump", False),
        ("|/usr/share/apport/apport -p%p -s%s -c%c", "apport", False),
        ("|/opt/x/handler", "handler", False),
        ("core", "", True),
        ("/cores/%p", "", False),
    ],
)
def test_who_takes_it(pattern: str, collector: str, shared: bool) -> None:
    assert CorePattern(pattern).collector == collector
    assert CorePattern(pattern).in_working_directory is shared


def test_a_core_that_is_not_there_or_not_ours_is_told(tmp_path: Path) -> None:
    now = time.time()
    with pytest.raises(InfraError, match=r"no core of pid 7 at .*/core; see core_pattern, the limit"):
        find_core.find_core(CorePattern("core"), 7, tmp_path, now, now)
    (tmp_path / "core").write_bytes(b"old")
    os.utime(tmp_path / "core", (now - 3600, now - 3600))
    with pytest.raises(InfraError, match="core is of another time"):
        find_core.find_core(CorePattern("core"), 7, tmp_path, now, now)
    (tmp_path / "core").write_bytes(b"no core at all")
    with pytest.raises(InfraError, match="not a core that can be read"):
        find_core.find_core(CorePattern("core"), 7, tmp_path, now - 1, now)
    with pytest.raises(UnsupportedError, match="cores here go to handler, which is not known"):
        find_core.find_core(CorePattern("|/opt/handler"), 7, tmp_path, now, now)


GDB = """\
[New LWP 11]
warning: something

Thread 2 (Thread 0x7f (LWP 12)):
#0  0x00007fcfe90a8f4f in clock_nanosleep () from /lib/x86_64-linux-gnu/libc.so.6
#1  0x00007fcfe90a8f4f in pysleep (timeout=...) at ./Modules/timemodule.c:2159

Thread 1 (LWP 11):
#0  __pthread_kill_implementation (threadid=..., signo=...) at ./nptl/pthread_kill.c:44
#1  0x00007fcfe9059fb2 in __GI_raise (sig=...) at ../sysdeps/posix/raise.c:26
#2  <signal handler called>
#3  std::_Sp_counted_base<(__gnu_cxx::_Lock_policy)2>::_M_release (this=...) at a.h:1
#4  0x00007fcfe8ccdf7a in ?? () from /site-packages/mindspore/lib/libmindspore_pynative.so
#5  0x00007fcfe8ce4608 in string_at (size=..., ptr=...) at _ctypes.c:5564
"""


def test_the_stack_of_who_died_starts_where_the_signal_came() -> None:
    stacks = parse_gdb(GDB)
    assert {thread: len(frames) for thread, frames in stacks.items()} == {12: 2, 11: 6}
    assert top_frames(stacks[11]) == (
        "std::_Sp_counted_base<(__gnu_cxx::_Lock_policy)2>::_M_release",
        "?? (libmindspore_pynative.so)",
        "string_at",
    )
    assert top_frames(stacks[12]) == ("clock_nanosleep", "pysleep")
    assert top_frames([]) == ()


def test_an_abort_starts_above_what_raised_it() -> None:
    frames = ["#0  0x1 in __pthread_kill_implementation (x=...) at a.c:1", "#1  0x1 in __GI_abort () at abort.c:79"]
    assert top_frames([*frames, "#2  0x1 in mindspore::Check (x=...) at c.cc:3"]) == ("mindspore::Check",)


@pytest.mark.parametrize(
    ("text", "wants"),
    [
        ("never", Wants(Cores.NEVER)),
        ("auto", Wants(Cores.AUTO)),
        ("below=3", Wants(Cores.BELOW, 3)),
        ("below=500M", Wants(Cores.BELOW, 500 << 20)),
        ("below=2G", Wants(Cores.BELOW, 2 << 30)),
    ],
)
def test_what_is_wanted_of_cores(text: str, wants: Wants) -> None:
    assert parse_cores(text) == wants
    assert Wants.from_json(wants.to_json()) == wants


@pytest.mark.parametrize("text", ["", "yes", "below", "below=", "below=5T", "always=1"])
def test_what_cannot_be_wanted(text: str) -> None:
    with pytest.raises(ValueError, match="below"):
        parse_cores(text)


def test_which_cores_are_kept() -> None:
    assert [parse_cores("below=10").keeps(size) for size in (9, 10)] == [True, False]
    assert parse_cores("always").keeps(1 << 40)
    assert not parse_cores("backtrace").keeps(1)
    assert [parse_cores(word).dump for word in ("auto", "never", "backtrace")] == [False, False, True]
