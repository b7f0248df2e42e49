"""301.1: a hook on an output Tensor each step, as the HSDP scheduler registers it, its handle dropped or removed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np

from repro.distilled.platform.mindspore.fully_shard.scheduler import MindSporeHSDPSchedulerV2
from repro.distilled.platform.mindspore.fully_shard.state import MindSporeHSDPStateV2
from repro.probes.context import Context
from repro.probes.plant import leak_bytes

PLANTED_B = 64


def series(context: Context) -> dict[str, Callable[[], object]]:
    """The loops: one forward and backward with one hook a call."""
    if context.args.get("blocking"):
        # Without MindSpore's pipeline, whose threads wait for each other on a busy machine; what is left is the same.
        ms.runtime.launch_blocking()
    x = ms.Tensor(np.ones(4, np.float32))
    scheduler = MindSporeHSDPSchedulerV2(ms.nn.Cell(), MindSporeHSDPStateV2([]))
    handles: list[Any] = []

    def dropped(y: ms.Tensor) -> None:
        scheduler._register_backward_pre_hook(y)

    def kept(y: ms.Tensor) -> None:
        handles.append(y.register_hook(scheduler._backward_pre_hook))

    def loop(register: Callable[[ms.Tensor], object], after: Callable[[], None]) -> Callable[[], None]:
        def forward(value: ms.Tensor) -> ms.Tensor:
            y = value * 2
            register(y)
            return y.sum()

        backward = ms.grad(forward)

        def step() -> None:
            backward(x)
            after()

        return step

    def remove() -> None:
        handles.pop().remove()

    return {
        "dropped": loop(dropped, lambda: None),
        "removed": loop(kept, remove),
        "no-hook": loop(lambda _: None, lambda: None),
        "planted": loop(lambda _: None, lambda: leak_bytes(PLANTED_B)),
    }
