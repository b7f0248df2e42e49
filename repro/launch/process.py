"""Processes of Linux: spawn in an own group that dies with its parent, reap everything, kill a whole tree."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from repro.errors import InfraError

STRAY_LOOKS = 20
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)


def become_subreaper() -> None:
    """Adopt every orphan below this process, so that a worker cannot escape by losing its parent."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """Ask the kernel for a signal when the parent ends; kept over exec."""
    _prctl(_PR_SET_PDEATHSIG, number)


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise InfraError(f"prctl({option}) failed: {os.strerror(number)}", "this needs Linux 3.4 or later")


def spawn(
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    stdout: Path,
    stderr: Path | None = None,
    keep_group: bool = False,
    dump_core: bool = False,
) -> int:
    """Start a program and return its pid; it is reaped by ``reap``, never by subprocess.

    Args:
        command: Program and arguments.
        environment: The whole environment.
        folder: Working directory.
        stdout, stderr: Files to append to; stderr goes where stdout goes if it is None.
        keep_group: Stay in the caller's process group instead of a new session.
        dump_core: Whether it may leave a core, as far as the hard limit lets it.

    Raises:
        InfraError: The program could not be started.
    """
    parent = os.getpid()

    def prepare() -> None:
        die_with_parent()
        if os.getppid() != parent:
            os._exit(1)  # The parent was gone before the kernel was told to say so.
        # A core of one trivial worker takes 250 MB; whoever wants one raises the limit on purpose.
        hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
        resource.setrlimit(resource.RLIMIT_CORE, (hard if dump_core else 0, hard))

    with stdout.open("ab") as out, (stderr or stdout).open("ab") as err:
        try:
            process = subprocess.Popen(
                command,
                env=dict(environment),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=not keep_group,
                preexec_fn=prepare,  # noqa: PLW1509 -- supervisor and shim have one thread
            )
        except OSError as error:
            raise InfraError(f"cannot start {command[0]}: {error}", "run `repro doctor`") from error
    # subprocess must not reap it: the status is taken by waitpid(-1), together with those of orphans.
    process.returncode = 0
    return process.pid


@dataclass(frozen=True)
class Exit:
    """A wait status: exit code or signal, and when it was seen."""

    pid: int
    time: float
    code: int | None
    signal: int | None

    @classmethod
    def of_status(cls, pid: int, status: int) -> Exit:
        """Read a status as ``os.waitpid`` returns it."""
        code = os.waitstatus_to_exitcode(status)
        return cls(pid, time.time(), code if code >= 0 else None, -code if code < 0 else None)


def reap() -> list[Exit]:
    """Collect the status of every child that has ended, orphans included, without waiting."""
    exits: list[Exit] = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return exits
        if pid == 0:
            return exits
        exits.append(Exit.of_status(pid, status))


def descendants() -> list[psutil.Process]:
    """Every living process below this one; zombies that wait for ``reap`` do not count."""
    alive = []
    for process in psutil.Process().children(recursive=True):
        try:
            if process.status() != psutil.STATUS_ZOMBIE:
                alive.append(process)
        except psutil.NoSuchProcess:
            continue
    return alive


def signal_all(processes: Sequence[psutil.Process], number: int) -> None:
    """Send a signal to each; one that has just ended is passed over."""
    for process in processes:
        try:
            process.send_signal(number)
        except psutil.Error:
            continue


def end_strays(variable: str, value: str) -> None:
    """Kill every process on this machine that was started with ``variable=value`` in its environment.

    For what a supervisor that was itself killed could not end: children of a rank that left its process group.
    """
    empty = 0
    for _ in range(STRAY_LOOKS):
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(variable) == value and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except psutil.Error:
                continue
        signal_all(found, signal.SIGKILL)
        # One look may miss a child that was started while it went on by a process that then left.
        empty = 0 if found else empty + 1
        if empty == 2:  # noqa: PLR2004 -- two looks in a row
            return
        time.sleep(0.05)


def end_tree(grace_s: float, seen: Callable[[Exit], None]) -> None:
    """End every descendant: SIGTERM, a grace period, then SIGKILL until none is left.

    Args:
        grace_s: Seconds between the two.
        seen: Called with each exit.

    Raises:
        InfraError: Something survived SIGKILL for ten seconds, as a process in uninterruptible I/O does.
    """
    signal_all(descendants(), signal.SIGTERM)
    deadline = time.monotonic() + grace_s
    while descendants() and time.monotonic() < deadline:
        for ended in reap():
            seen(ended)
        time.sleep(0.02)
    deadline = time.monotonic() + 10
    while left := descendants():
        signal_all(left, signal.SIGKILL)
        for ended in reap():
            seen(ended)
        if time.monotonic() > deadline:
            pids = ", ".join(str(process.pid) for process in left)
            raise InfraError(f"processes {pids} survive SIGKILL", "look at their state in /proc/PID/stack")
        time.sleep(0.02)
    # A killed process whose other threads are still dying is a zombie already, and not yet to be waited for. And a look
    # may have missed a child that was started while it went on by a process that then left.
    while _has_children():
        signal_all(descendants(), signal.SIGKILL)
        for ended in reap():
            seen(ended)
        if time.monotonic() > deadline:
            raise InfraError("a killed process cannot be reaped", "look for a zombie of this command with ps")
        time.sleep(0.01)


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True
