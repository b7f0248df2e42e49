"""Say what this machine can show, and for each lack the command that mends it.

With --hosts, what the hosts of an inventory show instead: the same checks as playbooks/preflight.yml, over SSH, all at
once. Nothing is changed on them, no root is needed. Every fault and what to do: docs/hosts.md.

Exit code: 0 if at least tier cpu can be used, 5 if not even that; with --hosts 0 if no host has a fault, 1 if one has,
4 if one could not be looked at.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from repro.checkup import Check


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``repro doctor``."""
    parser.add_argument("--json", action="store_true", help="print one JSON object on standard output")
    group = parser.add_argument_group("other hosts")
    group.add_argument("--hosts", type=Path, metavar="INVENTORY", help="look at these hosts, not at this machine")
    group.add_argument("--limit", metavar="NAMES", help="only these hosts and groups, with commas between")
    group.add_argument("--html", type=Path, metavar="FILE", help="write the table as a page too")
    group.add_argument("--all", action="store_true", dest="everything", help="show also what is well")
    group.add_argument("--versions", type=Path, metavar="FILE", help="versions that go together (images/versions.yaml)")


def run(args: argparse.Namespace) -> int:
    """Look, print, and say which tiers are there."""
    import json
    from dataclasses import asdict

    from repro import host
    from repro.checkup import Level, check_up
    from repro.errors import UnsupportedError, UsageError

    if args.hosts:
        return _hosts(args)
    for option in ("limit", "html", "everything", "versions"):
        if getattr(args, option):
            raise UsageError(f"--{'all' if option == 'everything' else option} is for --hosts", "name an inventory too")
    checks = check_up()
    failed = [check for check in checks if check.level is Level.FAIL and check.needed_for == "every tier"]
    tiers = [] if failed else host.available_tiers()
    if args.json:
        print(json.dumps({"schema_version": 1, "tiers": tiers, "checks": [asdict(check) for check in checks]}))
    else:
        _print(checks)
        print(f"\ntiers here: {', '.join(tiers) or 'none'}")
    return UnsupportedError.exit_code if failed else 0


def _hosts(args: argparse.Namespace) -> int:
    import json
    import sys

    from repro.engines.ssh.connection import Limits
    from repro.errors import InfraError
    from repro.hosts import ask, inventory, preflight
    from repro.hosts.ascend import finding, render

    read = inventory.read(args.hosts)
    hosts = read.select(args.limit) if args.limit else read.hosts
    table = preflight.rows(args.versions)
    seen = ask.ask(hosts, Limits(host_s=ask.LOOK_S))
    findings, looks = preflight.judge(hosts, seen, table)
    if args.html:
        args.html.write_text(render.page(findings, f"Preflight of {args.hosts.name}"), encoding="utf-8")
    if args.json:
        print(json.dumps(render.to_json(findings, looks)))
    else:
        print(render.table(findings, everything=args.everything))
    for warning in read.warnings:
        print(f"repro doctor: {warning}", file=sys.stderr)
    if not all(looks.values()):
        return InfraError.exit_code
    return int(any(finding.worst(some) == "fail" for some in findings.values()))


def _print(checks: list[Check]) -> None:
    import sys

    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from repro.checkup import Level

    colour = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "bold red"}
    table = Table("", "what", "seen", "needed for", "what mends it")
    for check in checks:
        mark = f"[{colour[check.level]}]{check.level}[/]"
        table.add_row(mark, check.name, escape(check.seen), check.needed_for, escape(check.mend))
    Console(width=None if sys.stdout.isatty() else 150, highlight=False).print(table)
