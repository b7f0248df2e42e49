"""Names the native sites whose allocations outlive a piece of code, by memray's native traces."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

STACK_DEPTH = 25


@dataclass(frozen=True)
class Site:
    """Allocations from one stack that are still alive.

    Attributes:
        count: How many.
        size: Bytes in all.
        stack: Functions, innermost first, native and Python mixed.
    """

    count: int
    size: int
    stack: tuple[str, ...]


def live_sites(body: Callable[[], None]) -> list[Site]:
    """Run ``body`` under memray and return what it left alive, the most numerous first.

    Run it once before, so that caches it fills are full.
    """
    import memray

    with tempfile.TemporaryDirectory() as folder:
        capture = Path(folder) / "capture.bin"
        with memray.Tracker(capture, native_traces=True):
            body()
        reader = memray.FileReader(capture)
        sites = [
            Site(record.n_allocations, record.size, tuple(frame[0] for frame in record.hybrid_stack_trace(STACK_DEPTH)))
            for record in reader.get_leaked_allocation_records(merge_threads=True)
        ]
    return sorted(sites, key=lambda site: site.count, reverse=True)
