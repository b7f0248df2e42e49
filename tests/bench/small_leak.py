"""A planted leak of 16 B a call on average (32 B every second call), against the same step without it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import mindspore as ms
import numpy as np

from repro.probes.context import Context
from repro.probes.plant import leak_bytes


def series(context: Context) -> dict[str, Callable[[], object]]:
    """The loops: one forward and backward a call."""
    del context
    x = ms.Tensor(np.ones(4, np.float32))
    backward = ms.grad(lambda value: (value * 2).sum())
    turn = count()

    def clean() -> None:
        backward(x)

    def sixteen() -> None:
        backward(x)
        if next(turn) % 2:
            leak_bytes(32)

    def planted() -> None:
        backward(x)
        leak_bytes(64)

    return {"sixteen": sixteen, "clean": clean, "planted": planted}
