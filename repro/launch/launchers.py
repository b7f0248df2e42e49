"""The ways to start the ranks of a trial: plain, our own launcher of n ranks, and msrun."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from repro.collect.after_trial import working_folder
from repro.errors import UnsupportedError
from repro.evidence.layout import TrialFolder
from repro.evidence.read import read_wants
from repro.launch import shim
from repro.launch.process import spawn
from repro.model import Launcher, Node, Subject, Tier, TrialSpec

RANK_COMMAND = [sys.executable, "-m", "repro.probes.rank"]
# Seconds that MindSpore's own cluster waits for a worker to join, and for the scheduler to notice a lost one. The
# defaults (600 and 300) are made for clusters; with them a failed trial takes minutes to end.
TOPOLOGY_TIMEOUT_S = 30
NODE_TIMEOUT_S = 8
# What a cluster job around the harness may have set: a rank must not take itself for the scheduler of that job.
OF_ANOTHER_JOB = ("MS_ROLE", "MS_NODE_ID", "MS_WORKER_NUM", "MS_SCHED_", "RANK_", "DEVICE_ID")


@dataclass
class Launched:
    """What a launcher started.

    Attributes:
        ranks: Pid of each rank that is a child of ours; empty under msrun, whose shims report theirs.
        started: When each of them was started, seconds since the epoch.
        scheduler: Pid of the scheduler, if it is a child of ours.
        manager: Pid of msrun.
        waiting: Ranks not started yet, for lack of a free core.
    """

    ranks: dict[int, int] = field(default_factory=dict)
    started: dict[int, float] = field(default_factory=dict)
    scheduler: int | None = None
    manager: int | None = None
    waiting: list[int] = field(default_factory=list)


def base_environment(spec: TrialSpec, folder: TrialFolder, program: Path) -> dict[str, str]:
    """What every rank of the trial finds in its environment, on top of the caller's own."""
    root = str(Path(__file__).resolve().parents[2])
    ours = {
        "HYPER_REPRO_TRIAL": str(folder.path),
        "HYPER_REPRO_PROGRAM": str(program),
        "HYPER_REPRO_FIXES": spec.fixes,
        "PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")])),
        # msrun starts `python`, whichever that is: it must be this one.
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
        # A rank that dies of a signal must not take with it what it had printed.
        "PYTHONUNBUFFERED": "1",
        "PYTHONHASHSEED": str(spec.seed),
        "MS_TOPO_TIMEOUT": str(TOPOLOGY_TIMEOUT_S),
        "MS_NODE_TIMEOUT": str(NODE_TIMEOUT_S),
    }
    if spec.subject is Subject.UPSTREAM:
        # Nothing is written into the checkout, not even compiled files.
        ours["PYTHONDONTWRITEBYTECODE"] = "1"
    if spec.tier is Tier.NPU:
        # CANN's own logs, a folder a rank's pid, beside the rest of the evidence.
        ours["ASCEND_PROCESS_LOG_PATH"] = str(folder.path / "plog")
    if spec.calls:
        # Without the thread cache and with one arena, malloc in use is exact and slopes repeat to the byte.
        ours |= {"MALLOC_ARENA_MAX": "1", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OF_ANOTHER_JOB)}
    return {**kept, **ours, **spec.environment}


def ranks_here(spec: TrialSpec, node: Node | None) -> tuple[int, ...]:
    """The ranks that are started on this host."""
    return node.ranks if node else spec.ranks or tuple(range(spec.topology.world))


