"""Facts of this machine that belong to the evidence: versions, cores, and which tiers it has. No MindSpore import."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import repro
from repro.model import Tier

# Set in an image, which has no .git.
COMMIT_VARIABLE = "HYPER_REPRO_COMMIT"
PACKAGES = ("mindspore", "numpy", "psutil", "memray", "wrapt")


def package_versions() -> dict[str, str | None]:
    """Versions of the packages that a trial depends on; None for one that is not installed."""
    versions: dict[str, str | None] = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    return versions


def facts() -> dict[str, Any]:
    """What run.json says of the machine; host and user names are left out, so that evidence can be shared."""
    return {
        "hyper_repro": repro.__version__,
        "commit": commit(),
        "packages": package_versions(),
        "python": platform.python_version(),
        "libc": " ".join(platform.libc_ver()),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
    }


def commit() -> str | None:
    """The project's own commit, with ``+`` if the tree has changes; an image says its own; None where nobody knows."""
    root = Path(repro.__file__).resolve().parents[1]
    if not (root / ".git").exists():
        return os.environ.get(COMMIT_VARIABLE) or None
    try:
        command = ["git", "-C", str(root), "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def npu_devices() -> list[str]:
    """Device nodes of NPUs."""
    return sorted(str(path) for path in Path("/dev").glob("davinci[0-9]*"))


def available_tiers() -> list[Tier]:
    """The tiers that this machine has, best first."""
    from repro.sim.build import status

    tiers = [Tier.NPU] if npu_devices() else []
    if status().ready:
        tiers.append(Tier.SIM)
    return [*tiers, Tier.CPU]
