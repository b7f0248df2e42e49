"""Whose a container is: a label that tells a later run whether the command that started it is still there."""

from __future__ import annotations

import hashlib
import os
import platform
from pathlib import Path

import psutil

LABEL = "hyper-repro.owner"
_MACHINE_ID = Path("/etc/machine-id")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def mine() -> str:
    """This process: machine, boot, pid and start time. Nothing in it names a host or a user."""
    return f"{_machine()}:{_boot()}:{os.getpid()}:{psutil.Process().create_time()}"


def is_gone(owner: str) -> bool:
    """True if the process was one of this machine and is there no more; False for another machine's."""
    machine, boot, pid, start = (*owner.split(":"), "", "", "", "")[:4]
    if machine != _machine() or not pid.isdigit():
        return False
    if boot != _boot():
        return True
    try:
        return str(psutil.Process(int(pid)).create_time()) != start
    except psutil.NoSuchProcess:
        return True


def _machine() -> str:
    """A digest: one engine may serve several machines, and pids mean nothing on another one."""
    text = _MACHINE_ID.read_text(encoding="utf-8").strip() if _MACHINE_ID.is_file() else ""
    return hashlib.sha256((text or platform.node()).encode()).hexdigest()[:12]


def _boot() -> str:
    return hashlib.sha256(_BOOT_ID.read_bytes()).hexdigest()[:12]
