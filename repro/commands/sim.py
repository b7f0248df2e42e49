"""Run your own script as simulated Ascend ranks, without an NPU.

Each rank is a process of its own that runs MindSpore's real Ascend host code over stand-in CANN libraries. Collectives
return at once and numbers are meaningless; checks, events, hooks, autograd and memory bookkeeping are real.
"""

from __future__ import annotations

import argparse
import sys


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Declares the options of ``repro sim``."""
    parser.add_argument("--world", type=int, default=8, metavar="N", help="ranks that each process believes in (8)")
    parser.add_argument("--ranks", default="0", metavar="LIST", help="which of them to run: all, or 0,3,8-15 (0)")
    parser.add_argument("--at-once", type=int, default=2, metavar="N", help="how many at a time (2)")
    parser.add_argument(
        "command", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="for example: -- python train.py"
    )


def run(args: argparse.Namespace) -> int:
    """Runs the command and returns its exit code."""
    from repro.errors import UsageError
    from repro.sim.run import parse_ranks, run_ranks

    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        raise UsageError(
            "there is no command to run", "for example: repro sim --world 16 --ranks 0,3 -- python train.py"
        )
    if args.world < 1 or args.at_once < 1:
        raise UsageError(f"--world {args.world} --at-once {args.at_once}: both must be 1 or more")
    ranks = parse_ranks(args.ranks, args.world)
    print(f"simulated: {len(ranks)} of {args.world} ranks; numbers read from the device mean nothing", file=sys.stderr)
    code: int = run_ranks(command, args.world, ranks, args.at_once)
    return code
