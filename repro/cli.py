"""The command line: finds the verb, runs it, and is the one place that turns an error into a line and an exit code."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

import repro
from repro.errors import ReproError

VERBS = ("list", "run", "judge", "report", "doctor", "sim")


def build_parser() -> argparse.ArgumentParser:
    """The parser with every verb; modules of verbs import nothing heavy at their top level."""
    parser = argparse.ArgumentParser(prog="repro", description=repro.__doc__)
    parser.add_argument("--version", action="version", version=f"hyper-repro {repro.__version__}")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb in VERBS:
        module = importlib.import_module(f"repro.commands.{verb}")
        text = module.__doc__ or ""
        short = text.strip().splitlines()[0]
        sub = verbs.add_parser(verb, help=short, description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
        module.prepare_parser(sub)
        sub.set_defaults(carry_out=module.run)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, 1, 2, 3, 4 or 5 as the README says, 130 after Ctrl-C."""
    try:
        options = build_parser().parse_args(arguments)
    except SystemExit as left:
        return int(left.code or 0)
    try:
        return int(options.carry_out(options))
    except ReproError as error:
        print(f"repro {options.verb}: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print(f"repro {options.verb}: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Whoever read the output has left, as `repro list | head` does.
        sys.stderr.close()
        return 0


def entry() -> None:
    """The console script."""
    sys.exit(main())


if __name__ == "__main__":
    entry()
