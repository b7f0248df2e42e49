"""Which engine runs the trials: the option, and the one place that knows where each engine lives."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from repro.errors import UsageError

if TYPE_CHECKING:
    from repro.engines.base import Engine

# Name -> module with ``create(args) -> Engine``; imported only when asked for, so that the command line stays quick.
ENGINES = {
    "docker": "repro.engines.docker",
    "local": "repro.engines.local",
    "ssh": "repro.engines.ssh.engine",
    "slurm": "repro.engines.slurm",
}
# How Docker writes an amount of memory.
_MEMORY = re.compile(r"[1-9][0-9]*[bkmg]")


def _ssh_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--hosts", type=Path, metavar="INVENTORY", help="Ansible's YAML inventory; means --engine ssh")
    group.add_argument("--limit", metavar="NAMES", help="only these hosts and groups of it, with commas between")
    group.add_argument("--nodes", type=whole_number, metavar="N", help="spread each connected trial over N hosts")
    group.add_argument(
        "--host-timeout", type=seconds, metavar="SECONDS", help="for looking at one host, or for its command (60)"
    )
    group.add_argument(
        "--host-silence", type=seconds, default=30.0, metavar="SECONDS", help="a host that says nothing is lost (30)"
    )
    group.add_argument("--run-timeout", type=seconds, metavar="SECONDS", help="for all trials together")


def whole_number(text: str) -> int:
    """Read a whole number from 1 on."""
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def seconds(text: str) -> float:
    """Read a number of seconds above 0."""
    return _above_zero(text, "seconds")


def _above_zero(text: str, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of {what} above 0")
    return value


def _slurm_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--partition", help="slurm: where to queue; default: the cluster's own")
    group.add_argument("--account", help="slurm: whom to charge")
    group.add_argument("--qos", help="slurm: quality of service")
    group.add_argument("--gres-name", metavar="NAME", help="slurm: what each rank takes one of (npu on tier npu)")
    group.add_argument("--mem", metavar="SIZE", help="slurm: memory of a job, such as 16G")
    group.add_argument(
        "--time-limit", type=seconds, metavar="SECONDS", help="slurm: of a job; default: from its deadline"
    )
    group.add_argument("--queue-timeout", type=seconds, metavar="SECONDS", help="slurm: longest wait for a node (none)")
    group.add_argument("--no-requeue", action="store_true", help="slurm: a job that lost its node is not started again")
    group.add_argument("--jobs-at-once", type=whole_number, metavar="N", help="slurm: jobs in the queue at a time (64)")


def _docker_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--image", help="run trials in containers of this image, as hyper-repro:sim; --engine docker")
    group.add_argument("--memory-limit", type=_memory, metavar="4g", help="docker: limit of a container (none)")
    group.add_argument("--cpus", type=_cpus, metavar="N", help="docker: cores of a container (all)")


def _memory(text: str) -> str:
    if not _MEMORY.fullmatch(text.lower()):
        raise argparse.ArgumentTypeError(f"{text!r} is not an amount of memory such as 512m or 4g")
    return text.lower()


def _cpus(text: str) -> float:
    return _above_zero(text, "cores")


# Each adds the options of one engine, named after what they ask for.
_OPTIONS: list[Callable[[argparse._ArgumentGroup], None]] = [_docker_options, _ssh_options, _slurm_options]


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add ``--engine`` and every engine's own options."""
    group = parser.add_argument_group("where trials run")
    group.add_argument("--engine", choices=sorted(ENGINES), help="default: local, this machine")
    for add in _OPTIONS:
        add(group)


def name_of(args: argparse.Namespace) -> str:
    """The engine's name, which ``--hosts`` and ``--image`` imply."""
    return args.engine or ("ssh" if args.hosts else "docker" if args.image else "local")


def create(args: argparse.Namespace) -> Engine:
    """The engine asked for, ready to run trials.

    Raises:
        UsageError: An option of another engine was given, or one that it needs is missing.
        InfraError: Its daemon, host or scheduler does not answer.
    """
    name = name_of(args)
    if name != "ssh" and (args.hosts or args.limit):
        raise UsageError(f"--engine {name} takes no --hosts or --limit", "they are engine ssh's")
    if name not in ("ssh", "slurm") and args.nodes:
        raise UsageError(f"--engine {name} takes no --nodes", "engines ssh and slurm have several")
    if name != "docker" and (args.image or args.memory_limit or args.cpus):
        raise UsageError(f"--engine {name} takes no --image, --memory-limit or --cpus", "they are engine docker's")
    if name != "slurm" and (args.partition or args.account or args.qos or args.gres_name or args.mem):
        raise UsageError(
            f"--engine {name} takes no --partition, --account, --qos, --gres-name or --mem", "they are engine slurm's"
        )
    engine: Engine = import_module(ENGINES[name]).create(args)
    return engine
