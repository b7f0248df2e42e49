"""Runs a rank's body under memray with native traces, and has malloc say at the end what it holds."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

from repro.evidence.layout import RankFolder


@contextmanager
def traced(folder: RankFolder) -> Iterator[None]:
    """Trace the block's allocations into ``memray.bin`` and write ``malloc_info.xml`` after it."""
    import memray

    folder.memray.unlink(missing_ok=True)
    try:
        with memray.Tracker(folder.memray, native_traces=True):
            yield
    finally:
        _malloc_info(folder)


def _malloc_info(folder: RankFolder) -> None:
    """Glibc's own account of its arenas, as XML."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.fopen.restype = ctypes.c_void_p
    libc.fopen.argtypes = (ctypes.c_char_p, ctypes.c_char_p)
    libc.malloc_info.argtypes = (ctypes.c_int, ctypes.c_void_p)
    libc.fclose.argtypes = (ctypes.c_void_p,)
    file = libc.fopen(bytes(folder.malloc_info), b"w")
    if file:
        libc.malloc_info(0, file)
        libc.fclose(file)
