"""Runs a user's own command as simulated ranks, a few at a time, and leaves no process behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from repro.errors import UsageError
from repro.sim.build import Runtime, build
from repro.sim.environment import environment

INTERRUPTED = 130  # the exit code of a command that was stopped from the keyboard
GRACE = 5.0  # seconds between asking a rank to end and killing it
_POLL = 0.05  # seconds


def parse_ranks(text: str, world_size: int) -> list[int]:
    """Returns the ranks that a text names: ``all``, or numbers and ranges as in ``0,3,8-15``.

    Raises:
        UsageError: The text does not parse, or names a rank outside the world.
    """
    if text == "all":
        return list(range(world_size))
    ranks: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise UsageError(f"--ranks {text!r}: {part!r} is no rank", "write all, or numbers as in 0,3,8-15")
        ranks.extend(range(int(first), int(last if dash else first) + 1))
    if not ranks or max(ranks) >= world_size:
        raise UsageError(f"--ranks {text!r} is not within a world of {world_size}", f"ranks are 0 to {world_size - 1}")
    return sorted(set(ranks))


def run_ranks(command: Sequence[str], world_size: int, ranks: Sequence[int], at_once: int = 2) -> int:
    """Runs a command once for every rank and returns the exit code of the first that fails, 0 if none does.

    The first failure ends the others. Ctrl-C and SIGTERM end all and give 130.

    Args:
        command: What to run; a leading ``python`` becomes this interpreter, whose MindSpore the runtime is built for.
        world_size: Number of ranks each process believes in.
        ranks: Which of them to run.
        at_once: How many at a time.

    Raises:
        ReproError: The runtime can not be built, or the command does not exist.
    """
    runtime = build()
    program = [sys.executable if command[0] in {"python", "python3"} else command[0], *command[1:]]
    waiting = list(ranks)
    running: dict[int, subprocess.Popen[str]] = {}
    readers: list[threading.Thread] = []
    try:
        with _sigterm_interrupts(), _no_litter(Path.cwd()):
            try:
                while waiting or running:
                    while waiting and len(running) < at_once:
                        rank = waiting.pop(0)
                        running[rank] = _start(program, world_size, rank, runtime, prefixed=len(ranks) > 1)
                        readers += _forward(running[rank], rank)
                    for rank, process in list(running.items()):
                        code = process.poll()
                        if code is not None:
                            _end({rank: running.pop(rank)})  # what it left in its process group
                        if code:
                            return 128 - code if code < 0 else code
                    time.sleep(_POLL)
            finally:
                _end(running)
                for reader in readers:
                    reader.join(timeout=GRACE)
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _start(
    program: list[str], world_size: int, rank: int, runtime: Runtime, *, prefixed: bool
) -> subprocess.Popen[str]:
    """Starts a rank in a process group of its own."""
    preload = [str(runtime.quiet_library), os.environ.get("LD_PRELOAD", "")]
    # LD_PRELOAD and not preload_quiet(): the program is the user's, and may be a shell script.
    variables = {**os.environ, **environment(world_size, rank, runtime), "LD_PRELOAD": ":".join(filter(None, preload))}
    pipe = subprocess.PIPE if prefixed else None
    try:
        return subprocess.Popen(
            program, env=variables, stdout=pipe, stderr=pipe, text=True, errors="replace", start_new_session=True
        )
    except OSError as error:
        raise UsageError(f"cannot run {program[0]!r}: {error.strerror}") from None


def _forward(process: subprocess.Popen[str], rank: int) -> list[threading.Thread]:
    """Copies what a rank prints, with its number in front of each line, if it does not print to our own streams."""

    def copy(source: TextIO, target: TextIO) -> None:
        for line in source:
            target.write(f"[rank {rank}] {line}")
            target.flush()

    pairs = [(process.stdout, sys.stdout), (process.stderr, sys.stderr)]
    threads = [threading.Thread(target=copy, args=pair, daemon=True) for pair in pairs if pair[0] is not None]
    for thread in threads:
        thread.start()
    return threads


def _end(running: dict[int, subprocess.Popen[str]]) -> None:
    """Ends the process groups of ranks: asks first, kills after a grace; a group that is gone already is fine."""
    for chosen in (signal.SIGTERM, signal.SIGKILL):
        for process in running.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, chosen)
        deadline = time.monotonic() + GRACE
        while time.monotonic() < deadline and any(process.poll() is None for process in running.values()):
            time.sleep(_POLL)
        # A leader that has ended may leave children that ignore SIGTERM: the second round reaches them.


@contextlib.contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    """Makes SIGTERM end the run as Ctrl-C does, where this thread may say so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def _no_litter(folder: Path) -> Iterator[None]:
    """Takes away the empty folder ``offload`` that MindSpore makes at its first operator, unless it was there."""
    litter = folder / "offload"
    there_before = litter.exists()
    try:
        yield
    finally:
        if not there_before:
            with contextlib.suppress(OSError):  # not there, or something is in it
                litter.rmdir()
