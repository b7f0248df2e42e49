"""The one archive for a site without a network: written with a manifest of digests, verified without unpacking."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from repro.errors import InfraError
from repro.evidence.write import cannot_write

MANIFEST = "MANIFEST.json"
IMAGE = "image.tar.zst"
PROJECT = "project.tar"
WHEELS = "wheels"
SCHEMA_VERSION = 1
_CHUNK = 1 << 20
_LARGEST_MANIFEST = 4 << 20


@dataclass(frozen=True)
class About:
    """What an archive is for.

    Attributes:
        image: Name of the image that ``docker load`` brings.
        image_id: Its digest.
        chip: Such as ``910b``; empty for target sim.
        architecture: Such as ``x86_64``: of image and wheels.
    """

    version: str
    commit: str | None
    target: str
    chip: str
    architecture: str
    image: str
    image_id: str
    mindspore: str
    cann: str


@dataclass(frozen=True)
class Entry:
    """A file in an archive."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Archive:
    """A manifest as it was read."""

    about: About
    entries: tuple[Entry, ...]


def write(target: Path, about: About, files: Mapping[str, Path]) -> Archive:
    """Write an archive; it appears whole under its name or not at all.

    Args:
        target: The file to write.
        about: What it is for.
        files: Path in the archive -> file on this machine.

    Raises:
        InfraError: The disk is full, or a file cannot be read.
    """
    part = target.with_name(f".{target.name}.part")
    try:
        entries = tuple(Entry(name, files[name].stat().st_size, _digest(files[name])) for name in sorted(files))
        data = {"schema_version": SCHEMA_VERSION, **asdict(about), "files": [asdict(entry) for entry in entries]}
        text = (json.dumps(data, indent=1) + "\n").encode()
        with tarfile.open(part, "w", format=tarfile.PAX_FORMAT) as archive:
            archive.addfile(_header(MANIFEST, len(text)), io.BytesIO(text))
            for entry in entries:
                with files[entry.path].open("rb") as file:
                    archive.addfile(_header(entry.path, entry.size), file)
        part.replace(target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise cannot_write(target, error) from error
    return Archive(about, entries)


def _header(name: str, size: int) -> tarfile.TarInfo:
    """No owner, no time: the same files give the same archive."""
    header = tarfile.TarInfo(name)
    header.size, header.mode = size, 0o644
    return header


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def verify(path: Path) -> Archive:
    """Check every file of an archive against its manifest, in one pass and without unpacking.

    Raises:
        InfraError: The archive is cut or altered; the message names the first file that is wrong.
    """
    try:
        with tarfile.open(path, "r|") as archive:
            members = iter(archive)
            found = _manifest(path, archive, members)
            _check(path, archive, members, found.entries)
    except tarfile.TarError as error:
        raise InfraError(f"{path}: not a whole archive: {error}", "copy it again") from error
    except OSError as error:
        raise InfraError(f"{path}: {error.strerror or error}") from error
    return found


def _manifest(path: Path, archive: tarfile.TarFile, members: Iterator[tarfile.TarInfo]) -> Archive:
    first = next(members, None)
    stream = archive.extractfile(first) if first is not None and first.name == MANIFEST else None
    if first is None or stream is None or first.size > _LARGEST_MANIFEST:
        raise InfraError(f"{path}: its first file is no {MANIFEST}", "it was not written by `make bundle`")
    try:
        data: dict[str, Any] = json.loads(stream.read())
        if data.pop("schema_version") != SCHEMA_VERSION:
            raise ValueError(f"this version reads schema_version {SCHEMA_VERSION}")
        entries = tuple(Entry(**entry) for entry in data.pop("files"))
        return Archive(About(**data), entries)
    except (ValueError, KeyError, TypeError) as error:
        raise InfraError(f"{path}: {MANIFEST} cannot be read: {error}", "copy it again") from error


def _check(
    path: Path, archive: tarfile.TarFile, members: Iterable[tarfile.TarInfo], entries: tuple[Entry, ...]
) -> None:
    missing = {entry.path: entry for entry in entries}
    for member in members:
        parts = PurePosixPath(member.name)
        if not member.isreg() or parts.is_absolute() or ".." in parts.parts:
            raise InfraError(f"{path}: {member.name} is no plain file below the archive", "do not unpack it")
        entry = missing.pop(member.name, None)
        if entry is None:
            raise InfraError(f"{path}: {member.name} is not in its manifest, or twice", "do not unpack it")
        stream = archive.extractfile(member)
        if stream is None or member.size != entry.size or _digest_of(stream) != entry.sha256:
            raise InfraError(f"{path}: {member.name} is not what its manifest says", "copy it again")
    for name in missing:
        raise InfraError(f"{path}: {name} is missing", "copy it again")


def _digest_of(stream: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while chunk := stream.read(_CHUNK):
        digest.update(chunk)
    return digest.hexdigest()
