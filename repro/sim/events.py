"""Counts the events that a simulated rank has made and not destroyed: exact, where bytes are only a sign."""

from __future__ import annotations

import ctypes
from functools import cache

_LIBRARY = "libascendcl.so"


@cache
def _runtime() -> ctypes.CDLL:
    # By name: MindSpore has loaded the stand-in already, found by LD_LIBRARY_PATH, and this is the same one.
    library = ctypes.CDLL(_LIBRARY)
    library.hyper_repro_live_events.restype = ctypes.c_int64
    return library


def live_events() -> int:
    """Events alive in this process.

    Raises:
        OSError: This process is no simulated rank.
    """
    return int(_runtime().hyper_repro_live_events())


def leak_event() -> None:
    """Make an event that nobody destroys: the planted control."""
    event = ctypes.c_void_p()
    _runtime().aclrtCreateEventWithFlag(ctypes.byref(event), ctypes.c_uint32(0))
