"""Check an inventory of hosts and draw it: racks, hosts, dies, ranks.

The file is Ansible's YAML inventory; engine ssh, `repro hosts`, `repro doctor --hosts` and the playbooks read it too.
Exit code: 0 if it can be used (what is odd is said), 2 if it cannot.
"""

from __future__ import annotations

import argparse
from pathlib import Path


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the file and the options."""
    parser.add_argument("inventory", type=Path, metavar="INVENTORY", help="such as playbooks/inventories/example.yml")
    parser.add_argument("--limit", metavar="NAMES", help="only these hosts and groups, with commas between")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Read, draw, and say what is odd."""
    import json
    import sys
    from dataclasses import replace

    from repro.hosts import draw, inventory

    read = inventory.read(args.inventory)
    if args.limit:
        read = replace(read, hosts=read.select(args.limit))
    if args.json:
        print(json.dumps(_data(read), indent=1))
    else:
        print(draw.draw(read))
    for warning in read.warnings:
        print(f"repro inventory: {warning}", file=sys.stderr)
    return 0


def _data(read: object) -> dict[str, object]:
    from repro.hosts import draw
    from repro.hosts.inventory import Inventory

    assert isinstance(read, Inventory)  # noqa: S101 -- imported late, so typed late
    numbered = draw.ranks(read.hosts)
    hosts = [
        {
            "name": host.name,
            "address": host.address,
            "port": host.port,
            "user": host.user,
            "jump": list(host.jump),
            "chip": host.chip,
            "dies": host.dies,
            "ranks": list(numbered[host.name]),
            "rack": host.rack,
            "groups": list(host.groups),
        }
        for host in read.hosts
    ]
    return {"schema_version": 1, "hosts": hosts, "warnings": list(read.warnings)}
