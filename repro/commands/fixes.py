"""List the mends, or switch them on for your own scripts in this Python environment.

`enable` writes hyper_repro_fixes.pth into this environment's site-packages; from then on every Python process that has
HYPER_REPRO_FIXES set (all, or a list such as 134.1,301.3) installs those mends at its start. `disable` removes it.
"""

from __future__ import annotations

import argparse


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``repro fixes``."""
    parser.add_argument("action", choices=["list", "enable", "disable"], help="what to do")


def run(args: argparse.Namespace) -> int:
    """Do it, and say in a line or two what is so now."""
    from fixes import activate

    if args.action == "list":
        print(_listed())
    elif args.action == "enable":
        print(f"wrote {activate.enable()}; set HYPER_REPRO_FIXES=all (or a list) where the mends are wanted")
    else:
        path = activate.disable()
        print(f"removed {path}" if path else "there was no hyper_repro_fixes.pth")
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
