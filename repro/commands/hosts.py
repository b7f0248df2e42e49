"""Ask many hosts at once over SSH: run a command, copy a file, fetch a folder, or see which will do for trials.

    repro hosts run [OPTIONS] INVENTORY -- uname -r   a command on every host, outputs in the inventory's order
    repro hosts put INVENTORY FILE TARGET             a file to every host
    repro hosts get INVENTORY FOLDER TARGET           a folder of each to TARGET/HOST; goes on where it was cut
    repro hosts check INVENTORY                       reached, let in, and the same versions as here

A host that fails gives one line (what, and what next) and holds up no other. Exit code: 0 all hosts did it, 1 the
command failed on one, 4 one could not be reached or did not finish in time.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from repro.engines.choice import seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from repro.engines.ssh.connection import Limits
    from repro.engines.ssh.fanout import HostResult
    from repro.hosts.inventory import Host

DEADLINE_S = 60.0


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the actions and their options."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, text in (
        ("run", "run a command"),
        ("put", "copy a file to each"),
        ("get", "fetch a folder from each"),
        ("check", "see which will do for trials"),
    ):
        action = actions.add_parser(name, help=text, description=text)
        action.add_argument("inventory", type=Path, metavar="INVENTORY", help="Ansible's YAML inventory")
        action.add_argument("--limit", metavar="NAMES", help="only these hosts and groups, with commas between")
        action.add_argument(
            "--host-timeout", type=seconds, default=DEADLINE_S, metavar="SECONDS", help="for each host (60)"
        )
        action.add_argument("--run-timeout", type=seconds, metavar="SECONDS", help="for all of them")
        action.add_argument("--json", action="store_true", help="print one JSON object a host")
        if name == "run":
            action.add_argument(
                "command", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="words, or one shell line"
            )
        elif name in ("put", "get"):
            action.add_argument("source", metavar="FILE" if name == "put" else "FOLDER")
            action.add_argument("target", metavar="TARGET")


def run(args: argparse.Namespace) -> int:
    """Do it on every host and print each result."""
    from repro.engines.ssh.connection import Limits
    from repro.errors import UsageError
    from repro.hosts import inventory

    read = inventory.read(args.inventory)
    hosts = read.select(args.limit) if args.limit else read.hosts
    limits = Limits(host_s=args.host_timeout, run_s=args.run_timeout)
    if args.action == "run" and (not _words(args) or _words(args)[0].startswith("-")):
        # argparse gives a command all that stands behind the inventory, our own options too.
        raise UsageError(
            "the command must stand behind --, and options before the inventory",
            "as in: repro hosts run --json inventory.yml -- uptime",
        )
    results = _results(args, hosts, limits)
    return _tell(results, as_json=args.json)


def _words(args: argparse.Namespace) -> list[str]:
    """The command without the ``--`` in front, which some versions of argparse take away and others do not."""
    words: list[str] = args.command
    return words[1:] if words[:1] == ["--"] else words


def _results(args: argparse.Namespace, hosts: Sequence[Host], limits: Limits) -> list[HostResult]:
    import shlex

    from repro.engines.ssh import fanout

    match args.action:
        case "run":
            words = _words(args)
            return fanout.run(hosts, words[0] if len(words) == 1 else shlex.join(words), limits)
        case "put":
            source = Path(args.source)
            with source.open("rb"):  # said once, not once a host
                return fanout.put(hosts, source, args.target, limits)
        case "get":
            return fanout.get(hosts, args.source, Path(args.target), limits)
        case _:
            return fanout.check(hosts, limits)


def _tell(results: Sequence[HostResult], *, as_json: bool) -> int:
    import json
    import sys

    for result in results:
        if as_json:
            print(json.dumps(result.to_json(), ensure_ascii=False))
            continue
        for text, stream in ((result.out, sys.stdout), (result.err, sys.stderr)):
            for line in text.splitlines():
                print(f"{result.host}: {line}", file=stream)
        if result.error is not None:
            print(str(result.error).removeprefix("host "), file=sys.stderr)
        elif result.same_as:
            print(f"{result.host}: the same host as {result.same_as}, where it was done", file=sys.stderr)
        elif result.code:
            how = f"exit code {result.code}" if result.code > 0 else "no exit code: a signal ended it"
            print(f"{result.host}: {how}", file=sys.stderr)
    if any(result.error is not None for result in results):
        return 4
    return int(any(result.code for result in results))
