"""Pack a run for somebody else: hosts, users, addresses, tokens and paths of machines replaced, the verdict the same.

The same name is replaced by the same pseudonym everywhere; which is which stays beside the run, in redaction.json.
`repro judge` works on the unpacked bundle. Binary files (cores, memory traces) are left out unless asked for.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``repro bundle``."""
    parser.add_argument("run", type=Path, metavar="RUN", help="a run folder")
    parser.add_argument("--output", type=Path, metavar="FILE.tar.zst", help="default: beside the run")
    parser.add_argument("--hide", action="append", default=[], metavar="WORD", help="a further word to replace")
    parser.add_argument("--binaries", action="store_true", help="take cores and memory traces, which stay unredacted")


def run(args: argparse.Namespace) -> int:
    """Bundle, and say what was replaced and left out."""
    from repro.collect.bundle import bundle
    from repro.errors import UsageError

    folder = args.run.resolve()
    output = args.output or folder.with_name(f"{folder.name}.tar.zst")
    if not output.resolve().parent.is_dir():
        raise UsageError(f"{output.parent} is no folder", "give --output in one that is there")
    made = bundle(folder, output, args.hide, args.binaries)
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(made.replaced.items())) or "nothing"
    print(made.path)
    print(f"replaced: {kinds}; which is which: {folder / 'redaction.json'}, for you alone", file=sys.stderr)
    if made.left_out:
        print(f"left out, for it cannot be redacted: {', '.join(made.left_out)}", file=sys.stderr)
    if args.binaries:
        print("binary files are in it as they are; they hold memory, and so anything", file=sys.stderr)
    return 0
