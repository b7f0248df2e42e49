"""Counts the events that MindSpore's Ascend resource manager holds: exact, where bytes are only a sign."""

from __future__ import annotations

import ctypes
import os
from functools import cache

# Names the library built from images/cann-sim/event_counter.cc; host code alone, so tier npu may set it too.
LIBRARY = "HYPER_REPRO_EVENTS"


def can_count() -> bool:
    """True if this process was given the counting library."""
    return bool(os.environ.get(LIBRARY))


@cache
def _counter() -> ctypes.CDLL:
    library = ctypes.CDLL(os.environ[LIBRARY], mode=ctypes.RTLD_GLOBAL)
    library.hyper_repro_live_events.restype = ctypes.c_int64
    return library


def preload() -> None:
    """Put the counter, if there is one, in front of MindSpore's functions; call it before ``import mindspore``."""
    if can_count():
        _counter()


def live_events() -> int:
    """Events made and not destroyed so far.

    Raises:
        KeyError: This process was not given the counting library.
    """
    return int(_counter().hyper_repro_live_events())
