"""What the tests of the simulated tier share: a skip where a tool is missing, and a program run as a simulated rank."""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from repro.errors import UnsupportedError
from repro.sim.environment import process_environment
from repro.sim.wheel import find_wheel

TIMEOUT = 300  # seconds; a deadline against hangs, no measure of speed
PROLOGUE = """
from repro.sim.environment import preload_quiet
preload_quiet()
import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, mint, nn, ops
import mindspore.mint.distributed as dist
ms.set_device("Ascend")
dist.init_process_group()
"""


def require_sim() -> None:
    """Skips where the stand-in runtime can not be built."""
    for tool in ("g++", "nm"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is missing: apt-get install g++ binutils")
    try:
        find_wheel()
    except UnsupportedError as error:
        pytest.skip(str(error))


def run_rank(
    folder: Path, program: str, world_size: int = 8, rank: int = 0, *, prologue: bool = True
) -> subprocess.CompletedProcess[str]:
    """Runs a program as a simulated rank in a folder of its own."""
    file = folder / "program.py"
    file.write_text((PROLOGUE if prologue else "") + textwrap.dedent(program), encoding="utf-8")
    return subprocess.run(
        [sys.executable, file.name],
        cwd=folder,
        env={**process_environment(world_size, rank), "GLOG_v": "3"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )


def explain(done: subprocess.CompletedProcess[str]) -> str:
    """What to show when a rank did not do what a test expects."""
    return f"exit code {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
