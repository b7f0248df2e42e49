"""SHA256SUMS of a trial: tells evidence that was changed after the trial from evidence that was not."""

from __future__ import annotations

import hashlib
from pathlib import Path

from repro.errors import InfraError
from repro.evidence.layout import TrialFolder
from repro.evidence.write import write_text

NAME = "SHA256SUMS"


def _sums(folder: TrialFolder) -> dict[str, str]:
    return {
        str(path.relative_to(folder.path)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.path.rglob("*"))
        if path.is_file() and path.name != NAME and folder.work not in path.parents
    }


def seal(folder: TrialFolder) -> None:
    """Write the sums of all evidence files, in the format that ``sha256sum --check`` reads.

    Raises:
        InfraError: The file could not be written.
    """
    write_text(folder.path / NAME, "".join(f"{digest}  {name}\n" for name, digest in _sums(folder).items()))


def check(folder: TrialFolder) -> None:
    """Compare every evidence file with its sum.

    Raises:
        InfraError: The first file that is missing, new or changed.
    """
    manifest: Path = folder.path / NAME
    if not manifest.exists():
        raise InfraError(f"{manifest} is missing: the trial is not whole", "delete its folder and run again to redo it")
    lines = (line.partition("  ") for line in manifest.read_text(encoding="utf-8").splitlines())
    recorded = {name: digest for digest, _, name in lines}
    found = _sums(folder)
    for name in sorted(recorded.keys() | found.keys()):
        if recorded.get(name) == found.get(name):
            continue
        change = "is missing" if name not in found else "was added" if name not in recorded else "was changed"
        raise InfraError(
            f"{folder.path / name} {change} after the trial", "restore it, or delete the trial's folder and run again"
        )
