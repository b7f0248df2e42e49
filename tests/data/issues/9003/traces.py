"""Ranks that leave what is to be collected, or what must not leave the house; ``args.what`` says which."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

from repro.probes.context import Context


def case(context: Context) -> None:
    """Do as told."""
    ACTIONS[str(context.args["what"])](context)


def behave(_: Context) -> None:
    """Nothing."""


def confess(context: Context) -> None:
    """Print, record and raise what the test has planted."""
    planted = os.environ["HYPER_REPRO_TEST_PLANTED"]
    print(planted)
    print(planted, file=sys.stderr)
    context.record("said", text=planted, password="hunter2-in-event")  # noqa: S106 -- planted
    raise ValueError(f"asked to tell {planted}")


def leak(context: Context) -> None:
    """Leave copies of a string that nobody frees."""
    strdup = ctypes.CDLL(None).strdup
    strdup.restype = ctypes.c_void_p
    for _ in range(int(context.args["calls"])):
        leak_a_copy(strdup)


def leak_a_copy(strdup: ctypes._NamedFuncPointer) -> None:
    """One copy of a thousand bytes."""
    strdup(b"x" * 1000)


def dump(context: Context) -> None:
    """Leave a graph dump as MindSpore does, and what nobody wants."""
    folder = Path(f"rank_{context.rank}") / "graph"
    folder.mkdir(parents=True)
    (folder / "final.ir").write_text("graph", encoding="utf-8")
    (folder / "final.dot").write_text("picture", encoding="utf-8")
    raise ValueError("asked to tell")


ACTIONS = {"dump": dump, "behave": behave, "confess": confess, "leak": leak}
