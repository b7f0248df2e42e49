"""The job script of a batch of trials, as a pure function of what is asked for; golden files show what it renders."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from repro.errors import UsageError
from repro.launch.launchers import needs_port
from repro.model import Tier, TrialSpec

# Beyond a trial's own deadline: starting Python, ending the ranks, writing the record.
SLACK_S = 120.0
# Simulated ranks do not talk to each other: more cores only shorten the trial.
SIMULATED_AT_ONCE = 2


@dataclass(frozen=True)
class Wishes:
    """What the command line asks of the cluster; empty means the cluster's own default.

    Attributes:
        gres: Generic resource that every rank takes one of, such as ``npu`` or ``npu:910b``; empty for none but on
            tier npu, where it is ``npu``.
        time_limit_s: Of one job, in place of the trial's deadline and a margin.
        requeue: Whether Slurm may start a job again that lost its node or was preempted.
        jobs_at_once: How many jobs of the run may be in the queue.
        nodes: Over how many nodes the ranks of a trial are spread that talk to each other.
    """

    partition: str = ""
    account: str = ""
    qos: str = ""
    gres: str = ""
    memory: str = ""
    time_limit_s: float | None = None
    requeue: bool = True
    jobs_at_once: int = 64
    nodes: int = 1


@dataclass(frozen=True)
class Shape:
    """The resources of one trial's job, cores and devices on each node; trials of one shape share an array."""

    cpus: int
    gres: str
    exclusive: bool
    minutes: int
    nodes: int = 1


def shape_of(spec: TrialSpec, wishes: Wishes) -> Shape:
    """What a job for this trial has to ask for.

    A measurement gets a node of its own: beside another trial, every hand-over between threads waits for a core.

    Raises:
        UsageError: Its ranks cannot be spread evenly over the nodes asked for.
    """
    ranks = len(spec.ranks) or spec.topology.world
    nodes = wishes.nodes if needs_port(spec) else 1
    if ranks % nodes:
        raise UsageError(f"--nodes {nodes}: the {ranks} ranks of {spec.folder} cannot be spread evenly over them")
    ranks //= nodes
    at_once = min(ranks, SIMULATED_AT_ONCE) if spec.tier is Tier.SIM else ranks
    name = wishes.gres or ("npu" if spec.tier is Tier.NPU else "")
    limit = wishes.time_limit_s or spec.timeout_s + SLACK_S
    return Shape(
        cpus=1 if spec.calls else at_once,
        gres=f"{name}:{ranks}" if name else "",
        exclusive=spec.calls > 0,
        minutes=max(1, math.ceil(limit / 60)),
        nodes=nodes,
    )


def job_options(wishes: Wishes) -> list[str]:
    """The options that every job of the run shares, those that look at a node included."""
    named = (("partition", wishes.partition), ("account", wishes.account), ("qos", wishes.qos))
    return [f"--{name}={value}" for name, value in named if value]


def render(name: str, folder: str, tasks: str, count: int, shape: Shape, wishes: Wishes, command: Sequence[str]) -> str:
    """The script of one array.

    Args:
        name: Of the job.
        folder: Where its logs go; on a file system that the nodes share.
        tasks: File that lists the array's trials.
        count: How many there are.
        shape: What each asks for.
        wishes: What the command line asks for.
        command: What each element runs, before the name of the task file.
    """
    options = [
        f"--job-name={name}",
        f"--array=0-{count - 1}",
        *job_options(wishes),
        *_spread(shape.nodes),
        f"--cpus-per-task={shape.cpus}",
        *([f"--gres={shape.gres}"] if shape.gres else []),
        *([f"--mem={wishes.memory}"] if wishes.memory else []),
        *(["--exclusive"] if shape.exclusive else []),
        f"--time={shape.minutes}",
        "--requeue" if wishes.requeue else "--no-requeue",
        "--open-mode=append",
        f"--chdir={folder}",
        f"--output={folder}/%A_%a.log",
    ]
    lines = ["#!/bin/sh", *(f"#SBATCH {_quoted(option)}" for option in options)]
    # Since 22.05 a step does not inherit the job's --cpus-per-task.
    step = ["srun", *_spread(shape.nodes), f"--cpus-per-task={shape.cpus}", "--quiet", *command, tasks]
    return "\n".join([*lines, f"exec {shlex.join(step)}", ""])


def _spread(nodes: int) -> list[str]:
    """One supervisor a node."""
    return [f"--nodes={nodes}", f"--ntasks={nodes}", *(["--ntasks-per-node=1"] if nodes > 1 else [])]


def _quoted(option: str) -> str:
    name, equals, value = option.partition("=")
    return f'{name}="{value}"' if equals and " " in value else option
