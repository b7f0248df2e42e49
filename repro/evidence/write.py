"""Writing evidence: a file appears whole under its name or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from repro.errors import InfraError


def write_json(path: Path, data: Any) -> None:
    """Write JSON under a temporary name, force it to disk, and rename it.

    Raises:
        InfraError: The disk is full, read-only or not ours.
    """
    write_text(path, json.dumps(data, ensure_ascii=False, indent=1) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write text the same way.

    Raises:
        InfraError: The disk is full, read-only or not ours.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with temporary.open("w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise cannot_write(path, error) from error


def cannot_write(path: Path, error: OSError) -> InfraError:
    """The one line for an evidence file that could not be written."""
    return InfraError(
        f"cannot write {path}: {error.strerror or error}",
        "free space there or choose another folder with --out; what was finished before is kept",
    )
