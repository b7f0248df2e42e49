"""List the reports, their faults, and the tiers on which each can be judged."""

from __future__ import annotations

import argparse

from repro import catalogue


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``repro list``."""
    parser.add_argument("--cases", action="store_true", help="show the cases of each fault too")


def run(args: argparse.Namespace) -> int:
    """Print the catalogue."""
    for issue in catalogue.load_all():
        print(f"{issue.number}  {issue.title}\n     {issue.url}")
        for fault in issue.faults:
            named = "; only when named" if fault.on_request else ""
            print(f"  {fault.id:<6} {fault.title}  [{', '.join(fault.prefer)}; {fault.oracle.kind}{named}]")
            for case in fault.cases if args.cases else ():
                where = f"{', '.join(case.subjects)}; {', '.join(case.tiers)}; {case.launcher}, {case.topology.label}"
                print(f"           {case.name} ({case.arm}; {where}): {case.says}")
    return 0
