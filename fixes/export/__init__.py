"""The mends as source edits: codemods on a user's checkout, and written requests where the source is MindSpore's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from fixes.export.source import Tree

REQUESTS = Path(__file__).parent / "requests"
# Modules with TITLE, CAUSE, EVIDENCE and ``edit(tree)``; read only when asked for, since LibCST is slow to load.
_CODEMODS = {
    "134.1": "mesh_metadata",
    "134.2": "contiguous_grad",
    "219.1": "final_callbacks",
    "301.1": "hook_handles",
}


@dataclass(frozen=True)
class Codemod:
    """One mend as source edits.

    Attributes:
        title: Of the change, in the imperative, as a commit's first line.
        cause: What is wrong and what the edit does about it.
        evidence: What was measured, and where.
        edit: Changes a tree in memory.
    """

    title: str
    cause: str
    evidence: str
    edit: Callable[[Tree], None]


def codemod(fault: str) -> Codemod | None:
    """The codemod of a fault; None where its source is not hyper-parallel's."""
    if fault not in _CODEMODS:
        return None
    module = import_module(f"fixes.export.{_CODEMODS[fault]}")
    return Codemod(module.TITLE, module.CAUSE, module.EVIDENCE, module.edit)


def request(fault: str) -> str:
    """The change request to MindSpore for a fault, as Markdown; empty where there is none."""
    path = REQUESTS / f"{fault}.md"
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def has_export(fault: str) -> bool:
    """True if something can be exported for the fault."""
    return fault in _CODEMODS or bool(request(fault))
