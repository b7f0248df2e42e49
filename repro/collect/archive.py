"""Archives of evidence: packed without owners and times, unpacked only where every member stays inside."""

from __future__ import annotations

import tarfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import zstandard

from repro.errors import InfraError
from repro.evidence.write import cannot_write

COMPRESSION = 10


def pack(source: Path, name: str, target: Path) -> None:
    """Write all files of a folder as ``name/...`` into a tar.zst.

    Raises:
        InfraError: The archive could not be written; nothing half is left.
    """
    part = target.with_name(f".{target.name}.part")
    try:
        compressor = zstandard.ZstdCompressor(level=COMPRESSION)
        with (
            part.open("wb") as file,
            compressor.stream_writer(file) as stream,
            tarfile.open(fileobj=stream, mode="w|") as archive,
        ):
            for path in sorted(source.rglob("*")):
                archive.add(path, f"{name}/{path.relative_to(source)}", recursive=False, filter=_plain)
        part.replace(target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise cannot_write(target, error) from error


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    member.mode = 0o755 if member.isdir() else 0o644
    return member


def check_members(members: Iterable[tarfile.TarInfo], largest: int) -> None:
    """Refuse an archive that would write outside its folder, link, make devices or fill the disk.

    Args:
        members: Its members.
        largest: How many bytes they may take together.

    Raises:
        InfraError: The first member that must not be unpacked.
    """
    total = 0
    for member in members:
        path = PurePosixPath(member.name)
        if path.is_absolute() or ".." in path.parts or "\\" in member.name or "\0" in member.name:
            raise InfraError(f"the archive has a member that leads outside: {member.name!r}", "do not unpack it")
        if not (member.isreg() or member.isdir()):
            raise InfraError(f"the archive has a link or a device: {member.name!r}", "do not unpack it")
        total += member.size
        if total > largest:
            raise InfraError(f"the archive unpacks to more than {largest >> 20} MiB", "free space, or do not unpack it")


@contextmanager
def _reading(archive: Path) -> Iterator[tarfile.TarFile]:
    with (
        archive.open("rb") as file,
        zstandard.ZstdDecompressor().stream_reader(file) as stream,
        tarfile.open(fileobj=stream, mode="r|") as members,
    ):
        yield members


def unpack(archive: Path, target: Path, largest: int) -> None:
    """Unpack a tar.zst below a folder, after a look at all its members.

    Raises:
        InfraError: It is no such archive, is cut, or has a member that must not be unpacked; nothing was written then.
    """
    try:
        with _reading(archive) as looked_at:
            check_members(looked_at, largest)
        with _reading(archive) as unpacked:
            unpacked.extractall(target, filter="data")
    except (tarfile.TarError, zstandard.ZstdError, EOFError) as error:
        raise InfraError(f"{archive}: not a whole tar.zst: {error}", "transfer it again") from error
