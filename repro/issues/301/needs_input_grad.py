"""301.2: custom Functions applied and run back, whose needs_input_grad tuple is never released by MindSpore.

The tuples are counted by their owners: blocks of Python's allocator say the same, but a queue or a cache of MindSpore's
that is not empty at the moment of a reading makes them jump by whole steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
from mindspore.common._grad_function import _Function

from repro.probes.context import Context
from repro.probes.owned import Owned

# The report's trainer applies this many a step: 122 post-backward functions, 10 loss scalers, 1 chunked cross entropy.
APPLIES_PER_STEP = 133
tuples = Owned()


class _Identity(_Function):  # type: ignore[misc]
    """Passes a value and its gradient through, as PostBackwardFunction does."""

    @staticmethod
    def forward(ctx: Any, x: ms.Tensor) -> ms.Tensor:
        tuples.watch(ctx.needs_input_grad)
        return x * 1

    @staticmethod
    def backward(ctx: Any, grad: ms.Tensor) -> ms.Tensor:
        del ctx
        return grad


class _Releasing(_Identity):
    """The same with the report's own workaround."""

    @staticmethod
    def backward(ctx: Any, grad: ms.Tensor) -> ms.Tensor:
        ctx.needs_input_grad = None
        return grad


def series(context: Context) -> dict[str, Callable[[], object]]:
    """The loops: one call is one training step of 133 applies and their backward."""
    if context.args.get("blocking"):
        # Without MindSpore's pipeline, whose threads wait for each other on a busy machine; what is left is the same.
        ms.runtime.launch_blocking()
    context.count("live_tuples", tuples.count)
    x = ms.Tensor(np.ones(4, np.float32))
    # MindSpore keeps the graph of the last backward until the next one; this one has no Function in it.
    last = ms.grad(lambda value: (value * 2).sum())
    kept: list[object] = []
    # A literal would be one tuple for all of them.
    flags = [True]

    def loop(function: type[_Function], *, planted: bool = False) -> Callable[[], None]:
        def forward(value: ms.Tensor) -> ms.Tensor:
            for _ in range(APPLIES_PER_STEP):
                value = function.apply(value)
            return value.sum()

        backward = ms.grad(forward)

        def step() -> None:
            backward(x)
            last(x)
            if planted:
                kept.extend(tuples.watch(tuple(flags)) for _ in range(APPLIES_PER_STEP))

        return step

    return {"kept": loop(_Identity), "released": loop(_Releasing), "planted": loop(_Releasing, planted=True)}
