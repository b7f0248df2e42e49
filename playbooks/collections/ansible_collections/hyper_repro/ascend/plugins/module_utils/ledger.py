"""The ledger: what was changed on this host and how it was, written before each change so that none is forgotten."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from typing import Any

FOLDER = "/var/lib/hyper-repro"
PATH = FOLDER + "/ledger.json"
SCHEMA_VERSION = 1


class Ledger:
    """Entries by id, in the order in which they were made.

    Args:
        path: Its file.
    """

    def __init__(self, path: str = PATH) -> None:
        self.path = path
        self.entries: dict[str, dict[str, Any]] = {}
        try:
            with open(path, encoding="utf-8") as file:
                data = json.load(file)
        except FileNotFoundError:
            return
        if data.get("schema_version") != SCHEMA_VERSION:
            raise ValueError(f"{path}: schema {data.get('schema_version')!r}, this playbook knows {SCHEMA_VERSION}")
        self.entries = data["entries"]

    def remember(self, kind: str, target: str, before: Any, after: Any) -> None:
        """Note a change that is about to be made; what was before the first one stays."""
        key = f"{kind}:{target}"
        first = self.entries.get(key, {}).get("before", before)
        self.entries[key] = {"kind": kind, "target": target, "before": first, "after": after}
        self.write()

    def write(self) -> None:
        """Replace the file, or remove it where nothing is left to remember."""
        if not self.entries:
            if os.path.exists(self.path):
                os.unlink(self.path)
            remove_if_empty(os.path.dirname(self.path))
            return
        os.makedirs(os.path.dirname(self.path), mode=0o755, exist_ok=True)
        data = {"schema_version": SCHEMA_VERSION, "entries": self.entries}
        write(self.path, json.dumps(data, indent=1, sort_keys=False) + "\n", 0o644)


def remove_if_empty(folder: str) -> None:
    """A folder that still has something in it stays."""
    if os.path.isdir(folder) and not os.listdir(folder):
        os.rmdir(folder)


def write(path: str, text: str, mode: int | None = None) -> None:
    """Replace a file whole or not at all; without a mode it keeps its own, and owner and group in any case."""
    folder = os.path.dirname(path)
    old = os.stat(path) if os.path.exists(path) else None
    handle, name = tempfile.mkstemp(prefix=".hyper-repro-", dir=folder)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, mode if mode is not None else (old.st_mode & 0o7777 if old else 0o644))
        if old is not None:
            os.chown(name, old.st_uid, old.st_gid)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def read(path: str) -> str | None:
    """Text of a file; None if there is none."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return None


def sha256(path: str) -> str:
    """SHA-256 of a file, read in pieces."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for piece in iter(lambda: file.read(1 << 20), b""):
            digest.update(piece)
    return digest.hexdigest()


def missing_folders(path: str) -> list[str]:
    """Parents of a path that are not there, outermost first."""
    missing = []
    folder = os.path.dirname(path)
    while folder and not os.path.isdir(folder):
        missing.insert(0, folder)
        folder = os.path.dirname(folder)
    return missing
