"""301.3 through the real library: every collective of a platform leaves an event behind.

The call is the library's own, ``platform.all_reduce``, as its gradient hooks make it; the events are MindSpore's.
"""

from __future__ import annotations

from collections.abc import Callable

import mindspore as ms
import numpy as np
from hyper_parallel import get_platform, init_process_group

from repro.probes.context import Context
from repro.sim.events import live_events


def series(context: Context) -> dict[str, Callable[[], object]]:
    """The loops; one call is one collective, and where it is asynchronous, its wait."""
    init_process_group()
    platform = get_platform()
    group = platform.split_group(split_ranks=[list(range(context.world))])
    tensor = ms.Tensor(np.ones(16, np.float32))
    kept: list[ms.runtime.Event] = []

    def none() -> None:
        tensor.is_contiguous()

    def planted() -> None:
        event = ms.runtime.Event()
        event.record()
        kept.append(event)

    def asynchronous() -> None:
        _, handle = platform.all_reduce(tensor, group, async_op=True)
        handle.wait()

    loops: dict[str, Callable[[], object]] = {
        "sync": lambda: platform.all_reduce(tensor, group),
        "async": asynchronous,
    }
    # The first collective of a process makes one event more, which is not a call's.
    for loop in loops.values():
        loop()
    context.count("live_events", live_events)
    return {**loops, "none": none, "planted": planted}
