"""The stacks of all threads in a core: native frames by gdb, Python frames by py-spy, joined by thread.

gdb's own py-bt needs the debug information of exactly this Python, which images and most hosts do not have; py-spy
knows the layout of each Python version and reads it out of the core.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.collect.core_file import CoreFile

GDB_TIMEOUT_S, PYTHON_TIMEOUT_S = 40.0, 20.0
DEPTH = 64
TOP = 6
# How a signal is raised again by a handler: not where it came from.
_RAISED = re.compile(r"__pthread_kill|__GI_raise|^raise$|__GI_abort|^abort$|faulthandler_fatal|__libc_message")
_FRAME = re.compile(r"^#\d+\s+(?:0x[0-9a-f]+ in )?(.+?) \(.*?\)(?: from (\S+)| at (\S+))?$")


@dataclass(frozen=True)
class Backtrace:
    """The stacks of a process that died.

    Attributes:
        top: Innermost functions of the thread that died, where the signal came.
        native: gdb's lines by thread id.
        python: ``(function, file, line)`` by thread id, innermost first.
        notes: What could not be had, and why.
    """

    core: CoreFile
    top: tuple[str, ...]
    native: Mapping[int, Sequence[str]]
    python: Mapping[int, Sequence[tuple[str, str, int]]]
    notes: tuple[str, ...]

    @property
    def text(self) -> str:
        """The whole of it for a reader, the thread that died first."""
        core = self.core
        lines = [
            f"signal {core.signal}, pid {core.pid}, {core.program}, build-id {core.build_id or 'unknown'}",
            f"top frames: {' <- '.join(self.top) or 'unknown'}",
            *(f"note: {note}" for note in self.notes),
        ]
        for thread in core.threads or tuple(self.native):
            died = " (died here)" if thread == core.threads[0] else ""
            lines += ["", f"thread {thread}{died}"]
            for function, file, line in self.python.get(thread, ()):
                lines.append(f"  Python  {function} ({file}:{line})")
            lines += [f"  {frame}" for frame in self.native.get(thread, ("no native frames",))]
        return "\n".join([*lines, ""])


def take(core: CoreFile, within_s: float = GDB_TIMEOUT_S + PYTHON_TIMEOUT_S) -> Backtrace:
    """Read the stacks within so many seconds; what a tool does not give is a note, not a failure."""
    notes: list[str] = []
    began = time.monotonic()
    native = parse_gdb(_run(_gdb(core), min(GDB_TIMEOUT_S, max(1.0, within_s)), notes))
    left = within_s - (time.monotonic() - began)
    python = _python_frames(_run(_py_spy(core), min(PYTHON_TIMEOUT_S, max(1.0, left)), notes), notes)
    dead = native.get(core.threads[0], []) if core.threads else []
    return Backtrace(core, top_frames(dead), native, python, tuple(notes))


def _gdb(core: CoreFile) -> list[str]:
    # A core may come from anywhere: nothing is loaded or fetched because of what it names. Arguments of functions
    # are left out, for they may hold anything.
    quiet = ["set auto-load off", "set debuginfod enabled off", "set print frame-arguments none", "set pagination off"]
    settings = [word for setting in quiet for word in ("-iex", setting)]
    command = f"thread apply all backtrace {DEPTH}"
    return ["gdb", "--batch", "--nx", *settings, "-ex", command, core.program, str(core.path)]


def _py_spy(core: CoreFile) -> list[str]:
    beside = Path(sys.executable).parent / "py-spy"
    return [str(beside) if beside.exists() else "py-spy", "dump", "--json", "--core", str(core.path)]


def _run(command: Sequence[str], timeout_s: float, notes: list[str]) -> str:
    name = Path(command[0]).name
    if shutil.which(command[0]) is None:
        notes.append(f"{name} is not installed here")
        return ""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        notes.append(f"{name} did not end within {timeout_s:g} s")
        return ""
    if done.returncode:
        said = done.stderr.strip().splitlines()
        notes.append(f"{name} failed: {said[-1] if said else 'it said nothing'}")
    return done.stdout


def parse_gdb(text: str) -> dict[int, list[str]]:
    """Frames by thread id from ``thread apply all backtrace``."""
    stacks: dict[int, list[str]] = {}
    current: list[str] = []
    for line in text.splitlines():
        if head := re.match(r"^Thread \d+ \(.*LWP (\d+)\)", line):
            current = stacks.setdefault(int(head[1]), [])
        elif line.startswith("#"):
            current.append(line)
        elif not line.strip():
            current = []
    return stacks


def top_frames(frames: Sequence[str]) -> tuple[str, ...]:
    """The innermost functions at the place where the signal came."""
    came = [number for number, line in enumerate(frames) if "<signal handler called>" in line]
    # Of several handlers the one entered first stands lowest.
    shown = [_function(line) for line in frames[came[-1] + 1 if came else 0 :]]
    known = [name for name in shown if name and not _RAISED.search(name)]
    return tuple(known[:TOP])


def _function(line: str) -> str:
    found = _FRAME.match(line)
    if found is None:
        return ""
    library = Path(found[2]).name if found[2] else ""
    return f"{found[1]} ({library})" if found[1] == "??" and library else found[1]


def _python_frames(text: str, notes: list[str]) -> dict[int, list[tuple[str, str, int]]]:
    try:
        threads: list[dict[str, Any]] = json.loads(text) if text.strip() else []
        return {
            int(thread["os_thread_id"]): [(f["name"], f["filename"], int(f["line"])) for f in thread["frames"]]
            for thread in threads
            if thread.get("os_thread_id") is not None
        }
    except (ValueError, KeyError, TypeError) as error:
        notes.append(f"py-spy said what was not understood: {error}")
        return {}
