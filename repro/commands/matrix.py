"""Find the report's table of topologies by running it, and print it beside the report's own.

Exit code: 0 every cell is as reported, 1 at least one is not, 3 one is undecided, 4 infrastructure, 5 unsupported here.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from repro.commands import minimising
from repro.commands.run import add_upstream, asked_how, prepare_wants, ranks_of, run_plans, upstream_of
from repro.engines import choice
from repro.model import Subject, Tier

if TYPE_CHECKING:
    from repro.model import Issue
    from repro.plan import FaultPlan


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``repro matrix``."""
    parser.add_argument("issue", type=int, metavar="ISSUE", help="such as 134")
    parser.add_argument("--tier", type=Tier, choices=list(Tier), help="default: the best this machine has")
    parser.add_argument("--ranks", type=ranks_of, default=(), metavar="all|0,3", help="ranks of each simulated world")
    parser.add_argument("--out", type=Path, metavar="DIR", help="run folder; an unfinished one is resumed")
    parser.add_argument("--json", action="store_true", help="print one JSON object on standard output")
    minimising.prepare_parser(parser)
    add_upstream(parser)
    prepare_wants(parser)
    choice.prepare_parser(parser)


def run(args: argparse.Namespace) -> int:
    """Run every cell, judge, print."""
    from repro import matrix
    from repro.catalogue import find
    from repro.errors import UnsupportedError

    issue = find(args.issue)
    upstream = upstream_of(args, issue)
    subject = Subject.UPSTREAM if upstream else Subject.DISTILLED
    engine = choice.create(args)
    plans = matrix.plan(issue, args.tier, engine.available_tiers(), args.ranks, seed=0, subject=subject)
    lacks = upstream["lacks"] if upstream else {}
    if missing := [f"{item.fault.id}: {lacks[item.fault.id]}" for item in plans if item.fault.id in lacks]:
        raise UnsupportedError("; ".join(missing))
    how = asked_how(args)
    folder = run_plans(issue, plans, args.out, engine, keep_going=True, kind="matrix", how=how, upstream=upstream)
    code = conclude(folder, as_json=args.json)
    if args.minimise:

        def smaller(table: Issue) -> list[FaultPlan]:
            return matrix.plan(table, args.tier, engine.available_tiers(), args.ranks, seed=0, subject=subject)

        found = minimising.of_matrix(folder, issue, engine, smaller, upstream)
        minimising.tell(folder, found, as_json=args.json)
    return code


def conclude(folder: Path, *, as_json: bool) -> int:
    """Judge the table from its evidence, write report.md and verdict.json, print, and return the exit code."""
    import json

    from repro.evidence.layout import RunFolder
    from repro.evidence.write import write_json, write_text
    from repro.report import table
    from repro.review import review_matrix

    run = RunFolder(folder)
    issue, cells = review_matrix(folder)
    data = table.to_json(folder.name, issue, cells)
    write_json(run.verdict, data)
    write_text(run.report, table.markdown(issue, cells))
    if as_json:
        print(json.dumps(data, ensure_ascii=False))
    else:
        table.render(issue, cells, str(folder))
    return table.exit_code(cells)
