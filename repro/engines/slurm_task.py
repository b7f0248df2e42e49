"""What runs on a node: one element of an array, or a look at what the node has.

``run TASKS`` makes a folder for this attempt, so that a job that Slurm starts again never writes where its first start
did, and becomes the trial's supervisor. ``look`` prints the node's tiers and package versions.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

from repro import host
from repro.engines.slurm_part import part_folder, run_part
from repro.errors import InfraError, ReproError
from repro.evidence.layout import TrialFolder
from repro.evidence.write import write_json
from repro.model import Tier, TrialSpec

NODE_FILE = "slurm.json"


def attempt_folder(folder: Path, restarts: int) -> Path:
    """Where the attempt after so many restarts writes."""
    return folder / f"attempt-{restarts}"


def devices_of(shown: str, node: str) -> list[int]:
    """Indices of the generic resources that a job has on a node, from ``scontrol show job --details``.

    Slurm constrains its own plugins' devices (gpu) and tells no other through the environment.
    """
    for line in shown.splitlines():
        found = re.search(r"Nodes=(\S+) .*\bGRES=\S*?\(IDX:([\d,-]+)\)", line)
        if found and found[1] == node:
            ends = [part.partition("-") for part in found[2].split(",")]
            return [n for low, _, high in ends for n in range(int(low), int(high or low) + 1)]
    return []


def _devices() -> list[int]:
    try:
        done = subprocess.run(
            ["scontrol", "show", "job", "--details", os.environ["SLURM_JOB_ID"]],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        print(f"the job's devices are not known: {error}", file=sys.stderr)
        return []
    return devices_of(done.stdout, os.environ.get("SLURMD_NODENAME", ""))


def _run(tasks: Path) -> NoReturn:
    data: dict[str, Any] = json.loads(tasks.read_text(encoding="utf-8"))
    task = data["tasks"][int(os.environ.get("SLURM_ARRAY_TASK_ID", "0"))]
    node, restarts = os.environ.get("SLURMD_NODENAME", "?"), int(os.environ.get("SLURM_RESTART_COUNT", "0"))
    folder, program = Path(task["folder"]), Path(task["program"])
    for path in (folder, program):
        if not path.exists():
            raise InfraError(f"{path} is not there on node {node}", "the nodes must share the file system it lies on")
    here = host.package_versions()
    other = {name for name in here.keys() | data["packages"].keys() if here.get(name) != data["packages"].get(name)}
    if other:
        name = min(other)
        raise InfraError(
            f"node {node} has {name} {here.get(name)}, not {data['packages'].get(name)}", "make them equal"
        )
    nodes, index = int(os.environ.get("SLURM_JOB_NUM_NODES", "1")), int(os.environ.get("SLURM_NODEID", "0"))
    started = attempt_folder(folder, restarts)
    attempt = TrialFolder(part_folder(started, index) if nodes > 1 else started)
    shutil.rmtree(attempt.path, ignore_errors=True)
    attempt.path.mkdir(parents=True)
    for given in folder.glob("*.json"):
        shutil.copyfile(given, attempt.path / given.name)
    devices = _devices()
    write_json(
        attempt.path / NODE_FILE,
        {
            "job": _own_id(),
            "node": node,
            "restarts": restarts,
            "started": time.time(),
            "devices": devices,
        },
    )
    spec = TrialSpec.from_json(json.loads(attempt.spec.read_text(encoding="utf-8")))
    if spec.tier is Tier.NPU and devices:
        os.environ.setdefault("ASCEND_RT_VISIBLE_DEVICES", ",".join(map(str, devices)))
    slots = 1 if spec.calls else int(os.environ.get("SLURM_CPUS_PER_TASK", "1"))
    if nodes > 1:
        sys.exit(run_part(spec, attempt, program, slots, index, nodes))
    words = [sys.executable, "-m", "repro.launch.supervisor", str(attempt.path), str(program), str(slots)]
    os.execv(sys.executable, words)  # noqa: S606 -- an argument list, no shell


def _own_id() -> str:
    return f"{os.environ.get('SLURM_ARRAY_JOB_ID', '?')}_{os.environ.get('SLURM_ARRAY_TASK_ID', '?')}"


def _look() -> int:
    print(json.dumps({"tiers": host.available_tiers(), "packages": host.package_versions(), "host": host.facts()}))
    return 0


def main(arguments: list[str]) -> int:
    """Entry point on the node."""
    try:
        if arguments == ["look"]:
            return _look()
        _run(Path(arguments[1]))
    except ReproError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return InfraError.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
