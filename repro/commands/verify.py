"""Verify the mend of a report: run its cases without and with it, interleaved, and judge the difference.

ISSUE is a report's number (301) or one fault of it (301.1). Exit code: 0 every fault is FIXED, 1 at least one is
NOT_FIXED, 2 usage, 3 inconclusive (the fault did not show unfixed, the mend was never used), 4 infrastructure,
5 unsupported here, 130 interrupted.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from repro.commands import run as run_command
from repro.engines import choice
from repro.model import Arm


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``repro run``; the arms are always both, with the controls."""
    run_command.prepare_shared(parser)


def run(args: argparse.Namespace) -> int:
    """Run both arms, judge, write the report, print."""
    from repro.commands.judge import conclude
    from repro.errors import UsageError
    from repro.plan import plan, with_mends

    if args.arm:
        raise UsageError("--arm: verify always runs both arms and the controls", "for one arm: `repro run --arm fixed`")
    issue, fault, options = run_command.asked(args)
    upstream = run_command.upstream_of(args, issue)
    options = run_command.on_upstream(replace(options, faults=with_mends(issue, fault), arms=tuple(Arm)), upstream)
    engine = choice.create(args)
    plans = plan(issue, options, engine.available_tiers())
    folder = run_command.run_plans(
        issue,
        plans,
        args.out,
        engine,
        keep_going=args.keep_going,
        kind="verify",
        upstream=upstream,
        how=run_command.asked_how(args),
    )
    return conclude(folder, as_json=args.json)
