"""Say what this machine can show, and for each lack the command that mends it.

Exit code: 0 if at least tier cpu can be used, 5 if not even that.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from repro.checkup import Check


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``repro doctor``."""
    parser.add_argument("--json", action="store_true", help="print one JSON object on standard output")


def run(args: argparse.Namespace) -> int:
    """Look, print, and say which tiers are there."""
    import json
    from dataclasses import asdict

    from repro import host
    from repro.checkup import Level, check_up
    from repro.errors import UnsupportedError

    checks = check_up()
    failed = [check for check in checks if check.level is Level.FAIL and check.needed_for == "every tier"]
    tiers = [] if failed else host.available_tiers()
    if args.json:
        print(json.dumps({"schema_version": 1, "tiers": tiers, "checks": [asdict(check) for check in checks]}))
    else:
        _print(checks)
        print(f"\ntiers here: {', '.join(tiers) or 'none'}")
    return UnsupportedError.exit_code if failed else 0


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
