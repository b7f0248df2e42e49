"""List the mends, switch them on for your own scripts in this Python environment, or export them as source edits.

`enable` writes hyper_repro_fixes.pth into this environment's site-packages; from then on every Python process that has
HYPER_REPRO_FIXES set (all, or a list such as 134.1,301.3) installs those mends at its start. `disable` removes it.
`export ISSUE[.FAULT] --checkout DIR` writes the same changes as a patch for `git am`, made against a clean checkout of
hyper-parallel, which is only read; for faults of MindSpore itself, a change request beside it.
"""

from __future__ import annotations

import argparse
from pathlib import Path


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``repro fixes``."""
    parser.add_argument("action", choices=["list", "enable", "disable", "export"], help="what to do")
    parser.add_argument("issue", nargs="?", metavar="ISSUE[.FAULT]", help="for export: such as 134 or 134.2")
    parser.add_argument("--checkout", type=Path, metavar="DIR", help="for export: a clean git checkout")
    parser.add_argument(
        "--output", type=Path, metavar="FILE.patch", help="for export: default hyper-parallel-ISSUE.patch"
    )


def run(args: argparse.Namespace) -> int:
    """Do it, and say in a line or two what is so now."""
    from fixes import activate
    from repro.errors import UsageError

    if args.action == "export":
        return _export(args)
    if given := [name for name in ("issue", "checkout", "output") if getattr(args, name) is not None]:
        raise UsageError(f"{', '.join(given)}: only `repro fixes export` takes it")
    if args.action == "list":
        print(_listed())
    elif args.action == "enable":
        print(f"wrote {activate.enable()}; set HYPER_REPRO_FIXES=all (or a list) where the mends are wanted")
    else:
        path = activate.disable()
        print(f"removed {path}" if path else "there was no hyper_repro_fixes.pth")
    return 0


def _export(args: argparse.Namespace) -> int:
    import sys

    from fixes.export.write import export
    from repro.commands.run import number_and_fault
    from repro.errors import UsageError
    from repro.upstream.checkout import open_checkout

    if args.issue is None or args.checkout is None:
        raise UsageError("export needs a report or fault, and --checkout", "repro fixes export 134.1 --checkout DIR")
    number, fault = number_and_fault(args.issue)
    checkout = open_checkout(args.checkout, "--checkout")
    if checkout is None:
        raise UsageError("--checkout: it is empty", "name a folder")
    done = export(number, fault, checkout, args.output or Path(f"hyper-parallel-{args.issue}.patch"))
    for note in done.notes:
        print(f"note: {note}", file=sys.stderr)
    for line in done.written:
        print(line)
    return 0


def _listed() -> str:
    import os

    import fixes
    from fixes import activate

    chosen = fixes.selected(os.environ.get(fixes.VARIABLE, ""))
    wired = activate.is_enabled()
    lines = []
    for fault in fixes.MODULES:
        mend = fixes.load(fault)
        where = ", ".join(mend.modules) if mend.modules else "MindSpore's native libraries"
        lines += [f"{fault}  {mend.mends}", f"       where: {where}", f"       since: {mend.since}"]
        lines.append(f"       here:  {_state(named=fault in chosen, wired=wired)}")
    return "\n".join(lines)


def _state(*, named: bool, wired: bool) -> str:
    if named:
        return "active in scripts" if wired else "named by HYPER_REPRO_FIXES, but `repro fixes enable` was not run here"
    return "not active: HYPER_REPRO_FIXES does not name it"
