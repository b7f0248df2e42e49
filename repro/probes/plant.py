"""Planted leaks of a known size: the control that proves that the meter would have found one."""

from __future__ import annotations

import ctypes

_libc = ctypes.CDLL(None)
_libc.malloc.restype = ctypes.c_void_p
_libc.malloc.argtypes = [ctypes.c_size_t]

# glibc keeps eight bytes of its own in each chunk and rounds to sixteen; 32 is the smallest chunk.
_HEADER = 8
_SMALLEST = 32


def leak_bytes(size: int) -> None:
    """Leak one malloc chunk that takes exactly ``size`` bytes of what malloc counts as in use.

    Args:
        size: A multiple of 16, at least 32.

    Raises:
        ValueError: malloc has no chunk of that size.
    """
    if size % 16 or size < _SMALLEST:
        raise ValueError(f"malloc has no chunk of {size} bytes; use a multiple of 16 from {_SMALLEST} on")
    _libc.malloc(size - _HEADER)
