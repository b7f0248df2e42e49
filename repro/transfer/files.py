"""A folder's files at both ends: listed with their digests, sent in pieces from where they were cut, checked, renamed.

Nothing is packed: a file is read once where it is and written once where it goes, so neither end needs double the disk.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from repro.errors import InfraError
from repro.transfer.frames import PIECE_BYTES

PART = ".part"


@dataclass(frozen=True)
class Listed:
    """A file as the other end lists it.

    Attributes:
        name: Its path below the folder, with forward slashes.
        size: Bytes.
        digest: SHA-256, as 64 hexadecimal digits.
    """

    name: str
    size: int
    digest: str

    @classmethod
    def from_json(cls, data: Sequence[Any]) -> Listed:
        """Read what the other end sent, which is trusted in nothing.

        Raises:
            InfraError: A path that leads out of the folder, or that is no path.
        """
        name, size, digest = str(data[0]), int(data[1]), str(data[2])
        path = PurePosixPath(name)
        odd = path.is_absolute() or ".." in path.parts or str(path) != name or name == "." or "\0" in name
        if odd or size < 0:
            raise InfraError(
                f"a file named {name!r} would be written outside its folder", "the host is not what it was"
            )
        return cls(name, size, digest)


def list_folder(folder: Path, wanted: Callable[[Path], bool]) -> list[Listed]:
    """All regular files below a folder that are wanted, with their digests; links are never followed."""
    listed = []
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file() or not wanted(path):
            continue
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            listed.append(Listed(path.relative_to(folder).as_posix(), file.tell(), digest))
    return listed


def pieces(folder: Path, name: str, offset: int) -> Iterator[bytes]:
    """A file's bytes from an offset on."""
    with (folder / name).open("rb") as file:
        file.seek(offset)
        while data := file.read(PIECE_BYTES):
            yield data


class Incoming:
    """Files of a folder that are on their way here.

    Args:
        folder: Where they go; it is made.
        listed: What will come, in any order.
    """

    def __init__(self, folder: Path, listed: Sequence[Listed]) -> None:
        self._folder = folder
        self._listed = listed
        folder.mkdir(parents=True, exist_ok=True)

    def missing(self) -> list[tuple[str, int]]:
        """The files to ask for, each from the byte on that is not here yet.

        A file that an earlier, cut transfer left under ``.part`` goes on from where it ended; one that is here whole is
        not asked for again.
        """
        asked = []
        for entry in self._listed:
            whole, part = self._paths(entry)
            if whole.is_file() and _digest(whole) == entry.digest:
                continue
            here = part.stat().st_size if part.is_file() else 0
            if here > entry.size:
                part.unlink()
                here = 0
            asked.append((entry.name, here))
        return asked

    def receive(self, asked: Mapping[str, int], next_piece: Callable[[], Iterable[bytes]]) -> int:
        """Write the files asked for as they come, check each, and give it its name.

        Args:
            asked: Names with their offsets, as ``missing`` gave them; they come in the list's order.
            next_piece: Gives the next piece, in as many parts as it comes in.

        Returns:
            How many bytes came.

        Raises:
            InfraError: A file that came is not the one that was listed.
        """
        came = 0
        for entry in self._listed:
            if entry.name not in asked:
                continue
            whole, part = self._paths(entry)
            part.parent.mkdir(parents=True, exist_ok=True)
            digest = hashlib.sha256()
            offset = asked[entry.name]
            if offset:
                with part.open("rb") as file:
                    digest = hashlib.file_digest(file, "sha256")
            with part.open("ab") as file:
                left = entry.size - offset
                while left > 0:
                    before = left
                    for data in next_piece():
                        if len(data) > left:
                            raise InfraError(f"{entry.name} is longer than was said", "it was still being written")
                        file.write(data)
                        digest.update(data)
                        left -= len(data)
                        came += len(data)
                    if left == before:
                        raise InfraError(
                            f"{entry.name} is shorter than was said", "it was cut while it was read; again"
                        )
            if digest.hexdigest() != entry.digest:
                part.unlink()
                raise InfraError(f"{entry.name} came with another digest than its host says", "run again to fetch it")
            os.replace(part, whole)  # noqa: PTH105 -- one name for another
        return came

    def _paths(self, entry: Listed) -> tuple[Path, Path]:
        whole = self._folder / entry.name
        return whole, whole.with_name(f".{whole.name}{PART}")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
