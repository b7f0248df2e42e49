"""Makes of a run a copy that may leave the house: redacted, sealed anew, and with the same verdict.

The mapping of names stays beside the run, so that the next bundle uses the same pseudonyms and an answer about
``host-2`` can be understood.
"""

from __future__ import annotations

import getpass
import json
import os
import socket
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.collect import archive
from repro.collect.redact import HOST_KEYS, Pseudonyms, Redactor
from repro.errors import InfraError
from repro.evidence import manifest
from repro.evidence.layout import RunFolder, TrialFolder
from repro.evidence.read import finished_trials, read_run_json
from repro.evidence.write import write_json, write_text
from repro.model import TrialSpec

MAPPING = "redaction.json"
LEFT_OUT = "LEFT_OUT.txt"
# Written by other verbs or by the harness for itself; made anew or of no use elsewhere.
NOT_TAKEN = {MAPPING, manifest.NAME, ".lock", "verdict.json", "report.md"}
_LOOKED_AT = 8192


@dataclass(frozen=True)
class Bundled:
    """What came of it.

    Attributes:
        left_out: Binary files that were not taken.
        replaced: How many names of each kind.
    """

    path: Path
    left_out: tuple[str, ...]
    replaced: dict[str, int]


def bundle(folder: Path, target: Path, hide: Sequence[str], binaries: bool) -> Bundled:
    """Write a redacted copy of a run as a tar.zst.

    Args:
        folder: The run.
        target: The archive.
        hide: Further words to replace.
        binaries: Whether to take binary files, which cannot be redacted.

    Raises:
        InfraError: The run is damaged, the archive cannot be written, or the copy would be judged otherwise.
    """
    run = RunFolder(folder.resolve())
    read_run_json(run)
    manifest.check_run(run)
    mapping = run.path / MAPPING
    names = Pseudonyms(_known(mapping))
    redactor = _redactor(run, names, hide)
    with tempfile.TemporaryDirectory(prefix="hyper-repro-bundle-", dir=target.resolve().parent) as scratch:
        copy = RunFolder(Path(scratch) / "run")
        left_out = _copy(run, copy, redactor, binaries)
        _mend_keys(copy)
        _seal(copy)
        _same_verdict(run.path, copy.path)
        archive.pack(copy.path, redactor.text(run.path.name), target.resolve())
    write_json(mapping, names.known)
    mapping.chmod(0o600)
    return Bundled(target, tuple(left_out), {kind: len(known) for kind, known in names.known.items()})


def _known(mapping: Path) -> dict[str, dict[str, str]]:
    if not mapping.exists():
        return {}
    try:
        known: dict[str, dict[str, str]] = json.loads(mapping.read_text(encoding="utf-8"))
        return known
    except ValueError as error:
        raise InfraError(f"{mapping}: not JSON: {error}", "delete it; pseudonyms then start anew") from error


def _redactor(run: RunFolder, names: Pseudonyms, hide: Sequence[str]) -> Redactor:
    here = {socket.gethostname(), socket.gethostname().partition(".")[0], socket.getfqdn()}
    users = {getpass.getuser(), *(os.environ.get(name, "") for name in ("USER", "LOGNAME", "SUDO_USER"))}
    project = Path(__file__).resolve().parents[2]
    roots = {
        str(run.path): "/run-folder",
        str(run.path.parent): "/runs",
        str(project): "/project",
        sys.prefix: "/venv",
        sys.base_prefix: "/python",
        str(Path(sys.executable).resolve().parents[1]): "/python",
        str(Path.home()): "/home/user-0",
        str(Path.cwd()): "/work",
    }
    usual = {"/", "/usr", "/root", "/tmp", "/usr/local"}  # noqa: S108 -- names, not files
    return Redactor(
        names,
        hosts=here | set(_hosts_in(run)),
        users=users,
        roots={path: name for path, name in roots.items() if path not in usual},
        hide=hide,
    )


