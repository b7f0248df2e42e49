"""The environment of a simulated rank, and what the rank itself loads before MindSpore."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from pathlib import Path

from repro.sim import events
from repro.sim.build import Runtime, build

# The exit code of a process that called a CANN symbol without a stand-in (images/cann-sim/unserved.cc).
EXIT_UNSERVED = 86
# Names the library that preload_quiet() loads; absent on every other tier.
PRELOAD = "HYPER_REPRO_SIM_PRELOAD"
DEVICES_PER_HOST = 8


def environment(
    world_size: int, rank: int, runtime: Runtime | None = None, base: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Returns all variables that make a process one simulated rank of a world; builds the runtime if it is not there.

    The ranks of a simulated world do not talk to each other: each is a process of its own, and any subset may run.

    Args:
        world_size: Number of ranks the process believes in; measured up to 4096.
        rank: Its own rank, 0 to world_size - 1.
        runtime: A built runtime; None takes ``build()``.
        base: What LD_LIBRARY_PATH and PYTHONPATH are put in front of; None takes ``os.environ``.

    Raises:
        ValueError: rank is not a rank of the world.
        ReproError: The runtime can not be built; see ``repro.sim.build.build``.
    """
    if not 0 <= rank < world_size:
        raise ValueError(f"rank {rank} is not one of a world of {world_size}: 0 to {world_size - 1}")
    runtime = runtime or build()
    base = os.environ if base is None else base

    def in_front(path: object, name: str) -> str:
        return f"{path}{os.pathsep}{base[name]}" if base.get(name) else str(path)

    local = rank % DEVICES_PER_HOST
    return {
        "ASCEND_HOME_PATH": str(runtime.home),
        "ASCEND_OPP_PATH": str(runtime.operators),
        "LD_LIBRARY_PATH": in_front(runtime.libraries, "LD_LIBRARY_PATH"),
        "PYTHONPATH": in_front(runtime.python_path, "PYTHONPATH"),
        "MS_SIMULATION_LEVEL": "1",
        "RANK_SIZE": str(world_size),
        "RANK_ID": str(rank),
        "DEVICE_ID": str(local),
        PRELOAD: str(runtime.quiet_library),
        events.LIBRARY: str(runtime.events_library),
    }


def process_environment(world_size: int, rank: int, runtime: Runtime | None = None) -> dict[str, str]:
    """Returns a whole environment for a Python process that is a simulated rank and can import hyper-repro.

    Args and errors are those of ``environment``.
    """
    variables = {**os.environ, **environment(world_size, rank, runtime)}
    variables["PYTHONPATH"] = f"{Path(__file__).resolve().parents[2]}{os.pathsep}{variables['PYTHONPATH']}"
    return variables


def preload_quiet() -> bool:
    """Loads images/cann-sim/preload.c into this process; call it before ``import mindspore``.

    It turns off MindSpore's execute-order tracker (which keeps 600 to 700 B for every collective and writes
    ``rank_N/execute_order`` into the working directory), gives ``pin_memory`` real memory (without it: a crash) and
    lets events be over (without it they never are, and async collectives take quadratic time).

    Returns:
        False on a tier where there is nothing to load (the variable HYPER_REPRO_SIM_PRELOAD is not set).
    """
    library = os.environ.get(PRELOAD)
    if not library:
        return False
    ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
    return True