def rank_environment(
    spec: TrialSpec, base: Mapping[str, str], rank: int, port: int | None, node: Node | None = None
) -> dict[str, str]:
    """The variables of one rank under our own launchers."""
    world = spec.topology.world
    device = node.ranks.index(rank) if node else rank % 8
    own = {**base, "RANK_ID": str(rank), "RANK_SIZE": str(world), "DEVICE_ID": str(device)}
    if spec.tier is Tier.SIM:
        from repro.sim.environment import environment

        return {**own, **environment(world, rank, base=own)}
    if port is not None:
        own |= {
            "MS_ROLE": "MS_WORKER",
            "MS_NODE_ID": str(rank),
            "MS_WORKER_NUM": str(world),
            "MS_SCHED_HOST": node.master if node else "127.0.0.1",
            "MS_SCHED_PORT": str(port),
        }
    return own


def needs_port(spec: TrialSpec) -> bool:
    """True if the ranks of this trial find each other through a scheduler."""
    return spec.tier is not Tier.SIM and spec.collectives and spec.topology.world > 1


def launch(
    spec: TrialSpec, folder: TrialFolder, program: Path, port: int | None, slots: int, node: Node | None = None
) -> Launched:
    """Start the trial's processes and return at once.

    Args:
        spec: The trial.
        folder: Where its evidence goes.
        program: The case program.
        port: The scheduler's port, where one is needed.
        slots: How many ranks may run at a time where they do not talk to each other (tier sim).
        node: This host's part of a trial across hosts.

    Raises:
        InfraError: A process could not be started.
        UnsupportedError: The launcher does not go with the tier.
    """
    folder.work.mkdir(exist_ok=True)
    base = base_environment(spec, folder, program)
    if node:
        # Without it MindSpore listens on the first interface it finds, which other hosts may not reach.
        base["MS_WORKER_IP"] = node.address
    if spec.launcher is Launcher.MSRUN:
        return _launch_msrun(spec, folder, base, port, node)
    launched = Launched(waiting=list(ranks_here(spec, node)))
    if port is not None and (node is None or node.leads):
        scheduler = {**rank_environment(spec, base, launched.waiting[0], port, node), "MS_ROLE": "MS_SCHED"}
        launched.scheduler = spawn(RANK_COMMAND, scheduler, folder.work, folder.scheduler_log)
    count = slots if spec.tier is Tier.SIM else len(launched.waiting)
    start_waiting(spec, folder, program, port, launched, count, node)
    return launched


def start_waiting(
    spec: TrialSpec,
    folder: TrialFolder,
    program: Path,
    port: int | None,
    launched: Launched,
    count: int,
    node: Node | None = None,
) -> None:
    """Start up to ``count`` of the ranks that still wait."""
    base = base_environment(spec, folder, program) | ({"MS_WORKER_IP": node.address} if node else {})
    wants = read_wants(folder)
    for _ in range(min(count, len(launched.waiting))):
        rank = launched.waiting.pop(0)
        rank_folder = folder.rank(rank)
        rank_folder.path.mkdir(parents=True, exist_ok=True)
        launched.started[rank] = time.time()
        environment = rank_environment(spec, base, rank, port, node)
        work = working_folder(folder, rank, wants)
        launched.ranks[rank] = spawn(
            RANK_COMMAND, environment, work, rank_folder.stdout, rank_folder.stderr, dump_core=wants.dump
        )


def _launch_msrun(
    spec: TrialSpec, folder: TrialFolder, base: dict[str, str], port: int | None, node: Node | None
) -> Launched:
    if spec.tier is Tier.SIM:
        raise UnsupportedError("msrun does not start simulated ranks", "use launcher `ranks` on tier sim")
    world = spec.topology.world
    command = [
        sys.executable,
        "-m",
        "mindspore.parallel.cluster.run",
        f"--worker_num={world}",
        f"--local_worker_num={len(node.ranks) if node else world}",
        *([f"--master_addr={node.master}", f"--node_rank={node.index}"] if node else []),
        f"--master_port={port}",
        f"--log_dir={folder.path / 'msrun'}",
        f"--cluster_time_out={TOPOLOGY_TIMEOUT_S}",
        "--join=True",
        shim.__file__,
    ]
    return Launched(manager=spawn(command, base, folder.work, folder.launcher_log))
