"""301.3: the report's two-card loop, all_reduce over and over, synchronous and asynchronous by turns."""

from __future__ import annotations

from collections.abc import Callable

import mindspore as ms
import mindspore.mint.distributed as dist
import numpy as np

from repro.probes.context import Context
from repro.probes.plant import leak_bytes

PLANTED_B = 64


def series(context: Context) -> dict[str, Callable[[], object]]:
    """The loops; one call is one collective, and where it is asynchronous, its wait."""
    context.init_collectives()
    tensor = ms.Tensor(np.ones(16, np.float32))

    def synchronous() -> None:
        dist.all_reduce(tensor)

    def asynchronous() -> None:
        dist.all_reduce(tensor, async_op=True).wait()

    def none() -> None:
        tensor.is_contiguous()

    def planted() -> None:
        none()
        leak_bytes(PLANTED_B)

    return {"sync": synchronous, "async": asynchronous, "none": none, "planted": planted}
