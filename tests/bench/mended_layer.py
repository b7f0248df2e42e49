"""Do the mends themselves grow? A step under all mends, beside the same step with the faults worked around by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
from mindspore._c_expression import run_backward
from mindspore.common._grad_function import _Function
from mindspore.graph.api import _pynative_executor

import fixes
from fixes import hook_handles
from repro.distilled.core.dtensor.device_mesh import DeviceMesh
from repro.distilled.platform.mindspore.fully_shard.scheduler import MindSporeHSDPSchedulerV2
from repro.distilled.platform.mindspore.fully_shard.state import MindSporeHSDPStateV2
from repro.probes.context import Context
from repro.probes.plant import leak_bytes

WIDTH = 8
PLANTED_B = 64


class _Identity(_Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, x: ms.Tensor) -> ms.Tensor:
        del ctx
        return x * 1

    @staticmethod
    def backward(ctx: Any, grad: ms.Tensor) -> ms.Tensor:
        # The report's workaround: without a mend nothing else lets go of the tuple.
        ctx.needs_input_grad = None
        return grad


class _ByHand(MindSporeHSDPSchedulerV2):
    """Keeps the handles of its hooks, for whoever steps to remove."""

    def __init__(self) -> None:
        super().__init__(ms.nn.Cell(), MindSporeHSDPStateV2([]))
        self.handles: list[Any] = []

    def register(self, output: ms.Tensor) -> None:
        """As the scheduler registers its hook, but with the handle kept."""
        self.handles.append(output.register_hook(self._backward_pre_hook))


def series(context: Context) -> dict[str, Callable[[], object]]:
    """The loops: one call is one forward and backward, or one mesh."""
    del context
    ms.runtime.launch_blocking()
    x = ms.Tensor(np.ones((2, WIDTH), np.float32))
    seed = ms.Tensor(np.ones((2, WIDTH), np.float32))
    layer = ms.nn.Dense(WIDTH, WIDTH, has_bias=False)
    unit = _ByHand()
    mends = [fixes.load(fault) for fault in fixes.MODULES]

    def switch(*, on: bool) -> None:
        if on == mends[0].active:
            return
        hook_handles.MEND.remove_handles()
        for mend in mends:
            (mend.install if on else mend.remove)()

    def loop(*, mended: bool, leaks: bool = False) -> Callable[[], None]:
        def step() -> None:
            switch(on=mended)
            _pynative_executor.set_grad_flag(True)
            y = layer(x)
            (unit._register_backward_pre_hook if mended else unit.register)(y)
            run_backward((_Identity.apply(y),), (seed,), False, False, (), allow_unreachable=True, accumulate_grad=True)
            _pynative_executor.set_grad_flag(False)
            layer.weight._grad = None
            while unit.handles:
                unit.handles.pop().remove()
            if leaks:
                leak_bytes(PLANTED_B)

        return step

    return {
        "mended": loop(mended=True),
        "by-hand": loop(mended=False),
        "planted": loop(mended=False, leaks=True),
        # No operator runs for a mended mesh, so there is nothing beside it but the loop.
        "mesh": lambda: DeviceMesh([0], ["dp"], 0),
        "nothing": x.is_contiguous,
        "leak": lambda: leak_bytes(PLANTED_B),
    }
