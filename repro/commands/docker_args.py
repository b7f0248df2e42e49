"""Print the flags of `docker run` for this host: devices, driver, limits, the mount for evidence.

    docker run $(repro docker-args) hyper-repro:ascend-910b run 134 --tier npu

Devices and mounts come from what is found here; where the Ascend Docker Runtime is installed, it brings them. Notes go
to standard error. Exit code: 0 printed, 2 usage, 5 no NPU, or half a driver.
"""

from __future__ import annotations

import argparse
from pathlib import Path


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``repro docker-args``."""
    parser.add_argument(
        "target", nargs="?", choices=["sim", "ascend"], help="which image; default: ascend where there are NPUs"
    )
    parser.add_argument(
        "--cards", type=_cards, default=(), metavar="0,1", help="default: all; an A3's card is two dies"
    )
    parser.add_argument("--evidence", type=Path, default=Path("runs"), metavar="DIR", help="where runs go (runs)")
    parser.add_argument("--multi-node", action="store_true", help="HCCL talks to other hosts: the host's network")
    parser.add_argument("--cores", action="store_true", help="a crash leaves its core file")
    parser.add_argument("--direct", action="store_true", help="map devices by hand although the runtime is there")
    parser.add_argument("--shm", default="", metavar="16g", help="size of /dev/shm on target ascend")
    parser.add_argument("--root", type=Path, default=Path("/"), metavar="DIR", help="a copy of another host's files")
    parser.add_argument("--json", action="store_true", help="print a JSON object with arguments and notes")


def _cards(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of cards such as 0,1")
    return tuple(sorted({int(part) for part in parts}))


def run(args: argparse.Namespace) -> int:
    """Look at the host and print."""
    import json
    import os
    import sys

    from repro.errors import UsageError
    from repro.images.docker_args import SHM, Asked, flags
    from repro.images.host_tree import look
    from repro.images.plan import Target

    host = look(args.root)
    evidence = str(args.evidence.expanduser().resolve())
    if not args.json and (":" in evidence or len(evidence.split()) != 1):
        raise UsageError(f"--evidence {evidence!r}: a shell would split it, or Docker would", "use another, or --json")
    args.evidence.expanduser().mkdir(parents=True, exist_ok=True)
    asked = Asked(
        target=Target(args.target or ("ascend" if host.dies else "sim")),
        evidence=evidence,
        user=f"{os.getuid()}:{os.getgid()}",
        cards=args.cards,
        multi_node=args.multi_node,
        cores=args.cores,
        direct=args.direct,
        shm=args.shm or SHM,
    )
    found = flags(host, asked)
    if args.json:
        print(json.dumps({"schema_version": 1, "arguments": found.arguments, "notes": found.notes}))
        return 0
    print(" ".join(found.arguments))
    for note in found.notes:
        print(f"note: {note}", file=sys.stderr)
    return 0
