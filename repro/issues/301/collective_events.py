"""301.3: the report's two-card loop, all_reduce over and over, synchronous or asynchronous."""

from __future__ import annotations

from collections.abc import Callable

import mindspore as ms
import mindspore.mint.distributed as dist
import numpy as np

from repro.probes.context import Context
from repro.probes.native import live_sites
from repro.probes.plant import leak_bytes
from repro.sim.events import can_count, live_events

PLANTED_B = 64
EVENT_SITE = "CreateEventWithFlag"


def series(context: Context) -> dict[str, Callable[[], object]]:
    """The loops; one call is one collective, and where it is asynchronous, its wait."""
    if context.args.get("blocking"):
        # Without MindSpore's pipeline, whose threads wait for each other on a busy machine; what is left is the same.
        ms.runtime.launch_blocking()
    loops = _loops(context)
    tensor = ms.Tensor(np.ones(16, np.float32))

    def none() -> None:
        tensor.is_contiguous()

    def planted() -> None:
        none()
        if not can_count():
            leak_bytes(PLANTED_B)
            return
        # Recording is what makes the event behind the object, by the function that a collective uses.
        event = ms.runtime.Event()
        event.record()
        kept.append(event)

    kept: list[ms.runtime.Event] = []
    # The first collective of a process makes one event more, which is not a call's.
    for loop in loops.values():
        loop()
    if can_count():
        context.count("live_events", live_events)
    return {**loops, "none": none, "planted": planted}


def case(context: Context) -> None:
    """The same loop under memray: which native site holds how many live allocations after ``args.calls`` calls."""
    calls = int(context.args["calls"])
    loop = _loops(context)[str(context.args["loop"])]

    def body() -> None:
        for _ in range(calls):
            loop()
        ms.runtime.synchronize()

    body()
    sites = live_sites(body)
    for site in sites[:5]:
        context.record("site", count=site.count, bytes=site.size, stack=list(site.stack))
    # The event itself is what the function allocates; one frame further in lies the list that holds it.
    kept = sum(site.count for site in sites if EVENT_SITE in site.stack[1])
    where = " <- ".join(_short(frame) for frame in sites[0].stack[1:4]) if sites else ""
    says = f"{kept} of {calls} allocations are alive at {where}"
    context.check(EVENT_SITE, ok=kept == 0, fault=kept == calls, says=says, kept=kept, calls=calls)


def _short(function: str) -> str:
    return "::".join(function.partition("(")[0].split("::")[-2:])


def _loops(context: Context) -> dict[str, Callable[[], object]]:
    context.init_collectives()
    tensor = ms.Tensor(np.ones(16, np.float32))
    return {
        "sync": lambda: dist.all_reduce(tensor),
        "async": lambda: dist.all_reduce(tensor, async_op=True).wait(),
    }
