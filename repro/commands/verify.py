"""Verify the mend of a report: run its cases without and with it, interleaved, and judge the difference.

ISSUE is a report's number (301) or one fault of it (301.1). Exit code: 0 every fault is FIXED, 1 at least one is
NOT_FIXED, 2 usage, 3 inconclusive (the fault did not show unfixed, the mend was never used), 4 infrastructure,
5 unsupported here, 130 interrupted.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from repro.commands import run as run_command
from repro.model import Arm

if TYPE_CHECKING:
    from repro.model import Issue
    from repro.plan import Options


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``repro run``; the arms are always both, with the controls."""
    run_command.prepare_parser(parser)


def run(args: argparse.Namespace) -> int:
    """Run both arms, judge, write the report, print."""
    from repro import host
    from repro.commands.judge import conclude
    from repro.plan import plan

    issue, options = _asked(args)
    plans = plan(issue, options, host.available_tiers())
    folder = run_command.run_plans(issue, plans, args.out, keep_going=args.keep_going, kind="verify")
    return conclude(folder, as_json=args.json)


def _asked(args: argparse.Namespace) -> tuple[Issue, Options]:
    from repro.catalogue import find
    from repro.errors import UsageError
    from repro.plan import Options, with_mends

    number, _, fault = args.issue.partition(".")
    if not number.isdecimal() or not (fault.isdecimal() or args.issue == number):
        raise UsageError(f"{args.issue!r} is not an issue or a fault", "give a number such as 134, or 134.2")
    if args.arm:
        raise UsageError("--arm: verify always runs both arms and the controls", "for one arm: `repro run --arm fixed`")
    issue = find(int(number))
    options = Options(
        faults=with_mends(issue, f"{int(number)}.{int(fault)}" if fault else ""),
        tier=args.tier,
        arms=tuple(Arm),
        topology=args.topology,
        ranks=args.ranks,
        trials=args.trials,
        steps=args.steps,
        timeout_s=args.timeout,
        seed=args.seed,
    )
    return issue, options
