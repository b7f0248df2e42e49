"""Find the report's table of topologies by running it, and print it beside the report's own.

Exit code: 0 every cell is as reported, 1 at least one is not, 4 a cell could not be decided, 5 unsupported here.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from repro.commands.run import ranks_of
from repro.model import Tier


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``repro matrix``."""
    parser.add_argument("issue", type=int, metavar="ISSUE", help="such as 134")
    parser.add_argument("--tier", type=Tier, choices=list(Tier), help="default: the best this machine has")
    parser.add_argument("--ranks", type=ranks_of, default=(), metavar="all|0,3", help="ranks of each simulated world")
    parser.add_argument("--out", type=Path, metavar="DIR", help="run folder; an unfinished one is resumed")
    parser.add_argument("--json", action="store_true", help="print one JSON object on standard output")


def run(args: argparse.Namespace) -> int:
    """Run every cell, judge, print."""
    from repro import host, matrix
    from repro.catalogue import find
    from repro.engines.local import LocalEngine
    from repro.evidence.read import finished_trials
    from repro.report.console import Watch
    from repro.runner import carry_out, open_run

    issue = find(args.issue)
    plans = matrix.plan(issue, args.tier, host.available_tiers(), args.ranks, seed=0)
    this = open_run(issue, plans, args.out, ["repro", *sys.argv[1:]], kind="matrix")
    names = {spec.folder for spec in this.specs}
    with Watch(len(this.specs), len(names & finished_trials(this.folder).keys())) as watch:
        carry_out(this, LocalEngine(), keep_going=True, progress=watch)
    return conclude(this.folder.path, as_json=args.json)


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
