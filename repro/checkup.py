"""What this machine can show: each thing that a tier needs, the value seen, and the command that mends a lack."""

from __future__ import annotations

import os
import platform
import resource
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from repro import host

# A rank needs about this much: 400 MB on CPU, 480 MB simulated (docs/measurements.md).
RANK_BYTES = 500 << 20
RUN_DISK_BYTES = 1 << 30
LIMITS_WANTED = {"NOFILE": 4096, "NPROC": 1024}


class Level(StrEnum):
    """How good or bad a finding is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Check:
    """One finding.

    Attributes:
        name: What was looked at.
        level: How good it is.
        seen: The value found.
        needed_for: Which tiers or functions want it.
        mend: A command or step that mends a lack; empty if there is none.
    """

    name: str
    level: Level
    seen: str
    needed_for: str
    mend: str = ""


def check_up() -> list[Check]:
    """Look at everything; a look never changes anything and never fails the command."""
    looks: list[Callable[[], Iterator[Check]]] = [
        _python,
        _packages,
        _compiler,
        _simulation,
        _npu,
        _tools,
        _cores,
        _limits,
        _room,
    ]
    return [check for look in looks for check in _safely(look)]


def _safely(look: Callable[[], Iterator[Check]]) -> Iterator[Check]:
    try:
        yield from look()
    except (OSError, ValueError) as error:
        name = look.__name__.strip("_")
        yield Check(name, Level.WARN, f"could not be looked at: {error}", "this look", "look at what the error names")


def _python() -> Iterator[Check]:
    fits = sys.version_info[:2] in ((3, 11), (3, 12))
    mend = "" if fits else "install Python 3.11 or 3.12, then: make clean && make setup PYTHON=python3.11"
    yield Check("Python", Level.OK if fits else Level.FAIL, platform.python_version(), "every tier", mend)
    libc, version = platform.libc_ver()
    exact = libc == "glibc" and tuple(int(part) for part in version.split(".")[:2]) >= (2, 33)
    advice = "" if exact else "growth in malloc needs glibc 2.33 or later: use the image"
    yield Check(
        "C library", Level.OK if exact else Level.FAIL, f"{libc or 'unknown'} {version}", "growth verdicts", advice
    )


def _packages() -> Iterator[Check]:
    for name, version in host.package_versions().items():
        wrong = version is None or (name == "numpy" and version.startswith("2."))
        mend = "make setup" if wrong else ""
        needed = "native traces" if name == "memray" else "every tier"
        yield Check(name, Level.FAIL if wrong else Level.OK, version or "not installed", needed, mend)


def _compiler() -> Iterator[Check]:
    for tool, package in (("g++", "g++"), ("nm", "binutils")):
        path = shutil.which(tool)
        mend = "" if path else f"apt-get install {package}   (or your system's package)"
        yield Check(tool, Level.OK if path else Level.WARN, path or "not found", "building tier sim", mend)


def _simulation() -> Iterator[Check]:
    from repro.sim.build import status

    state = status()
    level = Level.OK if state.ready else Level.WARN
    yield Check("simulated Ascend", level, state.detail, "tier sim", "" if state.ready else state.mend)


def _npu() -> Iterator[Check]:
    devices = host.npu_devices()
    home = os.environ.get("ASCEND_HOME_PATH", "")
    if not devices:
        yield Check("NPU", Level.WARN, "no /dev/davinci*", "tier npu", "run on an Ascend host; tier sim needs none")
        return
    yield Check("NPU", Level.OK, f"{len(devices)} dies: {devices[0]} to {devices[-1]}", "tier npu")
    level, mend = (Level.OK, "") if home else (Level.FAIL, "source the set_env.sh of your CANN installation")
    yield Check("CANN", level, home or "ASCEND_HOME_PATH is not set", "tier npu", mend)


def _tools() -> Iterator[Check]:
    socket = Path("/var/run/docker.sock")
    client = shutil.which("docker")
    ready = client is not None and os.access(socket, os.W_OK)
    seen = client or "not found"
    if client and not ready:
        seen = f"{client}, but its engine does not answer at {socket}"
    mend = "" if ready else "apt-get install docker.io && systemctl start docker" if not client else "start dockerd"
    yield Check("Docker", Level.OK if ready else Level.WARN, seen, "images", mend)
    gdb = shutil.which("gdb")
    mend = "" if gdb else "apt-get install gdb"
    yield Check("gdb", Level.OK if gdb else Level.WARN, gdb or "not found", "native backtraces", mend)


def _cores() -> Iterator[Check]:
    pattern = Path("/proc/sys/kernel/core_pattern").read_text(encoding="utf-8").strip()
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    allowed = hard == resource.RLIM_INFINITY or hard > 0
    seen = f"{pattern!r}, hard limit {'none' if hard == resource.RLIM_INFINITY else hard}"
    mend = "" if allowed else "raise the hard limit: ulimit -Hc unlimited, or LimitCORE= in the unit that starts you"
    yield Check("core files", Level.OK if allowed else Level.WARN, seen, "native backtraces", mend)


def _limits() -> Iterator[Check]:
    for name, wanted in LIMITS_WANTED.items():
        soft, _ = resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))
        enough = soft == resource.RLIM_INFINITY or soft >= wanted
        flag = {"NOFILE": "-n", "NPROC": "-u"}[name]
        seen = "unlimited" if soft == resource.RLIM_INFINITY else str(soft)
        level = Level.OK if enough else Level.WARN
        yield Check(f"limit {name}", level, seen, "many ranks", "" if enough else f"ulimit {flag} {wanted}")


def _room() -> Iterator[Check]:
    import psutil

    free = psutil.virtual_memory().available
    ranks = free // RANK_BYTES
    level = Level.OK if ranks >= 2 else Level.FAIL  # noqa: PLR2004 -- the smallest world that communicates
    yield Check(
        "memory",
        level,
        f"{free >> 20} MiB free, room for {ranks} ranks",
        "every tier",
        "" if level is Level.OK else "close other programs",
    )
    disk = shutil.disk_usage(Path.cwd()).free
    level = Level.OK if disk > RUN_DISK_BYTES else Level.WARN
    mend = "" if level is Level.OK else "free space, or give --out on another disk"
    yield Check("disk", level, f"{disk >> 20} MiB free here", "evidence", mend)
