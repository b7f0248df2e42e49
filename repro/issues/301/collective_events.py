"""301.3: the report's two-card loop, all_reduce over and over, synchronous or asynchronous."""

from __future__ import annotations

from collections.abc import Callable

import mindspore as ms
import mindspore.mint.distributed as dist
import numpy as np

from repro.model import Tier
from repro.probes.context import Context
from repro.probes.native import live_sites
from repro.probes.plant import leak_bytes

PLANTED_B = 64
EVENT_SITE = "CreateEventWithFlag"


def series(context: Context) -> dict[str, Callable[[], object]]:
    """The loops; one call is one collective, and where it is asynchronous, its wait."""
    loops = _loops(context)
    tensor = ms.Tensor(np.ones(16, np.float32))

    def none() -> None:
        tensor.is_contiguous()

    def planted() -> None:
        none()
        leak_bytes(PLANTED_B)
        if context.tier is Tier.SIM:
            from repro.sim.events import leak_event

            leak_event()

    if context.tier is Tier.SIM:
        from repro.sim.events import live_events

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
    kept = sum(site.count for site in sites if any(EVENT_SITE in frame for frame in site.stack))
    context.check(f"events alive under {EVENT_SITE}", ok=kept == 0, fault=kept == calls, kept=kept, calls=calls)


def _loops(context: Context) -> dict[str, Callable[[], object]]:
    context.init_collectives()
    tensor = ms.Tensor(np.ones(16, np.float32))
    return {
        "sync": lambda: dist.all_reduce(tensor),
        "async": lambda: dist.all_reduce(tensor, async_op=True).wait(),
    }
