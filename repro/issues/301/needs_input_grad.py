"""301.2: custom Functions applied and run back, whose needs_input_grad tuple is never released by MindSpore."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
from mindspore.common._grad_function import _Function

from repro.probes.context import Context
from repro.probes.plant import leak_object

# The report's trainer applies this many a step: 122 post-backward functions, 10 loss scalers, 1 chunked cross entropy.
APPLIES_PER_STEP = 133


class _Identity(_Function):  # type: ignore[misc]
    """Passes a value and its gradient through, as PostBackwardFunction does."""

    @staticmethod
    def forward(ctx: Any, x: ms.Tensor) -> ms.Tensor:
        del ctx
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
    del context
    x = ms.Tensor(np.ones(4, np.float32))

    def loop(function: type[_Function], planted: int) -> Callable[[], None]:
        def forward(value: ms.Tensor) -> ms.Tensor:
            for _ in range(APPLIES_PER_STEP):
                value = function.apply(value)
            return value.sum()

        backward = ms.grad(forward)

        def step() -> None:
            backward(x)
            for _ in range(planted):
                leak_object()

        return step

    return {
        "kept": loop(_Identity, 0),
        "released": loop(_Releasing, 0),
        "planted": loop(_Releasing, APPLIES_PER_STEP),
    }
