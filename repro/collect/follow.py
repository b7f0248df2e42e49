"""Follows what ranks print while they run, line by line, each with its trial and rank in front."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from repro.evidence.layout import RunFolder

LOOK_S = 0.3
# Of one log at a look: a rank that floods its log must not take the terminal along.
MOST = 64 << 10
_RANK = re.compile(r"\.?(?P<trial>[^/]+?)(?:\.[0-9a-f]{6}\.part)?/(?:[^/]+/)*?rank-(?P<rank>\d+)/std(?:out|err)\.log")


@dataclass
class _Log:
    file: IO[bytes]
    prefix: str
    rest: bytes = b""


@dataclass
class Follower:
    """Reads what is new in all logs of a run.

    Logs are told apart by their inode: a trial that ends is renamed, and its lines must not come twice.

    Args:
        folder: The run; what lies there already is not shown again.
        say: Called with each line.
    """

    folder: RunFolder
    say: Callable[[str], None]
    _logs: dict[int, _Log] = field(default_factory=dict)
    _old: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._old = {path.stat().st_ino for path in self._paths()}

    def _paths(self) -> Iterator[Path]:
        yield from self.folder.trials.glob("**/rank-*/stdout.log")
        yield from self.folder.trials.glob("**/rank-*/stderr.log")

    def look(self, last: bool = False) -> None:
        """Say what is new; with ``last`` also a line that has no end."""
        for path in sorted(self._paths()):
            self._meet(path)
        for log in self._logs.values():
            data = log.file.read()
            if len(data) > MOST:
                self.say(f"{log.prefix}[{len(data) - MOST} bytes passed over; they are in the log]")
                data = data[-MOST:]
            *lines, log.rest = (log.rest + data).split(b"\n")
            if last and log.rest:
                lines.append(log.rest)
            for line in lines:
                self.say(log.prefix + line.decode("utf-8", "replace").rstrip("\r"))

    def close(self) -> None:
        """Close the logs."""
        for log in self._logs.values():
            log.file.close()

    def _meet(self, path: Path) -> None:
        found = _RANK.fullmatch(str(path.relative_to(self.folder.trials)))
        try:
            number = path.stat().st_ino
            if found is None or number in self._old or number in self._logs:
                return
            file = path.open("rb")
        except FileNotFoundError:
            return  # its trial has just been renamed; it is met again under its new name
        self._logs[number] = _Log(file, f"[{found['trial']} rank {found['rank']}] ")


@contextmanager
def following(folder: RunFolder, say: Callable[[str], None]) -> Iterator[None]:
    """Follow the run's logs from a thread until the block ends; then what is left is said."""
    follower = Follower(folder, say)
    ended = threading.Event()

    def follow() -> None:
        while not ended.wait(LOOK_S):
            follower.look()

    thread = threading.Thread(target=follow, name="follow", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        follower.look(last=True)
        follower.close()
