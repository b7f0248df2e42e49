"""Files and programs of the machine it runs on; programs one at a time, with a deadline and in plain English."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import signal
import subprocess
import time
from collections.abc import Sequence

PATH = ("/usr/local/bin", "/usr/local/sbin", "/usr/bin", "/usr/sbin", "/bin", "/sbin")
MISSING, TOO_LONG, BUSY = 127, 124, 75
_SAME_TIME_S = 0.2
_LAST_S = 2.0


class Machine:
    """This machine, or a tree of files that stands for one.

    Args:
        root: Where its ``/`` is.
    """

    def __init__(self, root: str = "/") -> None:
        self.root = root.rstrip("/")

    def at(self, path: str) -> str:
        """Where a path of the machine is for us."""
        return self.root + path

    def read(self, path: str) -> str | None:
        """Text of a file; None if it is not there or may not be read."""
        try:
            with open(self.at(path), encoding="utf-8", errors="replace") as file:
                return file.read()
        except OSError:
            return None

    def glob(self, pattern: str) -> list[str]:
        """Paths of the machine that fit, sorted."""
        return sorted(path[len(self.root) :] for path in glob.glob(self.at(pattern)))

    def program(self, name: str, *folders: str) -> str | None:
        """Path of a program, looked for in ``folders`` and where programs usually are; never in a user's PATH."""
        for folder in (*folders, *PATH):
            path = f"{folder}/{name}"
            if os.path.isfile(self.at(path)) and os.access(self.at(path), os.X_OK):
                return path
        return None

    def run(self, command: Sequence[str], timeout: float, alone: bool = False) -> tuple[int, str]:
        """Exit code and output, both streams together.

        Args:
            command: Its first word is a path of the machine.
            timeout: Seconds; then it is ended and the code is 124. With ``alone`` it also bounds the wait (75).
            alone: Wait until nobody else runs the same program through here. The lock is taken on the program's own
                file, so that nothing is written, every user can take it, and ``flock FILE FILE …`` in a shell keeps
                to it too.
        """
        path = self.at(command[0])
        environment = dict(os.environ, LC_ALL="C", LANG="C")
        try:
            lock = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            return MISSING, f"{command[0]}: {error.strerror}"
        try:
            if alone and not _taken(lock, timeout):
                return BUSY, f"{command[0]} was in use by somebody else for {timeout:.0f} s"
            return _output([path, *command[1:]], timeout, environment)
        except subprocess.TimeoutExpired:
            return TOO_LONG, f"{command[0]} gave no answer in {timeout:.0f} s"
        except OSError as error:
            return MISSING, f"{command[0]}: {error.strerror}"
        finally:
            os.close(lock)


def _output(command: list[str], timeout: float, environment: dict[str, str]) -> tuple[int, str]:
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        start_new_session=True,
    )
    try:
        out, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        # With what it has started. One that hangs in the driver does not even die of this; it is not waited for.
        os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=_LAST_S)
        raise
    finally:
        if process.stdout is not None:
            process.stdout.close()
    return process.returncode, out.decode("utf-8", "replace")


def _taken(lock: int, timeout: float) -> bool:
    deadline = time.monotonic() + timeout
    while not _lock(lock):
        if time.monotonic() > deadline:
            return False
        time.sleep(_SAME_TIME_S)
    return True


def _lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
