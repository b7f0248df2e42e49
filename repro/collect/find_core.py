"""Finds the core of one process and makes sure that it is its own: by pid, by time and by the program's build-id."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
from pathlib import Path

from repro.collect.core_file import CoreFile, build_id, read_core
from repro.collect.core_pattern import CorePattern
from repro.errors import InfraError, UnsupportedError

COLLECTOR_TIMEOUT_S = 60.0
# A kernel stamps a core when it has written it, which takes a while for a large one.
EARLY_S, LATE_S = 1.0, 120.0
APPORT = ("/var/lib/apport/coredump/core.*.{pid}.*", "/var/lib/apport/coredump/core.*{pid}*")


def find_core(pattern: CorePattern, pid: int, folder: Path, started: float, ended: float) -> CoreFile:
    """The core that a process left.

    Args:
        pattern: Of the host it ran on.
        pid: Of the process.
        folder: Where it worked; a collector's core is put there.
        started, ended: When it ran, seconds since the epoch.

    Raises:
        InfraError: There is none, or none that is this process's own; the message says what was looked for.
        UnsupportedError: It went to a collector that is not known or not there.
    """
    where = pattern.globs(pid, folder) if not pattern.collector else _from_collector(pattern, pid, folder, started)
    refused = []
    for name in sorted(glob.glob(where), key=os.path.getmtime, reverse=True):  # noqa: PTH207 -- absolute patterns
        path = Path(name)
        if not started - EARLY_S <= path.stat().st_mtime <= ended + LATE_S:
            refused.append(f"{path.name} is of another time")
            continue
        core = read_core(path)
        if core.pid != pid:
            refused.append(f"{path.name} is of pid {core.pid}")
            continue
        there = build_id(Path(core.program))
        if core.build_id and there and core.build_id != there:
            refused.append(f"{path.name} is of another build of {core.program}")
            continue
        return core
    why = f"; {'; '.join(refused)}" if refused else ""
    raise InfraError(f"no core of pid {pid} at {where}{why}", "see core_pattern, the limit (ulimit -c) and the disk")


def _from_collector(pattern: CorePattern, pid: int, folder: Path, started: float) -> str:
    """Ask the collector for the core, and return where it lies now."""
    match pattern.collector:
        case "systemd-coredump":
            return glob.escape(str(_of_systemd(pid, folder, started)))
        case "apport":
            return APPORT[0].format(pid=pid)
        case other:
            raise UnsupportedError(
                f"cores here go to {other}, which is not known", "set kernel.core_pattern to a file, such as core.%p"
            )


def _of_systemd(pid: int, folder: Path, started: float) -> Path:
    program = shutil.which("coredumpctl")
    if program is None:
        raise UnsupportedError(
            "cores here go to systemd-coredump, but there is no coredumpctl", "in a container: run on the host"
        )
    target = folder / f"core.{pid}"
    since = f"--since=@{int(started - EARLY_S)}"
    command = [program, "--quiet", "--no-pager", since, f"--output={target}", "dump", f"COREDUMP_PID={pid}"]
    try:
        subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=COLLECTOR_TIMEOUT_S, check=True
        )
    except subprocess.CalledProcessError as error:
        raise InfraError(f"coredumpctl: {error.stderr.strip() or 'no such core'}", "see `coredumpctl list`") from error
    except subprocess.TimeoutExpired as error:
        raise InfraError(f"coredumpctl did not end within {COLLECTOR_TIMEOUT_S:g} s", "try it by hand") from error
    return target
