"""What a core file says of itself: pid, signal, threads, program and its build-id."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from repro.errors import InfraError

# struct elf_prstatus of 64-bit Linux: si_signo first, pr_pid at 32.
_SIGNAL, _THREAD = 0, 32
_PAGE = 4096


@dataclass(frozen=True)
class CoreFile:
    """The notes of a core.

    Attributes:
        threads: Ids of its threads; the one that died comes first.
        program: The executable, as it was mapped.
        build_id: Of the executable, from the memory in the core; empty if that page was not dumped.
    """

    path: Path
    pid: int
    signal: int
    threads: tuple[int, ...]
    program: str
    build_id: str


def read_core(path: Path) -> CoreFile:
    """Read the notes of a core.

    Raises:
        InfraError: It is no core, or it was cut before its notes.
    """
    try:
        with path.open("rb") as file:
            return _read(path, file)
    except (ELFError, struct.error, KeyError, IndexError, ValueError, AttributeError) as error:
        raise InfraError(f"{path}: not a core that can be read: {error}", "was the disk full?") from error


def _read(path: Path, file: IO[bytes]) -> CoreFile:
    elf = ELFFile(file)
    if elf["e_type"] != "ET_CORE":
        raise InfraError(f"{path} is no core", "name a core file")
    pid, signal, threads, mapped = 0, 0, [], []
    for note in _notes(elf):
        match note["n_type"]:
            case "NT_PRPSINFO":
                pid = int(note["n_desc"]["pr_pid"])
            case "NT_PRSTATUS":
                status = bytes(note["n_descdata"])
                signal = signal or struct.unpack_from("i", status, _SIGNAL)[0]
                threads.append(struct.unpack_from("i", status, _THREAD)[0])
            case "NT_FILE":
                mapped = _mappings(note["n_desc"])
    start, program = mapped[0] if mapped else (0, "")
    return CoreFile(path, pid, signal, tuple(threads), program, _build_id_in_core(elf, file, start))


def _notes(elf: ELFFile) -> Iterator[Any]:
    for segment in elf.iter_segments("PT_NOTE"):
        notes: Any = segment
        yield from notes.iter_notes()


def _mappings(files: Any) -> list[tuple[int, str]]:
    names = [name.decode("utf-8", "replace") for name in files["filename"]]
    starts = [int(entry["vm_start"]) for entry in files["Elf_Nt_File_Entry"]]
    return list(zip(starts, names, strict=True))


def _build_id_in_core(elf: ELFFile, file: IO[bytes], start: int) -> str:
    for segment in elf.iter_segments("PT_LOAD"):
        if segment["p_vaddr"] <= start < segment["p_vaddr"] + segment["p_filesz"]:
            file.seek(segment["p_offset"] + start - segment["p_vaddr"])
            return _build_id(io.BytesIO(file.read(_PAGE)))
    return ""


def build_id(program: Path) -> str:
    """Build-id of a program on disk; empty if it has none or is not there."""
    try:
        with program.open("rb") as file:
            return _build_id(io.BytesIO(file.read(_PAGE)))
    except OSError:
        return ""


def _build_id(stream: IO[bytes]) -> str:
    """From the notes in the first page of a program, where linkers put them."""
    try:
        raw = stream.read()
        # The section headers lie far behind this page: without them the reader looks at the segments alone.
        head = bytearray(raw)
        head[0x28:0x30] = bytes(8)
        head[0x3C:0x40] = bytes(4)
        for note in _notes(ELFFile(io.BytesIO(bytes(head)))):
            if note["n_type"] == "NT_GNU_BUILD_ID":
                return str(note["n_desc"])
    except (ELFError, struct.error, KeyError, ValueError, AttributeError, IndexError):
        return ""
    return ""
