"""301.4: ops.norm over and over, whose output abstracts MindSpore keeps in a cache of bounded size."""

from __future__ import annotations

from collections.abc import Callable

import mindspore as ms
import numpy as np
from mindspore import ops

from repro.probes.context import Context
from repro.probes.plant import leak_bytes

PLANTED_B = 64


def series(context: Context) -> dict[str, Callable[[], object]]:
    """The loops; one call is one operator."""
    del context
    x = ms.Tensor(np.ones((4, 4), np.float32))

    def norm() -> None:
        ops.norm(x)

    def none() -> None:
        x.is_contiguous()

    def planted() -> None:
        norm()
        leak_bytes(PLANTED_B)

    return {"norm": norm, "none": none, "planted": planted}
