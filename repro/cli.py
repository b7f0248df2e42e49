"""The command line: finds the verb, runs it, and is the one place that turns an error into a line and an exit code."""

from __future__ import annotations

import argparse
import importlib
import io
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import repro
from repro.errors import InfraError, ReproError, UsageError

VERBS = (
    "list",
    "run",
    "verify",
    "ablation",
    "matrix",
    "judge",
    "report",
    "doctor",
    "hosts",
    "inventory",
    "sim",
    "fixes",
    "collect",
    "bundle",
    "image",
    "docker-args",
    "bundle-verify",
)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong with a command line in one line, and where the rest is said."""

    def error(self, message: str) -> NoReturn:
        self.exit(UsageError.exit_code, f"{self.prog}: {message}; see `{self.prog} --help`\n")


def build_parser() -> argparse.ArgumentParser:
    """The parser with every verb; modules of verbs import nothing heavy at their top level."""
    parser = _Parser(prog="repro", description=repro.__doc__)
    parser.add_argument("--version", action="version", version=f"hyper-repro {repro.__version__}")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb in VERBS:
        module = importlib.import_module(f"repro.commands.{verb.replace('-', '_')}")
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
        code = int(options.carry_out(options))
        sys.stdout.flush()
        return code
    except ReproError as error:
        print(f"repro {options.verb}: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print(f"repro {options.verb}: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # Whoever read the output has left, as `repro list | head` does. Nothing may be written at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"repro {options.verb}: {where}{error.strerror or error}", file=sys.stderr)
        return InfraError.exit_code
    except Exception as error:  # noqa: BLE001 -- a bug of ours: kept for whoever mends it, not thrown at the user
        with tempfile.NamedTemporaryFile("w", prefix="repro-", suffix=".log", delete=False, encoding="utf-8") as log:
            traceback.print_exc(file=log)
        print(
            f"repro {options.verb}: a bug: {type(error).__name__}: {error}; please report {log.name}", file=sys.stderr
        )
        return InfraError.exit_code


def entry() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        # Titles may be Chinese, paths may be any bytes; an old locale must not turn either into a traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    # Closed streams (`2>&-`) are None: what would go there must not end up in the other one.
    sys.stdout = sys.stdout or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 -- open to the end
    sys.stderr = sys.stderr or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    entry()
