"""Free TCP ports that two of our own trials never take from each other."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from repro.errors import InfraError

# Below the kernel's ephemeral range (32768 and up), so that no outgoing connection takes one by chance.
FIRST, LAST = 20_000, 32_000
ATTEMPTS = 200


def is_free(port: int) -> bool:
    """True if a server could listen on the port on every address now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


@contextmanager
def reserved_port(avoid: frozenset[int] = frozenset()) -> Iterator[int]:
    """Choose a free port and keep other trials on this machine off it until the block ends.

    A lock file is held beside the check: bind alone would race between two trials that both look and then listen.
    A stranger may still take the port; the supervisor sees that in the scheduler's log and asks for another.

    Raises:
        InfraError: No port could be had.
    """
    folder = Path(tempfile.gettempdir()) / f"hyper-repro-ports-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    for port in random.sample(range(FIRST, LAST), ATTEMPTS):
        if port in avoid or not is_free(port):
            continue
        with (folder / str(port)).open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield port
            return
    raise InfraError(f"no free port among {ATTEMPTS} tried in {FIRST}-{LAST}", "see `ss -ltn` for what holds them")
