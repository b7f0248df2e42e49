"""What sessions that were cut have left on this host: half trials are taken away, finished ones never."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from pathlib import Path

from repro.evidence import manifest

A_DAY_S = 86_400.0


def beside(path: Path, kind: str) -> Path:
    """A file next to a folder, whose name may hold dots."""
    return path.with_name(f"{path.name}.{kind}")


def lock(folder: Path) -> int:
    """Take the folder's lock for this process and return its descriptor.

    Raises:
        BlockingIOError: Another session has it.
    """
    path = beside(folder, "lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    number = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(number)
        raise
    return number


def sweep(trials: Path, run: str = "*", older_than_s: float = A_DAY_S) -> None:
    """Take away trials that were begun, never sealed, and are worked on by nobody.

    Args:
        trials: The folder of the runs' folders.
        run: Of which run; all by default.
        older_than_s: How long ago they must have been begun.
    """
    for folder in trials.glob(f"{run}/*"):
        if not folder.is_dir() or (folder / manifest.NAME).exists():
            continue
        if time.time() - folder.stat().st_mtime < older_than_s:
            continue
        held_by = beside(folder, "lock")
        with held_by.open("a") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            shutil.rmtree(folder)
            held_by.unlink()
