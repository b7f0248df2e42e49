"""What the two edits of the scheduler share: where it is, and the new file that stands beside it."""

from __future__ import annotations

from pathlib import Path

import libcst as cst

from fixes.export.source import PACKAGE, Tree, after_imports

FOLDER = f"{PACKAGE}/platform/mindspore/fully_shard"
SCHEDULER = f"{FOLDER}/scheduler.py"
CLASS = "MindSporeHSDPSchedulerV2"
_ADDED = Path(__file__).parent / "added"


def put_with_helper(tree: Tree, module: cst.Module, helper: str, name: str) -> None:
    """Put the edited scheduler and a new module of ours beside it, from which it imports ``name``."""
    tree.put(f"{FOLDER}/{helper}.py", (_ADDED / f"{helper}.py").read_text(encoding="utf-8"))
    dotted = FOLDER.replace("/", ".")
    tree.put(SCHEDULER, after_imports(module, f"from {dotted}.{helper} import {name}\n"))
