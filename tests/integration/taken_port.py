"""A supervisor on a machine where a stranger takes the port just after it was found free; run by test_ports.py.

The first argument says how many times; the rest are the supervisor's own.
"""

from __future__ import annotations

import socket
import sys

from repro.launch import ports, supervisor

_is_free = ports.is_free
_strangers: list[socket.socket] = []


def _free_but_taken_at_once(port: int) -> bool:
    if not _is_free(port):
        return False
    if len(_strangers) < int(sys.argv[1]):
        stranger = socket.create_server(("", port))
        _strangers.append(stranger)
        print(f"taken: {port}", file=sys.stderr)
    return True


if __name__ == "__main__":
    ports.is_free = _free_but_taken_at_once
    sys.exit(supervisor.main(sys.argv[2:]))
