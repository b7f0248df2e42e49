"""Readings of a process's own memory: what malloc has handed out, Python's blocks, anonymous pages."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

# The order of struct mallinfo2 in glibc 2.33 and later (malloc.h).
_FIELDS = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")


class _MallInfo2(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in _FIELDS]


_libc = ctypes.CDLL(None)


def malloc_in_use() -> int:
    """Bytes that malloc has handed out and not got back, over all arenas, mapped chunks included.

    Exact to the byte only with the thread cache off (``GLIBC_TUNABLES=glibc.malloc.tcache_count=0``, which the
    supervisor sets): chunks that rest in a thread's cache count as in use.

    Raises:
        AttributeError: The C library is not glibc 2.33 or later.
    """
    info = _libc.mallinfo2()
    return int(info.uordblks + info.hblkhd)


def python_blocks() -> int:
    """Blocks that Python's own allocator has handed out (``sys.getallocatedblocks``)."""
    return sys.getallocatedblocks()


def anonymous() -> int:
    """Anonymous memory in bytes, from smaps_rollup as report 301 read it; it takes milliseconds."""
    with Path("/proc/self/smaps_rollup").open("rb") as rollup:
        for line in rollup:
            if line.startswith(b"Anonymous:"):
                return int(line.split()[1]) * 1024
    raise OSError("no Anonymous line in /proc/self/smaps_rollup")


if hasattr(_libc, "mallinfo2"):
    _libc.mallinfo2.restype = _MallInfo2
