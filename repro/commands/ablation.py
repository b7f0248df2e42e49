"""Run every fault with every mend alone, with all but each, and with all: does each mend its own fault and no other?

ISSUE is a report's number (301) or one fault of it (301.1); without any, all that have mends. Exit code: 0 every cell
is as it should be, 1 at least one is the opposite, 3 one is undecided, 4 infrastructure, 5 a fault is unsupported here.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from repro.commands.run import run_plans, seed_of
from repro.engines import choice
from repro.model import Tier


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``repro ablation``."""
    parser.add_argument("issues", nargs="*", metavar="ISSUE[.FAULT]", help="such as 134 301.1; default: all with mends")
    parser.add_argument("--mends", default="all", metavar="LIST", help="to choose from, such as 134.1,134.2 (all)")
    parser.add_argument(
        "--tier", type=Tier, choices=list(Tier), help="default: the best this machine has for each fault"
    )
    parser.add_argument("--seed", type=seed_of, default=0, help="of MindSpore, and of Python's hashes (0)")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="a folder of run folders, one a report; resumed if there"
    )
    parser.add_argument("--keep-going", action="store_true", help="go on with other trials after one could not be run")
    parser.add_argument("--json", action="store_true", help="print one JSON object on standard output")
    choice.prepare_parser(parser)


def run(args: argparse.Namespace) -> int:
    """Run every cell, judge, print."""
    from datetime import UTC, datetime
    from uuid import uuid4

    import fixes
    from repro import ablation
    from repro.catalogue import find
    from repro.commands.run import number_and_fault
    from repro.errors import UsageError
    from repro.plan import Options

    mends = fixes.selected(args.mends)
    if not mends:
        raise UsageError("--mends: none are named", "`repro fixes list` says which there are")
    wanted = [number_and_fault(text) for text in args.issues or sorted({m.partition(".")[0] for m in fixes.MODULES})]
    engine = choice.create(args)
    options = Options(tier=args.tier, seed=args.seed)
    # All of it is planned before anything runs, so that a mistake is told at once.
    planned = [
        (issue, ablation.plan(issue, fault, mends, options, engine.available_tiers()))
        for issue, fault in ((find(number), fault) for number, fault in wanted)
    ]
    names = [str(issue.number) for issue, _ in planned]
    if len(set(names)) < len(names):
        raise UsageError(f"{' '.join(args.issues)}: a report is named twice", "name it once, whole or by one fault")
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    folder: Path = args.out or Path("runs") / f"{stamp}-ablation-{uuid4().hex[:6]}"
    for issue, plans in planned:
        run_plans(issue, plans, folder / str(issue.number), engine, keep_going=args.keep_going, kind="ablation")
    return conclude(folder, as_json=args.json)


def conclude(folder: Path, *, as_json: bool) -> int:
    """Judge the table from its evidence, write report.md and verdict.json, print, and return the exit code."""
    import json

    from repro.evidence.layout import RunFolder
    from repro.evidence.write import write_json, write_text
    from repro.report import mends
    from repro.review import review_ablation

    table = review_ablation(folder)
    data = mends.to_json(folder.name, table)
    if as_json:
        print(json.dumps(data, ensure_ascii=True))
    else:
        mends.render(table, str(folder))
    run = RunFolder(folder)
    write_json(run.verdict, data)
    write_text(run.report, mends.markdown(table))
    return mends.exit_code(table)
