"""What the kernel says of each rank's memory while it runs, read from outside, once a second: rank-<k>/memory.csv."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from repro.evidence.layout import TrialFolder

EVERY_S = 1.0
FIELDS = ("Rss", "Pss", "Anonymous", "Private_Dirty", "Swap")


class MemorySeries:
    """Appends a row a rank whenever it is time; a rank that has just ended is passed over."""

    def __init__(self, folder: TrialFolder) -> None:
        self._folder = folder
        self._next = 0.0

    def sample(self, ranks: Mapping[int, int]) -> None:
        """Read smaps_rollup of every rank.

        Args:
            ranks: Pid by rank.
        """
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + EVERY_S
        for rank, pid in ranks.items():
            try:
                rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
            except OSError:
                continue
            values = parse_rollup(rollup)
            if not values:
                continue
            path = self._folder.rank(rank).memory_series
            with path.open("a", encoding="ascii") as file:
                if file.tell() == 0:
                    file.write(f"time,{','.join(FIELDS)}\n")
                file.write(f"{time.time():.3f},{','.join(str(values.get(field, '')) for field in FIELDS)}\n")


def parse_rollup(text: str) -> dict[str, int]:
    """Bytes by field; empty for a process that has no memory any more."""
    rows = (line.split() for line in text.splitlines()[1:])
    return {row[0].rstrip(":"): int(row[1]) * 1024 for row in rows if len(row) == 3}  # noqa: PLR2004 -- name, size, kB
