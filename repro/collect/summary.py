"""What was collected of each trial beside its evidence, a line a thing, for a reader who looks for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from repro.errors import InfraError
from repro.evidence.layout import RankFolder, RunFolder, TrialFolder
from repro.evidence.read import finished_trials, read_crash


def of_trials(run: RunFolder) -> Iterator[str]:
    """Lines such as ``TRIAL/rank-1: died in a <- b; backtrace.txt``."""
    for name, trial in finished_trials(run).items():
        for rank in sorted(trial.path.glob("rank-*"), key=lambda path: int(path.name.partition("-")[2])):
            found = list(_of_rank(RankFolder(rank)))
            if found:
                yield f"{name}/{rank.name}: {'; '.join(found)}"
        found = list(_of_trial(trial))
        if found:
            yield f"{name}: {'; '.join(found)}"


def _of_rank(rank: RankFolder) -> Iterator[str]:
    try:
        top = read_crash(rank.crash)
    except InfraError as error:
        yield str(error)
        return
    if top:
        yield f"died in {' <- '.join(top[:4])}"
    for path in (rank.backtrace, rank.core, rank.path / "kernel.log", rank.memray, rank.malloc_info):
        if path.exists():
            yield f"{path.name} ({_size(path)})"


def _of_trial(trial: TrialFolder) -> Iterator[str]:
    if trial.memory_table.exists():
        yield trial.memory_table.name
    for folder in ("kept", "stackcore", "plog"):
        files = [path for path in (trial.path / folder).rglob("*") if path.is_file()]
        if files:
            yield f"{folder}/ with {len(files)} file{'s' if len(files) > 1 else ''}"


def _size(path: Path) -> str:
    size = path.stat().st_size
    return f"{size >> 20} MiB" if size >> 20 else f"{size} B"
