"""A rank that takes memory without end, crashes, waits, or behaves; ``args.what`` says which."""

from __future__ import annotations

import ctypes
import os
import time

from repro.probes.context import Context


def case(context: Context) -> None:
    """Do as told; what is about to be done, and what the container shows of itself, is recorded first."""
    what = str(context.args["what"])
    with open("/proc/self/status", encoding="ascii") as status:  # noqa: PTH123 -- the kernel's own file
        capabilities = next(line.split()[1] for line in status if line.startswith("CapEff"))
    interfaces = sorted(os.listdir("/sys/class/net"))  # noqa: PTH208 -- names alone
    context.record("about to", what=what, uid=os.getuid(), capabilities=capabilities, interfaces=interfaces)
    if what == "memory":
        held = []
        while True:
            held.append(bytearray(b"x") * (32 << 20))
    if what == "crash":
        ctypes.string_at(0)
    if what == "wait":
        time.sleep(600)
