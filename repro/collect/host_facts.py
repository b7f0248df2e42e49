"""What a host says of itself that bears on a fault: limits, versions, environment, NPUs, the kernel's last words.

``python -m repro.collect.host_facts SINCE`` prints it as JSON, with the folders of CANN's logs that were written since.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from repro import host
from repro.collect import core_pattern
from repro.collect.redact import SECRET
from repro.hosts.ascend.machine import Machine

# What may be shown of an environment; everything else stays where it is.
SHOWN = re.compile(
    r"(?:MS|GLOG|GRAPH|ASCEND|HCCL|RANK|DEVICE|TASK_QUEUE|HYPER_REPRO|HYPER_PARALLEL|MALLOC|GLIBC|OMP|NCCL|SLURM)_\w+"
    r"|LD_LIBRARY_PATH|LD_PRELOAD|PYTHONHASHSEED|PYTHONUNBUFFERED|PYTHONPATH|PATH|LANG|LC_\w+|TZ"
)
_SECRET = re.compile(rf"(?i){SECRET}")
NPU_SMI_TIMEOUT_S = 30.0
LOG_FOLDERS = ("ASCEND_PROCESS_LOG_PATH", "ASCEND_WORK_PATH")
KERNEL_LINES = 200
_TELLING = re.compile(r"(?i)out of memory|oom[-_ ]|segfault|killed process|hung task|i/o error|davinci|hccs|npu|mce:")


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables that may be shown, by name; a secret's name is never among them."""
    return {
        name: value for name, value in sorted(variables.items()) if SHOWN.fullmatch(name) and not _SECRET.search(name)
    }


def npu_smi() -> str:
    """What ``npu-smi info`` shows, or why it shows nothing; never asked twice at once: it does not bear that."""
    program = shutil.which("npu-smi")
    if program is None:
        return "npu-smi is not installed here\n"
    # By the same lock as preflight: one of our own would not keep the two apart.
    code, said = Machine().run([program, "info"], NPU_SMI_TIMEOUT_S, alone=True)
    return said if code == 0 else f"npu-smi info ended with {code}: {said}\n"


def kernel_lines() -> list[str]:
    """The kernel's last words on memory, crashes and devices; a line that says why, where they may not be read."""
    try:
        done = subprocess.run(
            ["dmesg", "--time-format=iso"], capture_output=True, text=True, errors="replace", timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        return [f"the kernel's log could not be read: {error}"]
    return [line for line in done.stdout.splitlines() if _TELLING.search(line)][-KERNEL_LINES:]


def cann_logs(since: float) -> list[str]:
    """Folders of CANN's logs with a file written since, seconds since the epoch."""
    roots = [Path(os.environ[name]) for name in LOG_FOLDERS if os.environ.get(name)] or [Path.home() / "ascend" / "log"]
    return [str(root) for root in roots if any(path.stat().st_mtime >= since for path in _files(root))]


def _files(root: Path) -> Iterator[Path]:
    return (path for path in root.rglob("*") if path.is_file() and not path.is_symlink())


def gather(since: float) -> dict[str, Any]:
    """Everything, as plain JSON data."""
    limits = {
        name: resource.getrlimit(getattr(resource, f"RLIMIT_{name}")) for name in ("CORE", "NOFILE", "NPROC", "AS")
    }
    pattern = core_pattern.of_this_host()
    return {
        "facts": host.facts(),
        "tiers": host.available_tiers(),
        "environment": environment(os.environ),
        "limits": limits,
        "core_pattern": {"text": pattern.text, "uses_pid": pattern.uses_pid},
        "npu_smi": npu_smi(),
        "kernel": kernel_lines(),
        "cann_logs": cann_logs(since),
    }


if __name__ == "__main__":
    print(json.dumps(gather(float(sys.argv[1]))))
