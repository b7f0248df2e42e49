"""Gather what the hosts of a run have to say, beside the run, and list all that was collected of its trials.

Facts (limits, versions, an allow-list of the environment, npu-smi, the kernel's last words) and CANN's logs go to
RUN/collected/HOST. Without --hosts this machine is asked. Exit code: 0 all of it is here, 4 a host failed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from repro.engines.choice import seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from repro.collect.from_hosts import Gathered
    from repro.evidence.layout import RunFolder

HOST_TIMEOUT_S = 300.0


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``repro collect``."""
    parser.add_argument("run", type=Path, metavar="RUN", help="a run folder")
    parser.add_argument("--hosts", type=Path, metavar="INVENTORY", help="Ansible's YAML inventory")
    parser.add_argument("--limit", metavar="NAMES", help="only these hosts and groups of it, with commas between")
    parser.add_argument(
        "--host-timeout", type=seconds, default=HOST_TIMEOUT_S, metavar="SECONDS", help="for each host (300)"
    )


def run(args: argparse.Namespace) -> int:
    """Gather, then list."""
    from repro.collect.summary import of_trials
    from repro.evidence.layout import RunFolder

    folder = RunFolder(args.run)
    code = 0
    for host in _gathered(args, folder):
        if host.error is not None:
            print(f"{host.host}: {host.error}", file=sys.stderr)
            code = host.error.exit_code
        logs = f", logs of {', '.join(host.logs)}" if host.logs and host.error is None else ""
        if host.error is None:
            print(f"{host.host}: facts{logs}")
    for line in of_trials(folder):
        print(line)
    return code


def _gathered(args: argparse.Namespace, folder: RunFolder) -> Iterator[Gathered]:
    from repro.collect import from_hosts
    from repro.errors import UsageError

    from_hosts.started(folder)  # a folder that is no run is said before any host is asked
    if args.hosts is None:
        if args.limit:
            raise UsageError("--limit: there are no hosts to choose from", "give --hosts INVENTORY")
        yield from_hosts.from_here(folder)
        return
    from repro.engines.ssh.connection import Limits
    from repro.hosts import inventory

    read = inventory.read(args.hosts)
    hosts = read.select(args.limit) if args.limit else read.hosts
    yield from from_hosts.from_hosts(hosts, folder, Limits(host_s=args.host_timeout))
