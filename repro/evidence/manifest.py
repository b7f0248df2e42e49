"""SHA256SUMS of a run and of its trials: tells evidence that was changed afterwards from evidence that was not."""

from __future__ import annotations

import hashlib
from pathlib import Path

from repro.errors import InfraError
from repro.evidence.layout import RunFolder, TrialFolder
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


def sums(folder: TrialFolder) -> dict[str, str]:
    """The digests that were recorded, by file name."""
    return _read(folder.path / NAME)


def check(folder: TrialFolder) -> None:
    """Compare every evidence file with its sum.

    Raises:
        InfraError: The first file that is missing, new or changed.
    """
    manifest: Path = folder.path / NAME
    if not manifest.exists():
        raise InfraError(f"{manifest} is missing: the trial is not whole", "delete its folder and run again to redo it")
    recorded = _read(manifest)
    found = _sums(folder)
    for name in sorted(recorded.keys() | found.keys()):
        if recorded.get(name) == found.get(name):
            continue
        change = "is missing" if name not in found else "was added" if name not in recorded else "was changed"
        raise InfraError(
            f"{folder.path / name} {change} after the trial", "restore it, or delete the trial's folder and run again"
        )


def seal_run(run: RunFolder) -> None:
    """Write the sums of run.json and issue.yaml: what was asked, and what it is judged by.

    Raises:
        InfraError: The file could not be written.
    """
    write_text(run.sums, "".join(f"{digest}  {name}\n" for name, digest in _run_sums(run).items()))


def check_run(run: RunFolder) -> None:
    """Compare run.json and issue.yaml with their sums.

    Raises:
        InfraError: One of them is missing or was changed.
    """
    if not run.sums.exists():
        raise InfraError(f"{run.sums} is missing: the run is not whole", "repeat its command with another --out")
    recorded, found = _read(run.sums), _run_sums(run)
    for name in ("run.json", "issue.yaml"):
        if recorded.get(name) != found.get(name):
            change = "was changed" if name in found else "is missing"
            raise InfraError(f"{run.path / name} {change} after the run began", "restore it, or run again")


def _run_sums(run: RunFolder) -> dict[str, str]:
    files = [path for path in (run.run, run.issue) if path.exists()]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _read(manifest: Path) -> dict[str, str]:
    lines = (line.partition("  ") for line in manifest.read_text(encoding="utf-8", errors="replace").splitlines())
    return {name: digest for digest, _, name in lines}
