"""Counts objects that somebody else still owns, by their reference counts: exact where allocated blocks are noisy."""

from __future__ import annotations

import gc
from sys import getrefcount
from typing import TypeVar

Watched = TypeVar("Watched")

# What an object that only we hold has while it is asked about: the list, the name of the loop, and the argument.
_OURS = 3


class Owned:
    """Objects that were handed to ``watch`` and have an owner besides it.

    For objects that take no weak reference and that the collector does not track, such as tuples of plain values.
    Watching keeps an object alive until the next count, so what is counted is owners, not memory.
    """

    def __init__(self) -> None:
        self._watched: list[object] = []

    def watch(self, each: Watched) -> Watched:
        """Take note of an object and return it."""
        self._watched.append(each)
        return each

    def count(self) -> int:
        """How many of the objects have another owner now; the others are let go."""
        self._watched = [each for each in self._watched if getrefcount(each) > _OURS]
        # What was let go of may rest on a free list of Python's, which a whole collection empties.
        gc.collect()
        return len(self._watched)
