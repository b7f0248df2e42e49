"""A host's connections: several trials share one, and another is opened before the server refuses more sessions."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from repro.engines.ssh.connection import Limits, Remote
from repro.hosts.inventory import Host

# sshd's own MaxSessions is 10.
SESSIONS = 8


class Links:
    """Connections to one host."""

    def __init__(self, host: Host, limits: Limits) -> None:
        self._host = host
        self._limits = limits
        self._open: dict[Remote, int] = {}
        self._lock = threading.Lock()

    @contextmanager
    def one(self) -> Iterator[Remote]:
        """A connection with room for a session; after an error it is not used again."""
        with self._lock:
            free = [remote for remote, sessions in self._open.items() if sessions < SESSIONS]
            remote = free[0] if free else Remote(self._host, self._limits)
            self._open[remote] = self._open.get(remote, 0) + 1
        try:
            yield remote
        except BaseException:
            with self._lock:
                sessions = self._open.pop(remote, 1)
            if sessions <= 1:
                remote.close()
            raise
        with self._lock:
            if remote in self._open:
                self._open[remote] -= 1

    def close(self) -> None:
        """Close all of them; who waits on one gets an error."""
        with self._lock:
            remotes = list(self._open)
            self._open.clear()
        for remote in remotes:
            remote.close()
