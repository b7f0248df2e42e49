"""The mends: one module a fault, chosen by HYPER_REPRO_FIXES, put in place as the modules they mend are imported."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from typing import Any

from fixes.mend import Mend, MendError
from repro.errors import UsageError

__all__ = ["VARIABLE", "Mend", "MendError", "install", "load", "remove", "selected", "state"]

VARIABLE = "HYPER_REPRO_FIXES"
# Nothing here imports MindSpore, and the modules themselves only when they are asked for.
MODULES = {
    "134.1": "mesh_metadata",
    "134.2": "contiguous_grad",
    "219.1": "teardown",
    "301.1": "hook_handles",
    "301.2": "needs_input_grad",
    "301.3": "collective_events",
}
# Without a mend of their own: 301.5 is the sum of the three leaks, the others are what the reports ask to see run.
TOGETHER = {"219.3": ("219.1",), "301.5": ("301.1", "301.2", "301.3"), "301.6": ("301.1", "301.2", "301.3")}


def selected(selection: str) -> tuple[str, ...]:
    """Read ``all``, ``none`` (or nothing), or a list such as ``134.1,301.3``.

    Raises:
        UsageError: An id that no mend has.
    """
    text = selection.strip()
    if text in ("", "none"):
        return ()
    if text == "all":
        return tuple(MODULES)
    chosen: list[str] = []
    for part in (piece.strip() for piece in text.split(",")):
        if part not in MODULES and part not in TOGETHER:
            known = ", ".join(MODULES)
            raise UsageError(f"{VARIABLE}={selection!r}: there is no mend {part!r}", f"all, none, or some of {known}")
        chosen += TOGETHER.get(part, (part,))
    return tuple(name for name in MODULES if name in chosen)


def has_mend(fault: str) -> bool:
    """True if there is a mend for the fault."""
    return fault in MODULES or fault in TOGETHER


def load(fault: str) -> Mend:
    """The one mend of a fault in this process, installed or not."""
    mend = importlib.import_module(f"fixes.{MODULES[fault]}").MEND
    if not isinstance(mend, Mend):
        raise TypeError(f"fixes.{MODULES[fault]}.MEND is no mend")
    return mend


def install(selection: str | None = None) -> tuple[Mend, ...]:
    """Put mends in place, in modules that are imported already and in those that will be.

    Call it before ``import mindspore``: one of the mends stands in front of a function of MindSpore's own libraries.

    Args:
        selection: See ``selected``; None takes the environment's.

    Raises:
        UsageError: An unknown id.
        MendError: A target that is imported already has another shape than the mend expects.
    """
    chosen = selected(os.environ.get(VARIABLE, "") if selection is None else selection)
    mends = tuple(load(fault) for fault in chosen)
    for mend in mends:
        mend.install()
    return mends


def remove() -> None:
    """Take out every mend of this process and put back what was there."""
    for fault in MODULES:
        mend = load(fault)
        if mend.active:
            mend.remove()


def state(mends: Sequence[Mend]) -> list[dict[str, Any]]:
    """What each mend did in this process so far, as plain data for the record."""
    read: Callable[[Mend], dict[str, Any]] = lambda mend: {  # noqa: E731
        "fault": mend.fault,
        "met": list(mend.met),
        "missed": list(mend.missed),
        "uses": mend.uses,
    }
    return [read(mend) for mend in mends]