def _hosts_in(run: RunFolder) -> Iterator[str]:
    """Hosts that the evidence itself names as such."""
    for path in sorted(run.path.rglob("*.json")):
        try:
            yield from _named(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            continue


def _named(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in value.items():
            if key in HOST_KEYS and isinstance(each, str):
                yield each
            yield from _named(each)
    elif isinstance(value, list):
        for each in value:
            yield from _named(each)


def _files(run: RunFolder) -> Iterator[Path]:
    finished = {trial.path for trial in finished_trials(run).values()}
    for path in sorted(run.path.rglob("*")):
        inside = path.relative_to(run.path)
        trial = run.path / Path(*inside.parts[:2]) if inside.parts[0] == "trials" else None
        if not path.is_file() or path.is_symlink() or path.name in NOT_TAKEN:
            continue
        if trial is None or (trial in finished and TrialFolder(trial).work not in path.parents):
            yield path


def _copy(run: RunFolder, copy: RunFolder, redactor: Redactor, binaries: bool) -> list[str]:
    left_out = []
    for path in _files(run):
        name = redactor.text(str(path.relative_to(run.path)))
        target = copy.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        raw = path.read_bytes()
        if b"\0" in raw[:_LOOKED_AT] or path.suffix in (".zst", ".bin"):
            if binaries:
                target.write_bytes(raw)
            else:
                left_out.append(name)
            continue
        target.write_text(
            _redacted(path, raw.decode("utf-8", "surrogateescape"), redactor),
            encoding="utf-8",
            errors="surrogateescape",
            newline="",
        )
    note = "binary files hold memory, and so names and secrets; they were left out:\n"
    write_text(copy.path / LEFT_OUT, note + "".join(f"{name}\n" for name in left_out))
    return left_out


def _redacted(path: Path, text: str, redactor: Redactor) -> str:
    if path.suffix == ".json":
        try:
            return json.dumps(redactor.data(json.loads(text)), ensure_ascii=False, indent=1) + "\n"
        except ValueError:
            return redactor.text(text)
    if path.suffix == ".jsonl":
        return "\n".join(_line(line, redactor) for line in text.split("\n"))
    return redactor.text(text)


def _line(line: str, redactor: Redactor) -> str:
    try:
        return json.dumps(redactor.data(json.loads(line)), ensure_ascii=False)
    except ValueError:
        return redactor.text(line)


def _mend_keys(copy: RunFolder) -> None:
    """A trial's key is a digest of its specification, which may have held a path."""
    record = read_run_json(copy)
    trials: dict[str, str] = {}
    for name, key in record["trials"].items():
        spec = copy.trial(name).spec
        known = TrialSpec.from_json(json.loads(spec.read_text(encoding="utf-8"))) if spec.exists() else None
        trials[name] = known.key if known else key
    write_json(copy.run, {**record, "trials": trials})


def _seal(copy: RunFolder) -> None:
    for trial in finished_trials(copy).values():
        manifest.seal(trial)
    manifest.seal_run(copy)


def _same_verdict(run: Path, copy: Path) -> None:
    was, now = list(_verdicts(run)), list(_verdicts(copy))
    if was != now:
        differs = next((b for a, b in zip(was, now, strict=False) if a != b), "a fault is missing")
        raise InfraError(
            f"redaction would change what is judged: {differs}",
            "a host or user here is called by a word of the evidence: rename it there, or bundle by hand",
        )


def _verdicts(folder: Path) -> Iterable[tuple[object, ...]]:
    from repro.review import kind_of, review, review_ablation, review_matrix

    kind = kind_of(folder)
    if kind == "ablation":
        return [(cell.fault, cell.mends, cell.found.verdict, cell.found.hits) for cell in review_ablation(folder).cells]
    if kind == "matrix":
        return [(cell.row.name, cell.column.name, cell.shows, cell.ran) for cell in review_matrix(folder)[1]]
    return [(v.id, v.verdict, v.tier, v.subject, v.trials, v.hits, v.measure) for v in review(folder).verdicts]
