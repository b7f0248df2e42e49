"""What ranks left allocated, by native site, merged over ranks into one table.

A capture names its native frames only where the same libraries lie, so it is read on the host it was taken on, in a
process of its own: ``python -m repro.collect.memory_sites MEMRAY_BIN``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.errors import InfraError

STACK_DEPTH = 25
SITES_A_RANK = 200
SHOWN_FRAMES, PYTHON_FRAMES = 4, 2
# Whoever asks for memory stands above these.
ALLOCATORS = (
    "malloc",
    "calloc",
    "realloc",
    "operator new",
    "posix_memalign",
    "aligned_alloc",
    "mmap",
    "_PyObject_",
    "PyMem_",
)


@dataclass(frozen=True)
class RankSite:
    """What one rank left allocated from one stack: functions innermost first, native and Python mixed."""

    count: int
    size: int
    stack: tuple[str, ...]


@dataclass(frozen=True)
class MergedSite:
    """One stack over all ranks.

    Attributes:
        counts, sizes: By rank.
    """

    stack: tuple[str, ...]
    counts: Mapping[int, int]
    sizes: Mapping[int, int]

    @property
    def size(self) -> int:
        """Bytes over all ranks."""
        return sum(self.sizes.values())


def of_capture(capture: Path, timeout_s: float) -> list[RankSite]:
    """The largest sites of a capture, read in a process of its own within so many seconds.

    Raises:
        InfraError: It cannot be read, as one that a kill cut short.
    """
    command = [sys.executable, "-m", "repro.collect.memory_sites", str(capture)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=max(1.0, timeout_s), check=True
        )
        return [RankSite(int(s["count"]), int(s["size"]), tuple(s["stack"])) for s in json.loads(done.stdout)]
    except subprocess.CalledProcessError as error:
        said = error.stderr.strip().splitlines() or ["it said nothing"]
        raise InfraError(f"{capture}: {said[-1]}", "the rank was cut while writing it") from error
    except subprocess.TimeoutExpired as error:
        raise InfraError(f"{capture} was not read within {timeout_s:.0f} s", "read it with memray itself") from error


def merge(ranks: Mapping[int, Sequence[RankSite]]) -> list[MergedSite]:
    """Sites of all ranks by stack, the largest first; allocators are left out of the stack."""
    counts: dict[tuple[str, ...], dict[int, int]] = {}
    sizes: dict[tuple[str, ...], dict[int, int]] = {}
    for rank, sites in ranks.items():
        for site in sites:
            stack = asked_by(site.stack)
            for table, value in ((counts, site.count), (sizes, site.size)):
                row = table.setdefault(stack, {})
                row[rank] = row.get(rank, 0) + value
    merged = [MergedSite(stack, counts[stack], sizes[stack]) for stack in counts]
    return sorted(merged, key=lambda site: (-site.size, site.stack))


def asked_by(stack: Sequence[str]) -> tuple[str, ...]:
    """The innermost functions that are no allocators, and then the innermost ones in Python."""
    kept = list(stack)
    while len(kept) > 1 and any(name in kept[0] for name in ALLOCATORS):
        kept.pop(0)
    python = [name for name in kept[SHOWN_FRAMES:] if name.endswith(".py)")]
    return (*kept[:SHOWN_FRAMES], *python[:PYTHON_FRAMES])


def table(sites: Sequence[MergedSite], ranks: Sequence[int], rows: int = 20) -> str:
    """The table as Markdown: bytes and allocations left, a rank a column."""
    head = ["| left by | " + " | ".join(f"rank {rank}" for rank in ranks) + " | bytes in all |"]
    head += ["|---" * (len(ranks) + 2) + "|"]
    body = []
    for site in sites[:rows]:
        cells = [f"{site.counts.get(rank, 0)} of {_mean(site, rank)} B" for rank in ranks]
        body.append(f"| {' <- '.join(site.stack)} | {' | '.join(cells)} | {site.size:,} |")
    return "\n".join([*head, *body, ""])


def _mean(site: MergedSite, rank: int) -> int:
    count = site.counts.get(rank, 0)
    return round(site.sizes[rank] / count) if count else 0


def _name(function: str, file: str) -> str:
    return f"{function} ({Path(file).name})" if file.endswith(".py") else function


def _read(capture: Path) -> list[dict[str, Any]]:
    import memray

    reader = memray.FileReader(capture)
    records = sorted(reader.get_leaked_allocation_records(merge_threads=True), key=lambda record: -record.size)
    return [
        {
            "count": record.n_allocations,
            "size": record.size,
            "stack": [_name(*frame[:2]) for frame in record.hybrid_stack_trace(STACK_DEPTH)],
        }
        for record in records[:SITES_A_RANK]
    ]


if __name__ == "__main__":
    print(json.dumps(_read(Path(sys.argv[1]))))
